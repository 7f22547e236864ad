//! Creation and migration of the tables, run by their owner. Migrations go forward only, and each
//! step only adds to the tables.

use tokio_postgres::Client;

use super::{
    address::Address,
    error,
    plan::position_to_db,
    requirements,
    session::{Role, Session},
};
use crate::{error::EngineError, kind::Kind, ownership::LEAD, position::LogPosition};

/// The first steps; later ones may add tables for new kinds. Released steps never change.
pub(super) const STEPS: [&str; 12] = [
    include_str!("layout/1.sql"),
    include_str!("layout/2.sql"),
    include_str!("layout/3.sql"),
    // Layout 4 only adds the table of a kind.
    "",
    include_str!("layout/5.sql"),
    include_str!("layout/6.sql"),
    include_str!("layout/7.sql"),
    include_str!("layout/8.sql"),
    include_str!("layout/9.sql"),
    include_str!("layout/10.sql"),
    include_str!("layout/11.sql"),
    // Layout 12 only adds the table of a kind.
    "",
];
/// The newest layout that this version knows.
pub(super) const NEWEST: i32 = 12;
const LAYOUT: &str = "CREATE TABLE IF NOT EXISTS layout \
    (id int PRIMARY KEY, version int NOT NULL, oldest_reader int NOT NULL)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub version: i32,
    /// The oldest layout that a program must support to use the store.
    pub oldest_reader: i32,
}

impl Layout {
    pub const NEWEST: i32 = NEWEST;

    /// Whether the migration to the newest layout removes running nodes, which cannot use it.
    pub fn migration_removes_nodes(self) -> bool {
        let done = usize::try_from(self.version).unwrap_or_default();
        let mut left = STEPS.iter().skip(done);
        left.any(|step| step.contains("DELETE FROM node;"))
    }

    /// Checks whether this version can use a store with the layout.
    ///
    /// # Errors
    ///
    /// Returns a message that states what is required instead.
    pub fn check(found: Option<Self>) -> Result<(), String> {
        match found {
            None => Err("no store in this schema; create one with `bellwether store init`".into()),
            Some(found) if found.oldest_reader > NEWEST => Err(format!(
                "its tables have layout {} of a later version, which requires a version \
                 that supports layout {}; this version supports layouts up to {NEWEST}",
                found.version, found.oldest_reader
            )),
            Some(found) if found.version < NEWEST => Err(format!(
                "its tables have layout {}, but this version requires layout {NEWEST}; run \
                 `bellwether store migrate`",
                found.version
            )),
            Some(_) => Ok(()),
        }
    }
}

fn migration_script(schema: &str, from: i32) -> String {
    let done = usize::try_from(from).unwrap_or_default();
    let steps = STEPS[done.min(STEPS.len())..].concat();
    let added = Kind::ALL.into_iter().filter(|it| it.layout() > Some(from));
    let tables = added.map(|kind| {
        let table = kind.table_name();
        format!(
            "CREATE TABLE {table} (\n  key bytea PRIMARY KEY,\n  version bigint NOT NULL,\n  \
             value bytea NOT NULL\n);\n"
        )
    });
    let tables = tables.collect::<Vec<_>>().concat();
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED;\nCREATE SCHEMA IF NOT EXISTS {schema};\nSET LOCAL search_path TO {schema};\n\
         {LAYOUT};\n{steps}{tables}\
         INSERT INTO layout (id, version, oldest_reader) VALUES (1, {NEWEST}, {NEWEST})\n  \
         ON CONFLICT (id) DO UPDATE SET version = excluded.version, \
         oldest_reader = excluded.oldest_reader;\nCOMMIT;\n"
    )
}

impl Address {
    /// Returns the statements that create the tables or migrate them from a layout, as one
    /// transaction.
    pub fn script(&self, from: i32) -> String {
        migration_script(&self.schema, from)
    }
}

pub(super) async fn read_layout(
    client: &Client,
    schema: &str,
) -> Result<Option<Layout>, EngineError> {
    let found = async {
        let known = client
            .query_one(
                "SELECT to_regclass($1)::text",
                &[&format!("{schema}.layout")],
            )
            .await?;
        if known.try_get::<_, Option<String>>(0)?.is_none() {
            return Ok(None);
        }
        let text = format!("SELECT version, oldest_reader FROM {schema}.layout WHERE id = 1");
        let Some(row) = client.query_opt(&text, &[]).await? else {
            return Ok(None);
        };
        Ok(Some(Layout {
            version: row.try_get(0)?,
            oldest_reader: row.try_get(1)?,
        }))
    };
    found.await.map_err(|error| error::read_error(&error))
}

/// Creates the tables or migrates them to the newest layout. Returns the previous layout.
///
/// # Errors
///
/// Returns an error, without changing the schema, if the database does not respond or denies the
/// change.
pub async fn migrate(address: &Address) -> Result<Option<Layout>, EngineError> {
    let session = Session::open(address, Role::Writer).await?;
    let client = &session.client;
    let found = read_layout(client, &address.schema).await?;
    let version = found.map_or(0, |found| found.version);
    if version < NEWEST {
        let script = migration_script(&address.schema, version);
        let made = client.batch_execute(&script);
        if let Err(error) = made.await {
            drop(client.batch_execute("ROLLBACK").await);
            return Err(error::read_error(&error));
        }
    }
    enable_lz4_compression(client, &address.schema).await?;
    // The role of the nodes may lack rights on new tables.
    let roles = requirements::other_writers(&session, &address.schema).await;
    for role in roles.map_err(|error| error::read_error(&error))? {
        let rights = requirements::check_rights(&session, &address.schema, Some(&role)).await;
        if let Err(missing) = rights {
            tracing::warn!("nodes cannot use the tables yet: {missing}");
        }
    }
    Ok(found)
}

/// Empties the tables of a store. Its change log then begins at `first_position` with a unique
/// step, so that a node of the old store does not mistake the new log for the old one.
///
/// # Errors
///
/// Returns an error, without changing the schema, if the database does not respond or denies the
/// change.
pub async fn clear_tables(
    address: &Address,
    first_position: LogPosition,
) -> Result<(), EngineError> {
    let session = Session::open(address, Role::Writer).await?;
    let (client, schema) = (&session.client, &address.schema);
    let emptied = async {
        let text = format!(
            "SELECT format('%I', relname) FROM pg_class WHERE relkind = 'r' \
             AND relname <> 'layout' AND relnamespace = to_regnamespace('{schema}')"
        );
        let rows = client.query(&text, &[]).await?;
        let tables = rows.iter().map(|row| row.try_get::<_, String>(0));
        let tables: Vec<String> = tables.collect::<Result<_, _>>()?;
        let tables: Vec<String> = tables.iter().map(|it| format!("{schema}.{it}")).collect();
        let text = format!(
            "BEGIN; TRUNCATE {}; INSERT INTO {schema}.head (id, definitions) VALUES (1, 0); \
             INSERT INTO {schema}.log (place, at, writer, batch, version, changed) \
             VALUES ({}, clock_timestamp(), uuid_send(gen_random_uuid()), 0, 0, ''); \
             INSERT INTO {schema}.claim (slot, writer, epoch, node) \
             SELECT slot, '', 0, '' FROM generate_series(0, {LEAD}) AS slot; COMMIT",
            tables.join(", "),
            position_to_db(first_position)
        );
        client.batch_execute(&text).await
    };
    let emptied: Result<(), tokio_postgres::Error> = emptied.await;
    emptied.map_err(|error| error::read_error(&error))
}

async fn enable_lz4_compression(client: &Client, schema: &str) -> Result<(), EngineError> {
    let compressed = async {
        let text = "SELECT 'lz4' = ANY(enumvals) FROM pg_settings \
                    WHERE name = 'default_toast_compression'";
        let row = client.query_opt(text, &[]).await?;
        if row.and_then(|row| row.get::<_, Option<bool>>(0)) != Some(true) {
            return Ok(());
        }
        for table in ["occurrence_now", "delivery", "attempt"] {
            let text = format!("ALTER TABLE {schema}.{table} ALTER value SET COMPRESSION lz4");
            client.batch_execute(&text).await?;
        }
        Ok(())
    };
    compressed
        .await
        .map_err(|error: tokio_postgres::Error| error::read_error(&error))
}
