//! Tests that a replay matches the actual notifications, and tests of comparing documents.

use std::sync::Arc;

use bellwether_proto::v1::config_document::Resource as DefinitionVersion;

use super::*;
use crate::{
    clock::Clock as _,
    domain::{Clause, Delivery, DeliveryState, IncomingEvent, Literal, Query, Severity, Status},
    edit::OccurrenceTarget,
    escalation_policy::EscalationPolicies,
    lifecycle::StateChange,
    samples::{self, DISK_TRIGGER, HurriedClock, name, rule, world::World},
    set_status::{StatusItem, set_status},
    trigger::event_type,
    wire::time,
};

const HOUR: u64 = 3_600;
const HOUR_MS: i64 = 3_600_000;

fn impacts(world: &World) -> Impacts {
    let deciding = world.node().deciding.clone();
    let configuration = Configuration::new(
        world.store.clone(),
        Arc::clone(&deciding.clock),
        Arc::default(),
    );
    Impacts::new(configuration, deciding)
}

async fn impact(world: &World, definitions: Vec<DefinitionVersion>) -> v1::PreviewImpactResponse {
    let document = |definition| Document {
        definition,
        must_be_new: false,
    };
    let documents: Vec<_> = definitions.into_iter().map(document).collect();
    impacts(world).preview((&documents, ""), 0).await.unwrap()
}

/// Returns the stored rule `page` with a change.
fn page(change: impl FnOnce(&mut v1::Rule)) -> DefinitionVersion {
    let mut draft = v1::Rule {
        name: "page".into(),
        enabled: Some(true),
        trigger_names: vec![DISK_TRIGGER.into()],
        destination_names: vec!["hook".into()],
        ..v1::Rule::default()
    };
    change(&mut draft);
    DefinitionVersion::Rule(draft)
}

fn trigger(word: &str) -> DefinitionVersion {
    let severity = Literal::Text(word.into());
    let query = Query {
        clause: Clause::GreaterAndEquals("severity".into(), severity),
    };
    DefinitionVersion::Trigger(v1::Trigger {
        name: DISK_TRIGGER.into(),
        r#type: Some(event_type(&query)),
        ..v1::Trigger::default()
    })
}

fn critical(event: &mut IncomingEvent) {
    event.severity = Some(Severity::Critical);
}

fn closed(event: &mut IncomingEvent) {
    (event.severity, event.status) = (None, Some(Status::Closed));
}

async fn set(world: &World, host: &str, change: StateChange) {
    let target = OccurrenceTarget::Newest(samples::event(host).id());
    let node = world.node();
    let by = (&node.deciding, &node.intake);
    let item = StatusItem { target, change };
    let set = set_status(by, &[item], &name("ben")).await.unwrap();
    assert!(set.iter().all(Result::is_ok), "{set:?}");
}

/// Produces some hours of openings, repeats, changes of all kinds, and closings.
async fn lived_through(world: &World) {
    world.event("a", |_| {}).await;
    world.wait(HOUR).await;
    world.event("b", critical).await;
    world
        .event("quiet", |it| it.severity = Some(Severity::Info))
        .await;
    world.wait(HOUR).await;
    world.event("a", critical).await;
    let acknowledged = StateChange {
        acknowledged: Some(true),
        ..StateChange::default()
    };
    set(world, "b", acknowledged).await;
    world.wait(HOUR).await;
    world.event("a", closed).await;
    world.wait(60).await;
    world.event("a", |_| {}).await;
    let suppressed = StateChange {
        status: Some(Status::Suppressed),
        ..StateChange::default()
    };
    set(world, "b", suppressed).await;
    world.wait(HOUR).await;
}

async fn count_sent(world: &World) -> i32 {
    let all = samples::all::<Delivery>(&world.store).await;
    let is_sent = |it: &&Delivery| it.state != DeliveryState::Shadowed;
    to_i32(all.iter().filter(is_sent).count())
}

#[tokio::test]
async fn replay_of_stored_configuration_matches_sent_messages() {
    let updating = Rule {
        send_updates: true,
        ..rule("page", &[DISK_TRIGGER], &["hook", "event-of-it"])
    };
    let slow = Rule {
        delay_ms: 2 * HOUR_MS,
        ..rule("slow", &[DISK_TRIGGER], &["hook"])
    };
    let world = World::under(&[updating, slow]).await;
    lived_through(&world).await;

    let impact = impact(&world, vec![trigger("error")]).await;

    assert!(count_sent(&world).await > 8);
    assert_eq!(impact.message_count(), count_sent(&world).await);
    assert_eq!(impact.message_count_before(), impact.message_count());
    assert_eq!(
        (
            impact.no_longer_notified_count(),
            impact.newly_notified_count()
        ),
        (0, 0)
    );
    assert_eq!(impact.occurrence_count(), 4);
    assert!(!impact.stopped_early);
    let names: Vec<_> = impact.rules.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["page", "slow"]);
}

#[tokio::test]
async fn impact_counts_messages_per_rule_destination_and_event() {
    let world = World::under(&[rule("page", &[DISK_TRIGGER], &["hook"])]).await;
    lived_through(&world).await;

    let narrow = impact(&world, vec![trigger("critical")]).await;
    let wide = impact(&world, vec![trigger("info")]).await;
    let none = impact(&world, vec![page(|it| it.enabled = Some(false))]).await;

    // `a` was opened as an error, became critical, and was opened again as an error.
    assert_eq!(narrow.no_longer_notified_count(), 1);
    assert_eq!(narrow.no_longer_notified[0].dimensions["host"], "a");
    assert_eq!(narrow.no_longer_notified[0].occurrences[0].close_time, None);
    assert_eq!(narrow.message_count_before() - narrow.message_count(), 1);
    let counted = |name: &str, impact: &v1::PreviewImpactResponse| v1::ImpactCount {
        name: name.into(),
        message_count: impact.message_count,
        message_count_before: impact.message_count_before,
    };
    assert_eq!(narrow.rules, [counted("page", &narrow)]);
    assert_eq!(narrow.destinations, [counted("hook", &narrow)]);
    assert_eq!(
        (wide.newly_notified_count(), wide.no_longer_notified_count()),
        (1, 0)
    );
    assert_eq!(wide.message_count(), wide.message_count_before() + 1);
    assert_eq!(
        (none.message_count(), none.no_longer_notified_count()),
        (0, 3)
    );
    let hosts: Vec<_> = none
        .no_longer_notified
        .iter()
        .map(|it| &*it.dimensions["host"])
        .collect();
    assert_eq!(hosts[..1], ["b"]);
    // The preview stores no changes.
    assert_eq!(
        to_i32(samples::all::<Delivery>(&world.store).await.len()),
        narrow.message_count_before()
    );
}

#[tokio::test]
async fn delay_skips_short_events_and_repeats_are_evenly_spread() {
    let world = World::under(&[rule("page", &[DISK_TRIGGER], &["hook"])]).await;
    world.event("short", |_| {}).await;
    world.event("long", |_| {}).await;
    world.wait(60).await;
    world.event("short", closed).await;
    for _ in 0..48 {
        world.wait(HOUR / 2).await;
        world.event("long", |_| {}).await;
    }

    let delayed = impact(
        &world,
        vec![page(|it| it.delay = Some(time::duration_from_ms(300_000)))],
    )
    .await;
    let repeating = page(|it| (it.repeat, it.repeat_interval) = (Some(true), Some(4 * 3_600)));
    let repeated = impact(&world, vec![repeating]).await;

    assert_eq!(
        (delayed.message_count_before(), delayed.message_count()),
        (2, 1)
    );
    assert_eq!(delayed.no_longer_notified[0].dimensions["host"], "short");
    // 24 hours, reported every four hours with up to a tenth of jitter.
    assert_eq!(repeated.message_count(), 2 + 5);
}

#[tokio::test]
async fn impact_excludes_events_before_the_period() {
    let world = World::under(&[rule("page", &[DISK_TRIGGER], &["hook"])]).await;
    world.event("old", |_| {}).await;
    world.wait(60).await;
    world.event("old", closed).await;
    for _ in 0..9 {
        world.event("still", |_| {}).await;
        world.wait(24 * HOUR).await;
    }
    world.event("new", |_| {}).await;

    let none = impact(&world, vec![page(|it| it.enabled = Some(false))]).await;

    assert_eq!((none.message_count_before(), none.message_count()), (1, 0));
    assert_eq!(none.occurrence_count(), 2);
    let [start_ms, end_ms] =
        [none.start_time, none.end_time].map(|it| time::to_millis(&it.unwrap()));
    assert_eq!(end_ms - start_ms, 7 * DAY_MS);
}

#[tokio::test]
async fn excessive_previews_are_refused_or_stopped_early() {
    let world = World::under(&[rule("page", &[DISK_TRIGGER], &["hook"])]).await;
    for host in 0..150 {
        world.event(&host.to_string(), |_| {}).await;
    }
    let documents = [Document {
        definition: trigger("critical"),
        must_be_new: false,
    }];

    let mut all = impacts(&world);
    let far = all.preview((&documents, ""), 31).await.unwrap_err();
    assert!(far.to_string().contains("1 to 30"), "{far}");
    let permit = all.turn.try_acquire().unwrap();
    let busy = all.preview((&documents, ""), 1).await.unwrap_err();
    let retry_after = match busy {
        Error::Exhausted { retry_after, .. } => retry_after,
        other => panic!("{other}"),
    };
    assert!(retry_after > Some(Duration::ZERO));
    drop(permit);

    all.deciding.clock = Arc::new(HurriedClock::default());
    let hurried = all.preview((&documents, ""), 1).await.unwrap();
    assert!(hurried.stopped_early);
    assert!(
        (1..150).contains(&hurried.message_count_before()),
        "{hurried:?}"
    );
    assert_eq!(hurried.newly_notified_count(), 0);
    let end_ms = time::to_millis(&hurried.end_time.unwrap());
    assert!(end_ms < world.clock.now_ms());
}

#[tokio::test]
async fn rule_that_pages_by_a_policy_still_notifies() {
    let paging = rule("page", &[DISK_TRIGGER], &["hook"]);
    let world = World::under(std::slice::from_ref(&paging)).await;
    let clock = || Arc::clone(&world.clock) as Arc<dyn crate::clock::Clock>;
    let policy = v1::EscalationPolicy {
        name: "db".into(),
        steps: vec![v1::EscalationStep {
            targets: vec![v1::EscalationTarget {
                target: Some(v1::escalation_target::Target::DestinationName(
                    "hook".into(),
                )),
            }],
            wait: None,
        }],
        ..v1::EscalationPolicy::default()
    };
    let policies = EscalationPolicies::new(world.store.clone(), clock());
    policies.create(&policy, false).await.unwrap();
    lived_through(&world).await;

    let to_policy = page(|it| {
        it.destination_names.clear();
        it.escalation_policy_name = "db".into();
    });
    let impact = impact(&world, vec![to_policy]).await;

    assert!(impact.message_count_before() > 0);
    assert_eq!(impact.no_longer_notified_count(), 0);
    let hook = impact.destinations.iter().find(|it| it.name == "hook");
    assert!(
        hook.unwrap().message_count() > 0,
        "{:?}",
        impact.destinations
    );
}
