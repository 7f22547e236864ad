//! The layout of the tables, and what raises it.

use std::collections::BTreeSet;

use super::{
    super::{
        layout::{self, IndexPlace},
        migration,
    },
    fresh, open,
};
use crate::{
    Engine,
    index::Index,
    kind::Kind,
    read::{Direction, Range},
};

#[tokio::test]
async fn a_store_of_the_first_layout_is_raised_with_what_is_in_it() {
    use super::super::session::{Role, Session};
    let Some(mut address) = fresh().await else {
        return;
    };
    address.schema = format!("t{:x}", rand::random::<u64>());
    let session = Session::open(&address, Role::Writer).await.unwrap();
    let (schema, first) = (&address.schema, migration::STEPS[0]);
    let script = format!(
        "BEGIN; CREATE SCHEMA {schema}; SET LOCAL search_path TO {schema}; \
         CREATE TABLE layout (id int PRIMARY KEY, version int NOT NULL, \
         oldest_reader int NOT NULL); {first} INSERT INTO layout VALUES (1, 1, 1); \
         INSERT INTO delivery (key, version, value, by_rule) VALUES ('k', 7, 'v', 'r'); \
         INSERT INTO holder VALUES (1, 'n', 'n', clock_timestamp(), clock_timestamp()); COMMIT"
    );
    session.client.batch_execute(&script).await.unwrap();
    let found = migration::migrate(&address).await.unwrap().unwrap();
    assert_eq!(found.version, 1);
    // Nodes of an earlier version, which may still run, do not lead any more.
    let text = format!("SELECT node = '' AND renewed = 'infinity' FROM {schema}.holder");
    let row = session.client.query_one(&text, &[]).await.unwrap();
    assert!(row.get::<_, bool>(0));
    let engine = open(&address).await;
    let (whole, first) = (|| Range::under(&[]), Direction::Ascending);
    let by_rule = engine.entries(Index::DeliveryByRule, whole(), first, 1);
    assert_eq!(by_rule.await.unwrap(), [(b"r".to_vec(), b"k".to_vec())]);
    let by_digest = engine.entries(Index::DeliveryByDigest, whole(), first, 1);
    assert!(by_digest.await.unwrap().is_empty());
}

#[tokio::test]
async fn the_tables_are_those_of_the_list() {
    let Some(address) = fresh().await else { return };
    let session =
        super::super::session::Session::open(&address, super::super::session::Role::Reader)
            .await
            .unwrap();
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
        add(kind.table(), &["key", "version", "value"]);
    }
    for index in Index::ALL {
        match layout::place(index) {
            IndexPlace::Column(name) => add(index.kind().table(), &[name]),
            IndexPlace::Table(name) => add(name, &["entry", "record"]),
        }
    }
    assert_eq!(found, listed);
    assert_eq!(
        migration::migrate(&address).await.unwrap().unwrap().version,
        migration::NEWEST
    );
    assert!(
        open(&address).await.log_head().await.unwrap() == 0,
        "nothing was made anew"
    );
}
