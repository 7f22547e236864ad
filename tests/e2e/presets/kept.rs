//! Presets for receivers that choose the ids of their issues, tickets and messages: every later
//! message of a thread refers to the item that the first one created.

use bellwether_tests::{
    eventually::eventually,
    providers::{
        Mischief, StandIn,
        desk::{APIS, Desk, Item, Items},
    },
    receiver::Reply,
    rest::Rest,
    world::World,
};
use serde_json::{Value, json};

use super::{rules::all_rules, store};
use crate::samples;

/// Presets that send no closing without an item.
const ISSUES: [&str; 4] = ["jira-issue", "github-issue", "gitlab-issue", "zendesk"];

struct Stage {
    world: World,
    desks: Vec<(&'static str, StandIn, Items)>,
}

impl Stage {
    /// Stores every preset, with a rule that has these additional fields.
    async fn new(more: &Value) -> Self {
        let settings = "[delivery]\nschedule = [\"0s\", \"100ms\", \"100ms\"]\n";
        let world = World::with_settings(settings);
        let rest = world.rest();
        let query = json!({"clause": {"equals": {"field": "name", "stringVal": "disk"}}});
        let trigger = json!({"name": "disk", "type": {"event": {"query": query}}});
        rest.post("/v1/notification/triggers", &trigger).await.ok();
        let mut desks = Vec::new();
        for api in APIS {
            let (desk, items) = Desk::new(api);
            let receiver = StandIn::start(desk).await;
            let rules = all_rules().find(|it| it.file == api.name).unwrap();
            store(&world, rules, |path| receiver.url(path));
            let mut rule = samples::rule(api.name, "disk", api.name, "");
            rule["sendUpdates"] = json!(true);
            for (key, value) in more.as_object().unwrap() {
                rule[key] = value.clone();
            }
            rest.post("/v1/notification/rules", &rule).await.ok();
            desks.push((api.name, receiver, items));
        }
        Self { world, desks }
    }

    fn rest(&self) -> Rest {
        self.world.rest()
    }

    async fn send(&self, hosts: impl IntoIterator<Item = usize>, status: &str) {
        let events = hosts.into_iter().map(|host| {
            let host = format!("h{host}");
            let mut event = samples::event("disk", &host, "SEVERITY_CRITICAL", "the disk is full");
            event["status"] = json!(format!("STATUS_{status}"));
            event
        });
        let events: Vec<_> = events.collect();
        let body = samples::events(&events);
        let rest = self.rest();
        let answer = rest.post("/v1/data-receiver/events", &body).await.ok();
        assert_eq!(answer["succeeded"], events.len());
    }

    /// Changes the status of the event of host 1.
    async fn set(&self, change: Value) {
        let rest = self.rest();
        let search = json!({"query": {"filter": "host=h1"}});
        let found = rest.post("/v1/events:search", &search).await.ok();
        let mut item = change;
        item["eventId"] = found["results"][0]["id"].clone();
        let body = json!({"statuses": [item]});
        rest.post("/v1/event-management/status", &body).await.ok();
    }

    /// Waits until the items of every receiver are as wanted, and no request was rejected.
    async fn until(&self, what: &str, wanted: impl Fn(&str, &[Item]) -> bool) {
        for (name, receiver, items) in &self.desks {
            let wanted_state = format!("{name}: {what}");
            let seen = eventually(&wanted_state, async || {
                let refused = receiver.refused();
                assert!(refused.is_empty(), "{name}: {refused:?}");
                let items: Vec<_> = items.all().into_values().collect();
                wanted(name, &items).then_some(())
            });
            seen.await;
        }
    }

    /// Waits until every receiver has exactly one item, with this number of requests and state.
    async fn until_one(&self, requests: usize, is_closed: bool) {
        let what = format!("one item after {requests} requests");
        self.until(&what, |_, items| match items {
            [item] => item.texts.len() == requests && item.is_closed == is_closed,
            _ => false,
        })
        .await;
    }

    async fn deliveries(&self, state: &str, count: usize) -> Vec<Value> {
        let rest = self.rest();
        let path = format!("/v1/notification/deliveries?states={state}&pageSize=100");
        eventually(&format!("{count} deliveries {state}"), async || {
            let list = rest.get(&path).await.ok()["deliveries"].as_array().cloned();
            list.filter(|list| list.len() == count)
        })
        .await
    }
}

#[tokio::test]
async fn every_change_of_an_event_reaches_the_item_it_created() {
    let stage = Stage::new(&json!({})).await;
    stage.send([1], "OPEN").await;
    stage.until_one(1, false).await;
    stage.set(json!({"acknowledged": true})).await;
    let is_pushover = |name: &str| name == "pushover";
    stage
        .until("the acknowledgement", |name, items| {
            // It cancels the repetition of an emergency.
            items.len() == 1 && items[0].texts.len() == 2 && items[0].is_closed == is_pushover(name)
        })
        .await;
    stage.send([1], "CLOSED").await;
    stage.until_one(3, true).await;
    stage
        .set(json!({"status": "STATUS_OPEN", "acknowledged": false}))
        .await;
    stage
        .until("the item to be reopened", |name, items| {
            // A reopened emergency is a new message.
            let count = if is_pushover(name) { 2 } else { 1 };
            items.len() == count && items.iter().any(|it| !it.is_closed)
        })
        .await;
    stage.send([1], "CLOSED").await;
    stage
        .until("all items to be closed", |_, items| {
            items.iter().all(|it| it.is_closed)
        })
        .await;
    let first = &stage.deliveries("DELIVERED", 5 * APIS.len()).await;
    let kept = first.iter().filter(|it| it["kept"].is_object()).count();
    // Only the response to the first message has new values; Pushover returned another receipt.
    assert_eq!(kept, APIS.len() + 1, "{first:#?}");
}

#[tokio::test]
async fn group_has_one_item_that_ends_with_its_last_event() {
    let more = json!({"group": {"by": ["name"], "wait": "1s", "interval": "10s"}});
    let mut stage = Stage::new(&more).await;
    stage.send([1, 2], "OPEN").await;
    stage.until_one(1, false).await;
    stage.deliveries("DELIVERED", APIS.len()).await;
    stage.world.kill();
    stage.world.start_again();
    stage.send([1, 2], "CLOSED").await;
    stage
        .until(
            "one closed item",
            |_, items| matches!(items, [item] if item.is_closed),
        )
        .await;
}

#[tokio::test]
async fn message_whose_response_was_not_recorded_is_sent_again() {
    let mut stage = Stage::new(&json!({})).await;
    for (_, _, items) in &stage.desks {
        items.hang(true);
    }
    stage.send([1], "OPEN").await;
    stage.until_one(1, false).await;
    stage.world.kill();
    for (_, _, items) in &stage.desks {
        items.hang(false);
    }
    stage.world.start_again();
    stage
        .until("the second request", |name, items| match items {
            [item] => name == "zendesk" && item.texts.len() == 2,
            items => items.len() == 2,
        })
        .await;
    stage.deliveries("DELIVERED", APIS.len()).await;
    stage.send([1], "CLOSED").await;
    // The newest item is the one that later messages refer to.
    stage
        .until("the newest item to be closed", |_, items| {
            items.last().is_some_and(|it| it.is_closed)
        })
        .await;
}

#[tokio::test]
async fn change_without_an_item_opens_one_and_closing_is_skipped() {
    let stage = Stage::new(&json!({})).await;
    let refuse = |is_refusing: bool| {
        let mischief = Mischief::Answers(Reply::status(422));
        for (_, receiver, _) in &stage.desks {
            receiver.misbehave(is_refusing.then(|| mischief.clone()));
        }
    };
    refuse(true);
    stage.send([1, 2], "OPEN").await;
    let openings = stage.deliveries("DEAD", 2 * APIS.len()).await;
    refuse(false);
    // The closing of the second event has nothing to close in an issue tracker.
    stage.send([2], "CLOSED").await;
    let skipped = stage.deliveries("CANCELLED", ISSUES.len()).await;
    for delivery in skipped {
        let error = delivery["lastError"].as_str().unwrap();
        assert!(error.starts_with("skipped: no response"), "{error}");
    }
    stage
        .until("the messages about the closing", |name, items| {
            items.len() == usize::from(!ISSUES.contains(&name))
        })
        .await;
    // A change of the first event opens its item.
    stage.set(json!({"acknowledged": true})).await;
    stage
        .until("the item of the first event", |name, items| {
            items.len() == 1 + usize::from(!ISSUES.contains(&name))
        })
        .await;
    // So its opening, sent again, changes that item.
    let rest = stage.rest();
    for opening in openings {
        if opening["dimensions"]["host"] == "h1" {
            let id = opening["id"].as_str().unwrap();
            let path = format!("/v1/notification/deliveries/{id}:retry");
            rest.post(&path, &json!({})).await.ok();
        }
    }
    // Pushover returned no receipt for the acknowledgement.
    stage
        .until("the opening", |name, items| {
            name == "pushover" || items.last().is_some_and(|it| it.texts.len() == 2)
        })
        .await;
    stage.send([1], "CLOSED").await;
    stage
        .until("the item to be closed", |name, items| {
            let count = 1 + usize::from(!ISSUES.contains(&name));
            (name == "pushover" || items.len() == count)
                && items.last().is_some_and(|it| it.is_closed)
        })
        .await;
}

#[tokio::test]
async fn change_of_a_deleted_message_is_a_new_message_that_later_changes_edit() {
    let stage = Stage::new(&json!({})).await;
    let is_chat = |name: &str| name.ends_with("-edit") || name.ends_with("-bot");
    stage.send([1], "OPEN").await;
    stage.until_one(1, false).await;
    for (name, _, items) in &stage.desks {
        if is_chat(name) {
            items.delete(1);
        }
    }
    stage.set(json!({"acknowledged": true})).await;
    stage
        .until("the acknowledgement", |name, items| match items {
            [item] => !is_chat(name) && item.texts.len() == 2,
            [_, second] => is_chat(name) && second.texts.len() == 1,
            _ => false,
        })
        .await;
    stage.send([1], "CLOSED").await;
    stage
        .until("the closing", |name, items| {
            items.len() == 1 + usize::from(is_chat(name))
                && items.last().is_some_and(|it| it.is_closed)
        })
        .await;
}

#[tokio::test]
async fn change_after_a_digest_is_a_message_of_its_own() {
    let stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    let (name, ..) = stage
        .desks
        .iter()
        .find(|it| it.0 == "discord-edit")
        .unwrap();
    let path = format!("/v1/notification/destinations/{name}");
    let mut draft = rest.get(&path).await.ok()["destination"].clone();
    draft["delivery"] = json!({"budget": {"messages": 1, "per": "10s", "criticalShare": 0}});
    rest.put(&path, &draft).await.ok();
    stage.send([1], "OPEN").await;
    stage.send([2], "OPEN").await;
    stage.send([3], "OPEN").await;
    let items = &stage.desks.iter().find(|it| it.0 == *name).unwrap().2;
    eventually("the message and the digest", async || {
        (items.all().len() == 2).then_some(())
    })
    .await;
    // The digest is no message of the thread of its events.
    stage.send([1], "CLOSED").await;
    eventually("the edit of the first message", async || {
        items.all()[&1].is_closed.then_some(())
    })
    .await;
    stage.send([2], "CLOSED").await;
    eventually("a message about the second event", async || {
        let third = items.all().get(&3).cloned();
        third.filter(|it| it.texts[0].contains("closed"))
    })
    .await;
    // Issue trackers keep state, so they have no digests.
    for name in ISSUES {
        let path = format!("/v1/notification/destinations/{name}");
        let mut draft = rest.get(&path).await.ok()["destination"].clone();
        draft["delivery"] = json!({"budget": {"messages": 1, "per": "60s"}});
        assert_eq!(rest.put(&path, &draft).await.status, 400, "{name}");
    }
}

#[tokio::test]
async fn issue_opened_by_a_test_is_closed_by_it() {
    let stage = Stage::new(&json!({})).await;
    let rest = stage.rest();
    for name in ISSUES {
        let test = json!({"name": name});
        let tested = rest.post("/v1/notification/destinations:test", &test);
        let tested = tested.await.ok();
        assert_eq!(tested["outcome"], "OUTCOME_DELIVERED", "{name}: {tested}");
        assert_eq!(
            tested["closing"]["outcome"], "OUTCOME_DELIVERED",
            "{name}: {tested}"
        );
        let (.., items) = stage.desks.iter().find(|it| it.0 == name).unwrap();
        let items: Vec<_> = items.all().into_values().collect();
        assert!(matches!(&items[..], [item] if item.is_closed), "{items:?}");
    }
}
