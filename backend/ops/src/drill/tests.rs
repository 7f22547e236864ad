//! Tests of drills with a manual clock.

use std::time::Duration;

use bellwether_proto::cloud;

use super::*;
use crate::{
    clock::Clock as _,
    domain::{
        DrillResult::{self, Acknowledged, Missed, NotRouted, Running, Silenced, Skipped},
        Field, HistoryEntry, Name, Occurrence, OwnEvent, Rule, Silence,
        drill::RUNS_MAX,
    },
    heartbeat::HeartbeatWatch,
    samples::{self, DISK_TRIGGER, START_MS, name, rule, world},
    testing::samples as full,
};

const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
/// Interval between checks that is short enough not to count as an outage.
const STEP: u64 = 4;

type World = world::World<HeartbeatWatch>;

/// Returns a drill at 10:30 UTC every day, which must be acknowledged within 2 min. The clock starts
/// at 08:00.
fn daily() -> v1::Drill {
    v1::Drill {
        name: "page".into(),
        enabled: Some(true),
        cron: "30 10 * * *".into(),
        event: Some(v1::DrillEvent {
            name: "disk".into(),
            ..v1::DrillEvent::default()
        }),
        acknowledge_within: Some(time::duration_from_ms(120_000)),
        ..v1::Drill::default()
    }
}

fn watch(node: &world::Node) -> HeartbeatWatch {
    HeartbeatWatch::new(node.deciding.clone(), node.intake.clone())
}

impl World {
    async fn new() -> Self {
        Self::under_rules(&[]).await
    }

    async fn under_rules(rules: &[Rule]) -> Self {
        let world = world::World::under(rules).await;
        let part = watch(&world.node());
        world.with(part)
    }

    /// Returns a world whose rule notifies a destination about the events of drills.
    async fn paging() -> Self {
        Self::under_rules(&[rule("page", &[DISK_TRIGGER], &["hook"])]).await
    }

    /// Restarts the process with the same store after an outage.
    async fn restarted(mut self, seconds: u64) -> Self {
        self.restart(seconds).await;
        self.part = watch(&self.node());
        self.node().intake.resume(&self.store).await.unwrap();
        self
    }

    fn drills(&self) -> Drills {
        Drills::new(self.store.clone(), self.clock())
    }

    async fn create(&self, draft: &v1::Drill) {
        self.drills().create(draft, false).await.unwrap();
    }

    async fn check(&mut self) {
        self.part.run_once().await.unwrap();
        while !samples::all::<OwnEvent>(&self.store).await.is_empty() {
            tokio::task::yield_now().await;
        }
    }

    /// Lets time pass without checks, then checks.
    async fn skip_to(&mut self, seconds: u64) {
        let now_ms = self.clock.now_ms();
        let to_ms = START_MS + i64::try_from(seconds * 1_000).unwrap();
        let by = u64::try_from(to_ms - now_ms).unwrap();
        self.clock.advance(Duration::from_millis(by));
        self.check().await;
    }

    async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds.div_ceil(STEP) {
            self.clock.advance(Duration::from_secs(STEP));
            self.check().await;
        }
    }

    async fn drill(&self) -> Drill {
        self.drills().find("page").await.unwrap()
    }

    async fn results(&self) -> Vec<DrillResult> {
        let runs = self.drill().await.runs;
        runs.iter().map(|it| it.result).collect()
    }

    /// Returns the newest occurrence of the last run.
    async fn opened(&self) -> Occurrence {
        let run = self.drill().await.runs.pop().unwrap();
        let found = find::newest_occurrence(&self.store, run.event.unwrap());
        found.await.unwrap().unwrap()
    }

    async fn failed(&self) -> Option<Occurrence> {
        let id = self.drill().await.failed_event(None, 0).id();
        find::newest_occurrence(&self.store, id).await.unwrap()
    }

    async fn has_open_failure(&self) -> bool {
        let failed = self.failed().await;
        failed.is_some_and(|it| it.status == Status::Open)
    }

    async fn acknowledge(&self, author: &str) {
        let store = &self.store;
        let all = store.page::<Occurrence>(
            crate::store::Range::with_prefix(&[]),
            crate::store::Direction::Descending,
            100,
        );
        let opened = self.opened().await.key;
        let all = all.await.unwrap();
        let stored = all.iter().find(|it| it.value.key == opened).unwrap();
        let mut next = stored.value.clone();
        next.acknowledged = true;
        next.history.push(HistoryEntry {
            at_ms: self.clock.now_ms(),
            author: Some(Name::parse(author).unwrap()),
            field: Field::Acknowledged,
            from: "false".into(),
            to: "true".into(),
        });
        let mut changes = store.new_changes();
        changes.update(stored, &next);
        store.apply(Lane::Admin, changes).await.unwrap();
    }
}

#[tokio::test]
async fn run_starts_once_when_due_and_ends_with_the_acknowledgement() {
    let mut world = World::paging().await;
    world.create(&daily()).await;
    world.skip_to(2 * HOUR + 29 * MINUTE).await;
    assert_eq!(world.results().await, []);
    world.skip_to(2 * HOUR + 30 * MINUTE).await;
    world.pass(12).await;
    assert_eq!(world.results().await, [Running]);
    let opened = world.opened().await;
    assert!(opened.summary.starts_with("[DRILL] "), "{}", opened.summary);
    assert!(opened.is_drill() && opened.status == Status::Open);
    assert_eq!(
        (&*opened.kind, opened.severity),
        ("drill", Severity::Critical)
    );
    world.acknowledge("ana").await;
    world.pass(STEP).await;
    let run = world.drill().await.runs.remove(0);
    assert_eq!(
        (run.result, &*run.acknowledged_by, run.acknowledged_after_ms),
        (Acknowledged, "ana", Some(12_000))
    );
    world.check().await;
    assert_eq!(world.opened().await.status, Status::Closed);
    assert_eq!(world.failed().await, None);
    let shown = world.drills().get("page").await.unwrap();
    let next = shown.next_time.map(|it| it.seconds * 1_000);
    assert_eq!(next, Some(START_MS + 26 * 3_600_000 + 1_800_000));
}

#[tokio::test]
async fn missed_run_opens_an_event_until_the_next_acknowledged_one() {
    let mut world = World::paging().await;
    world.create(&daily()).await;
    for day in 0..2 {
        world
            .skip_to(day * 24 * HOUR + 2 * HOUR + 30 * MINUTE)
            .await;
        world.pass(2 * MINUTE - STEP).await;
        assert_eq!(world.results().await.pop(), Some(Running));
        world.pass(3 * STEP).await;
        assert_eq!(world.results().await.pop(), Some(Missed));
        let failed = world.failed().await.unwrap();
        assert_eq!((failed.number, failed.status), (1, Status::Open));
        assert_eq!(failed.severity, Severity::Error);
        assert_eq!(
            failed.summary,
            "Drill page was not acknowledged within 2 min"
        );
        assert_eq!(world.opened().await.status, Status::Closed);
    }
    world.skip_to(50 * HOUR + 30 * MINUTE).await;
    world.pass(STEP).await;
    world.acknowledge("ben").await;
    world.pass(2 * STEP).await;
    assert_eq!(world.results().await, [Missed, Missed, Acknowledged]);
    assert!(!world.has_open_failure().await);
}

#[tokio::test]
async fn run_without_a_matching_rule_fails_immediately() {
    let mut world = World::new().await;
    world.create(&daily()).await;
    world
        .drills()
        .start(&world.node().intake, "page")
        .await
        .unwrap();
    let again = world.drills().start(&world.node().intake, "page").await;
    assert!(
        matches!(again, Err(Error::FailedPrecondition(_))),
        "{again:?}"
    );
    world.pass(2 * STEP).await;
    let run = world.drill().await.runs.remove(0);
    assert_eq!(
        (run.result, &*run.reason),
        (NotRouted, "no rule with a receiver matched")
    );
    assert!(world.has_open_failure().await);
    assert_eq!(world.opened().await.status, Status::Closed);
}

#[tokio::test]
async fn silenced_run_neither_fails_nor_succeeds() {
    let mut world = World::paging().await;
    world.create(&daily()).await;
    let store = &world.store;
    let silence = Silence {
        query: Some(samples::trigger(DISK_TRIGGER).query),
        rule_names: Vec::new(),
        calendar: None,
        start_ms: START_MS,
        end_ms: START_MS + 86_400_000,
        expire_when_idle_ms: None,
        ..full::silence("maintenance")
    };
    let mut changes = store.new_changes();
    changes.insert(&silence);
    store.apply(Lane::Admin, changes).await.unwrap();
    world.skip_to(2 * HOUR + 30 * MINUTE).await;
    world.pass(3 * MINUTE).await;
    let run = world.drill().await.runs.remove(0);
    assert_eq!(run.result, Silenced, "{run:?}");
    assert!(run.reason.contains("maintenance"), "{}", run.reason);
    assert_eq!(world.failed().await, None);
}

#[tokio::test]
async fn run_that_was_due_during_an_outage_starts_only_within_an_hour() {
    for (outage, expected) in [
        (3 * HOUR + 29 * MINUTE, Running),
        (3 * HOUR + 31 * MINUTE, Skipped),
    ] {
        let mut world = World::paging().await;
        world.create(&daily()).await;
        world.check().await;
        let mut world = world.restarted(outage).await;
        world.pass(2 * STEP).await;
        assert_eq!(world.results().await, [expected]);
        let next_ms = world.drill().await.due_ms;
        assert_eq!(next_ms, Some(START_MS + 26 * 3_600_000 + 1_800_000));
    }
}

#[tokio::test]
async fn run_continues_after_a_kill_and_ignores_the_outage() {
    let mut world = World::paging().await;
    world.create(&daily()).await;
    world.skip_to(2 * HOUR + 30 * MINUTE).await;
    world.pass(8).await;
    let mut world = world.restarted(HOUR).await;
    world.pass(MINUTE).await;
    assert_eq!(world.results().await, [Running]);
    world.acknowledge("ana").await;
    let mut world = world.restarted(10).await;
    world.pass(STEP).await;
    assert_eq!(world.results().await, [Acknowledged]);
    world.skip_to(26 * HOUR + 29 * MINUTE).await;
    // The process is killed after the commit that starts the run.
    world.clock.advance(Duration::from_secs(MINUTE));
    world.part.run_once().await.unwrap();
    let mut world = world.restarted(1).await;
    world.pass(STEP).await;
    assert_eq!(world.results().await, [Acknowledged, Running]);
    assert_eq!(world.opened().await.count, 1);
}

#[tokio::test]
async fn clock_step_neither_repeats_nor_loses_a_run() {
    let mut world = World::paging().await;
    world.create(&daily()).await;
    world.skip_to(2 * HOUR + 30 * MINUTE).await;
    world.pass(STEP).await;
    // The time for the acknowledgement is not affected.
    world.clock.step(3_600_000);
    world.pass(MINUTE).await;
    assert_eq!(world.results().await, [Running]);
    world.acknowledge("ana").await;
    world.pass(STEP).await;
    // At 10:30 for the second time.
    world.clock.step(-2 * 3_600_000);
    world.pass(STEP).await;
    world.clock.advance(Duration::from_secs(2 * HOUR));
    world.check().await;
    assert_eq!(world.results().await, [Acknowledged]);
    // Far ahead and back: the run of the next day still starts.
    world.clock.step(30 * 86_400_000);
    world.pass(STEP).await;
    assert_eq!(world.results().await, [Acknowledged, Skipped]);
    world.clock.step(-30 * 86_400_000);
    world.pass(STEP).await;
    world.skip_to(26 * HOUR + 30 * MINUTE).await;
    assert_eq!(world.results().await, [Acknowledged, Skipped, Running]);
}

#[tokio::test]
async fn interval_runs_are_evenly_spaced_and_the_last_runs_are_kept() {
    let mut world = World::new().await;
    world
        .create(&v1::Drill {
            cron: String::new(),
            every: Some(time::duration_from_ms(7_200_000)),
            ..daily()
        })
        .await;
    let runs = u64::try_from(RUNS_MAX).unwrap() + 3;
    for run in 1..=runs {
        world.skip_to(run * 2 * HOUR + 30).await;
        world.pass(STEP).await;
    }
    let drill = world.drill().await;
    assert_eq!(drill.runs.len(), RUNS_MAX);
    let due = drill
        .runs
        .iter()
        .map(|it| (it.due_ms - START_MS) / 7_200_000);
    let due: Vec<_> = due.collect();
    let last = i64::try_from(runs).unwrap();
    assert_eq!(due, (4..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn edit_keeps_runs_and_schedule_and_deletion_closes_events() {
    let mut world = World::paging().await;
    world.create(&daily()).await;
    world.skip_to(2 * HOUR + 30 * MINUTE).await;
    world.pass(3 * MINUTE).await;
    assert!(world.has_open_failure().await);
    world
        .drills()
        .start(&world.node().intake, "page")
        .await
        .unwrap();
    world.pass(STEP).await;
    let before = world.drill().await;
    let edited = v1::Drill {
        description: "weekdays".into(),
        ..daily()
    };
    world.drills().update(&edited, false).await.unwrap();
    let after = world.drill().await;
    assert_eq!((after.due_ms, &after.runs), (before.due_ms, &before.runs));
    let (opened, failed) = (world.opened().await, world.failed().await.unwrap());
    world.drills().delete("page", "", false).await.unwrap();
    world.node().intake.resume(&world.store).await.unwrap();
    world.check().await;
    for event in [opened.event, failed.event] {
        let store = &world.store;
        assert!(!find::is_event_open(store, event).await.unwrap());
    }
}

#[tokio::test]
async fn invalid_draft_names_the_field() {
    type Change = fn(&mut v1::Drill);
    let cases: [(&str, Change); 11] = [
        ("name", |it| it.name.clear()),
        ("cron", |it| it.cron = "0,30 3 1 1 *".into()),
        ("cron", |it| it.cron = "* * * *".into()),
        ("timeZone", |it| it.time_zone = "Mars".into()),
        ("timeZone", |it| {
            it.cron.clear();
            it.time_zone = "UTC".into();
        }),
        ("every", |it| {
            it.every = Some(time::duration_from_ms(7_200_000));
        }),
        ("every", |it| {
            it.cron.clear();
            it.every = Some(time::duration_from_ms(3_599_000));
        }),
        ("acknowledgeWithin", |it| {
            it.acknowledge_within = Some(time::duration_from_ms(59_000));
        }),
        ("failedSeverity", |it| it.failed_severity = 99),
        ("event.summary", |it| {
            it.event.get_or_insert_default().summary = "x".repeat(201);
        }),
        ("event.dimensions", |it| {
            let event = it.event.get_or_insert_default();
            event
                .dimensions
                .insert("source".into(), "bellwether".into());
        }),
    ];
    let drills = World::new().await.drills();
    for (field, change) in cases {
        let mut draft = daily();
        change(&mut draft);
        let Err(Error::Invalid(violations)) = drills.create(&draft, true).await else {
            panic!("{field} was accepted");
        };
        let fields: Vec<_> = violations.iter().map(|it| &*it.field).collect();
        assert_eq!(fields, [field]);
    }
    let default = cloud::Severity::Default as i32;
    let made = drills.create(&daily(), true).await.unwrap().view;
    assert_ne!(made.failed_severity, default);
    assert_eq!(name("page").as_str(), made.name);
}
