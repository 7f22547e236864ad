//! Several nodes over one store: any takes in, answers and is edited; one delivers, and another one does
//! when that is gone.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use bellwether_tests::{
    eventually::eventually, process, receiver::Receiver, rest::Rest, world::World,
};
use serde_json::{Value, json};

use crate::{
    crash::stored_hosts,
    journey,
    postgres::{ANSWERED, Database, Told, answered, send, store},
    samples,
};

const EVENTS: &str = "/v1/data-receiver/events";

/// Another node over the store that the first one uses, with the key of its admin.
fn join(database: &Database, first: &World, name: &str) -> World {
    let key = first.data_dir().join("admin.key");
    let prepare = |data_dir: &Path| {
        fs::create_dir_all(data_dir).unwrap();
        fs::copy(key, data_dir.join("admin.key")).unwrap();
    };
    World::on(prepare, &database.settings_of(name))
}

fn three(database: &Database) -> Vec<World> {
    let first = database.world();
    let (second, third) = (
        join(database, &first, "two"),
        join(database, &first, "three"),
    );
    vec![first, second, third]
}

/// What `bellwether store status` says of each node.
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

async fn told_of(receiver: &Receiver, stored: &BTreeSet<String>) {
    eventually("every stored event to be told of", async || {
        let received = receiver.received();
        let hosts = received.iter().map(|it| {
            let host = it.json()["event"]["dimensions"]["host"].clone();
            host.as_str().unwrap().to_owned()
        });
        let hosts: BTreeSet<_> = hosts.collect();
        stored.is_subset(&hosts).then_some(())
    })
    .await;
}

async fn put(rest: &Rest, name: &str, host: &str) {
    let event = samples::event(name, host, "SEVERITY_ERROR", name);
    let answer = rest.post(EVENTS, &samples::events(&[event])).await.ok();
    assert_eq!(answer["succeeded"], 1, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn any_node_may_be_killed_under_load_and_the_others_go_on() {
    let Some(database) = Database::start() else {
        return;
    };
    let mut worlds = three(&database);
    let names = ["one", "two", "three"];
    let receiver = Receiver::start().await;
    journey::set_up(&worlds[0].rest(), &receiver).await;
    let told = Arc::new(Mutex::new(Told::default()));
    for round in 0..3 {
        let leads = leader(&worlds[0]).await;
        let killed = names.iter().position(|it| *it == leads).unwrap();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let mut senders = Vec::new();
        for (world, name) in worlds.iter().zip(names) {
            let round = format!("{round}-{name}");
            senders.push(send(&world.rest(), &round, &told, &stopped));
        }
        answered(&told, ANSWERED).await;
        worlds[killed].kill();
        // The others answer, before anybody leads again and after.
        answered(&told, ANSWERED).await;
        let other = &worlds[(killed + 1) % 3];
        eventually("another node to lead", async || {
            let nodes = nodes(other);
            let leads = |it: &String| it.ends_with(", leads") && !it.starts_with(&leads);
            nodes.iter().any(leads).then_some(())
        })
        .await;
        answered(&told, ANSWERED).await;
        stop.send_replace(true);
        for senders in senders {
            senders.join_all().await;
        }
        worlds[killed].start_again();
    }
    let rest = worlds[1].rest();
    let stored = stored_hosts(&rest).await;
    let told = std::mem::take(&mut *told.lock().unwrap());
    let lost: Vec<_> = told.answered.difference(&stored).collect();
    assert!(lost.is_empty(), "answered and lost: {lost:?}");
    let kept: Vec<_> = told.refused.intersection(&stored).collect();
    assert!(kept.is_empty(), "refused and stored: {kept:?}");
    told_of(&receiver, &stored).await;
    // Whoever was killed may have sent what is sent again; it is the same delivery.
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
async fn what_one_node_answered_is_in_force_on_every_other() {
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

    // An edit on one, the event to another.
    for round in 0..20 {
        let (editor, sender) = (&rests[round % 3], &rests[(round + 1) % 3]);
        let name = format!("round-{round:02}");
        let trigger = samples::trigger(&name, &name);
        editor
            .post("/v1/notification/triggers", &trigger)
            .await
            .ok();
        let rule = samples::rule(&name, &name, "hook", "{{event.name}}");
        editor.post("/v1/notification/rules", &rule).await.ok();
        put(sender, &name, "a").await;
        receiver.until_received(round + 1).await;
    }
    let before = receiver.count();

    // A silence of one holds what another takes in.
    let trigger = samples::trigger("quiet", "quiet");
    rests[0]
        .post("/v1/notification/triggers", &trigger)
        .await
        .ok();
    let rule = samples::rule("quiet", "quiet", "hook", "{{event.name}}");
    rests[0].post("/v1/notification/rules", &rule).await.ok();
    let end = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let silence = json!({"name": "work", "reason": "work", "ruleNames": ["quiet"],
        "span": {"endTime": end.to_string()}});
    rests[1]
        .post("/v1/notification/silences", &silence)
        .await
        .ok();
    put(&rests[2], "quiet", "a").await;
    let waits = rests[0].get("/v1/notification/pending").await.ok();
    assert_eq!(waits["pending"][0]["holds"][0]["name"], "work", "{waits}");

    // One hot identity, told by all at once: each is counted, and nobody is refused.
    let mut senders = tokio::task::JoinSet::new();
    for sender in 0..12 {
        let rest = rests[sender % 3].clone();
        senders.spawn(async move {
            for _ in 0..10 {
                put(&rest, "hot", "a").await;
            }
        });
    }
    senders.join_all().await;
    let query = json!({"query": {"filter": "name=hot", "pageInput": {"limit": 10}}});
    let found = rests[2].post("/v1/events:search", &query).await.ok();
    let count = |it: &Value| {
        it["count"]
            .as_str()
            .map_or(it["count"].as_u64(), |it| it.parse().ok())
    };
    assert_eq!(found["results"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(count(&found["results"][0]), Some(120), "{found}");

    // A key that one node revoked lets in nowhere.
    for round in 0..5 {
        let name = format!("c{round}");
        let client = |world: usize, arguments: &[&str]| {
            let arguments = [&["client"], arguments].concat();
            let done = process::run(worlds[world % 3].command(&arguments));
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            assert!(done.status.success(), "{said}");
            String::from_utf8(done.stdout).unwrap().trim().to_owned()
        };
        let key = client(round, &["create", &name, "--role", "viewer"]);
        let other = rests[(round + 1) % 3].with_key(Some(&key));
        let answer = other.get("/v1/overview").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        client(round, &["revoke", &name]);
        for rest in &rests {
            let refused = rest.with_key(Some(&key)).get("/v1/overview").await;
            assert_eq!(refused.status, 401, "{}", refused.text());
        }
    }
    assert_eq!(receiver.count(), before);
}
