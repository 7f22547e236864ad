//! A failover to a lagging standby: no node continues with lost data in memory.

use std::time::{Duration, Instant};

use bellwether_tests::{
    engine::Variables, eventually::eventually, postgres::USER, process::run, rest::Rest,
    world::World,
};
use http::Method;
use serde_json::{Value, json};

use super::{Database, settings};
use crate::samples;

const WORKS_AGAIN_MAX: Duration = Duration::from_secs(60);
const EVENTS: &str = "/v1/data-receiver/events";
const TRIGGERS: &str = "/v1/notification/triggers";

async fn send(rest: &Rest, host: &str) -> Value {
    let event = samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    rest.post(EVENTS, &samples::events(&[event])).await.ok()
}

async fn reports_the_loss(rest: &Rest) {
    let found = rest
        .post("/v1/events:search", &json!({"query": {}}))
        .await
        .ok();
    let results = found["results"].as_array().unwrap().iter();
    let losses: Vec<_> = results
        .filter(|it| it["name"] == "database lost commits")
        .collect();
    assert_eq!(losses.len(), 1, "{found}");
    assert_eq!(losses[0]["occurrences"][0]["severity"], "SEVERITY_CRITICAL");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_restart_from_a_lagging_standby() {
    let Some(mut database) = Database::start() else {
        return;
    };
    let mut standby = database.server.standby("second");
    let (first, second) = (database.server.port(), standby.port());
    let url = format!("postgres://{USER}@127.0.0.1:{first},127.0.0.1:{second}/postgres");
    let lines = |node: &str| settings(&url, &database.key_file(), node);
    let one = Database::node(None, &lines("one"), Variables::new());
    let two = Database::node(Some(&one), &lines("two"), Variables::new());
    let nodes: [&World; 2] = [&one, &two];
    let rests = nodes.map(World::rest);
    let key = one.client("leaving", "viewer");
    rests[0]
        .post(TRIGGERS, &samples::trigger("full", "disk"))
        .await
        .ok();
    assert_eq!(send(&rests[0], "early").await["succeeded"], 1);
    let head = "SELECT max(place) FROM bellwether.log";
    eventually("the standby to have all changes", async || {
        (standby.execute(head) == database.server.execute(head)).then_some(())
    })
    .await;

    standby.kill();
    for number in 0..20 {
        let answer = send(&rests[number % 2], &format!("late-{number}")).await;
        assert_eq!(answer["succeeded"], 1);
    }
    database.server.kill();
    standby.run();
    // Do not wait in SQL: the replay could cancel the statement.
    standby.execute("SELECT pg_promote(wait => false)");
    let begun = Instant::now();
    for rest in &rests {
        eventually("the node to have started again", async || {
            let response = rest.try_send(Method::GET, "/metrics", &[], "").await.ok()?;
            response
                .text()
                .contains("bellwether_store_losses_total 1")
                .then_some(())
        })
        .await;
    }
    assert!(begun.elapsed() < WORKS_AGAIN_MAX, "{:?}", begun.elapsed());

    for (rest, host) in rests.iter().zip(["again-one", "again-two"]) {
        assert_eq!(rest.get("/readyz").await.status, 200);
        assert_eq!(send(rest, host).await["succeeded"], 1);
    }
    let changed = rests[1]
        .put(
            &format!("{TRIGGERS}/full"),
            &samples::trigger("full", "disks"),
        )
        .await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    assert_eq!(send(&rests[0], "later").await["succeeded"], 1);
    let hosts = standby.execute("SELECT count(*) FROM bellwether.occurrence");
    assert_eq!(hosts, "5", "four hosts, and the event about the loss");
    for rest in &rests {
        reports_the_loss(rest).await;
    }
    let revoked = run(one.command(&["client", "revoke", "leaving"]));
    assert!(revoked.status.success(), "{revoked:?}");
    for rest in &rests {
        let refused = rest.clone().with_key(Some(&key)).get(TRIGGERS).await;
        assert_eq!(refused.status, 401, "{}", refused.text());
    }
}
