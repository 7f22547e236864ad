//! Each kind of suggestion, where it is made and where it is not.
#![expect(
    clippy::large_futures,
    reason = "each runs alone, on the stack of a test"
)]

use std::sync::Arc;

use super::*;
use crate::{
    domain::{IncomingEvent, Role, Silence, Status},
    ops::{
        config::Configuration,
        samples::{DISK_TRIGGER, START_MS, name, rule, world::World},
        silence::SilenceDraft,
    },
    store::Lane,
};

const DAY: u64 = 86_400;

fn configuration(world: &World) -> Configuration {
    let clock = Arc::clone(&world.node().deciding.clock);
    Configuration::new(world.store.clone(), clock, Arc::default())
}

async fn suggested(world: &World) -> Vec<Suggested> {
    let deciding = world.node().deciding.clone();
    let impacts = Impacts::new(configuration(world), deciding);
    let found = impacts.suggestions().await.unwrap();
    assert!(!found.stopped_early, "{found:?}");
    found.found
}

/// The suggestion of a kind, whose draft is accepted and has the effect that is promised.
async fn one(world: &World, kind: SuggestionKind) -> Suggested {
    let all = suggested(world).await;
    let found = all.iter().find(|it| it.kind == kind);
    let found = found
        .unwrap_or_else(|| panic!("no {kind:?} in {all:?}"))
        .clone();
    assert!(
        found.messages_before >= found.messages + SUGGESTION_SAVES_MIN,
        "{found:?}"
    );
    let draft = found.draft.clone().unwrap();
    let document = || {
        [Document {
            definition: draft.clone(),
            must_be_new: kind == SuggestionKind::Inhibition,
        }]
    };
    let deciding = world.node().deciding.clone();
    let impacts = Impacts::new(configuration(world), deciding);
    let impact = impacts.preview((&document(), ""), 0).await.unwrap();
    assert_eq!(
        (impact.messages, impact.messages_before),
        (found.messages, found.messages_before)
    );
    let stored = configuration(world);
    let applied = stored.apply(&document(), ("", Role::Editor), false).await;
    assert_eq!(applied.unwrap().len(), 1);
    let again = suggested(world).await;
    assert!(again.iter().all(|it| it.kind != kind), "{again:?}");
    found
}

async fn none(world: &World, kind: SuggestionKind) {
    let all = suggested(world).await;
    assert!(all.iter().all(|it| it.kind != kind), "{all:?}");
}

fn named(called: &'static str) -> impl Fn(&mut IncomingEvent) {
    move |it| it.name = called.into()
}

fn closed(event: &mut IncomingEvent) {
    (event.severity, event.status) = (None, Some(Status::Closed));
}

fn critical(event: &mut IncomingEvent) {
    event.severity = Some(Severity::Critical);
}

async fn page() -> World {
    let world = World::under(&[rule("page", &[DISK_TRIGGER], &["hook"])]).await;
    world.store.begin_counting(START_MS).await.unwrap();
    world
}

/// Events of different things, hours apart, each closed by its sender after so many seconds.
async fn closing(world: &World, seconds: u64, change: impl Fn(&mut IncomingEvent)) {
    for at in 0..16 {
        let host = format!("h{at}");
        world.event(&host, &change).await;
        world.wait(seconds).await;
        world.event(&host, closed).await;
        world.wait(3_600).await;
    }
}

#[tokio::test]
async fn a_delay_where_senders_close_soon_and_none_where_they_do_not_or_it_is_critical() {
    let world = page().await;
    closing(&world, 200, |_| {}).await;
    let found = one(&world, SuggestionKind::Delay).await;
    assert_eq!((found.messages, found.messages_before), (0, 16));
    assert!(
        found.evidence.starts_with("16 of 16 occurrences"),
        "{}",
        found.evidence
    );
    assert!(
        found.evidence.ends_with("within 5 min"),
        "{}",
        found.evidence
    );
    let effect = "would have sent 0 messages instead of 16 in 7 days";
    assert!(found.effect.starts_with(effect), "{}", found.effect);

    let slow = page().await;
    closing(&slow, 3_000, |_| {}).await;
    none(&slow, SuggestionKind::Delay).await;
    let severe = page().await;
    closing(&severe, 200, critical).await;
    none(&severe, SuggestionKind::Delay).await;
}

#[tokio::test]
async fn a_group_where_events_come_together_and_none_where_they_come_alone() {
    let world = page().await;
    for at in 0..24 {
        world
            .event(&format!("h{at}"), |it| {
                it.dimensions
                    .insert("cluster".into(), format!("c{}", at / 8));
            })
            .await;
        world.wait(if at % 8 == 7 { 7_200 } else { 2 }).await;
    }
    let found = one(&world, SuggestionKind::Group).await;
    assert_eq!((found.messages, found.messages_before), (3, 24));
    assert!(
        found.evidence.contains("in 3 clusters"),
        "{}",
        found.evidence
    );
    let Some(Definition::Rule(draft)) = found.draft else {
        panic!("{:?}", found.draft)
    };
    assert_eq!(draft.group.unwrap().by, ["dimensions.cluster"]);

    let alone = page().await;
    closing(&alone, 3_000, |_| {}).await;
    none(&alone, SuggestionKind::Group).await;
}

/// An event after another one of the same host, so many seconds later.
async fn following(world: &World, seconds: u64) {
    for at in 0..12 {
        let host = format!("h{at}");
        for called in ["switch", "ping"] {
            world.event(&host, named(called)).await;
            world.wait(seconds).await;
        }
        for called in ["ping", "switch"] {
            world
                .event(&host, |it| {
                    it.name = called.into();
                    closed(it);
                })
                .await;
        }
        world.wait(3_600).await;
    }
}

#[tokio::test]
async fn an_inhibition_where_one_event_follows_another_and_none_where_it_comes_later() {
    let world = page().await;
    following(&world, 20).await;
    let found = one(&world, SuggestionKind::Inhibition).await;
    assert_eq!(found.name, "switch-over-ping");
    assert_eq!((found.messages, found.messages_before), (12, 24));
    assert!(
        found.evidence.starts_with("12 of 12 "),
        "{}",
        found.evidence
    );

    let later = page().await;
    following(&later, 300).await;
    none(&later, SuggestionKind::Inhibition).await;
}

async fn after_a_month(change: impl Fn(&mut IncomingEvent), acknowledge: bool) -> World {
    let world = page().await;
    world.wait(32 * DAY).await;
    closing(&world, 3_000, change).await;
    if acknowledge {
        world.event("seen", |_| {}).await;
        world.event("seen", |it| it.acknowledged = Some(true)).await;
    }
    world
}

#[tokio::test]
async fn a_dry_run_of_a_rule_nobody_acts_on_and_none_where_somebody_did() {
    let world = after_a_month(|_| {}, false).await;
    let found = one(&world, SuggestionKind::UnusedRule).await;
    assert_eq!(
        (&*found.name, found.messages, found.messages_before),
        ("page", 0, 16)
    );
    assert!(
        found
            .evidence
            .contains("16 notifications about 16 occurrences"),
        "{}",
        found.evidence
    );

    none(
        &after_a_month(|_| {}, true).await,
        SuggestionKind::UnusedRule,
    )
    .await;
    none(
        &after_a_month(critical, false).await,
        SuggestionKind::UnusedRule,
    )
    .await;
    let young = page().await;
    closing(&young, 3_000, |_| {}).await;
    none(&young, SuggestionKind::UnusedRule).await;
}

async fn silenced(host: &str) -> World {
    let world = page().await;
    let query = bellwether_proto::filter::parse(&format!("host={host}"), None).unwrap();
    let draft = SilenceDraft {
        name: "quiet".into(),
        description: String::new(),
        tags: Vec::new(),
        reason: "kernel update".into(),
        query: Some(crate::domain::Query {
            clause: query.clause,
        }),
        rule_names: Vec::new(),
        calendar: String::new(),
        flexible_ms: None,
        start_ms: None,
        end_ms: Some(START_MS + 20 * DAY_MS),
        expire_when_idle_ms: None,
        warn_before_ms: None,
        from_event: None,
        editor: name("Ana"),
        etag: String::new(),
        faults: Vec::new(),
    };
    world
        .node()
        .silences
        .create(draft, false, false)
        .await
        .unwrap();
    world.wait(60).await;
    world.event("a", |_| {}).await;
    world.wait(8 * DAY).await;
    world
}

#[tokio::test]
async fn the_end_of_a_silence_that_covers_nothing_and_none_of_one_that_does() {
    let world = silenced("z").await;
    let all = suggested(&world).await;
    let found = all.iter().find(|it| it.kind == SuggestionKind::IdleSilence);
    let found = found.unwrap();
    assert_eq!((&*found.name, &found.draft.is_none()), ("quiet", &true));
    assert!(
        found.evidence.contains("no event for 7 days"),
        "{}",
        found.evidence
    );
    assert_eq!(found.messages, found.messages_before);

    none(&silenced("a").await, SuggestionKind::IdleSilence).await;
    // One that was forgotten is no suggestion.
    let key = b"quiet".to_vec();
    let stored = world.store.get::<Silence>(key).await.unwrap().unwrap();
    let mut changes = world.store.changes();
    changes.delete(&stored);
    world.store.apply(Lane::Admin, changes).await.unwrap();
    none(&world, SuggestionKind::IdleSilence).await;
}
