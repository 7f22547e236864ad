//! Notifications held by silences, and their release.

use std::sync::Arc;

use super::*;
use crate::{
    destination::Destinations,
    store::{Sealer, engine::memory::MemoryEngine},
    testing::{faulty_engine::FaultyEngine, walks::walk_length},
};

#[tokio::test]
async fn held_notification_is_sent_once_when_the_silence_ends() {
    for way in ["time", "expire", "delete", "edit", "idle rules"] {
        let world = World::under(&[page()]).await;
        world.silence("quiet", "host=a", 60).await;
        world.event("a", |_| {}).await;
        world.event("b", |_| {}).await;
        world.wait(60).await;
        world.event("a", |it| it.summary = "by then".into()).await;
        assert_eq!(world.sent().await, [about("b", false)], "{way}");
        let held = world.view("quiet").await;
        assert_eq!(
            (held.covered, held.pending, held.skipped),
            (1, 1, 0),
            "{way}"
        );
        let ana = name("Ana");
        match way {
            "time" => world.clock.advance(Duration::from_secs(3_540)),
            "expire" => drop(world.node().silences.expire("quiet", &ana).await.unwrap()),
            "delete" => world.node().silences.delete("quiet", "").await.unwrap(),
            "edit" => {
                let draft = world.draft("quiet", "host=c", 60);
                world.update(draft).await;
            }
            _ => {
                let mut draft = world.draft("quiet", "host=a", 60);
                samples::save_rule(&world.store, &rule("other", &["nothing"], &["hook"])).await;
                draft.rule_names = vec!["other".into()];
                world.update(draft).await;
            }
        }
        world.review().await;
        world.wait(5).await;
        let sent = world.sent().await;
        assert_eq!(sent, [about("b", false), about("a", false)], "{way}");
        let all = samples::all::<Delivery>(&world.store).await;
        let by_then = all
            .iter()
            .filter(|it| it.content.occurrence.summary == "by then");
        assert_eq!(by_then.count(), 1, "{way}");
        assert!(world.occurrence("a").await.pending.is_empty(), "{way}");
    }
}

#[tokio::test]
async fn event_opened_and_closed_under_silence_is_skipped() {
    let world = World::under(&[with_updates()]).await;
    world.silence("quiet", "host=a", 60).await;
    world.event("a", |_| {}).await;
    let now = world.explained("a").await;
    assert_eq!(
        now.main.reason_text(),
        "Held: silence `quiet` (Ana, «kernel update»), until 2027-01-15 09:00:00 UTC. Then \
         notifies hook, if still open and matching."
    );
    assert_eq!(now.held_by.len(), 1);
    let until_ms = Some(START_MS + 60 * MINUTE_MS);
    assert_eq!(now.main.reason.until_ms, until_ms);
    assert_eq!(now.main.reason.destinations, [name("hook")]);
    let gate = now
        .main
        .gates
        .iter()
        .find(|it| it.name == "silence")
        .unwrap();
    assert_eq!(gate.passed, Some(false));
    world.wait(60).await;
    world.event("a", close).await;
    world.wait(7_200).await;
    assert!(world.sent().await.is_empty());
    assert_eq!(world.view("quiet").await.skipped, 1);
    let then = world.explained("a").await;
    assert!(then.held_by.is_empty() && then.main.reason.condition.is_none());
    let why = "the occurrence was already closed, while held by silence `quiet` (Ana, «kernel \
               update»)";
    assert_eq!(then.skipped_reason.as_deref(), Some(why));
    assert_eq!(then.main.reason_text(), format!("Skipped: {why}"));
    let steps: Vec<_> = then.hold_changes.iter().map(|it| it.what as u32).collect();
    assert_eq!(steps, [1, 4]);
}

#[tokio::test]
async fn closings_are_sent_and_updates_deferred_under_a_silence() {
    let world = World::under(&[with_updates()]).await;
    for host in ["closes", "returns", "rises"] {
        world.event(host, |_| {}).await;
    }
    world.wait(1).await;
    assert_eq!(world.sent().await.len(), 3);
    let mut draft = world.draft("quiet", "severity>=error", 60);
    draft.name.clear();
    let made = world
        .node()
        .silences
        .create(draft, false, true)
        .await
        .unwrap();
    assert!(made.silence.name.as_str().starts_with("silence-"));
    world.event("returns", severity(Severity::Critical)).await;
    world.event("rises", severity(Severity::Critical)).await;
    world.wait(60).await;
    world.event("returns", severity(Severity::Error)).await;
    assert_eq!(world.sent().await.len(), 3, "news waits");
    world.event("closes", close).await;
    assert_eq!(world.sent().await[3..], [about("closes", true)]);
    let waits = world.explained("rises").await;
    assert_eq!(waits.main.reason.code, ReasonCode::UpdateHeld);
    world.wait(3_600).await;
    assert_eq!(world.sent().await[4..], [about("rises", true)]);
    world.event("rises", close).await;
    assert_eq!(world.sent().await[5..], [about("rises", true)]);
}

#[tokio::test]
async fn overlapping_silences_hold_independently() {
    let world = World::under(&[page()]).await;
    world.silence("short", "host=a", 10).await;
    world.silence("long", "name=disk-full", 60).await;
    world.event("a", |_| {}).await;
    assert_eq!(world.occurrence("a").await.pending[0].held_by.len(), 2);
    world.wait(600).await;
    assert!(world.sent().await.is_empty());
    let held = world.explained("a").await.held_by;
    let names: Vec<_> = held.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["long"]);
    world.wait(3_000).await;
    assert_eq!(world.sent().await, [about("a", false)]);
}

#[tokio::test]
async fn event_leaving_the_query_is_sent_in_the_same_commit() {
    let world = World::under(&[page()]).await;
    world.silence("quiet", "host=a severity<=error", 60).await;
    world.event("a", |_| {}).await;
    assert!(world.sent().await.is_empty());
    world.event("a", severity(Severity::Critical)).await;
    assert_eq!(world.sent().await, [about("a", false)]);
    let view = world.view("quiet").await;
    assert_eq!((view.covered, view.pending), (0, 0));
}

#[tokio::test]
async fn repeats_due_under_a_silence_become_one_message() {
    let repeating = Rule {
        repeat: true,
        repeat_interval_seconds: 600,
        ..page()
    };
    let world = World::under(&[repeating]).await;
    world.event("a", |_| {}).await;
    world.silence("quiet", "host=a", 60).await;
    for _ in 0..3 {
        world.wait(900).await;
        world.event("a", |_| {}).await;
    }
    assert_eq!(world.sent().await.len(), 1);
    world.wait(900).await;
    assert_eq!(world.sent().await, [about("a", false), about("a", false)]);
    world.event("a", |_| {}).await;
    assert_eq!(world.sent().await.len(), 2, "the interval starts again");
}

#[tokio::test]
async fn silence_ended_during_downtime_releases_notifications_at_start() {
    let world = World::under(&[page()]).await;
    world.silence("quiet", "host=a", 60).await;
    world.event("a", |_| {}).await;
    world.event("c", close).await;
    world.restart(2 * 3_600).await;
    world.review().await;
    assert_eq!(world.sent().await, [about("a", false)]);
    // A restart before the end of the silence sends no messages.
    world.silence("again", "host=d", 60).await;
    world.event("d", |_| {}).await;
    world.restart(60).await;
    world.review().await;
    assert_eq!(world.sent().await, [about("a", false)]);
    // The deletion of a silence right before the restart also releases its notifications.
    world.node().silences.delete("again", "").await.unwrap();
    world.restart(60).await;
    world.review().await;
    assert_eq!(world.sent().await.len(), 2);
}

#[tokio::test]
async fn reopening_under_a_silence_is_held_like_an_opening() {
    let world = World::under(&[with_updates()]).await;
    world.event("a", |_| {}).await;
    world.wait(1).await;
    world.event("a", close).await;
    world.silence("quiet", "host=a", 60).await;
    let id = world.occurrence("a").await.id();
    let set = async |status| {
        let item = crate::set_status::StatusItem {
            target: OccurrenceTarget::Exactly(id),
            change: crate::lifecycle::StateChange {
                status: Some(status),
                ..Default::default()
            },
        };
        let deciding = (&world.node().deciding, &world.node().intake);
        let done = crate::set_status::set_status(deciding, &[item], &name("Ana")).await;
        done.unwrap().remove(0).unwrap();
    };
    world.wait(1).await;
    set(Status::Open).await;
    set(Status::Closed).await;
    assert_eq!(world.sent().await, [about("a", false), about("a", true)]);
    set(Status::Open).await;
    assert!(world.occurrence("a").await.pending[0].is_opening);
    world.wait(3_600).await;
    assert_eq!(world.sent().await[2..], [about("a", false)]);
    world.wait(1).await;
    set(Status::Closed).await;
    assert_eq!(world.sent().await[3..], [about("a", true)]);
}

#[tokio::test]
async fn suppressed_event_stays_held_after_the_silence() {
    let world = World::under(&[page()]).await;
    world.silence("quiet", "host=a", 10).await;
    world.event("a", |_| {}).await;
    world
        .event("a", |it| it.status = Some(Status::Suppressed))
        .await;
    world.wait(1_200).await;
    assert!(world.sent().await.is_empty());
    let held = world.explained("a").await.held_by;
    assert_eq!(held[0].kind.as_str(), "suppressed");
    world.event("a", |it| it.status = Some(Status::Open)).await;
    assert_eq!(world.sent().await, [about("a", false)]);
}

#[tokio::test]
async fn event_during_silence_creation_is_either_held_or_sent() {
    for round in 0..50 {
        let world = World::under(&[page()]).await;
        let draft = world.draft("quiet", "host=a", 60);
        let node = world.node();
        let (made, ()) = tokio::join!(
            node.silences.create(draft, false, false),
            world.event("a", |_| {}),
        );
        made.unwrap();
        let (sent, pending) = (world.sent().await, world.occurrence("a").await.pending);
        assert_eq!(sent.len() + pending.len(), 1, "round {round}");
        world.event("b", |_| {}).await;
        world.review().await;
        assert_eq!(world.view("quiet").await.covered, 1, "round {round}");
    }
}

#[tokio::test]
async fn silence_that_ends_during_a_review_releases_one_message() {
    const TURNS_MAX: usize = 300;

    let moments = usize::try_from(walk_length("BELLWETHER_REVIEW_MOMENTS")).unwrap();
    for turns in (0..TURNS_MAX).step_by(TURNS_MAX.div_ceil(moments)) {
        let engine = FaultyEngine::with_delays(MemoryEngine::new_shared(), 7);
        let store = Store::new(Arc::new(engine), Arc::new(Sealer::with_random_key()));
        samples::save_rule(&store, &page()).await;
        let world = World::on(store).await;
        world
            .create(world.draft("quiet", "name=disk-full", 60))
            .await;
        let node = world.node();
        let events = (0..12).map(|it| IncomingEvent {
            timestamp_ms: world.clock.now_ms(),
            ..samples::event(&format!("host-{it}"))
        });
        node.intake.submit(events.collect(), None).await.unwrap();
        let expire = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
            node.silences.expire("quiet", &name("Ana")).await
        };
        let (is_reviewed, expired) = tokio::join!(node.reviewer.run_once(), expire);
        assert!(is_reviewed && expired.is_ok());
        world.review().await;
        let sent = samples::all::<Delivery>(&world.store).await;
        let groups = sent.iter().map(|it| it.content.group.as_ref());
        let counts: Vec<_> = groups.map(|it| it.map(|it| it.open_count)).collect();
        assert_eq!(counts, [Some(12)], "{turns}");
    }
}

#[tokio::test]
async fn mass_release_sends_one_message_per_rule() {
    let other = Rule {
        send_updates: true,
        ..rule("other", &["everything"], &["mail"])
    };
    let world = World::under(&[with_updates(), other]).await;
    world.silence("quiet", "name=disk-full", 60).await;
    let hosts: Vec<_> = (0..250).map(|it| format!("host-{it}")).collect();
    let mut events: Vec<_> = hosts.iter().map(|host| samples::event(host)).collect();
    for event in &mut events {
        event.timestamp_ms = world.clock.now_ms();
    }
    world.node().intake.submit(events, None).await.unwrap();
    let editor = name("Ana");
    world
        .node()
        .silences
        .expire("quiet", &editor)
        .await
        .unwrap();
    world.review().await;
    let sent = samples::all::<Delivery>(&world.store).await;
    let to = |destination: &str| {
        let all = sent.iter().filter(|it| it.destination_name == destination);
        all.cloned().collect::<Vec<_>>()
    };
    let of_hosts = |it: &Delivery| it.content.occurrence.name == "disk-full";
    let together = to("hook");
    assert_eq!(together.len(), 1);
    let group = together[0].content.group.as_ref().unwrap();
    assert_eq!((group.joined_count, group.open_count), (250, 250));
    assert_eq!(to("mail").into_iter().filter(of_hosts).count(), 1);
    let closes = hosts.iter().map(|host| IncomingEvent {
        status: Some(Status::Closed),
        timestamp_ms: world.clock.now_ms() + 1,
        ..samples::event(host)
    });
    world.clock.advance(Duration::from_millis(1));
    world
        .node()
        .intake
        .submit(closes.collect(), None)
        .await
        .unwrap();
    world.review().await;
    let sent = samples::all::<Delivery>(&world.store).await;
    let closing = sent.iter().filter(|it| it.content.clear && of_hosts(it));
    let closing: Vec<_> = closing.collect();
    assert_eq!(closing.len(), 2);
    assert!(
        closing
            .iter()
            .all(|it| it.content.group.as_ref().unwrap().is_over)
    );
}

#[tokio::test]
async fn large_release_is_split_into_several_messages() {
    const FREED: u32 = 2_500;
    let world = World::under(&[with_updates()]).await;
    world.silence("quiet", "name=disk-full", 60).await;
    let events = (0..FREED).map(|it| IncomingEvent {
        timestamp_ms: world.clock.now_ms(),
        ..samples::event(&format!("host-{it}"))
    });
    world
        .node()
        .intake
        .submit(events.collect(), None)
        .await
        .unwrap();
    let editor = name("Ana");
    world
        .node()
        .silences
        .expire("quiet", &editor)
        .await
        .unwrap();
    world.review().await;
    let sent = samples::all::<Delivery>(&world.store).await;
    let groups = sent.iter().filter_map(|it| it.content.group.as_ref());
    let mut joined: Vec<_> = groups.map(|it| it.joined_count).collect();
    joined.sort_unstable();
    assert_eq!(joined, [500, 1_000, 1_000]);
    let left = samples::all::<Occurrence>(&world.store).await;
    assert!(left.iter().all(|it| it.pending.is_empty()));
}

#[tokio::test]
async fn small_release_is_sent_one_by_one() {
    let world = World::under(&[with_updates()]).await;
    world.silence("quiet", "name=disk-full", 60).await;
    for host in 0..10 {
        world.event(&format!("host-{host}"), |_| {}).await;
    }
    let editor = name("Ana");
    world
        .node()
        .silences
        .expire("quiet", &editor)
        .await
        .unwrap();
    world.review().await;
    let sent = samples::all::<Delivery>(&world.store).await;
    assert_eq!(sent.len(), 10);
    assert!(sent.iter().all(|it| it.content.group.is_none()));
}

#[tokio::test]
async fn timeline_lists_hold_history_in_order() {
    let world = World::under(&[with_updates()]).await;
    world.silence("quiet", "host=a", 60).await;
    world.event("a", |_| {}).await;
    world.wait(3_600).await;
    world.event("a", severity(Severity::Critical)).await;
    world.event("a", close).await;
    let snapshot = world.node().deciding.ruleset.refresh().await.unwrap();
    let (occurrence, now_ms) = (world.occurrence("a").await, world.clock.now_ms());
    let rules = explain(&world.store, &snapshot, &occurrence, now_ms).await;
    let story = crate::explain::build_timeline(&occurrence, &rules.unwrap());
    let kinds: Vec<_> = story.iter().map(|it| &*it.kind).collect();
    assert_eq!(
        kinds,
        [
            "opened", "held", "released", "notified", "changed", "notified", "changed", "closed",
            "notified"
        ]
    );
    assert_eq!(story[3].text, "decided to notify hook of it");
    assert_eq!(story[4].text, "severity error became critical");
    assert!(story.is_sorted_by_key(|it| it.time));
}

/// Returns the messages decided, oldest first: the destination, whether it is a `clear`, and the
/// severity.
async fn receivers(world: &World) -> Vec<(String, bool, Severity)> {
    let mut all = samples::all::<Delivery>(&world.store).await;
    all.sort_by(|a, b| (a.create_ms, &a.destination_name).cmp(&(b.create_ms, &b.destination_name)));
    all.into_iter()
        .map(|it| {
            let severity = it.content.occurrence.severity;
            (it.destination_name, it.content.clear, severity)
        })
        .collect()
}

fn to_both() -> Rule {
    Rule {
        send_updates: true,
        ..rule("page", &[DISK_TRIGGER], &["chat", "hook"])
    }
}

async fn silence_chat(world: &World) {
    let mut draft = world.draft("chat", "host=a", 60);
    draft.destination_names = vec!["chat".into()];
    world.create(draft).await;
    world.review().await;
}

fn message(to: &str, severity: Severity) -> (String, bool, Severity) {
    (to.into(), false, severity)
}

fn update(to: &str, severity: Severity) -> (String, bool, Severity) {
    (to.into(), true, severity)
}

#[tokio::test]
async fn silenced_destination_is_notified_when_the_silence_ends() {
    for way in ["time", "expire", "delete", "destination", "release"] {
        let world = World::under(&[to_both()]).await;
        silence_chat(&world).await;
        world.event("a", severity(Severity::Error)).await;
        world.wait(60).await;
        world.event("a", severity(Severity::Critical)).await;
        world.wait(60).await;
        let (error, critical) = (Severity::Error, Severity::Critical);
        let before = [message("hook", error), update("hook", critical)];
        assert_eq!(receivers(&world).await, before, "{way}");
        assert_eq!(world.view("chat").await.pending, 1, "{way}");
        assert_eq!(
            world.occurrence("a").await.pending[0].left_out,
            [name("chat")]
        );
        match way {
            "time" => world.clock.advance(Duration::from_secs(3_600)),
            "expire" => {
                let ana = name("Ana");
                drop(world.node().silences.expire("chat", &ana).await.unwrap());
            }
            "delete" => world.node().silences.delete("chat", "").await.unwrap(),
            "destination" => {
                let mut draft = world.draft("chat", "host=a", 60);
                draft.destination_names = vec!["hook".into()];
                world.update(draft).await;
            }
            _ => {
                let event = world.occurrence("a").await.event;
                let target = OccurrenceTarget::Newest(event);
                let node = world.node();
                let sent = pending::release_pending((&node.deciding, &node.intake), "page", target);
                assert_eq!(sent.await.unwrap().len(), 1);
            }
        }
        world.review().await;
        world.wait(5).await;
        let after = [&before[..], &[message("chat", critical)]].concat();
        assert_eq!(receivers(&world).await, after, "{way}");
        assert!(world.occurrence("a").await.pending.is_empty(), "{way}");
        world.event("a", close).await;
        world.wait(5).await;
        // The closing event has another severity.
        let closed = [update("chat", error), update("hook", error)];
        assert_eq!(receivers(&world).await[3..], closed, "{way}");
    }
}

#[tokio::test]
async fn silenced_destination_gets_no_closing_of_an_event_it_never_had() {
    let world = World::under(&[to_both()]).await;
    silence_chat(&world).await;
    world.event("a", severity(Severity::Error)).await;
    world.wait(60).await;
    world.event("a", close).await;
    world.wait(7_200).await;
    let error = Severity::Error;
    let expected = [message("hook", error), update("hook", error)];
    assert_eq!(receivers(&world).await, expected);
    assert!(world.occurrence("a").await.pending.is_empty());
}

#[tokio::test]
async fn notified_destination_gets_its_closing_despite_the_silence() {
    let world = World::under(&[to_both()]).await;
    world.event("a", severity(Severity::Error)).await;
    world.wait(1).await;
    silence_chat(&world).await;
    world.event("a", severity(Severity::Critical)).await;
    world.wait(60).await;
    assert_eq!(
        receivers(&world).await[2..],
        [update("hook", Severity::Critical)]
    );
    world.event("a", close).await;
    world.wait(60).await;
    let error = Severity::Error;
    let closed = [update("chat", error), update("hook", error)];
    assert_eq!(receivers(&world).await[3..], closed);
    assert!(world.occurrence("a").await.pending.is_empty());
}

#[tokio::test]
async fn rule_is_held_if_silences_name_all_its_destinations() {
    let world = World::under(&[to_both()]).await;
    silence_chat(&world).await;
    let mut draft = world.draft("hook", "host=a", 30);
    draft.destination_names = vec!["hook".into()];
    world.create(draft).await;
    world.review().await;
    world.event("a", severity(Severity::Error)).await;
    world.wait(60).await;
    assert_eq!(receivers(&world).await, []);
    world.wait(1_800).await;
    let error = Severity::Error;
    assert_eq!(receivers(&world).await, [message("hook", error)]);
    world.wait(1_800).await;
    let both = [message("hook", error), message("chat", error)];
    assert_eq!(receivers(&world).await, both);
}

#[tokio::test]
async fn silence_ends_with_its_last_destination() {
    let world = World::under(&[page()]).await;
    samples::save_rule(&world.store, &rule("other", &["nothing"], &["chat"])).await;
    silence_chat(&world).await;
    let deleted = Destinations::new(
        world.store.clone(),
        Arc::clone(&world.node().deciding.clock),
    );
    deleted.delete("chat", "", true).await.unwrap();
    assert_eq!(world.view("chat").await.state, SilenceState::Expired);
}
