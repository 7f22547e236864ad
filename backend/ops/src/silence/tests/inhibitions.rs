//! Notifications held by inhibitions, and their release.

use super::*;
use crate::{
    domain::{EqualFields, Inhibition},
    testing,
};

/// Returns a rule for all events about hosts and disks.
fn rule_of(delay_ms: i64) -> Rule {
    Rule {
        delay_ms,
        ..rule("page", &["everything"], &["hook"])
    }
}

fn notified_of_all(delay_ms: i64) -> Rule {
    Rule {
        send_updates: true,
        ..rule_of(delay_ms)
    }
}

fn query(text: &str) -> Query {
    let clause = filter::parse(text, None).unwrap().clause;
    Query { clause }
}

fn inhibition() -> Inhibition {
    Inhibition {
        source: query("name=host-down"),
        target: query("name=disk-full"),
        equal: vec![EqualFields {
            source: "host".into(),
            target: "host".into(),
        }],
        counted_revision: 0,
        revision: 1,
        ..testing::samples::inhibition("dead host")
    }
}

async fn save(world: &World, inhibition: &Inhibition) {
    let mut changes = world.store.new_changes();
    let key = inhibition.name.as_str().into();
    match world.store.get::<Inhibition>(key).await.unwrap() {
        Some(stored) => changes.update(&stored, inhibition),
        None => changes.insert(inhibition),
    }
    world.store.apply(Lane::Admin, changes).await.unwrap();
    world.review().await;
}

async fn saved(world: &World) -> Inhibition {
    let stored = world.store.get::<Inhibition>("dead host".into());
    stored.await.unwrap().unwrap().value
}

fn down(event: &mut IncomingEvent) {
    event.name = "host-down".into();
}

fn up(event: &mut IncomingEvent) {
    down(event);
    close(event);
}

/// Returns the decided messages, oldest first: event name, host, and the `clear` flag.
async fn sent_messages(world: &World) -> Vec<String> {
    let mut all = samples::all::<Delivery>(&world.store).await;
    all.sort_by_key(|it| it.id);
    let shown = |it: Delivery| {
        let occurrence = &it.content.occurrence;
        // The service's own events have no host.
        let host = occurrence.dimensions.get("host")?;
        let clear = if it.content.clear { " clear" } else { "" };
        Some(format!("{} {host}{clear}", occurrence.name))
    };
    all.into_iter().filter_map(shown).collect()
}

#[tokio::test]
async fn effect_is_held_until_its_cause_closes_and_lingers() {
    let world = World::under(&[notified_of_all(0)]).await;
    save(&world, &inhibition()).await;
    assert_eq!(saved(&world).await.counted_revision, 1);
    world.event("a", down).await;
    world.wait(1).await;
    world.event("a", |_| {}).await;
    world.event("b", |_| {}).await;
    assert_eq!(sent_messages(&world).await, ["host-down a", "disk-full b"]);
    world.event("a", up).await;
    world.wait(59).await;
    assert_eq!(sent_messages(&world).await[2..], ["host-down a clear"]);
    world.wait(1).await;
    assert_eq!(sent_messages(&world).await[3..], ["disk-full a"]);
    world.wait(1).await;
    world.event("a", close).await;
    assert_eq!(sent_messages(&world).await[4..], ["disk-full a clear"]);
    // No due work is left.
    world.wait(60).await;
    let all = samples::all::<Occurrence>(&world.store).await;
    assert!(
        all.iter()
            .all(|it| it.causes.is_empty() && it.pending.is_empty())
    );
}

#[tokio::test]
async fn effect_closed_while_held_or_lingering_is_skipped() {
    let world = World::under(&[notified_of_all(0)]).await;
    save(&world, &inhibition()).await;
    world.event("a", down).await;
    world.event("a", |_| {}).await;
    let all = samples::all::<Occurrence>(&world.store).await;
    let disk = all.into_iter().find(|it| it.name == "disk-full").unwrap();
    let held = &disk.pending[0].held_by[0];
    assert_eq!(
        (held.kind.as_str(), held.name.as_str()),
        ("inhibition", "dead host")
    );
    let snapshot = world.node().deciding.ruleset.refresh().await.unwrap();
    let explained = explain(&world.store, &snapshot, &disk, world.clock.now_ms()).await;
    let reason = explained.unwrap().remove(0).main.reason_text();
    assert!(
        reason.starts_with("Held: inhibition `dead host` (`host-down` "),
        "{reason}"
    );
    world.wait(1).await;
    world.event("a", up).await;
    world.wait(30).await;
    world.event("a", close).await;
    world.wait(60).await;
    assert_eq!(
        sent_messages(&world).await,
        ["host-down a", "host-down a clear"]
    );
}

#[tokio::test]
async fn later_cause_holds_an_effect_still_in_its_delay() {
    let world = World::under(&[notified_of_all(MINUTE_MS)]).await;
    save(&world, &inhibition()).await;
    world.event("a", |_| {}).await;
    world.wait(20).await;
    world.event("a", down).await;
    world.wait(40).await;
    assert!(sent_messages(&world).await.is_empty(), "both wait");
    world.wait(20).await;
    assert_eq!(sent_messages(&world).await, ["host-down a"]);
    world.wait(3_600).await;
    assert_eq!(sent_messages(&world).await.len(), 1);
}

#[tokio::test]
async fn effect_notified_before_its_cause_still_gets_its_closing() {
    let world = World::under(&[notified_of_all(0)]).await;
    save(&world, &inhibition()).await;
    world.event("a", |_| {}).await;
    world.wait(1).await;
    world.event("a", down).await;
    world.event("a", severity(Severity::Critical)).await;
    assert_eq!(
        sent_messages(&world).await,
        ["disk-full a", "host-down a"],
        "an update is held"
    );
    world.wait(1).await;
    world.event("a", close).await;
    assert_eq!(sent_messages(&world).await[2..], ["disk-full a clear"]);
}

#[tokio::test]
async fn suppressed_silenced_or_returning_cause_still_holds_effects() {
    let world = World::under(&[notified_of_all(0)]).await;
    save(&world, &inhibition()).await;
    world.silence("quiet", "name=host-down", 600).await;
    world.event("a", down).await;
    world
        .event("a", |it| {
            down(it);
            it.status = Some(Status::Suppressed);
        })
        .await;
    world.event("a", |_| {}).await;
    assert!(sent_messages(&world).await.is_empty());
    world.event("a", up).await;
    world.wait(30).await;
    world.event("a", down).await;
    world.wait(3_600).await;
    assert!(sent_messages(&world).await.is_empty());
}

#[tokio::test]
async fn inhibition_edits_apply_immediately_to_stored_causes() {
    let world = World::under(&[notified_of_all(MINUTE_MS)]).await;
    world.event("a", down).await;
    world.wait(60).await;
    world.event("a", |_| {}).await;
    save(&world, &inhibition()).await;
    world.wait(120).await;
    assert_eq!(
        sent_messages(&world).await,
        ["host-down a"],
        "the stored source holds its targets"
    );
    let disabled = Inhibition {
        enabled: false,
        revision: 2,
        ..saved(&world).await
    };
    save(&world, &disabled).await;
    assert_eq!(
        sent_messages(&world).await[1..],
        ["disk-full a"],
        "without lingering"
    );
}

#[tokio::test]
async fn cause_ended_during_downtime_releases_effects_at_start() {
    let world = World::under(&[notified_of_all(0)]).await;
    save(&world, &inhibition()).await;
    world.event("a", down).await;
    world.event("a", |_| {}).await;
    world.wait(1).await;
    world.event("a", up).await;
    world.restart(30).await;
    world.review().await;
    assert_eq!(
        sent_messages(&world).await.len(),
        2,
        "it lingers across a restart"
    );
    world.restart(3_600).await;
    world.review().await;
    assert_eq!(sent_messages(&world).await[2..], ["disk-full a"]);
}

/// Returns the events of a request about a host: effects, and their cause at position `before`.
fn request(world: &World, host: &str, effects: usize, before: usize) -> Vec<IncomingEvent> {
    let mut cause = samples::event(host);
    down(&mut cause);
    let effect = |number: usize| {
        let mut effect = samples::event(host);
        effect.dimensions.insert("disk".into(), number.to_string());
        effect
    };
    let mut events: Vec<_> = (0..effects).map(effect).collect();
    events.insert(before, cause);
    for event in &mut events {
        event.timestamp_ms = world.clock.now_ms();
    }
    events
}

#[tokio::test]
async fn cause_holds_effects_at_any_position_in_its_request() {
    for before in [0, 1, 20, 39, 40] {
        let world = World::under(&[notified_of_all(0)]).await;
        save(&world, &inhibition()).await;
        let events = request(&world, "a", 40, before);
        world.node().intake.submit(events, None).await.unwrap();
        assert_eq!(
            sent_messages(&world).await,
            ["host-down a"],
            "after {before}"
        );
        world.wait(1).await;
        let mut end = request(&world, "a", 40, before);
        end.iter_mut().for_each(close);
        world.node().intake.submit(end, None).await.unwrap();
        world.wait(60).await;
        let sent = sent_messages(&world).await;
        assert_eq!(sent, ["host-down a", "host-down a clear"], "after {before}");
    }
}

#[tokio::test]
async fn concurrent_requests_are_each_decided_as_a_whole() {
    let world = World::under(&[notified_of_all(0)]).await;
    save(&world, &inhibition()).await;
    let node = world.node();
    let requests = (0..50).map(|number| {
        let host = format!("host-{number}");
        node.intake
            .submit(request(&world, &host, 9, number % 10), None)
    });
    for submitted in futures_util::future::join_all(requests).await {
        assert!(submitted.unwrap().failed.is_empty());
    }
    let sent = sent_messages(&world).await;
    assert_eq!(sent.len(), 50, "{sent:?}");
    assert!(sent.iter().all(|it| it.starts_with("host-down")));
}

#[tokio::test]
async fn requests_in_one_commit_are_decided_sequentially() {
    let world = World::under(&[notified_of_all(0)]).await;
    let inhibition = Inhibition {
        linger_ms: 0,
        ..inhibition()
    };
    save(&world, &inhibition).await;
    let node = world.node();
    let mut end = samples::event("a");
    up(&mut end);
    let mut effect = samples::event("a");
    effect.dimensions.insert("disk".into(), "later".into());
    let mut requests = vec![request(&world, "a", 1, 0), vec![end], vec![effect]];
    for event in requests.iter_mut().flatten() {
        event.timestamp_ms = world.clock.now_ms();
    }
    let requests = requests.into_iter().map(|it| node.intake.submit(it, None));
    futures_util::future::join_all(requests).await;
    let sent = sent_messages(&world).await;
    assert_eq!(sent, ["host-down a", "host-down a clear", "disk-full a"]);
}

#[tokio::test]
async fn effects_follow_the_state_of_the_cause_after_the_request() {
    // The events of the cause, and whether an effect at any position among them is held.
    type Change = fn(&mut IncomingEvent);
    for (linger_ms, causes, is_held) in [
        (60_000, vec![down as Change], true),
        (60_000, vec![down, up], true),
        (0, vec![down, up], false),
        (0, vec![down, up, down], true),
        (0, vec![up], false),
    ] {
        for before in 0..=causes.len() {
            let world = World::under(&[notified_of_all(0)]).await;
            let inhibition = Inhibition {
                linger_ms,
                ..inhibition()
            };
            save(&world, &inhibition).await;
            world.clock.advance(Duration::from_millis(1));
            let mut events: Vec<_> = causes.iter().map(|it| (samples::event("a"), *it)).collect();
            events.insert(before, (samples::event("a"), |_| {}));
            let events = events.into_iter().map(|(mut event, change)| {
                change(&mut event);
                event.timestamp_ms = world.clock.now_ms();
                event
            });
            let events = events.collect();
            world.node().intake.submit(events, None).await.unwrap();
            let sent = sent_messages(&world).await;
            let is_notified = sent.contains(&"disk-full a".to_owned());
            let what = format!("{} events of a cause, {linger_ms}, {before}", causes.len());
            assert_eq!(is_notified, !is_held, "{what}: {sent:?}");
        }
    }
}

#[tokio::test]
async fn effect_opened_and_closed_with_its_cause_is_not_sent() {
    for cause_at in 0..=2 {
        let world = World::under(&[notified_of_all(0)]).await;
        save(&world, &inhibition()).await;
        let mut changes: Vec<fn(&mut IncomingEvent)> = vec![|_| {}, close];
        changes.insert(cause_at, down);
        let events = changes.into_iter().map(|change| {
            let mut event = samples::event("a");
            event.timestamp_ms = world.clock.now_ms();
            change(&mut event);
            event
        });
        let events = events.collect();
        world.node().intake.submit(events, None).await.unwrap();
        assert_eq!(
            sent_messages(&world).await,
            ["host-down a"],
            "at {cause_at}"
        );
        let all = samples::all::<Occurrence>(&world.store).await;
        assert!(all.iter().all(|it| it.pending.is_empty()));
    }
}

/// Opens `causes` causes and the same number of effects on one host, then closes the causes in
/// `closed`, in that order. Returns the number of messages then sent about the effects.
async fn count_effect_messages(world: &World, causes: usize, closed: &[usize]) -> usize {
    let cause = |number: usize, status: Status| {
        move |it: &mut IncomingEvent| {
            down(it);
            it.dimensions.insert("part".into(), number.to_string());
            it.status = Some(status);
        }
    };
    for number in 0..causes {
        world.event("a", cause(number, Status::Open)).await;
    }
    for number in 0..causes {
        let part = format!("disk {number}");
        world
            .event("a", |it| drop(it.dimensions.insert("part".into(), part)))
            .await;
    }
    for number in closed {
        world.event("a", cause(*number, Status::Closed)).await;
    }
    world.wait(0).await;
    world.wait(90).await;
    let all = sent_messages(world).await;
    all.iter().filter(|it| it.starts_with("disk-full")).count()
}

#[tokio::test]
async fn effects_are_held_until_the_last_of_many_causes_closes() {
    for linger_ms in [0, 60_000] {
        let inhibition = Inhibition {
            linger_ms,
            ..inhibition()
        };
        for (causes, closed) in [
            (1, 0..0),
            (16, 0..15),
            (17, 0..16),
            (17, 1..17),
            (18, 0..17),
            (30, 0..17),
            (65, 0..64),
            (66, 0..65),
            (100, 0..99),
        ] {
            let world = World::under(&[rule_of(0)]).await;
            save(&world, &inhibition).await;
            let closed: Vec<_> = closed.collect();
            let sent = count_effect_messages(&world, causes, &closed).await;
            assert_eq!(sent, 0, "{closed:?} of {causes} causes, {linger_ms}");
        }
    }
}

#[tokio::test]
async fn effects_are_sent_when_the_last_cause_closes() {
    for causes in [1, 16, 17, 40] {
        let world = World::under(&[rule_of(0)]).await;
        save(&world, &inhibition()).await;
        let closed: Vec<_> = (0..causes).collect();
        assert!(
            count_effect_messages(&world, causes, &closed).await > 0,
            "{causes}"
        );
    }
}

#[tokio::test]
async fn editing_equal_fields_releases_only_effects_no_longer_inhibited() {
    let field = |name: &str| EqualFields {
        source: name.into(),
        target: name.into(),
    };
    for effects in [1, 49, 50, 51, 120] {
        let world = World::under(&[rule_of(0)]).await;
        save(&world, &inhibition()).await;
        let rack = |it: &mut IncomingEvent| drop(it.dimensions.insert("rack".into(), "1".into()));
        world
            .event("a", |it| {
                down(it);
                rack(it);
            })
            .await;
        for number in 0..effects {
            world
                .event("a", |it| {
                    rack(it);
                    it.dimensions.insert("part".into(), number.to_string());
                })
                .await;
        }
        let stricter = Inhibition {
            equal: vec![field("host"), field("rack")],
            revision: 2,
            ..saved(&world).await
        };
        save(&world, &stricter).await;
        world.wait(90).await;
        assert_eq!(sent_messages(&world).await, ["host-down a"], "{effects}");
        assert_eq!(saved(&world).await.counted_revision, 2);
        // Notifications that the inhibition no longer holds are sent.
        let other = Inhibition {
            equal: vec![field("host"), field("part")],
            revision: 3,
            ..saved(&world).await
        };
        save(&world, &other).await;
        assert!(sent_messages(&world).await.len() > 1, "{effects}");
    }
}
