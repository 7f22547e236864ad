//! Tests of counters with several writers.

use futures_util::future::join_all;

use super::{
    super::{
        PostgresEngine,
        follower::fold_idle_rows,
        migration::STEPS,
        session::{Role, Session},
    },
    fresh, migrate, open,
};
use crate::{
    Engine,
    change::{Action, Change, Expect, Lane, decode_numbers},
    kind::Kind,
    read::{Direction, Range},
};

async fn add(engine: &PostgresEngine, key: &[u8], numbers: &[i64]) {
    let change = Change {
        is_logged: false,
        ..Change::new(Kind::Counter, key, Expect::Any, Action::Add(numbers.into()))
    };
    let added = engine.apply(Lane::Bulk, vec![change].into()).await;
    added.unwrap();
}

async fn counter(engine: &PostgresEngine, key: &[u8]) -> Option<Vec<i64>> {
    let rows = engine.get(Kind::Counter, &[key.to_vec()]).await.unwrap();
    rows[0]
        .as_ref()
        .map(|row| decode_numbers(&row.value).unwrap())
}

async fn rows(session: &Session, schema: &str) -> (i64, i64) {
    let text = format!(
        "SELECT (SELECT count(*) FROM {schema}.counter_part), \
         (SELECT count(*) FROM {schema}.counter)"
    );
    let row = session.client.query_one(&text, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test]
async fn counts_of_three_nodes_survive_concurrent_folding() {
    let Some(address) = fresh().await else { return };
    let engines = [
        open(&address).await,
        open(&address).await,
        open(&address).await,
    ];
    let session = Session::open(&address, Role::Reader).await.unwrap();
    let count = async |engine: &PostgresEngine| {
        for turn in 0..30 {
            add(engine, b"all", &[1, turn, -1]).await;
            add(engine, b"none", &[1]).await;
            add(engine, b"none", &[-1]).await;
        }
    };
    let fold = async {
        for _ in 0..30 {
            fold_idle_rows(&session, u64::MAX).await.unwrap();
        }
    };
    let counting = join_all(engines.iter().map(count));
    tokio::join!(counting, fold);
    let all = Some(vec![90, 3 * 435, -90]);
    assert_eq!(counter(&engines[0], b"all").await, all);
    assert_eq!(counter(&engines[0], b"none").await, None);
    fold_idle_rows(&session, u64::MAX).await.unwrap();
    assert_eq!(rows(&session, &address.schema).await, (0, 1));
    assert_eq!(counter(&engines[1], b"all").await, all);
    // The fold skips a row that has changed in the meantime.
    add(&engines[0], b"all", &[1]).await;
    let newest = fold_idle_rows(&session, 0).await.unwrap();
    assert_eq!(rows(&session, &address.schema).await, (1, 1));
    fold_idle_rows(&session, newest + 1).await.unwrap();
    assert_eq!(rows(&session, &address.schema).await, (0, 1));
    let all = Some(vec![91, 3 * 435, -90]);
    assert_eq!(counter(&engines[2], b"all").await, all);
}

#[tokio::test]
async fn pages_skip_zero_counters_in_both_directions() {
    let Some(address) = fresh().await else { return };
    let engines = [open(&address).await, open(&address).await];
    for number in 0..9_u8 {
        for engine in &engines {
            add(engine, &[number], &[1, 2]).await;
        }
        if number % 3 > 0 {
            add(&engines[0], &[number], &[-2, -4]).await;
        }
    }
    for direction in [Direction::Ascending, Direction::Descending] {
        for limit in 1..5 {
            let page =
                engines[1].read_page(Kind::Counter, Range::with_prefix(&[]), direction, limit);
            let found: Vec<_> = page.await.unwrap().into_iter().map(|it| it.0).collect();
            let mut all = vec![vec![0], vec![3], vec![6]];
            if direction == Direction::Descending {
                all.reverse();
            }
            all.truncate(limit);
            assert_eq!(found, all, "{direction:?}, at most {limit}");
        }
    }
}

#[tokio::test]
async fn counters_of_earlier_layout_are_continued() {
    let Some(mut address) = fresh().await else {
        return;
    };
    address.schema = format!("t{:x}", rand::random::<u64>());
    let session = Session::open(&address, Role::Writer).await.unwrap();
    let kinds = Kind::ALL.into_iter();
    let added = kinds.filter(|kind| kind.layout().is_some_and(|layout| layout <= 5));
    let tables = added.map(|kind| {
        let table = kind.table_name();
        format!(
            "CREATE TABLE {table} (key bytea PRIMARY KEY, version bigint NOT NULL, \
             value bytea NOT NULL);"
        )
    });
    let earlier = format!(
        "CREATE SCHEMA {schema}; SET search_path TO {schema}; CREATE TABLE layout \
         (id int PRIMARY KEY, version int NOT NULL, oldest_reader int NOT NULL); {steps} {tables} \
         INSERT INTO layout VALUES (1, 5, 5); \
         INSERT INTO counter VALUES ('a', 3, int8send(5) || int8send(-7))",
        schema = address.schema,
        steps = STEPS[..5].concat(),
        tables = tables.collect::<String>(),
    );
    session.client.batch_execute(&earlier).await.unwrap();
    assert_eq!(migrate(&address).await.unwrap().unwrap().version, 5);
    let engine = open(&address).await;
    assert_eq!(counter(&engine, b"a").await, Some(vec![5, -7]));
    add(&engine, b"a", &[0, 8, 1]).await;
    assert_eq!(counter(&engine, b"a").await, Some(vec![5, 1, 1]));
    add(&engine, b"a", &[-5, -1, -1]).await;
    assert_eq!(counter(&engine, b"a").await, None);
}
