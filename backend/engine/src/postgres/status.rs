//! The state of a store, read without opening it.

use tokio_postgres::Error;

use super::{
    address::Address,
    error,
    migration::{self, Layout},
    node,
    plan::position_from_db,
    query::Query,
    requirements,
    session::{Role, Session},
};
use crate::{
    cluster::ClusterNode, error::EngineError, limits::STORE_NODE_TIME_MAX, position::LogPosition,
};

const SERVER_MIN: i32 = 150_000;

#[derive(Debug, Clone)]
pub struct Status {
    /// The server's version, such as `15.8`.
    pub server: String,
    server_number: i32,
    /// Server settings that are disabled although the database can lose confirmed commits without
    /// them.
    pub unsafe_settings: Vec<String>,
    /// The standbys that each commit waits for, as configured on the server. Empty if there are
    /// none.
    pub standbys: String,
    pub replicas: i64,
    encoding: String,
    /// The layout of the tables; `None` if there is no store.
    pub layout: Option<Layout>,
    /// Details of the store, if this version supports its layout.
    pub store: Option<StoreStatus>,
}

#[derive(Debug, Clone)]
pub struct StoreStatus {
    pub head: LogPosition,
    pub rows: u64,
    pub bytes: u64,
    pub nodes: Vec<ClusterNode>,
}

impl Status {
    /// Checks that the server meets the requirements of a store, and that this version supports the
    /// table layout.
    pub fn check(&self) -> Result<(), String> {
        self.check_server()?;
        Layout::check(self.layout)
    }

    pub fn check_database(&self) -> Result<(), String> {
        self.check_server()?;
        match &*self.encoding {
            "UTF8" => Ok(()),
            other => Err(format!(
                "the database has the encoding {other}, but UTF8 is required; create one with \
                 ENCODING 'UTF8' TEMPLATE template0"
            )),
        }
    }

    /// Checks that the server meets the requirements of a store.
    pub fn check_server(&self) -> Result<(), String> {
        if self.server_number < SERVER_MIN {
            return Err(format!(
                "PostgreSQL {} is too old; 15 or newer is required",
                self.server
            ));
        }
        match &*self.unsafe_settings {
            [] => Ok(()),
            off => Err(format!(
                "the server runs with {} = off and can lose confirmed commits if its machine \
                 fails; turn it on",
                off.join(" = off and ")
            )),
        }
    }
}

pub async fn read_status(address: &Address) -> Result<Status, EngineError> {
    let session = Session::open(address, Role::Reader).await?;
    requirements::check_sessions(address, &session).await?;
    requirements::check_rights(&session, &address.schema, None).await?;
    let unread = |error: Error| error::read_error(&error);
    let client = &session.client;
    let text = "SELECT current_setting('server_version'), \
                current_setting('server_version_num')::int, \
                array(SELECT name::text FROM pg_settings WHERE setting = 'off' \
                AND name IN ('fsync', 'full_page_writes') ORDER BY name), \
                current_setting('synchronous_standby_names'), \
                (SELECT count(*) FROM pg_stat_replication), \
                current_setting('server_encoding')";
    let row = client.query_one(text, &[]).await.map_err(unread)?;
    let layout = migration::read_layout(client, &address.schema).await?;
    let store = match layout {
        Some(found) if Layout::check(Some(found)).is_ok() => Some(
            read_store_status(&session, &address.schema)
                .await
                .map_err(unread)?,
        ),
        _ => None,
    };
    Ok(Status {
        server: row.try_get(0).map_err(unread)?,
        server_number: row.try_get(1).map_err(unread)?,
        unsafe_settings: row.try_get(2).map_err(unread)?,
        standbys: row.try_get(3).map_err(unread)?,
        replicas: row.try_get(4).map_err(unread)?,
        encoding: row.try_get(5).map_err(unread)?,
        layout,
        store,
    })
}

/// Returns the names of the live nodes of a store, which may have an earlier layout.
pub async fn running_nodes(address: &Address) -> Result<Vec<String>, EngineError> {
    let session = Session::open(address, Role::Reader).await?;
    let table = format!("{}.node", address.schema);
    let names = async {
        // The first layouts do not have the table.
        let row = session
            .client
            .query_one("SELECT to_regclass($1)::text", &[&table])
            .await?;
        if row.try_get::<_, Option<String>>(0)?.is_none() {
            return Ok(Vec::new());
        }
        let text = format!(
            "SELECT name FROM {table} \
             WHERE renewed > clock_timestamp() - $1 * interval '1 second' ORDER BY name"
        );
        let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
        let rows = session.client.query(&text, &[&seconds]).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    };
    names
        .await
        .map_err(|error: Error| error::read_error(&error))
}

async fn read_store_status(session: &Session, schema: &str) -> Result<StoreStatus, Error> {
    let head = session.prepare(Query::Head).await?;
    let head: Option<i64> = session.client.query_one(&head, &[]).await?.try_get(0)?;
    let rows = session.prepare(Query::Rows).await?;
    let rows: i64 = session.client.query_one(&rows, &[]).await?.try_get(0)?;
    let bytes = format!(
        "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class \
         WHERE relkind = 'r' AND relnamespace = to_regnamespace('{schema}')"
    );
    let bytes: i64 = session.client.query_one(&bytes, &[]).await?.try_get(0)?;
    let nodes = session.prepare(Query::Nodes).await?;
    let seconds = STORE_NODE_TIME_MAX.as_secs_f64();
    let nodes = session.client.query(&nodes, &[&seconds]).await?;
    let nodes = nodes.iter().map(|row| node::decode_node(row, None));
    let nodes = nodes.collect::<Result<_, _>>()?;
    Ok(StoreStatus {
        head: position_from_db(head.unwrap_or_default()),
        rows: rows.unsigned_abs(),
        bytes: bytes.unsigned_abs(),
        nodes,
    })
}
