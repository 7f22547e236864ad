//! Checks of the role and the connection before a store is used.

use tokio_postgres::{Error, SimpleQueryMessage};

use super::{
    address::Address,
    error,
    session::{Role, Session},
};
use crate::error::EngineError;

/// Number of times to check whether two sessions share a server connection.
const PROBES: u8 = 3;

/// Checks that each session keeps its own server connection.
///
/// # Errors
///
/// Returns [`EngineError::Forbidden`] behind a pooler that does not guarantee this, and an error if
/// the database does not respond.
pub(super) async fn check_sessions(
    address: &Address,
    session: &Session,
) -> Result<(), EngineError> {
    let other = Session::open(address, Role::Reader).await?;
    for number in 0..PROBES {
        for (session, name) in [(session, "one"), (&other, "other")] {
            let set = format!("SET bellwether.probe = '{name} {number}'");
            let set = session.client.batch_execute(&set).await;
            set.map_err(|error| error::read_error(&error))?;
        }
        let text = "SELECT current_setting('bellwether.probe', true)";
        let read = session.client.simple_query(text).await;
        let read = read.map_err(|error| error::read_error(&error))?;
        let is_preserved = read.iter().any(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0) == Some(&*format!("one {number}")),
            _ => false,
        });
        if !is_preserved {
            return Err(EngineError::Forbidden(
                "it is reached through a pooler that changes the connection between transactions \
                 (PgBouncer in transaction mode); connect to the server itself, or set `pool_mode = \
                 session`"
                    .into(),
            ));
        }
    }
    Ok(())
}

/// Checks that a role has all rights on the tables that a node requires. `None` means the current
/// role.
///
/// # Errors
///
/// Returns [`EngineError::Forbidden`] with the statements that grant the missing rights.
pub(super) async fn check_rights(
    session: &Session,
    schema: &str,
    role: Option<&str>,
) -> Result<(), EngineError> {
    let lacking = missing_rights(session, schema, role).await;
    let (role, lacking) = lacking.map_err(|error| error::read_error(&error))?;
    if lacking.is_empty() {
        return Ok(());
    }
    Err(EngineError::Forbidden(format!(
        "the role {role} lacks {}; as the owner run: GRANT USAGE ON SCHEMA {schema} TO {role}; GRANT \
         SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; GRANT USAGE ON \
         ALL SEQUENCES IN SCHEMA {schema} TO {role};",
        lacking.join(", ")
    )))
}

/// Returns roles other than the current one that may write events to a store. These are the roles
/// of nodes.
pub(super) async fn other_writers(session: &Session, schema: &str) -> Result<Vec<String>, Error> {
    let text = format!(
        "SELECT quote_ident(rolname) FROM pg_roles JOIN pg_class c \
         ON c.relnamespace = to_regnamespace('{schema}') AND c.relname = 'occurrence' \
         WHERE NOT rolsuper AND rolcanlogin AND rolname <> current_user \
         AND has_table_privilege(rolname, c.oid, 'INSERT')"
    );
    let rows = session.client.query(&text, &[]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Returns the role's name and its missing rights. If the schema does not exist, no rights are
/// missing.
async fn missing_rights(
    session: &Session,
    schema: &str,
    role: Option<&str>,
) -> Result<(String, Vec<String>), Error> {
    let client = &session.client;
    let text = "SELECT quote_ident(coalesce($1, current_user::text))";
    let shown: String = client.query_one(text, &[&role]).await?.try_get(0)?;
    // Nodes only read the table `layout`.
    let text = format!(
        "WITH asked AS (SELECT oid AS role FROM pg_roles WHERE quote_ident(rolname) = $1) \
         SELECT 'USAGE on schema {schema}' FROM asked, pg_namespace n \
         WHERE n.oid = to_regnamespace('{schema}') \
         AND NOT has_schema_privilege(role, n.oid, 'USAGE') \
         UNION ALL \
         SELECT string_agg(needed, ', ') || ' on ' || min(c.relname) FROM asked, pg_class c, \
         unnest(CASE WHEN c.relkind = 'S' THEN ARRAY['USAGE'] \
                     WHEN c.relname = 'layout' THEN ARRAY['SELECT'] \
                     ELSE ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'] END) AS needed \
         WHERE c.relnamespace = to_regnamespace('{schema}') AND c.relkind IN ('r', 'S') \
         AND NOT CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(role, c.oid, needed) \
                 ELSE has_table_privilege(role, c.oid, needed) END \
         GROUP BY c.oid"
    );
    let rows = client.query(&text, &[&shown]).await?;
    let lacking = rows.iter().map(|row| row.try_get(0));
    Ok((shown, lacking.collect::<Result<_, _>>()?))
}
