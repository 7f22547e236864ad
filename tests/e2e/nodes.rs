//! Several nodes with one store. Every node accepts events, serves requests and edits. Each node
//! delivers to the destinations that it owns, and other nodes take over when it fails.

mod ageing;
mod clocks;
mod duties;
mod edits;
mod on_call;
mod owners;
mod rates;
mod rounds;
mod settings;
mod stopped;

use std::{
    collections::BTreeSet,
    fs,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::{
    eventually::eventually,
    process,
    receiver::{Received, Receiver},
    rest::Rest,
    world::World,
};
use serde_json::json;
use tokio::time::sleep;

use crate::{
    crash::{notified_hosts, rounds},
    journey, metrics,
    postgres::{
        ANSWERED, Database, SendOutcomes, assert_refused, none_is_lost, send, serve, store,
        wait_answered,
    },
    samples,
};

/// Time without a message after which no more messages are expected.
const NO_MORE_AFTER: Duration = Duration::from_secs(60);
const EVENTS: &str = "/v1/data-receiver/events";

/// Starts another node on the store of the first one, with the same admin key.
fn join(database: &Database, first: &World, name: &str) -> World {
    join_with(first, &database.settings_of(name))
}

fn join_with(first: &World, settings: &str) -> World {
    Database::node(Some(first), settings, Vec::new())
}

fn three(database: &Database) -> Vec<World> {
    let first = database.world();
    let (second, third) = (
        join(database, &first, "two"),
        join(database, &first, "three"),
    );
    vec![first, second, third]
}

fn nodes(world: &World) -> Vec<String> {
    let shown = process::run(store(&world.data_dir(), &["status"]));
    let shown = String::from_utf8(shown.stdout).unwrap();
    let lines = shown.lines().filter_map(|it| it.strip_prefix("node: "));
    lines.map(str::to_owned).collect()
}

async fn leader(world: &World) -> String {
    eventually("a node to lead", async || {
        let nodes = nodes(world);
        let leads = nodes.iter().find(|it| it.ends_with(", leads"))?;
        Some(leads.split(',').next().unwrap().to_owned())
    })
    .await
}

async fn wait_until_notified(receiver: &Receiver, stored: &BTreeSet<String>) {
    // A killed node may have had many deliveries in flight, so wait as long as messages arrive.
    let (mut count, mut since) = (0, Instant::now());
    while !stored.is_subset(&notified_hosts(receiver)) {
        if receiver.count() > count {
            (count, since) = (receiver.count(), Instant::now());
        }
        let missing = || {
            stored
                .difference(&notified_hosts(receiver))
                .cloned()
                .collect::<Vec<_>>()
        };
        assert!(
            since.elapsed() < NO_MORE_AFTER,
            "not notified: {:?}",
            missing()
        );
        sleep(Duration::from_millis(100)).await;
    }
}

async fn put(rest: &Rest, name: &str, host: &str) {
    let event = samples::event(name, host, "SEVERITY_ERROR", name);
    let answer = rest.post(EVENTS, &samples::events(&[event])).await.ok();
    assert_eq!(answer["succeeded"], 1, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_any_node_under_load_loses_no_event() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = three(&database);
    let names = ["one", "two", "three"];
    let receiver = Receiver::start().await;
    journey::set_up(&worlds[0].rest(), &receiver).await;
    let reported = Arc::new(Mutex::new(SendOutcomes::default()));
    for round in 0..rounds(1) {
        let leads = leader(&worlds[0]).await;
        let killed = names.iter().position(|it| *it == leads).unwrap();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let mut senders = Vec::new();
        for (world, name) in worlds.iter().zip(names) {
            let round = format!("{round}-{name}");
            senders.push(send(&world.rest(), &round, &reported, &stopped));
        }
        wait_answered(&reported, ANSWERED).await;
        worlds[killed].kill();
        // The other nodes accept events before and after a new leader is elected.
        wait_answered(&reported, ANSWERED).await;
        let other = &worlds[(killed + 1) % 3];
        eventually("another node to lead", async || {
            let nodes = nodes(other);
            let leads = |it: &String| it.ends_with(", leads") && !it.starts_with(&leads);
            nodes.iter().any(leads).then_some(())
        })
        .await;
        wait_answered(&reported, ANSWERED).await;
        stop.send_replace(true);
        for senders in senders {
            senders.join_all().await;
        }
        worlds[killed].start_again();
    }
    let stored = none_is_lost(&worlds[1].rest(), &reported).await;
    wait_until_notified(&receiver, &stored).await;
    // A killed process may have sent a message that is sent again with the same delivery id.
    let ids: BTreeSet<_> = receiver
        .received()
        .iter()
        .map(|it| it.delivery_id().to_owned())
        .collect();
    assert_eq!(ids.len(), stored.len());
    for world in &mut worlds {
        assert!(world.terminate().success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn change_on_one_node_applies_on_all_nodes() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    let rests: Vec<_> = worlds.iter().map(World::rest).collect();
    let receiver = Receiver::start().await;
    journey::set_up(&rests[0], &receiver).await;
    let shown: BTreeSet<_> = nodes(&worlds[0])
        .iter()
        .map(|it| it.split(',').next().unwrap().to_owned())
        .collect();
    let all = ["one", "two", "three"].map(str::to_owned);
    assert_eq!(shown, BTreeSet::from(all));
    let overview = rests[2].get("/v1/overview").await.ok();
    let listed = overview["nodes"].as_array().unwrap().iter();
    let leads: Vec<_> = listed.map(|it| (&it["name"], &it["leads"])).collect();
    assert_eq!(leads.len(), 3, "{overview}");
    assert_eq!(leads[0], (&json!("one"), &json!(true)), "{overview}");
    let notify_of = async |rest: &Rest, name: &str| {
        let trigger = samples::trigger(name, name);
        rest.post("/v1/notification/triggers", &trigger).await.ok();
        let rule = samples::rule(name, name, "hook", "{{event.name}}");
        rest.post("/v1/notification/rules", &rule).await.ok();
    };

    // The edit is made on one node, the event sent to another.
    for round in 0..20 {
        let name = format!("round-{round:02}");
        notify_of(&rests[round % 3], &name).await;
        put(&rests[(round + 1) % 3], &name, "a").await;
        receiver.wait_for(round + 1).await;
    }

    // A silence created on one node holds an event accepted by another.
    notify_of(&rests[0], "quiet").await;
    let silence = json!({"name": "work", "reason": "work", "ruleNames": ["quiet"],
        "span": {"endTime": samples::in_seconds(3_600)}});
    let silences = "/v1/notification/silences";
    rests[1].post(silences, &silence).await.ok();
    put(&rests[2], "quiet", "a").await;
    let waits = rests[0].get("/v1/notification/pending").await.ok();
    assert_eq!(waits["pending"][0]["holds"][0]["name"], "work", "{waits}");
    assert_eq!(receiver.count(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_events_on_all_nodes_are_counted_exactly() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..12 {
        let rest = worlds[sender % 3].rest();
        senders.spawn(async move {
            for _ in 0..10 {
                put(&rest, "hot", "a").await;
            }
        });
    }
    senders.join_all().await;
    let query = json!({"query": {"filter": "name=hot", "pageInput": {"limit": 10}}});
    let found = worlds[2]
        .rest()
        .post("/v1/events:search", &query)
        .await
        .ok();
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 1, "{found}");
    let count = results[0]["count"].as_str().map(str::to_owned);
    let count = count.unwrap_or_else(|| results[0]["count"].to_string());
    assert_eq!(count, "120", "{found}");
    let page = worlds[0].rest().get("/metrics").await.text();
    for sample in ["bellwether_nodes_alive 3\n", "bellwether_nodes_leading 1\n"] {
        assert!(page.contains(sample), "{page}");
    }
    // No connection was broken.
    let but = [
        "bellwether_store_retries_total",
        "bellwether_store_in_doubt_total",
    ];
    metrics::check_database(&page, &but);
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_valid_or_revoked_on_all_nodes_alike() {
    let Some(database) = Database::start() else {
        return;
    };
    let worlds = three(&database);
    for round in 0..5 {
        let name = format!("c{round}");
        let client = |arguments: &[&str]| {
            let arguments = [&["client"], arguments].concat();
            let done = process::run(worlds[round % 3].command(&arguments));
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{said}");
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        let key = client(&["create", &name, "--role", "viewer"]);
        let over = |world: &World| world.rest().with_key(Some(&key));
        for world in &worlds {
            let answer = over(world).get("/v1/overview").await;
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
        client(&["revoke", &name]);
        for world in &worlds {
            let refused = over(world).get("/v1/overview").await;
            assert_eq!(refused.status, 401, "{}", refused.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_without_its_database_is_not_ready() {
    let Some(mut database) = Database::start() else {
        return;
    };
    let world = database.world();
    let rest = world.rest();
    assert_eq!(rest.get("/readyz").await.status, 200);
    tokio::task::block_in_place(|| database.server.kill());
    eventually("the node not to be ready", async || {
        (rest.get("/readyz").await.status == 503).then_some(())
    })
    .await;
    assert_eq!(rest.get("/healthz").await.status, 200, "it is alive");
    tokio::task::block_in_place(|| database.server.run());
    eventually("the node to be ready", async || {
        (rest.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    put(&rest, "full", "a").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_node_loses_leadership_and_rejoins() {
    let Some(database) = Database::start() else {
        return;
    };
    let first = database.world();
    let second = join(&database, &first, "two");
    let receiver = Receiver::start().await;
    journey::set_up(&first.rest(), &receiver).await;
    assert_eq!(leader(&second).await, "one");
    process::signal("-STOP", first.service().id());
    eventually("the other node to lead", async || {
        let nodes = nodes(&second);
        let leads = |it: &String| it.starts_with("two") && it.ends_with(", leads");
        nodes.iter().any(leads).then_some(())
    })
    .await;
    let disk = |host: &str| samples::event("full", host, "SEVERITY_ERROR", "disk is full");
    let put = async |rest: &Rest, host: &str| {
        let body = samples::events(&[disk(host)]);
        rest.post(EVENTS, &body).await.ok();
    };
    put(&second.rest(), "a").await;
    receiver.wait_for(1).await;
    process::signal("-CONT", first.service().id());
    put(&first.rest(), "b").await;
    receiver.wait_for(2).await;
    eventually("both nodes to be alive", async || {
        (nodes(&second).len() == 2).then_some(())
    })
    .await;
    assert_eq!(leader(&first).await, "two");
    let received = receiver.received();
    let ids: BTreeSet<_> = received.iter().map(Received::delivery_id).collect();
    assert_eq!((ids.len(), received.len()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_key_ring_is_rejected_while_other_nodes_run() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut first = database.world();
    let ring = fs::read_to_string(database.key_file()).unwrap();
    let added = format!("{ring}2 AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    let mut second = join(&database, &first, "two");
    assert!(second.terminate().success());
    fs::write(database.key_file(), &added).unwrap();
    assert_refused(serve(&second.data_dir()), "only one node may encrypt");
    assert!(first.terminate().success());
    second.start_again();
    first.start_again();
    assert_eq!(first.rest().get("/v1/overview").await.status, 200);
}
