//! Tests that a node that cannot work hands over its slots, and that it is ready only while its
//! dependencies work.

use std::time::{Duration, Instant};

use bellwether_tests::{
    engine::Variables,
    eventually::{eventually, eventually_within},
    postgres::{PASSWORD, Postgres},
    receiver::Receiver,
    world::World,
};

use super::{
    join, join_with, leader,
    owners::{DESTINATIONS, all_own, owned, routes, sent},
};
use crate::postgres::{Database, assert_refused, serve, settings};

/// Time limit until a stuck node has handed over its slots.
const LEFT_WITHIN: Duration = Duration::from_secs(60);
/// Time limit until a node that reaches no receiver has handed over its slots.
const UNREACHED_WITHIN: Duration = Duration::from_secs(90);

/// Starts a node that connects with a role that does not own the schema.
fn clerk(database: &Database, first: &World, name: &str) -> World {
    let server = &database.server;
    server.execute(&format!(
        "CREATE ROLE clerk LOGIN PASSWORD '{PASSWORD}'; \
         GRANT USAGE ON SCHEMA bellwether TO clerk; \
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA bellwether TO clerk; \
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA bellwether TO clerk"
    ));
    let url = Postgres::url_of(server.port()).replace("bellwether@", "clerk@");
    let lines = settings(&url, &database.key_file(), name);
    Database::node(Some(first), &lines, Variables::new())
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_node_hands_its_duties_to_another() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut one = database.world();
    let two = clerk(&database, &one, "two");
    assert!(one.terminate().success());
    eventually("the node to lead", async || {
        (leader(&two).await == "two").then_some(())
    })
    .await;
    let three = join(&database, &one, "three");
    let receiver = Receiver::start().await;
    routes(&three.rest(), &receiver).await;
    all_own(&[&two, &three]).await;
    // The node runs, reads and renews its lease, but cannot record deliveries.
    database
        .server
        .execute("REVOKE UPDATE ON bellwether.delivery FROM clerk");
    sent(&three.rest(), 0..DESTINATIONS).await;
    eventually_within(LEFT_WITHIN, "all messages, of another node", async || {
        (receiver.count() == DESTINATIONS).then_some(())
    })
    .await;
    assert_eq!(leader(&three).await, "three");
    let log = two.service().log();
    assert!(log.contains("makes no progress with delivery"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_without_its_ownership_connection_is_not_ready() {
    let Some(database) = Database::start() else {
        return;
    };
    let one = database.world();
    let mut two = clerk(&database, &one, "two");
    let server = &database.server;
    let of_clerk = "FROM pg_stat_activity WHERE usename = 'clerk'";
    let owner = format!("{of_clerk} AND query LIKE 'UPDATE%node SET works%'");
    let count = |what: &str| -> usize {
        let shown = server.execute(&format!("SELECT count(*) {what}"));
        shown.trim().parse().unwrap()
    };
    let all = eventually("the connection to be in use", async || {
        (count(&owner) == 1).then(|| count(of_clerk))
    })
    .await;
    let limit = |most: usize| {
        server.execute(&format!("ALTER ROLE clerk CONNECTION LIMIT {most}"));
    };
    limit(all - 1);
    server.execute(&format!("SELECT pg_terminate_backend(pid) {owner}"));
    let rest = two.rest();
    eventually("the node not to be ready", async || {
        (rest.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    assert_eq!(rest.get("/v1/overview").await.status, 200);
    limit(all + 5);
    eventually("the node to be ready", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;

    // At startup, too few connections are reported.
    assert!(two.terminate().success());
    limit(3);
    assert_refused(serve(&two.data_dir()), "too many connections");
}

#[tokio::test(flavor = "multi_thread")]
async fn node_without_network_hands_its_destinations_to_another() {
    let Some(database) = Database::start() else {
        return;
    };
    let schedule = format!("schedule = [\"0s\"{}]", ", \"1s\"".repeat(45));
    let lines = |name: &str| {
        let lines = database.settings_of(name);
        lines.replace("schedule = [\"0s\"]", &schedule)
    };
    // No proxy listens at this address, so all deliveries of this node fail.
    let broken = ("BELLWETHER_EGRESS_PROXY", "http://127.0.0.1:9".into());
    let one = Database::node(None, &lines("one"), vec![broken]);
    assert_eq!(leader(&one).await, "one");
    let two = join_with(&one, &lines("two"));
    let receiver = Receiver::start().await;
    routes(&two.rest(), &receiver).await;
    all_own(&[&one, &two]).await;
    let begin = Instant::now();
    sent(&two.rest(), 0..DESTINATIONS).await;
    eventually_within(LEFT_WITHIN, "all messages, of another node", async || {
        (receiver.count() == DESTINATIONS).then_some(())
    })
    .await;
    let took = begin.elapsed();
    eprintln!("without egress: all messages after {took:?}");
    assert!(took <= UNREACHED_WITHIN, "{took:?}");
    assert_eq!(leader(&two).await, "two");
    let log = one.service().log();
    assert!(log.contains("`two` can connect to"), "{log}");
    // The node is assigned no destinations as long as it reaches no receiver.
    tokio::time::sleep(2 * UNREACHED_WITHIN).await;
    assert_eq!(owned(&one).await, 0);
}
