//! Tests of a database that has lost commits.

use std::time::Duration;

use tokio::time::timeout;

use super::{
    super::session::{Role, Session},
    fresh, open,
};
use crate::{
    Cluster, Engine,
    change::{Action, Change, Expect, Lane},
    error::EngineError,
    kind::Kind,
};

/// Statements that change a log with five steps, and whether the statement loses commits.
const CASES: [(&str, bool); 5] = [
    ("DELETE FROM log WHERE place = 5", true),
    ("DELETE FROM log WHERE place >= 2", true),
    ("UPDATE log SET writer = 'another' WHERE place = 5", true),
    ("UPDATE log SET batch = batch + 1 WHERE place = 5", true),
    // This is how old steps are trimmed.
    ("DELETE FROM log WHERE place < 5", false),
];

#[tokio::test]
async fn rolled_back_log_is_distinguished_from_trimmed_log() {
    for (statement, is_lost) in CASES {
        let Some(address) = fresh().await else { return };
        let (one, other) = (open(&address).await, open(&address).await);
        for key in 0..5 {
            let put = Action::Put(vec![key]);
            let change = Change::new(Kind::Rule, &[key], Expect::Absent, put);
            let applied = one.apply(Lane::Bulk, vec![change].into()).await.unwrap();
            let mut signal = other.log_signal();
            signal.wait_for(|it| *it == applied.position).await.unwrap();
        }
        let session = Session::open(&address, Role::Writer).await.unwrap();
        let there = format!("SET search_path TO {}; {statement}", address.schema);
        session.client.batch_execute(&there).await.unwrap();
        for engine in [&one, &other] {
            let within = Duration::from_millis(if is_lost { 20_000 } else { 500 });
            let gone_back = timeout(within, engine.wait_until_reverted()).await;
            assert_eq!(gone_back.is_ok(), is_lost, "{statement}: {gone_back:?}");
        }
        let change = Change::new(Kind::Rule, b"x", Expect::Absent, Action::Put(vec![1]));
        let applied = one.apply(Lane::Bulk, vec![change].into()).await;
        match applied {
            Ok(_) => assert!(!is_lost, "{statement}"),
            Err(EngineError::Unavailable(_)) => assert!(is_lost, "{statement}"),
            Err(error) => panic!("{statement}: {error}"),
        }
    }
}
