//! Tests of heartbeats with a manual clock.

mod limits;
mod outages;
mod preview;
mod runs;
mod statements;
mod windows;

use std::time::Duration;

use bellwether_proto::cloud;

use super::*;
use v1::expectation::State::{Beating, Late};

use crate::{
    clock::ManualClock,
    domain::{IncomingEvent, Occurrence, Report, Severity, Status},
    find,
    samples::{START_MS, world},
};

struct Watches {
    deciding: DecisionContext,
    watch: HeartbeatWatch,
    flush: BeatFlush,
}

impl Watches {
    fn of(node: &world::Node) -> Self {
        Self {
            deciding: node.deciding.clone(),
            watch: HeartbeatWatch::new(node.deciding.clone(), node.intake.clone()),
            flush: BeatFlush::new(node.deciding.clone()),
        }
    }
}

type World = world::World<Watches>;

impl World {
    async fn new() -> Self {
        Self::of(Store::in_memory()).await
    }

    async fn of(store: Store) -> Self {
        Self::at(store, Arc::new(ManualClock::starting_at(START_MS))).await
    }

    async fn at(store: Store, clock: Arc<ManualClock>) -> Self {
        let world = world::World::with_clock(store, clock).await;
        let part = Watches::of(&world.node());
        world.with(part)
    }

    /// Restarts the process with the same store after an outage.
    async fn restarted(mut self, stood: Duration) -> Self {
        self.restart(stood.as_secs()).await;
        self.part = Watches::of(&self.node());
        self
    }

    fn heartbeats(&self) -> Heartbeats {
        Heartbeats::new(self.store.clone(), self.clock())
    }

    async fn create(&self, draft: v1::Heartbeat) {
        self.heartbeats().create(&draft, false).await.unwrap();
    }

    async fn signal(&self, signal: Signal) {
        let none = BTreeMap::new();
        let all = self.expectations();
        all.record_beat("backup", &none, signal).await.unwrap();
    }

    async fn only(&self) -> v1::Expectation {
        let page = PageRequest::default();
        let (mut shown, _) = self.expectations().list("backup", &page).await.unwrap();
        assert_eq!(shown.len(), 1, "{shown:?}");
        shown.remove(0)
    }

    fn expectations(&self) -> Expectations {
        Expectations::new(self.deciding.clone(), self.node().intake.clone())
    }

    /// Advances the clock, with a check every second.
    async fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.clock.advance(Duration::from_secs(1));
            self.flush.run_once().await.unwrap();
            self.watch.run_once().await.unwrap();
        }
    }

    async fn send(&self, name: &str, host: &str) {
        let event = IncomingEvent {
            name: name.into(),
            kind: String::new(),
            dimensions: [("host".to_owned(), host.to_owned())].into(),
            metadata: crate::domain::value::Fields::new(),
            summary: "done".into(),
            body: String::new(),
            severity: Some(Severity::Info),
            status: None,
            acknowledged: None,
            timestamp_ms: self.clock.now_ms(),
            expire_ms: None,
            report: Report::default(),
        };
        let accepted = self.node().intake.submit(vec![event], None).await.unwrap();
        assert!(accepted.failed.is_empty());
    }

    async fn alarm(&self, name: &str, more: &[(&str, &str)]) -> Option<Occurrence> {
        let named = more.iter().chain([&(NAMED, "backup")]);
        let dimensions = named.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let id = crate::domain::EventId::derive(name, &dimensions.collect());
        find::newest_occurrence(&self.store, id).await.unwrap()
    }

    async fn is_open(&self, more: &[(&str, &str)]) -> bool {
        let alarm = self.alarm("backup", more).await;
        alarm.is_some_and(|it| it.status == Status::Open)
    }
}

fn every_minute() -> v1::Heartbeat {
    v1::Heartbeat {
        name: "backup".into(),
        enabled: Some(true),
        filter: "name=done".into(),
        every: Some(time::duration_from_ms(60_000)),
        ..v1::Heartbeat::default()
    }
}

#[tokio::test]
async fn missing_beat_opens_an_event_and_next_beat_closes_it() {
    let mut world = World::new().await;
    world.create(every_minute()).await;
    // The interval of the first beat begins with the creation.
    world.pass(69).await;
    assert!(!world.is_open(&[]).await);
    world.pass(3).await;
    assert!(world.is_open(&[]).await);
    let alarm = world.alarm("backup", &[]).await.unwrap();
    assert_eq!(alarm.severity, Severity::Error);
    assert_eq!(alarm.summary, "no beat from backup yet");
    world.send("other", "db-1").await;
    world.pass(2).await;
    assert!(world.is_open(&[]).await);
    world.send("done", "db-1").await;
    world.pass(2).await;
    assert!(!world.is_open(&[]).await);
    // A closing event is also a beat, and a beat within the grace is not late.
    for seconds in [67, 69, 69] {
        world.pass(seconds).await;
        assert!(!world.is_open(&[]).await);
        world.send("done", "db-1").await;
    }
    world.pass(72).await;
    assert!(world.is_open(&[]).await);
    let alarm = world.alarm("backup", &[]).await.unwrap();
    assert_eq!((alarm.number, alarm.count), (2, 1));
    assert!(
        alarm.summary.starts_with("no beat from backup since "),
        "{}",
        alarm.summary
    );
}

#[tokio::test]
async fn beats_are_expected_per_field_value_until_forgotten() {
    let mut world = World::new().await;
    let draft = v1::Heartbeat {
        by: vec!["host".into()],
        forget_after: Some(time::duration_from_ms(600_000)),
        event: Some(v1::HeartbeatEvent {
            severity: cloud::Severity::Critical.into(),
            summary: "no backup".into(),
            dimensions: [("team".to_owned(), "db".to_owned())].into(),
            ..v1::HeartbeatEvent::default()
        }),
        ..every_minute()
    };
    world.create(draft).await;
    world.pass(200).await;
    for host in ["a", "b"] {
        world.send("done", host).await;
    }
    for _ in 0..3 {
        world.pass(60).await;
        world.send("done", "a").await;
    }
    world.pass(2).await;
    let of = |host: &'static str| [("host", host), ("team", "db")];
    assert!(!world.is_open(&of("a")).await);
    assert!(world.is_open(&of("b")).await);
    let alarm = world.alarm("backup", &of("b")).await.unwrap();
    assert_eq!(
        (alarm.severity, &*alarm.summary),
        (Severity::Critical, "no backup")
    );
    let page = PageRequest::default();
    let (shown, _) = world.expectations().list("backup", &page).await.unwrap();
    let states: Vec<_> = shown.iter().map(v1::Expectation::state).collect();
    assert_eq!(states, [Late, Beating]);
    assert_eq!(shown[0].values["host"], "b");
    for _ in 0..12 {
        world.pass(60).await;
        world.send("done", "a").await;
    }
    assert!(!world.is_open(&of("b")).await);
    let (shown, _) = world.expectations().list("backup", &page).await.unwrap();
    assert_eq!(shown.len(), 1, "{shown:?}");
    // Manual deletion has the same result.
    world
        .expectations()
        .delete("backup", &shown[0].key)
        .await
        .unwrap();
    let (shown, _) = world.expectations().list("backup", &page).await.unwrap();
    assert!(shown.is_empty(), "{shown:?}");
}

#[tokio::test]
async fn frequent_beats_cause_few_writes() {
    let mut world = World::new().await;
    world.create(every_minute()).await;
    world.pass(1).await;
    let stored = async |world: &World| {
        let all = Range::with_prefix(&[]);
        let store = &world.store;
        let found = store
            .page::<Expectation>(all, Direction::Ascending, 9)
            .await
            .unwrap();
        let found = found
            .into_iter()
            .find(|it| it.value.heartbeat != crate::domain::heartbeat::SERVICE);
        let found = found.unwrap();
        (found.version, found.value.last_ms)
    };
    let mut versions = BTreeSet::new();
    for _ in 0..60 {
        world.send("done", "a").await;
        let (version, last_ms) = stored(&world).await;
        versions.insert(version);
        world.pass(1).await;
        // The stored time of the last beat lags by at most a tenth of the interval, or half of the
        // grace.
        let lost_ms = world.clock.now_ms() - last_ms.unwrap();
        assert!(lost_ms <= 6_000, "{lost_ms}");
    }
    assert!(versions.len() <= 16, "{versions:?}");
    // The last beat counts, although it was not stored together with its event.
    world.pass(68).await;
    assert!(!world.is_open(&[]).await);
    world.pass(4).await;
    assert!(world.is_open(&[]).await);
}

#[tokio::test]
async fn outages_and_clock_steps_do_not_make_beats_late() {
    let mut world = World::new().await;
    world.create(every_minute()).await;
    world.pass(1).await;
    world.send("done", "a").await;
    world.pass(30).await;
    // An outage of an hour.
    let mut world = world.restarted(Duration::from_secs(3_600)).await;
    world.pass(35).await;
    assert!(!world.is_open(&[]).await);
    world.pass(20).await;
    assert!(world.is_open(&[]).await);
    world.send("done", "a").await;
    world.pass(2).await;
    assert!(!world.is_open(&[]).await);
    for step_ms in [5_000, 3_600_000, 86_400_000, -86_400_000, -5_000] {
        world.clock.step(step_ms);
        world.pass(50).await;
        assert!(!world.is_open(&[]).await, "{step_ms}");
        world.send("done", "a").await;
    }
    world.clock.step(-86_400_000);
    world.pass(73).await;
    assert!(world.is_open(&[]).await);
}

#[tokio::test]
async fn failure_opens_the_event_and_deletion_closes_it() {
    let mut world = World::new().await;
    let draft = v1::Heartbeat {
        filter: String::new(),
        ..every_minute()
    };
    world.create(draft).await;
    world.pass(2).await;
    let none = BTreeMap::new();
    let expectations = world.expectations();
    expectations
        .record_beat("backup", &none, Signal::Failure)
        .await
        .unwrap();
    world.pass(2).await;
    assert!(world.is_open(&[]).await);
    let alarm = world.alarm("backup", &[]).await.unwrap();
    assert_eq!(alarm.summary, "backup reported a failure");
    expectations
        .record_beat("backup", &none, Signal::Beat)
        .await
        .unwrap();
    world.pass(2).await;
    assert!(!world.is_open(&[]).await);
    expectations
        .record_beat("backup", &none, Signal::Failure)
        .await
        .unwrap();
    world.pass(2).await;
    assert!(world.is_open(&[]).await);
    let all = world.heartbeats();
    all.delete("backup", "", false).await.unwrap();
    world.pass(2).await;
    assert!(!world.is_open(&[]).await);
    let refused = expectations
        .record_beat("backup", &none, Signal::Beat)
        .await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
}

#[tokio::test]
async fn source_scoped_sender_beats_only_for_its_source() {
    let world = World::new().await;
    let by_source = v1::Heartbeat {
        by: vec!["source".into()],
        ..every_minute()
    };
    let of_cron = v1::Heartbeat {
        name: "of cron".into(),
        query: None,
        filter: "source=cron and name=done".into(),
        ..every_minute()
    };
    let whole = v1::Heartbeat {
        name: "whole".into(),
        ..every_minute()
    };
    for draft in [by_source, of_cron, whole] {
        world.create(draft).await;
    }
    let all = world.expectations();
    let cron = ["cron".to_owned()].into();
    let table = [
        ("backup", &[("source", "cron")][..], true),
        ("backup", &[("source", "web")], false),
        ("backup", &[("host", "cron")], false),
        ("backup", &[], false),
        ("of cron", &[], true),
        ("whole", &[], false),
        ("whole", &[("source", "cron")], false),
    ];
    for (name, values, is_accepted) in table {
        let values = values.iter();
        let values = values.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let values = values.collect();
        for signal in [Signal::Start, Signal::Beat, Signal::Failure] {
            let found = all
                .record_beat_from_source(&cron, name, &values, signal)
                .await;
            match found {
                Ok(()) => assert!(is_accepted, "{name} {values:?}"),
                Err(Error::PermissionDenied(why)) => {
                    assert!(!is_accepted, "{name} {values:?}");
                    assert!(why.contains("`cron`"), "{why}");
                }
                Err(error) => panic!("{name} {values:?}: {error}"),
            }
        }
    }
}

#[tokio::test]
async fn beat_for_the_reserved_source_is_refused() {
    let world = World::new().await;
    let by_source = v1::Heartbeat {
        by: vec!["source".into()],
        ..every_minute()
    };
    world.create(by_source).await;
    for key in ["source", "dimensions.source", "metadata.source"] {
        let values = [(key.to_owned(), "bellwether".to_owned())].into();
        let all = world.expectations();
        let refused = all.record_beat("backup", &values, Signal::Failure).await;
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{key}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn alarm_on_own_events_omits_the_reserved_source() {
    let mut world = World::new().await;
    let by_source = v1::Heartbeat {
        by: vec!["source".into(), "host".into()],
        ..every_minute()
    };
    world.create(by_source).await;
    let own = IncomingEvent {
        severity: Some(Severity::Info),
        ..IncomingEvent::new_own_event("done", "done", [("host", "db-1")], world.clock.now_ms())
    };
    world
        .node()
        .intake
        .submit_internal(own, Vec::new())
        .await
        .unwrap();
    world.pass(72).await;
    assert!(world.is_open(&[("host", "db-1")]).await);
    let forged = [("host", "db-1"), ("source", "bellwether")];
    assert!(world.alarm("backup", &forged).await.is_none());
}

#[tokio::test]
async fn heartbeat_key_is_valid_until_rotated() {
    let world = World::new().await;
    world.create(every_minute()).await;
    let keys = HeartbeatKeys::new(world.store.clone(), world.clock());
    assert!(keys.check_key("backup", "").await.is_err());
    let first = keys.rotate("backup").await.unwrap();
    let first = first.reveal();
    assert_eq!(keys.check_key("", first).await.unwrap(), "backup");
    let second = keys.rotate("backup").await.unwrap();
    let second = second.reveal();
    // The keys of earlier versions consist only of the proof.
    let earlier = URL_SAFE_NO_PAD.encode(&URL_SAFE_NO_PAD.decode(second).unwrap()[..PROOF_BYTES]);
    for (name, key) in [("", second), ("backup", second), ("backup", &earlier)] {
        assert_eq!(keys.check_key(name, key).await.unwrap(), "backup", "{name}");
    }
    for (name, wrong) in [
        ("", first),
        ("backup", first),
        ("", ""),
        ("backup", ""),
        ("backup", "x"),
        ("backup", &second[1..]),
        ("", &second[..second.len() - 4]),
        ("", &earlier),
        ("other", &earlier),
        ("other", second),
    ] {
        let refused = keys.check_key(name, wrong).await;
        assert!(
            matches!(refused, Err(Error::Unauthenticated(_))),
            "{name}/{wrong}"
        );
    }
}

#[tokio::test]
async fn create_lists_every_invalid_field() {
    let world = World::new().await;
    let all = world.heartbeats();
    let wrong = v1::Heartbeat {
        name: "a/b".into(),
        filter: "name=".into(),
        by: vec!["host".into(), "host".into(), "a b c".into()],
        every: Some(time::duration_from_ms(1_000)),
        grace: Some(time::duration_from_ms(31 * 86_400_000)),
        forget_after: Some(time::duration_from_ms(1)),
        event: Some(v1::HeartbeatEvent {
            severity: 99,
            dimensions: [("source".to_owned(), "x".to_owned())].into(),
            ..v1::HeartbeatEvent::default()
        }),
        ..v1::Heartbeat::default()
    };
    let Err(Error::Invalid(violations)) = all.create(&wrong, false).await else {
        panic!("accepted");
    };
    let mut fields: Vec<_> = violations.iter().map(|it| &*it.field).collect();
    fields.sort_unstable();
    let expected = [
        "by[1]",
        "event.dimensions",
        "event.severity",
        "every",
        "filter",
        "forgetAfter",
        "grace",
        "name",
    ];
    assert_eq!(fields, expected, "{violations:?}");
}

#[tokio::test]
async fn alarm_texts_are_templates_with_the_values_of_beats() {
    let mut world = World::new().await;
    let draft = v1::Heartbeat {
        by: vec!["host".into()],
        event: Some(v1::HeartbeatEvent {
            name: "{{name}} of {{by.host}}".into(),
            summary: "{{by.host}}: nothing since {{last_beat}}, due {{due}}{{#x}}{{/x}}".into(),
            dimensions: [("job".to_owned(), "{{name}}/{{by.host}}".to_owned())].into(),
            ..v1::HeartbeatEvent::default()
        }),
        ..every_minute()
    };
    let Err(Error::Invalid(violations)) = world.heartbeats().create(&draft, false).await else {
        panic!("accepted");
    };
    assert_eq!(
        (
            violations.len(),
            &*violations[0].field,
            &*violations[0].description
        ),
        (
            1,
            "event.summary",
            "uses the unknown variable `x`; expected one of `name`, `last_beat`, `due`, `by.host`"
        )
    );
    let mut draft = draft;
    let event = draft.event.as_mut().unwrap();
    event.summary = event.summary.replace("{{#x}}{{/x}}", "");
    world.create(draft.clone()).await;
    world.pass(1).await;
    world.send("done", "a").await;
    world.pass(73).await;
    let more = [("host", "a"), ("job", "backup/a")];
    let alarm = world.alarm("backup of a", &more).await.unwrap();
    assert_eq!(
        alarm.summary,
        "a: nothing since 2027-01-15 08:00:01 UTC, due 2027-01-15 08:01:11 UTC"
    );
    // Templates are refused in fields that identify the event.
    let event = draft.event.as_mut().unwrap();
    event.name = "{{due}}".into();
    event.dimensions = [("a".to_owned(), "{{".to_owned())].into();
    let Err(Error::Invalid(violations)) = world.heartbeats().update(&draft, false).await else {
        panic!("accepted");
    };
    let fields: Vec<_> = violations.iter().map(|it| &*it.field).collect();
    assert_eq!(
        fields,
        ["event.name", "event.dimensions.a"],
        "{violations:?}"
    );
}
