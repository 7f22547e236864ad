//! A node that leads and cannot work leaves the lead to another one, and a node is ready while it has what it
//! works with.

use std::time::Duration;

use bellwether_tests::{
    engine::Variables,
    eventually::{eventually, eventually_within},
    postgres::{PASSWORD, Postgres},
    receiver::Receiver,
    world::World,
};

use super::{EVENTS, join, join_with, leader};
use crate::{
    journey,
    postgres::{Database, refused, serve, settings},
    samples,
};

/// Until a leader that does not advance has given up the lead.
const LEFT_WITHIN: Duration = Duration::from_secs(60);

/// A node that connects as a role which is not the owner.
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
async fn a_leader_that_does_not_advance_leaves_the_lead_to_another() {
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
    journey::set_up(&three.rest(), &receiver).await;
    // It lives, reads and renews its lease, and can record no delivery.
    database
        .server
        .execute("REVOKE UPDATE ON bellwether.delivery FROM clerk");
    let event = samples::event("full", "a", "SEVERITY_ERROR", "disk is full");
    let sent = three.rest().post(EVENTS, &samples::events(&[event])).await;
    assert_eq!(sent.ok()["succeeded"], 1);
    eventually_within(LEFT_WITHIN, "the message from another leader", async || {
        (receiver.count() > 0).then_some(())
    })
    .await;
    assert_eq!(leader(&three).await, "three");
    let log = two.service().log();
    assert!(log.contains("does not advance with delivery"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_the_connection_to_lead_over_is_not_ready() {
    let Some(database) = Database::start() else {
        return;
    };
    let one = database.world();
    let mut two = clerk(&database, &one, "two");
    let server = &database.server;
    let of_clerk = "FROM pg_stat_activity WHERE usename = 'clerk'";
    let unused = format!("{of_clerk} AND query LIKE 'SET client_min_messages%'");
    let count = |what: &str| -> usize {
        let shown = server.execute(&format!("SELECT count(*) {what}"));
        shown.trim().parse().unwrap()
    };
    let (all, idle) = (count(of_clerk), count(&unused));
    assert!(idle > 0, "{all} connections, all of them in use");
    let limit = |most: usize| {
        server.execute(&format!("ALTER ROLE clerk CONNECTION LIMIT {most}"));
    };
    limit(all - idle);
    server.execute(&format!("SELECT pg_terminate_backend(pid) {unused}"));
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

    // What it cannot have from the start is said at the start.
    assert!(two.terminate().success());
    limit(3);
    refused(serve(&two.data_dir()), "too many connections");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_network_is_broken_leaves_the_lead_to_a_node_that_reaches_the_receivers() {
    let Some(database) = Database::start() else {
        return;
    };
    let schedule = format!("schedule = [\"0s\"{}]", ", \"1s\"".repeat(45));
    let lines = |name: &str| {
        let lines = database.settings_of(name);
        lines.replace("schedule = [\"0s\"]", &schedule)
    };
    // Nothing listens there: whatever this node sends gets no further.
    let broken = ("BELLWETHER_EGRESS_PROXY", "http://127.0.0.1:9".into());
    let one = Database::node(None, &lines("one"), vec![broken]);
    assert_eq!(leader(&one).await, "one");
    let two = join_with(&one, &lines("two"));
    let receiver = Receiver::start().await;
    journey::set_up(&two.rest(), &receiver).await;
    let event = samples::event("full", "a", "SEVERITY_ERROR", "disk is full");
    let sent = two.rest().post(EVENTS, &samples::events(&[event])).await;
    assert_eq!(sent.ok()["succeeded"], 1);
    eventually_within(LEFT_WITHIN, "the message from another leader", async || {
        (receiver.count() > 0).then_some(())
    })
    .await;
    assert_eq!(leader(&two).await, "two");
    let log = one.service().log();
    assert!(log.contains("`two` can connect to that of `hook`"), "{log}");
}
