//! Tests of the table layout and its migration.

use std::{collections::BTreeSet, time::Duration};

use tokio_postgres::types::ToSql;

use super::{
    super::{
        address::Address,
        cell,
        layout::{self, IndexLocation},
        migration,
        session::{Role, Session},
    },
    fresh, open,
};
use crate::{
    Engine,
    index::Index,
    kind::Kind,
    position::LogPosition,
    read::{Direction, Range},
};

/// Creates a store with the first layout; `None` if no server is installed.
async fn of_first_layout() -> Option<(Address, Session)> {
    let mut address = fresh().await?;
    address.schema = format!("t{:x}", rand::random::<u64>());
    let session = Session::open(&address, Role::Writer).await.unwrap();
    let (schema, first) = (&address.schema, migration::STEPS[0]);
    let script = format!(
        "BEGIN; CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}; \
         CREATE TABLE layout (id int PRIMARY KEY, version int NOT NULL, \
         oldest_reader int NOT NULL); {first} INSERT INTO layout VALUES (1, 1, 1); \
         INSERT INTO delivery (key, version, value, by_rule) VALUES ('k', 7, 'v', 'r'); \
         INSERT INTO occurrence_by_state VALUES ('t', 'o'); \
         INSERT INTO writer VALUES ('w', 1); \
         INSERT INTO holder VALUES (1, 'n', 'n', clock_timestamp(), clock_timestamp()); COMMIT"
    );
    session.client.batch_execute(&script).await.unwrap();
    Some((address, session))
}

#[tokio::test]
async fn migration_keeps_concurrent_commits() {
    let Some((address, session)) = of_first_layout().await else {
        return;
    };
    let (schema, client) = (&address.schema, &session.client);
    let insert = format!(
        "BEGIN; INSERT INTO {schema}.occurrence (key, version, value, by_event) \
         VALUES ('late', 7, 'v', 'e')"
    );
    client.batch_execute(&insert).await.unwrap();
    let commit = async {
        let waits = format!(
            "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '{schema}.occurrence'::regclass"
        );
        while client.query(&waits, &[]).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client.batch_execute("COMMIT").await.unwrap();
    };
    let (raised, ()) = tokio::join!(migration::migrate(&address), commit);
    raised.unwrap();
    let query = format!("SELECT 1 FROM {schema}.occurrence_now WHERE key = 'late' AND version = 7");
    assert_eq!(client.query(&query, &[]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn first_layout_is_migrated_with_its_data() {
    let Some((address, session)) = of_first_layout().await else {
        return;
    };
    let schema = &address.schema;
    let insert = format!(
        "INSERT INTO {schema}.occurrence (key, version, value, by_event, by_start) \
         VALUES ($1, 7, $2, $3, $3)"
    );
    let entries: [(&[u8], Option<&[u8]>); 2] = [(b"o", Some(b"e")), (b"p", None)];
    for (key, entry) in entries {
        let value = cell::seal_cell(Kind::Occurrence, key, b"v");
        let parameters: [&(dyn ToSql + Sync); 3] = [&key, &value, &entry];
        session.client.execute(&insert, &parameters).await.unwrap();
    }
    let found = migration::migrate(&address).await.unwrap().unwrap();
    assert_eq!(found.version, 1);
    // Running nodes of an earlier version no longer lead or write.
    let text = format!(
        "SELECT node = '' AND renewed = 'infinity' AND NOT EXISTS (SELECT 1 FROM {schema}.writer) \
         FROM {schema}.holder"
    );
    let row = session.client.query_one(&text, &[]).await.unwrap();
    assert!(row.get::<_, bool>(0));
    let engine = open(&address).await;
    let (whole, first) = (|| Range::with_prefix(&[]), Direction::Ascending);
    let by_rule = engine.entries(Index::DeliveryByRule, whole(), first, 1);
    assert_eq!(by_rule.await.unwrap(), [(b"r".to_vec(), b"k".to_vec())]);
    let by_digest = engine.entries(Index::DeliveryByDigest, whole(), first, 1);
    assert!(by_digest.await.unwrap().is_empty());
    let keys = [b"o".to_vec(), b"p".to_vec()];
    for row in engine.get(Kind::Occurrence, &keys).await.unwrap() {
        let row = row.unwrap();
        assert_eq!((row.version, &*row.value), (7, &b"v"[..]));
    }
    for (index, entry) in [
        (Index::OccurrenceByState, b"t"),
        (Index::OccurrenceByEvent, b"e"),
        (Index::OccurrenceByStart, b"e"),
    ] {
        let found = engine.entries(index, whole(), first, 9).await.unwrap();
        assert_eq!(found, [(entry.to_vec(), b"o".to_vec())], "{index:?}");
    }
}

#[tokio::test]
async fn tables_match_the_declared_kinds_and_indexes() {
    let Some(address) = fresh().await else { return };
    let session = Session::open(&address, Role::Reader).await.unwrap();
    let text = "SELECT table_name::text, column_name::text FROM information_schema.columns \
                WHERE table_schema = $1 AND table_name NOT IN \
                ('head', 'log', 'writer', 'holder', 'node', 'layout', 'counter_part', \
                'claim')";
    let schema = address.schema.trim_matches('"').to_owned();
    let rows = session.client.query(text, &[&schema]).await.unwrap();
    let found: BTreeSet<(String, String)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut listed = BTreeSet::new();
    let mut add = |table: &str, columns: &[&str]| {
        listed.extend(
            columns
                .iter()
                .map(|it| (table.to_owned(), (*it).to_owned())),
        );
    };
    for kind in Kind::ALL {
        add(kind.table_name(), &["key", "version", "value"]);
    }
    for index in Index::ALL {
        match layout::index_location(index) {
            IndexLocation::Column(name) => add(index.kind().table_name(), &[name]),
            IndexLocation::SideTable(name) => {
                add(layout::side_table(index.kind()).unwrap(), &["key", name]);
            }
            IndexLocation::Table(name) => add(name, &["entry", "record"]),
        }
    }
    assert_eq!(found, listed);
    assert_eq!(
        migration::migrate(&address).await.unwrap().unwrap().version,
        migration::NEWEST
    );
    assert!(
        open(&address).await.log_head().await.unwrap() == LogPosition::START,
        "nothing was created again"
    );
}
