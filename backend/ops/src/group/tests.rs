//! Tests of groups, on a service whose clock only moves when the test moves it.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    clock::Clock as _,
    domain::{
        Delivery, FlappingLimits, Group, Grouping, IncomingEvent, MemberChange, Occurrence, Rule,
        Severity, Status,
    },
    edit::OccurrenceTarget,
    group::notify,
    lifecycle::StateChange,
    review::Reviewer,
    samples::{self, DISK_TRIGGER, name, rule, world::World},
    set_status::{StatusItem, set_status},
    store::Lane,
};

mod edits;
mod shadow;

/// A group message for comparison: its members and their changes, the number of open members, and
/// whether it is a `clear` message.
type Message = (Vec<String>, u32, bool);

fn message(members: &[&str], open: u32, clear: bool) -> Message {
    let members = members.iter().map(|it| (*it).to_owned());
    (members.collect(), open, clear)
}

impl World {
    async fn open(&self, hosts: &[&str]) {
        for host in hosts {
            self.event(host, |_| {}).await;
        }
    }

    async fn close(&self, host: &str) {
        self.event(host, |it| it.status = Some(Status::Closed))
            .await;
    }

    async fn reopen(&self, host: &str) {
        self.clock.advance(Duration::from_millis(1));
        self.turn().await;
        let target = OccurrenceTarget::Newest(samples::event(host).id());
        let change = StateChange {
            status: Some(Status::Open),
            ..StateChange::default()
        };
        let (node, by) = (self.node(), name("dora"));
        let items = [StatusItem { target, change }];
        let done = set_status((&node.deciding, &node.intake), &items, &by);
        done.await.unwrap().remove(0).unwrap();
    }

    async fn edit(&self, rule: Rule) {
        let edited = Rule {
            revision: rule.revision + 1,
            ..rule
        };
        samples::save_rule(&self.store, &edited).await;
    }

    async fn deliveries(&self) -> Vec<Delivery> {
        let mut all = samples::all::<Delivery>(&self.store).await;
        all.sort_by_key(|it| it.create_ms);
        all
    }

    async fn messages(&self) -> Vec<Message> {
        let all = self.deliveries().await.into_iter();
        all.map(|it| {
            let group = it.content.group.expect("a message about a group");
            let member = |(change, it): &(Option<MemberChange>, Occurrence)| {
                let host = it.dimensions["host"].as_str();
                let mark = match change {
                    Some(MemberChange::Joined) => "+",
                    Some(MemberChange::Closed) => "-",
                    Some(MemberChange::Changed) => "~",
                    Some(MemberChange::Repeated) => "=",
                    None => "",
                };
                format!("{mark}{host}")
            };
            let mut members: Vec<_> = group.members.iter().map(member).collect();
            members.sort();
            (members, group.open_count, it.content.clear)
        })
        .collect()
    }

    async fn groups(&self) -> Vec<Group> {
        samples::all::<Group>(&self.store).await
    }
}

fn grouping(by: &[&str]) -> Grouping {
    Grouping {
        by: by.iter().map(|it| (*it).to_owned()).collect(),
        wait_ms: 30_000,
        interval_ms: 300_000,
    }
}

fn gathering() -> Rule {
    Rule {
        send_updates: true,
        group: Some(grouping(&["name"])),
        ..rule("page", &[DISK_TRIGGER], &["hook"])
    }
}

#[tokio::test]
async fn group_opening_waits_and_last_closing_is_sent_immediately() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a"]).await;
    world.wait(29).await;
    assert!(world.messages().await.is_empty());
    world.wait(1).await;
    assert_eq!(world.messages().await, [message(&["+a"], 1, false)]);
    world.close("a").await;
    world.wait(0).await;
    assert_eq!(world.messages().await[1..], [message(&["-a"], 0, true)]);
    let groups = world.groups().await;
    assert_eq!(groups.len(), 1);
    assert!(groups[0].end_ms.is_some());
    world.open(&["a"]).await;
    world.wait(30).await;
    assert_eq!(world.messages().await[2..], [message(&["+a"], 1, false)]);
    let threads: Vec<_> = world.deliveries().await;
    let thread = |at: usize| threads[at].content.group.as_ref().unwrap().id;
    assert_eq!(thread(0), thread(1));
    assert_ne!(thread(1), thread(2), "the next member starts another group");
}

#[tokio::test]
async fn members_closed_within_the_wait_are_skipped() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a", "b"]).await;
    world.close("a").await;
    world.wait(30).await;
    assert_eq!(world.messages().await, [message(&["+b"], 1, false)]);
    let world = World::under(&[gathering()]).await;
    world.open(&["a"]).await;
    world.close("a").await;
    world.wait(600).await;
    assert!(world.messages().await.is_empty());
    assert!(world.groups().await.is_empty());
}

#[tokio::test]
async fn group_changes_are_sent_once_per_interval() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a", "b", "c"]).await;
    world.wait(30).await;
    world.close("a").await;
    world
        .event("b", |it| it.severity = Some(Severity::Critical))
        .await;
    world.open(&["d"]).await;
    world.wait(299).await;
    assert_eq!(world.messages().await.len(), 1, "the interval runs");
    world.wait(1).await;
    assert_eq!(
        world.messages().await[1..],
        [message(&["+d", "-a", "c", "~b"], 3, false)]
    );
    assert_eq!(
        world.deliveries().await[1].content.occurrence.dimensions["host"],
        "b",
        "the most severe one represents them"
    );
    world.wait(3_000).await;
    assert_eq!(world.messages().await.len(), 2, "nothing is new");
    world.close("c").await;
    world.wait(0).await;
    assert_eq!(
        world.messages().await[2..],
        [message(&["-c", "b", "d"], 2, true)],
        "the interval ended long ago"
    );
    world.close("b").await;
    world.wait(0).await;
    assert_eq!(world.messages().await.len(), 3);
    world.close("d").await;
    world.wait(0).await;
    assert_eq!(
        world.messages().await[3..],
        [message(&["-b", "-d"], 0, true)],
        "the last closing does not wait for the interval"
    );
}

#[tokio::test]
async fn reverted_changes_are_not_reported() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a", "b"]).await;
    world.wait(30).await;
    world
        .event("a", |it| it.severity = Some(Severity::Critical))
        .await;
    world.event("a", |_| {}).await;
    world.close("b").await;
    world.wait(0).await;
    let reopens = |it: &mut IncomingEvent| it.status = Some(Status::Open);
    world.event("a", reopens).await;
    world.wait(300).await;
    assert_eq!(
        world.messages().await[1..],
        [message(&["-b", "a"], 1, true)]
    );
}

#[tokio::test]
async fn group_key_is_fixed_when_a_member_joins() {
    let world = World::under(&[Rule {
        group: Some(grouping(&["dimensions.host", "metadata.rack"])),
        ..gathering()
    }])
    .await;
    let rack = |rack: &'static str| {
        move |it: &mut IncomingEvent| {
            let value = crate::domain::Value::Text(rack.into());
            it.metadata.insert("rack".into(), value);
        }
    };
    world.event("a", rack("1")).await;
    world
        .event("a", |it| {
            it.name = "load".into();
            rack("1")(it);
        })
        .await;
    world.event("b", |_| {}).await;
    // The event moves to another rack, but stays in its group.
    world.event("a", rack("2")).await;
    world.wait(30).await;
    let mut messages = world.messages().await;
    messages.sort();
    assert_eq!(
        messages,
        [message(&["+a", "+a"], 2, false), message(&["+b"], 1, false)]
    );
    let groups = world.groups().await.into_iter().map(|it| it.by);
    let mut shared: Vec<_> = groups.map(|by| crate::decide::format_shared(&by)).collect();
    shared.sort();
    assert_eq!(
        shared,
        [
            "dimensions.host=a, metadata.rack=1",
            "dimensions.host=b, no metadata.rack"
        ]
    );
}

#[tokio::test]
async fn joins_beyond_a_thousand_follow_in_the_next_message() {
    let world = World::under(&[gathering()]).await;
    let hosts: Vec<_> = (0..1_200).map(|it| format!("host-{it}")).collect();
    let events = hosts.iter().map(|host| samples::event(host)).collect();
    world.node().intake.submit(events, None).await.unwrap();
    world.wait(30).await;
    world.wait(299).await;
    assert_eq!(world.deliveries().await.len(), 1);
    world.wait(1).await;
    let counts = |it: &Delivery| {
        let group = it.content.group.as_ref().unwrap();
        (group.joined_count, group.open_count, group.members.len())
    };
    let deliveries = world.deliveries().await;
    let counts: Vec<_> = deliveries.iter().map(counts).collect();
    assert_eq!(counts, [(1_000, 1_000, 100), (200, 1_200, 100)]);
    world.wait(3_000).await;
    assert_eq!(world.deliveries().await.len(), 2);
    assert_eq!(world.groups().await[0].member_count, 1_200);
    let closes = hosts.iter().map(|host| IncomingEvent {
        status: Some(Status::Closed),
        timestamp_ms: world.clock.now_ms(),
        ..samples::event(host)
    });
    world
        .node()
        .intake
        .submit(closes.collect(), None)
        .await
        .unwrap();
    world.wait(0).await;
    world.wait(300).await;
    let deliveries = world.deliveries().await;
    let closed = |it: &Delivery| {
        let group = it.content.group.as_ref().unwrap();
        (group.closed_count, group.is_over)
    };
    let closed: Vec<_> = deliveries[2..].iter().map(closed).collect();
    assert_eq!(closed, [(1_200, true)], "the closing is one message");
}

#[tokio::test]
async fn restart_resets_neither_wait_nor_interval() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a"]).await;
    world.wait(20).await;
    world.restart(0).await;
    world.wait(9).await;
    assert!(world.messages().await.is_empty());
    world.wait(1).await;
    assert_eq!(world.messages().await.len(), 1);
    world.open(&["b"]).await;
    world.restart(0).await;
    world.wait(299).await;
    assert_eq!(world.messages().await.len(), 1);
    world.wait(1).await;
    assert_eq!(
        world.messages().await[1..],
        [message(&["+b", "a"], 2, false)]
    );
    assert_eq!(world.groups().await.len(), 1);
}

#[tokio::test]
async fn concurrent_reviewers_send_one_group_message() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a", "b"]).await;
    world.clock.advance(Duration::from_secs(30));
    let node = world.node();
    let other = Reviewer::new(node.deciding.clone(), node.intake.clone());
    tokio::join!(node.reviewer.run_once(), other.run_once());
    assert_eq!(world.messages().await, [message(&["+a", "+b"], 2, false)]);
    world.close("a").await;
    world.close("b").await;
    tokio::join!(node.reviewer.run_once(), other.run_once());
    assert_eq!(
        world.messages().await[1..],
        [message(&["-a", "-b"], 0, true)]
    );
}

#[tokio::test]
async fn group_repeat_is_one_message() {
    let world = World::under(&[Rule {
        repeat: true,
        repeat_interval_seconds: 600,
        ..gathering()
    }])
    .await;
    world.open(&["a", "b"]).await;
    world.wait(30).await;
    world.wait(500).await;
    world.open(&["a", "b"]).await;
    world.wait(0).await;
    assert_eq!(world.messages().await.len(), 1, "it is not due");
    world.wait(100).await;
    world.open(&["a"]).await;
    world.wait(0).await;
    assert_eq!(
        world.messages().await[1..],
        [message(&["=a", "b"], 2, false)]
    );
    world.open(&["b"]).await;
    world.wait(400).await;
    assert_eq!(
        world.messages().await.len(),
        2,
        "the message represented all"
    );
}

#[tokio::test]
async fn flapping_member_is_reported_settled_once() {
    let world = World::under(&[Rule {
        flapping: Some(FlappingLimits {
            open_count: 3,
            window_ms: 3_600_000,
            settle_ms: 600_000,
        }),
        ..gathering()
    }])
    .await;
    world.open(&["steady", "a"]).await;
    world.wait(30).await;
    for _ in 0..3 {
        world.close("a").await;
        world.wait(10).await;
        world.open(&["a"]).await;
        world.wait(10).await;
    }
    world.wait(400).await;
    let before = world.messages().await.len();
    // The event settles, and the next message of the group reports it.
    world.wait(200).await;
    world.wait(300).await;
    let reported = world.messages().await.split_off(before);
    assert_eq!(reported, [message(&["steady", "~a"], 2, true)]);
    let last = world.deliveries().await.pop().unwrap();
    let members = last.content.group.unwrap().members;
    let member = |it: &&(Option<MemberChange>, Occurrence)| it.1.dimensions["host"] == "a";
    let (_, member) = members.iter().find(member).unwrap();
    assert!(member.is_notified_settled(), "{member:?}");
    world.wait(900).await;
    assert_eq!(world.messages().await.len(), before + 1, "once");
}

#[tokio::test]
async fn events_of_one_request_form_one_group_message() {
    let now = Grouping {
        wait_ms: 0,
        ..grouping(&["name"])
    };
    let world = World::under(&[Rule {
        group: Some(now),
        ..gathering()
    }])
    .await;
    let events = (0..40).map(|number| {
        let mut event = samples::event(&format!("host-{number}"));
        event.timestamp_ms = world.clock.now_ms();
        event
    });
    let events: Vec<_> = events.collect();
    world.node().intake.submit(events, None).await.unwrap();
    world.wait(0).await;
    let messages = world.messages().await;
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].1, 40);
}

#[tokio::test]
async fn reopened_last_member_starts_a_new_group() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a"]).await;
    world.wait(30).await;
    world.close("a").await;
    world.wait(0).await;
    assert_eq!(world.messages().await.len(), 2);
    world.reopen("a").await;
    world.wait(30).await;
    assert_eq!(world.messages().await[2..], [message(&["+a"], 1, false)]);
    let threads = world.deliveries().await;
    let thread = |at: usize| threads[at].content.group.as_ref().unwrap().id;
    assert_ne!(thread(1), thread(2));
    world.close("a").await;
    world.wait(0).await;
    assert_eq!(world.messages().await[3..], [message(&["-a"], 0, true)]);
}

#[tokio::test]
async fn joins_and_updates_share_one_group_message() {
    let world = World::under(&[gathering()]).await;
    world.open(&["a", "b"]).await;
    world.wait(30).await;
    world.open(&["c"]).await;
    world.close("a").await;
    let all = samples::all::<Occurrence>(&world.store).await;
    let pending = all.iter().flat_map(|it| &it.pending);
    let due: BTreeSet<_> = pending
        .filter_map(|it| Some((it.rule, it.group()?)))
        .collect();
    assert_eq!(due.len(), 2);
    let distinct = notify::find_due_groups(&world.store, due).await.unwrap();
    assert_eq!(distinct.len(), 1);
    world.wait(300).await;
    let messages = world.messages().await;
    assert_eq!(messages[1..], [message(&["+c", "-a", "b"], 2, false)]);
}
