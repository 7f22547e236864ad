//! Tests of several nodes with one leader and divided slots.

use std::{ops::Range, time::Duration};

use tokio::time::{Instant, sleep, timeout};

use super::{
    super::session::{Role, Session},
    Node, PostgresEngine, fresh,
};
use crate::{
    Cluster, Engine,
    change::{Action, ApplyResult, Change, ChangeSet, Expect, Lane},
    error::EngineError,
    kind::Kind,
    limits::{STORE_NODE_RENEWED_EVERY, STORE_NODE_TIME_MAX},
    ownership::{Claim, SLOTS},
    position::LogPosition,
    postgres::Address,
};

const LONG: Duration = Duration::from_secs(120);

fn insert(key: &[u8]) -> Vec<Change> {
    let put = Action::Put(key.to_vec());
    vec![Change::new(Kind::Rule, key, Expect::Absent, put)]
}

async fn node(address: &Address, name: &str) -> PostgresEngine {
    let node = Node::join(address, name).await.unwrap();
    let engine = PostgresEngine::open(address.clone(), Some(node)).await;
    engine.unwrap()
}

async fn leads(engine: &PostgresEngine) {
    timeout(LONG, engine.wait_for_leadership())
        .await
        .expect("it leads");
}

async fn said(engine: &PostgresEngine) -> Vec<(String, bool)> {
    let nodes = engine.nodes().await.unwrap();
    nodes.into_iter().map(|it| (it.name, it.leads)).collect()
}

#[tokio::test]
async fn every_node_writes_and_only_leader_uses_leader_lane() {
    let Some(address) = fresh().await else { return };
    let first = node(&address, "first").await;
    leads(&first).await;
    let second = node(&address, "second").await;
    for (engine, key) in [(&first, b"a"), (&second, b"b")] {
        engine.apply(Lane::Bulk, insert(key).into()).await.unwrap();
    }
    let nodes = [("first".to_owned(), true), ("second".to_owned(), false)];
    assert_eq!(said(&second).await, nodes);
    first
        .apply(Lane::Leader, insert(b"c").into())
        .await
        .unwrap();
    let refused = second.apply(Lane::Leader, insert(b"d").into()).await;
    assert!(
        matches!(refused, Err(EngineError::Unavailable(_))),
        "{refused:?}"
    );
    let waits = timeout(Duration::from_secs(3), second.wait_for_leadership()).await;
    waits.expect_err("the first node is alive and leads");

    // Simulate a long suspension of the first node.
    let session = Session::open(&address, Role::Writer).await.unwrap();
    let text = format!(
        "UPDATE {}.claim SET epoch = epoch + 1, node = '', writer = ''",
        address.schema
    );
    session.client.batch_execute(&text).await.unwrap();
    leads(&second).await;
    let refused = first.apply(Lane::Leader, insert(b"e").into()).await;
    assert!(
        matches!(refused, Err(EngineError::Unavailable(_))),
        "{refused:?}"
    );
    timeout(LONG, first.wait_until_deposed())
        .await
        .expect("it detects that");
    second
        .apply(Lane::Leader, insert(b"e").into())
        .await
        .unwrap();
    first.apply(Lane::Bulk, insert(b"f").into()).await.unwrap();

    // The first node leads without waiting for the one that left.
    second.close().await.unwrap();
    leads(&first).await;
    first
        .apply(Lane::Leader, insert(b"g").into())
        .await
        .unwrap();
    assert_eq!(said(&first).await, [("first".to_owned(), true)]);
}

fn owning(key: &[u8], claims: Vec<Claim>) -> ChangeSet {
    ChangeSet {
        claims,
        ..insert(key).into()
    }
}

fn claims(engine: &PostgresEngine) -> Vec<Claim> {
    let owned = engine.watch_ownership().borrow().clone();
    let all = (0..=u8::MAX).filter_map(|slot| {
        let epoch = owned.find(slot)?.epoch;
        Some(Claim {
            slot: slot.into(),
            epoch,
        })
    });
    all.collect()
}

/// Waits until a node owns `count` slots, while the others hand over their slots on request.
async fn until_owns(engine: &PostgresEngine, others: &[&PostgresEngine], count: Range<usize>) {
    let owns = async {
        while !count.contains(&claims(engine).len()) {
            for other in others {
                let leaving = other.watch_ownership().borrow().slots_to_leave();
                for (slot, number) in leaving {
                    other.vacate(slot, number);
                }
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, owns).await.expect("it owns its share");
}

/// Hands over slots until each node owns its share and has none left to hand over.
async fn until_divided(nodes: &[&PostgresEngine]) {
    let divided = async {
        let (mut since, mut before) = (Instant::now(), Vec::new());
        while since.elapsed() < 2 * STORE_NODE_RENEWED_EVERY {
            let mut leaves = false;
            for node in nodes {
                let leaving = node.watch_ownership().borrow().slots_to_leave();
                leaves |= !leaving.is_empty();
                for (slot, number) in leaving {
                    node.vacate(slot, number);
                }
            }
            let counts: Vec<_> = nodes.iter().map(|it| claims(it).len()).collect();
            let is_all = counts.iter().sum::<usize>() == SLOTS;
            let least = SLOTS / nodes.len() / 2;
            if leaves || !is_all || counts.iter().any(|it| *it < least) || before != counts {
                since = Instant::now();
            }
            before = counts;
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, divided).await.expect("each owns its share");
}

fn is_refused(applied: &Result<ApplyResult, EngineError>) {
    assert!(
        matches!(applied, Err(EngineError::Unavailable(_))),
        "{applied:?}"
    );
}

#[tokio::test]
async fn only_owner_writes_and_slots_move_only_when_idle() {
    let Some(address) = fresh().await else { return };
    let first = node(&address, "first").await;
    assert_eq!(claims(&first), []);
    first.set_owns_slots(true);
    until_owns(&first, &[], 256..257).await;
    let before = claims(&first);
    let set = owning(b"a", before.clone());
    first.apply(Lane::Owner, set).await.unwrap();
    assert!(first.is_ownership_certain());

    // A second node gets its share. Sets planned earlier are refused for the slots that moved.
    let second = node(&address, "second").await;
    second.set_owns_slots(true);
    until_divided(&[&first, &second]).await;
    let (retained, got) = (claims(&first), claims(&second));
    assert_eq!(
        retained.len() + got.len(),
        256,
        "{} and {}",
        retained.len(),
        got.len()
    );
    let moved: Vec<_> = before
        .iter()
        .filter(|it| !retained.contains(it))
        .copied()
        .collect();
    assert!(moved.iter().all(|it| {
        got.iter()
            .any(|new| new.slot == it.slot && new.epoch > it.epoch)
    }));
    is_refused(&first.apply(Lane::Owner, owning(b"b", before.clone())).await);
    is_refused(&first.apply(Lane::Owner, owning(b"b", vec![moved[0]])).await);
    is_refused(&first.apply(Lane::Owner, owning(b"b", vec![got[0]])).await);
    is_refused(
        &second
            .apply(Lane::Owner, owning(b"b", vec![retained[0]]))
            .await,
    );
    // A refused set does not affect the others in its commit.
    let (one, other) = tokio::join!(
        second.apply(Lane::Owner, owning(b"b", got.clone())),
        second.apply(Lane::Owner, owning(b"c", vec![retained[0]])),
    );
    one.unwrap();
    is_refused(&other);
    let retained_set = owning(b"d", retained.clone());
    first.apply(Lane::Owner, retained_set).await.unwrap();

    // A node that owns no slots hands over all of them, and no node waits for one that left.
    first.set_owns_slots(false);
    until_owns(&second, &[&first], 256..257).await;
    is_refused(&first.apply(Lane::Owner, owning(b"e", retained)).await);
    first.set_owns_slots(true);
    until_divided(&[&first, &second]).await;
    second.close().await.unwrap();
    until_owns(&first, &[], 256..257).await;
    first
        .apply(Lane::Owner, owning(b"e", claims(&first)))
        .await
        .unwrap();
}

#[tokio::test]
async fn slot_of_dead_node_stays_unclaimed_while_a_commit_is_pending() {
    let Some(address) = fresh().await else { return };
    let first = node(&address, "first").await;
    first.set_owns_slots(true);
    until_owns(&first, &[], 256..257).await;
    let second = node(&address, "second").await;
    second.set_owns_slots(true);
    until_owns(&second, &[&first], 1..257).await;
    let held = Session::open(&address, Role::Writer).await.unwrap();
    let schema = &address.schema;
    let slot = claims(&first)[0].slot;
    // A pending commit of the first node, which then dies.
    let text = format!(
        "SET idle_in_transaction_session_timeout = 0; BEGIN; \
         SELECT 1 FROM {schema}.claim WHERE slot = {slot} FOR SHARE"
    );
    held.client.batch_execute(&text).await.unwrap();
    drop(first);
    until_owns(&second, &[], 255..256).await;
    assert!(claims(&second).iter().all(|it| it.slot != slot));
    held.client.batch_execute("COMMIT").await.unwrap();
    until_owns(&second, &[], 256..257).await;
}

#[tokio::test]
async fn database_outage_for_all_nodes_moves_no_slots() {
    let Some(address) = fresh().await else { return };
    let (first, second) = (
        node(&address, "first").await,
        node(&address, "second").await,
    );
    first.set_owns_slots(true);
    until_owns(&first, &[], 256..257).await;
    second.set_owns_slots(true);
    until_divided(&[&first, &second]).await;
    let before = (claims(&first), claims(&second));
    // The nodes get no response for longer than the time after which a node counts as dead.
    let held = Session::open(&address, Role::Writer).await.unwrap();
    let schema = &address.schema;
    let text = format!(
        "SET idle_in_transaction_session_timeout = 0; BEGIN; LOCK TABLE {schema}.node IN EXCLUSIVE MODE"
    );
    held.client.batch_execute(&text).await.unwrap();
    sleep(2 * STORE_NODE_TIME_MAX).await;
    assert!(!first.is_ownership_certain() && !second.is_ownership_certain());
    held.client.batch_execute("COMMIT").await.unwrap();
    sleep(STORE_NODE_TIME_MAX).await;
    assert!(first.is_ownership_certain() && second.is_ownership_certain());
    assert_eq!((claims(&first), claims(&second)), before);
}

/// Returns a session of the store's owner, and the name and the address of a second role.
async fn clerk(address: &Address) -> (Session, String, Address) {
    let owner = Session::open(address, Role::Writer).await.unwrap();
    let role = address.schema.trim_matches('"').to_owned() + "_clerk";
    let made = format!(
        "CREATE ROLE {role} LOGIN PASSWORD '{}'; \
         GRANT USAGE ON SCHEMA {schema} TO {role}; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
        super::server::PASSWORD,
        schema = address.schema,
    );
    owner.client.batch_execute(&made).await.unwrap();
    let mut limited = address.clone();
    limited.config.user(&role);
    (owner, role, limited)
}

/// Denies a role new connections, and ends those whose last statement matches; waits until there is
/// one.
async fn cut(owner: &Session, role: &str, last: &str) {
    let limit = format!("ALTER ROLE {role} CONNECTION LIMIT 0");
    owner.client.batch_execute(&limit).await.unwrap();
    let text = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE usename = '{role}' AND query LIKE '{last}'"
    );
    let ended = async || {
        let row = owner.client.query_one(&text, &[]).await.unwrap();
        row.get::<_, i64>(0) > 0
    };
    let cut = async {
        while !ended().await {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, cut).await.expect("there is one");
}

#[tokio::test]
async fn idle_leader_without_writer_connection_loses_leadership() {
    let Some(address) = fresh().await else { return };
    let (owner, role, limited) = clerk(&address).await;
    let first = node(&limited, "first").await;
    leads(&first).await;
    let second = node(&address, "second").await;
    cut(&owner, &role, "UPDATE%node SET works%").await;
    // The first node still renews its registration, over another connection.
    let took_over =
        async { tokio::join!(first.wait_until_deposed(), second.wait_for_leadership()) };
    timeout(LONG, took_over)
        .await
        .expect("the other node leads");
    let nodes = [("first".to_owned(), false), ("second".to_owned(), true)];
    assert_eq!(said(&second).await, nodes);
    let set = insert(b"a");
    second.apply(Lane::Leader, set.into()).await.unwrap();
}

#[tokio::test]
async fn node_is_not_ready_while_reserved_connection_is_missing() {
    for (whose, last) in [
        ("of the follower", "SELECT place%"),
        ("of backups", "COMMIT"),
        ("of a writer", "INSERT INTO%writer%"),
    ] {
        let Some(address) = fresh().await else { return };
        let (owner, role, limited) = clerk(&address).await;
        let first = node(&limited, "first").await;
        drop(first.changes_after(LogPosition::START, 1).await.unwrap());
        let mut ready = first
            .watch_reachability()
            .expect("reachability is reported");
        assert!(*ready.borrow());
        cut(&owner, &role, last).await;
        let is_not = timeout(LONG, ready.wait_for(|ready| !ready)).await;
        is_not.expect(whose).unwrap();
        let more = format!("ALTER ROLE {role} CONNECTION LIMIT -1");
        owner.client.batch_execute(&more).await.unwrap();
        let is_again = timeout(LONG, ready.wait_for(|ready| *ready)).await;
        is_again.expect(whose).unwrap();
    }
}

#[tokio::test]
async fn writing_leader_without_connection_hands_over_leadership() {
    let Some(address) = fresh().await else { return };
    let (owner, role, limited) = clerk(&address).await;
    let first = node(&limited, "first").await;
    leads(&first).await;
    let second = node(&address, "second").await;
    let set = insert(b"a");
    first.apply(Lane::Leader, set.into()).await.unwrap();
    // The node loses its connection, and cannot open another one.
    let cut = format!(
        "ALTER ROLE {role} CONNECTION LIMIT 0; \
         SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity \
         WHERE usename = '{role}' AND query = 'COMMIT' ORDER BY state_change DESC LIMIT 1) AS it"
    );
    owner.client.batch_execute(&cut).await.unwrap();
    let refused = timeout(LONG, first.apply(Lane::Leader, insert(b"b").into())).await;
    let refused = refused.unwrap().unwrap_err();
    // The set may or may not have been sent before the connection ended.
    assert!(
        matches!(
            refused,
            EngineError::Unavailable(_) | EngineError::Indeterminate(_)
        ),
        "{refused:?}"
    );
    let took_over = async {
        tokio::join!(first.wait_until_deposed(), second.wait_for_leadership());
    };
    timeout(LONG, took_over)
        .await
        .expect("the other node leads");
    let set = insert(b"b");
    second.apply(Lane::Leader, set.into()).await.unwrap();
    let nodes = [("first".to_owned(), false), ("second".to_owned(), true)];
    assert_eq!(said(&first).await, nodes);
}

#[tokio::test]
async fn wait_until_followed_waits_for_every_live_node() {
    let Some(address) = fresh().await else { return };
    let (first, second) = (
        node(&address, "first").await,
        node(&address, "second").await,
    );
    let put = Action::Put(b"key".to_vec());
    let change = Change::new(Kind::Client, b"client", Expect::Absent, put);
    let applied = first.apply(Lane::Admin, vec![change].into()).await.unwrap();
    assert!(
        first
            .wait_until_followed(applied.position, LONG)
            .await
            .unwrap()
    );
    assert!(*second.log_signal().borrow() >= applied.position);
    let beyond = applied.position.next();
    let followed = first.wait_until_followed(beyond, Duration::from_millis(50));
    assert!(!followed.await.unwrap(), "no follower has reached it");
}

#[tokio::test]
async fn node_absent_for_a_day_can_no_longer_write() {
    let Some(address) = fresh().await else { return };
    let first = node(&address, "first").await;
    let session = Session::open(&address, Role::Writer).await.unwrap();
    let text = format!(
        "UPDATE {}.node SET renewed = renewed - interval '25 hours'",
        address.schema
    );
    session.client.batch_execute(&text).await.unwrap();
    let second = Node::join(&address, "second").await.unwrap();
    timeout(LONG, first.wait_until_forgotten())
        .await
        .expect("it detects that");
    let refused = first.apply(Lane::Bulk, insert(b"a").into()).await;
    assert!(
        matches!(refused, Err(EngineError::Unavailable(_))),
        "{refused:?}"
    );
    drop(second);
}
