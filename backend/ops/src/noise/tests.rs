//! Tests that compare the report with a naive count of all records over a random history.

use std::time::Duration;

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::*;
use crate::{
    domain::{CloseReason, Field, IncomingEvent, Severity},
    edit::OccurrenceTarget,
    lifecycle::StateChange,
    samples::{self, DISK_TRIGGER, START_MS, name, rule, world::World},
    set_status::{StatusItem, set_status},
    statistics::CounterAging,
};

const ZONE: &str = "Asia/Kolkata";

fn reports(world: &World) -> NoiseReports {
    NoiseReports::new(world.store.clone(), Arc::clone(&world.clock) as _)
}

fn noise_request(rows: NoiseRows, world: &World) -> NoiseRequest {
    NoiseRequest {
        start_ms: Some(START_MS),
        end_ms: Some(world.clock.now_ms()),
        rows,
        time_zone: ZONE.into(),
    }
}

async fn report(world: &World, rows: NoiseRows) -> NoiseReport {
    reports(world)
        .report(&noise_request(rows, world))
        .await
        .unwrap()
}

fn closed(event: &mut IncomingEvent) {
    (event.severity, event.status) = (None, Some(Status::Closed));
}

async fn change(world: &World, event: &IncomingEvent, change: StateChange) {
    let item = StatusItem {
        target: OccurrenceTarget::Newest(event.id()),
        change,
    };
    let node = world.node();
    let by = (&node.deciding, &node.intake);
    // The occurrence may not exist, or may be closed.
    let _changed = set_status(by, &[item], &name("ben")).await.unwrap();
}

async fn world() -> World {
    let rules = [
        Rule {
            send_updates: true,
            ..rule("page", &[DISK_TRIGGER], &["hook", "mail"])
        },
        Rule {
            delay_ms: 120_000,
            ..rule("slow", &["everything"], &["hook"])
        },
        Rule {
            shadow: true,
            ..rule("tried", &[DISK_TRIGGER], &["hook"])
        },
    ];
    let world = World::under(&rules).await;
    world.store.begin_counting(START_MS).await.unwrap();
    world
}

async fn lived_through(world: &World, random: &mut StdRng) {
    for _ in 0..400 {
        let host = format!("h{}", random.random_range(0..6));
        let called = format!("n{}", random.random_range(0..3));
        let mut event = samples::event(&host);
        event.name.clone_from(&called);
        let named = |it: &mut IncomingEvent| it.name.clone_from(&called);
        match random.random_range(0..10) {
            0..4 => world.event(&host, named).await,
            4..7 => {
                world
                    .event(&host, |it| {
                        named(it);
                        closed(it);
                    })
                    .await;
            }
            7 => {
                let acknowledged = Some(random.random_bool(0.8));
                let it = StateChange {
                    acknowledged,
                    ..StateChange::default()
                };
                change(world, &event, it).await;
            }
            8 => {
                world
                    .event(&host, |it| {
                        named(it);
                        it.severity = Some(Severity::Info);
                    })
                    .await;
            }
            _ => {
                let it = StateChange {
                    status: Some(Status::Closed),
                    ..StateChange::default()
                };
                change(world, &event, it).await;
            }
        }
        let seconds = [1, 40, 200, 900, 7_000][random.random_range(0..5)];
        world.wait(seconds).await;
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    notifications: i64,
    deliveries: i64,
    dry_runs: i64,
    night: i64,
    occurrences: i64,
    acknowledged: i64,
    closed_soon: i64,
    never_acted_on: i64,
    skipped: i64,
}

impl Expected {
    fn of(line: &NoiseLine) -> Self {
        let of = |tally| line.numbers.get(tally);
        Self {
            notifications: of(NoiseTally::Notification),
            deliveries: of(NoiseTally::Delivery),
            dry_runs: of(NoiseTally::DryRun),
            night: line.night,
            occurrences: of(NoiseTally::Occurrence),
            acknowledged: of(NoiseTally::Acknowledged),
            closed_soon: of(NoiseTally::ClosedSoon),
            never_acted_on: of(NoiseTally::NeverActedOn),
            skipped: line.numbers.skipped_by_hold().map(|(_, count)| count).sum(),
        }
    }
}

/// Computes the expected counts from all records. `key` returns the name of the row for an
/// occurrence and a rule.
async fn count_naively(
    world: &World,
    key: impl Fn(&Occurrence, &str) -> String,
) -> BTreeMap<String, Expected> {
    let mut expected: BTreeMap<String, Expected> = BTreeMap::new();
    let mut decisions = BTreeSet::new();
    for delivery in samples::all::<Delivery>(&world.store).await {
        let rule = delivery.content.rule.name.clone();
        let of = expected.entry(key(&delivery.content.occurrence, &rule));
        let of = of.or_default();
        if delivery.state == crate::domain::DeliveryState::Shadowed {
            of.dry_runs += 1;
            continue;
        }
        of.deliveries += 1;
        let thread = delivery.content.occurrence.key;
        if decisions.insert((rule, thread, delivery.create_ms)) {
            of.notifications += 1;
            // India has no daylight saving time and is 5.5 hours ahead.
            let minutes = (delivery.create_ms / 60_000 + 330) % 1_440;
            of.night += i64::from(!(420..1_320).contains(&minutes));
        }
    }
    for it in samples::all::<Occurrence>(&world.store).await {
        for entry in it.notified.iter().filter(|entry| !entry.shadow) {
            let of = expected.entry(key(&it, entry.rule_name.as_str()));
            let of = of.or_default();
            let at_ms = entry.opening.as_ref().unwrap().at_ms;
            let changes = it.history.iter();
            let is_acknowledged = changes
                .clone()
                .any(|it| it.field == Field::Acknowledged && it.to == "true" && it.at_ms >= at_ms);
            of.occurrences += 1;
            of.acknowledged += i64::from(is_acknowledged);
            if let Some(close) = it.close {
                let by_sender = close.reason == CloseReason::Sender;
                let is_soon = by_sender && close.at_ms <= at_ms + 300_000;
                of.closed_soon += i64::from(is_soon);
                let was_acknowledged = changes.clone().any(|change| {
                    let is_so = change.field == Field::Acknowledged && change.to == "true";
                    is_so && change.at_ms <= close.at_ms
                });
                let by_operator = close.reason == CloseReason::Operator;
                of.never_acted_on += i64::from(!by_operator && !was_acknowledged);
            }
        }
        for change in &it.hold_changes {
            if change.what.skipped_reason().is_some() {
                let of = expected.entry(key(&it, "slow")).or_default();
                of.skipped += 1;
            }
        }
    }
    expected
}

fn counts_by_row(report: &NoiseReport) -> BTreeMap<String, Expected> {
    let rows = report.rows.iter();
    rows.map(|row| (row.name.clone(), Expected::of(row)))
        .collect()
}

#[tokio::test]
async fn report_matches_a_naive_count() {
    for seed in 0..4 {
        let world = world().await;
        lived_through(&world, &mut StdRng::seed_from_u64(seed)).await;

        let by_rule = report(&world, NoiseRows::Counted(NoiseBy::Rule)).await;
        let by_event = report(&world, NoiseRows::EventName).await;

        let expected = count_naively(&world, |_, rule| rule.to_owned()).await;
        assert_eq!(counts_by_row(&by_rule), expected, "seed {seed}");
        let expected = count_naively(&world, |it, _| it.name.clone()).await;
        assert_eq!(counts_by_row(&by_event), expected, "seed {seed}");
        let sum = |report: &NoiseReport| -> i64 {
            let rows = report.rows.iter();
            rows.map(|it| it.numbers.get(NoiseTally::Notification))
                .sum()
        };
        assert!(sum(&by_rule) > 100);
        let of_page = by_rule.rows.iter().find(|it| it.name == "page").unwrap();
        assert!(of_page.numbers.median_acknowledge_seconds().is_some());
        let events: i64 = of_page.events.iter().map(|(_, count)| count).sum();
        assert_eq!(events, of_page.numbers.get(NoiseTally::Notification));
        let by_trigger = report(&world, NoiseRows::Counted(NoiseBy::Trigger)).await;
        assert_eq!(sum(&by_trigger), sum(&by_rule), "each has one trigger");
        let by_destination = report(&world, NoiseRows::Counted(NoiseBy::Destination)).await;
        let page = of_page.numbers.get(NoiseTally::Notification);
        assert_eq!(sum(&by_destination), sum(&by_rule) + page, "`page` has two");
    }
}

#[tokio::test]
async fn noise_counts_are_retained_for_400_days() {
    let world = world().await;
    world.event("a", |_| {}).await;
    world.wait(60).await;
    world.event("a", closed).await;
    let aging = CounterAging::new(world.store.clone(), Arc::clone(&world.clock) as _);
    let notifications = async |days: u64| {
        world.clock.advance(Duration::from_secs(days * 86_400));
        aging.age_counters().await.unwrap();
        let now_ms = world.clock.now_ms();
        let request = NoiseRequest {
            start_ms: Some(now_ms - 399 * DAY_MS),
            end_ms: Some(now_ms),
            rows: NoiseRows::Counted(NoiseBy::Rule),
            time_zone: String::new(),
        };
        let report = reports(&world).report(&request).await.unwrap();
        let page = report.rows.into_iter().find(|it| it.name == "page");
        page.map(|it| it.numbers.get(NoiseTally::Notification))
    };
    assert_eq!(notifications(0).await, Some(2));
    assert_eq!(notifications(398).await, Some(2));
    assert_eq!(notifications(3).await, None);
    let mut left = world.store.noise(NoiseBy::Rule, 0, u32::MAX);
    assert!(left.next().await.unwrap().unwrap().is_empty());
}

#[tokio::test]
async fn report_starts_when_counting_began_and_validates_fields() {
    let world = World::under(&[rule("page", &[DISK_TRIGGER], &["hook"])]).await;
    // A notification from before counting began.
    world.event("a", |_| {}).await;
    world
        .store
        .begin_counting(world.clock.now_ms())
        .await
        .unwrap();
    world.wait(2 * 86_400).await;
    world.event("b", |_| {}).await;
    let mut request = noise_request(NoiseRows::Counted(NoiseBy::Rule), &world);
    request.start_ms = Some(START_MS - 30 * DAY_MS);
    let report = reports(&world).report(&request).await.unwrap();
    assert_eq!(
        report.start_ms,
        i64::from(day_number(START_MS) + 1) * DAY_MS
    );
    let numbers = &report.rows[0].numbers;
    assert_eq!(numbers.get(NoiseTally::Notification), 1);
    for (field, wrong) in [
        (
            "end",
            NoiseRequest {
                start_ms: request.end_ms,
                ..with_zone_of(&request)
            },
        ),
        (
            "end",
            NoiseRequest {
                start_ms: request.end_ms.map(|it| it - 401 * DAY_MS),
                ..with_zone_of(&request)
            },
        ),
        (
            "timeZone",
            NoiseRequest {
                time_zone: "Mars".into(),
                ..with_zone_of(&request)
            },
        ),
        (
            "timeZone",
            NoiseRequest {
                time_zone: "Asia/Kathmandu".into(),
                ..with_zone_of(&request)
            },
        ),
    ] {
        match reports(&world).report(&wrong).await {
            Err(Error::Invalid(violations)) => assert_eq!(violations[0].field, field),
            other => panic!("{other:?}"),
        }
    }
}

fn with_zone_of(request: &NoiseRequest) -> NoiseRequest {
    NoiseRequest {
        time_zone: request.time_zone.clone(),
        ..*request
    }
}

#[test]
fn median_is_the_bucket_bound_covering_half() {
    let mut numbers = NoiseNumbers::default();
    assert_eq!(numbers.median_acknowledge_seconds(), None);
    for (at, count) in [(0, 2), (3, 1), (11, 2)] {
        let (part, slot) = NoiseTally::AcknowledgedWithin(at).slot();
        let mut add = Numbers([0; SLOTS]);
        add.add(slot, count);
        numbers.add(part, &add);
    }
    assert_eq!(numbers.median_acknowledge_seconds(), Some(600));
}
