//! Events that intake stores per second. Each event and its state are on disk before the response.
//!
//! Measured:
//! - single events and lists of 100, new and repeated, without rules;
//! - lists with a rule that notifies once for each new event, and at every change of severity for
//!   repeats; also with 1,000 silences and 100 inhibitions that match nothing;
//! - lists with 100 heartbeats for which every event is a beat;
//! - lists with and without 1,000 active responses, alternating;
//! - the time until the next steps of 10,000 responses due at the same time are on disk.
//!
//! The argument is the folder to use; the default is a temporary one.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints its results and panics on the first failure"
)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bellwether_backend::{
    clock::{Clock, SystemClock},
    config::Location,
    domain::{
        Clause, DeliverySettings, Destination, DestinationKind, EqualFields, IncomingEvent,
        Inhibition, Literal, Name, Progress, Query, RecordId, Report, Severity, Silence,
        TemplateLanguage, destination::Email,
    },
    ops::{
        contact::Contacts,
        decision_context::DecisionContext,
        escalation_policy::EscalationPolicies,
        heartbeat::Heartbeats,
        intake::Intake,
        review::Reviewer,
        rule::Rules,
        ruleset::Ruleset,
        trigger::{Triggers, event_type},
    },
    store::{self, Index, Lane, Store, engine::Range},
};
use bellwether_proto::v1::{self, escalation_target::Target};
use tokio::{runtime::Runtime, task::JoinSet};
use tokio_util::sync::CancellationToken;

const RUN: Duration = Duration::from_secs(2);
/// Number of identities over which repeats are spread.
const REPEATED: u64 = 10_000;

fn main() {
    let arguments = std::env::args_os().skip(1);
    let parent = match { arguments }.find(|argument| argument != "--bench") {
        Some(folder) => tempfile::tempdir_in(PathBuf::from(folder)).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let runtime = Runtime::new().unwrap();
    println!(
        "events | in a list | lists in flight | events/s | p50 ms | p99 ms | processor us an event"
    );
    let loads = [
        ("new", u64::MAX, 1, 256, Around::Nothing),
        ("new", u64::MAX, 100, 16, Around::Nothing),
        ("repeats", REPEATED, 1, 256, Around::Nothing),
        ("repeats", REPEATED, 100, 16, Around::Nothing),
        ("new, told", u64::MAX, 100, 16, Around::Rule),
        ("new, told, holds", u64::MAX, 100, 16, Around::RuleAndHolds),
        ("repeats, told", REPEATED, 100, 16, Around::Rule),
        ("new", u64::MAX, 100, 16, Around::Nothing),
        ("new, beats", u64::MAX, 100, 16, Around::Heartbeats),
        ("repeats", REPEATED, 100, 16, Around::Nothing),
        ("repeats, beats", REPEATED, 100, 16, Around::Heartbeats),
        ("new", u64::MAX, 100, 16, Around::Nothing),
        ("new, responses", u64::MAX, 100, 16, Around::Responses),
        (
            "repeats, told, holds",
            REPEATED,
            100,
            16,
            Around::RuleAndHolds,
        ),
    ];
    for (at, (kind, identities, length, in_flight, around)) in loads.into_iter().enumerate() {
        let folder = parent.path().join(at.to_string());
        let load = Load {
            identities,
            length,
            in_flight,
            around,
        };
        let before = processor_time();
        let mut took = runtime.block_on(load.run(&folder));
        let processor = processor_time().saturating_sub(before);
        took.sort_unstable();
        let at = |share: usize| took[took.len() * share / 100].as_secs_f64() * 1e3;
        let (p50_ms, p99_ms) = (at(50), at(99));
        let events = took.len() as u64 * length;
        let rate = events / RUN.as_secs();
        let each = processor.as_nanos() / u128::from(events.max(1));
        let micros = f64::from(u32::try_from(each).unwrap_or(u32::MAX)) / 1e3;
        println!(
            "{kind} | {length} | {in_flight} | {rate} | {p50_ms:.1} | {p99_ms:.1} | {micros:.1}"
        );
    }
    let folder = parent.path().join("due");
    let took = runtime.block_on(due_together(&folder));
    println!(
        "{DUE_TOGETHER} responses due together: {:.2} s",
        took.as_secs_f64()
    );
}

/// Number of active responses, and number of responses that are due at the same time.
const ACTIVE: u64 = 1_000;
const DUE_TOGETHER: u64 = 10_000;

/// Returns the time of one pass that runs the next step of many responses.
async fn due_together(folder: &Path) -> Duration {
    let store = store::open(&Location::folder(folder)).await.unwrap();
    page_at(&store, 1).await;
    let deciding = deciding(store.clone()).await;
    let (intake, workers) = Intake::new(deciding.clone());
    let stop = CancellationToken::new();
    let mut working = JoinSet::from_iter([workers.run(stop.clone())]);
    open_paged(&intake, DUE_TOGETHER).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let reviewer = Reviewer::new(deciding, intake.clone());
    let start = Instant::now();
    assert!(reviewer.run_once().await);
    let took = start.elapsed();
    let all = Range::with_prefix(&[]);
    let engine = store.engine();
    let sent = engine
        .count(Index::DeliveryByEvent, all, usize::MAX)
        .await
        .unwrap();
    assert_eq!(sent as u64, 2 * DUE_TOGETHER, "the steps were not executed");
    stop.cancel();
    while working.join_next().await.is_some() {}
    took
}

async fn deciding(store: Store) -> DecisionContext {
    DecisionContext {
        beats: Arc::default(),
        ruleset: Arc::new(Ruleset::load(store.clone()).await.unwrap()),
        store,
        clock: Arc::new(SystemClock),
    }
}

/// Stores a policy that notifies two contacts, `seconds` apart, and a rule that uses the policy for
/// some events.
async fn page_at(store: &Store, seconds: i64) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    notify_about_all_events(store).await;
    let contacts = Contacts::new(store.clone(), Arc::clone(&clock));
    let targets = ["ana", "ben"].map(|name| v1::EscalationTarget {
        target: Some(Target::ContactName(name.into())),
    });
    for name in ["ana", "ben"] {
        let contact = v1::Contact {
            name: name.into(),
            methods: vec![v1::ContactMethod {
                destination_name: "events".into(),
                ..v1::ContactMethod::default()
            }],
            ..v1::Contact::default()
        };
        contacts.create(&contact, false).await.unwrap();
    }
    let wait = prost_types::Duration { seconds, nanos: 0 };
    let steps = targets.map(|target| v1::EscalationStep {
        targets: vec![target],
        wait: Some(wait),
    });
    let policy = v1::EscalationPolicy {
        name: "database".into(),
        steps: steps.into(),
        ..v1::EscalationPolicy::default()
    };
    let policies = EscalationPolicies::new(store.clone(), Arc::clone(&clock));
    policies.create(&policy, false).await.unwrap();
    let query = Query {
        clause: Clause::Equals("name".into(), Literal::Text("paged".into())),
    };
    let trigger = v1::Trigger {
        name: "paged".into(),
        r#type: Some(event_type(&query)),
        ..v1::Trigger::default()
    };
    let triggers = Triggers::new(store.clone(), Arc::clone(&clock));
    triggers.create(&trigger, false).await.unwrap();
    let rules = Rules::new(store.clone(), clock);
    let rule = v1::Rule {
        name: "all".into(),
        enabled: Some(true),
        trigger_names: vec!["paged".into()],
        escalation_policy_name: "database".into(),
        ..v1::Rule::default()
    };
    rules.update(&rule, false).await.unwrap();
}

async fn open_paged(intake: &Intake, count: u64) {
    for first in (0..count).step_by(500) {
        let events = (first..first + 500).map(|number| IncomingEvent {
            name: "paged".into(),
            ..event(number)
        });
        let submitted = intake.submit(events.collect(), None).await.unwrap();
        assert!(submitted.failed.is_empty());
    }
}

/// Returns the CPU time of this process so far. Unlike a rate, it does not depend on other
/// load. Zero if the system does not report it.
fn processor_time() -> Duration {
    const TICK: Duration = Duration::from_millis(10);
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u32 = ticks.filter_map(|it| it.parse::<u32>().ok()).sum();
    TICK * ticks
}

#[derive(Debug, Clone, Copy)]
struct Load {
    identities: u64,
    length: u64,
    in_flight: u64,
    around: Around,
}

/// The resources defined during a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    /// A rule that notifies about each event.
    Rule,
    /// The same rule, with silences and inhibitions.
    RuleAndHolds,
    /// 100 heartbeats for which each event is a beat.
    Heartbeats,
    /// 1,000 active responses, which are processed as in the service.
    Responses,
}

impl Load {
    /// Sends events for the measured time, and returns the duration of each list.
    async fn run(self, folder: &Path) -> Vec<Duration> {
        let store = store::open(&Location::folder(folder)).await.unwrap();
        if matches!(self.around, Around::Rule | Around::RuleAndHolds) {
            notify_about_all_events(&store).await;
        }
        if self.around == Around::Heartbeats {
            expect_beats(&store).await;
        }
        if self.around == Around::RuleAndHolds {
            hold_others(&store).await;
        }
        if self.around == Around::Responses {
            page_at(&store, 300).await;
        }
        let deciding = deciding(store).await;
        let (intake, workers) = Intake::new(deciding.clone());
        let stop = CancellationToken::new();
        let mut working = JoinSet::from_iter([workers.run(stop.clone())]);
        if self.around == Around::Responses {
            open_paged(&intake, ACTIVE).await;
            let reviewer = Reviewer::new(deciding, intake.clone());
            working.spawn(reviewer.run(stop.clone()));
        }
        let next = Arc::new(AtomicU64::new(0));
        let end = Instant::now() + RUN;
        let mut senders = JoinSet::new();
        for _ in 0..self.in_flight {
            senders.spawn(self.send(intake.clone(), Arc::clone(&next), end));
        }
        let took = senders.join_all().await.concat();
        stop.cancel();
        while working.join_next().await.is_some() {}
        took
    }

    async fn send(self, intake: Intake, next: Arc<AtomicU64>, end: Instant) -> Vec<Duration> {
        let mut took = Vec::new();
        while Instant::now() < end {
            let first = next.fetch_add(self.length, Ordering::Relaxed);
            let events = (first..first + self.length).map(|at| {
                let is_odd_round = at / self.identities % 2 == 1;
                let is_notified = matches!(self.around, Around::Rule | Around::RuleAndHolds);
                let severity = if is_notified && is_odd_round {
                    Severity::Critical
                } else {
                    Severity::Error
                };
                IncomingEvent {
                    severity: Some(severity),
                    ..event(at % self.identities)
                }
            });
            let events = events.collect();
            let start = Instant::now();
            let submitted = intake.submit(events, None).await.unwrap();
            took.push(start.elapsed());
            assert!(submitted.failed.is_empty());
        }
        took
    }
}

fn event(number: u64) -> IncomingEvent {
    IncomingEvent {
        name: "disk-full".into(),
        kind: "disk".into(),
        dimensions: BTreeMap::from([("host".into(), format!("host-{number}"))]),
        metadata: BTreeMap::new(),
        summary: "the disk is full".into(),
        body: String::new(),
        severity: Some(Severity::Error),
        status: None,
        acknowledged: None,
        timestamp_ms: SystemClock.now_ms(),
        expire_ms: None,
        report: Report::default(),
    }
}

/// Stores a rule with updates that matches every event.
async fn notify_about_all_events(store: &Store) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let query = Query {
        clause: Clause::Contains("summary".into(), "disk".into()),
    };
    let trigger = v1::Trigger {
        name: "disk".into(),
        r#type: Some(event_type(&query)),
        ..v1::Trigger::default()
    };
    let triggers = Triggers::new(store.clone(), Arc::clone(&clock));
    triggers.create(&trigger, false).await.unwrap();
    let mut changes = store.new_changes();
    changes.insert(&Destination {
        id: RecordId::from_parts(1, 1),
        name: Name::parse("events").unwrap(),
        description: String::new(),
        tags: Vec::new(),
        kind: DestinationKind::Email(Email {
            to: "ops@example.com".into(),
            ..Email::default()
        }),
        template_language: TemplateLanguage::Mustache,
        delivery: DeliverySettings::default(),
        revision: 1,
        create_ms: 1,
        update_ms: 1,
    });
    store.apply(Lane::Admin, changes).await.unwrap();
    let rule = v1::Rule {
        name: "all".into(),
        enabled: Some(true),
        trigger_names: vec!["disk".into()],
        destination_names: vec!["events".into()],
        send_updates: Some(true),
        ..v1::Rule::default()
    };
    let rules = Rules::new(store.clone(), clock);
    rules.create(&rule, false).await.unwrap();
}

/// Stores 100 heartbeats for which every event is a beat.
async fn expect_beats(store: &Store) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let heartbeats = Heartbeats::new(store.clone(), clock);
    for number in 0..100 {
        let heartbeat = v1::Heartbeat {
            name: format!("heartbeat {number}"),
            enabled: Some(true),
            filter: "name=disk-full".into(),
            every: Some(prost_types::Duration {
                seconds: 60,
                nanos: 0,
            }),
            ..v1::Heartbeat::default()
        };
        heartbeats.create(&heartbeat, false).await.unwrap();
    }
}

/// Stores silences and inhibitions for hosts without events.
async fn hold_others(store: &Store) {
    let now_ms = SystemClock.now_ms();
    let equals = |field: &str, text: String| Query {
        clause: Clause::Equals(field.into(), Literal::Text(text)),
    };
    let admin = Name::parse("admin").unwrap();
    let mut changes = store.new_changes();
    for number in 0..1_000 {
        changes.insert(&Silence {
            id: RecordId::from_parts(2, number),
            name: Name::parse(&format!("silence {number}")).unwrap(),
            description: String::new(),
            tags: Vec::new(),
            reason: "quiet".into(),
            query: Some(equals("host", format!("silent-{number}"))),
            rule_names: Vec::new(),
            destination_names: Vec::new(),
            annotations: BTreeMap::new(),
            calendar: None,
            start_ms: now_ms,
            end_ms: now_ms + 3_600_000,
            expire_when_idle_ms: None,
            warn_before_ms: None,
            comments: Vec::new(),
            from_event: None,
            author: admin.clone(),
            last_editor: admin.clone(),
            progress: Progress::default(),
            revision: 1,
            create_ms: now_ms,
            update_ms: now_ms,
        });
    }
    for number in 0..100 {
        changes.insert(&Inhibition {
            id: RecordId::from_parts(3, number),
            name: Name::parse(&format!("inhibition {number}")).unwrap(),
            description: String::new(),
            tags: Vec::new(),
            enabled: true,
            source: equals("name", format!("down-{number}")),
            target: equals("host", format!("held-{number}")),
            equal: vec![EqualFields {
                source: "host".into(),
                target: "host".into(),
            }],
            linger_ms: 60_000,
            counted_revision: 1,
            revision: 1,
            create_ms: now_ms,
            update_ms: now_ms,
        });
    }
    store.apply(Lane::Admin, changes).await.unwrap();
}
