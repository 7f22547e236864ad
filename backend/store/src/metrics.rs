//! Metrics of the service, served at `/metrics`.
//!
//! Label values are constants of the program, so that callers cannot multiply the series.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    metrics::{
        counter::Counter,
        family::{Family, MetricConstructor},
        histogram::Histogram,
    },
    registry::{Metric, Registry},
};

use crate::domain::{DestinationKind, HoldKind, Outcome};

pub const PREFIX: &str = "bellwether";

const QUICK: [f64; 12] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0,
];
const SLOW: [f64; 14] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_800.0, 7_200.0, 36_000.0, 172_800.0,
];

const MANY: [f64; 10] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 500.0, 1_000.0, 10_000.0,
];

const ENDS: [&str; 5] = ["delivered", "dead", "cancelled", "folded", "shadowed"];

type Label = (&'static str, &'static str);
type Counters<const N: usize> = Family<[Label; N], Counter>;
type Histograms<const N: usize> = Family<[Label; N], Histogram, fn() -> Histogram>;

/// The metrics. Clones share the same counters.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Families>);

#[derive(Debug)]
struct Families {
    registry: Registry,
    events_accepted: Counters<1>,
    events_deduplicated: Counters<1>,
    events_refused: Counters<2>,
    events_replayed: Counters<1>,
    intake_commit_seconds: Histogram,
    intake_wait_seconds: Histogram,
    evaluations: Counter,
    matches: Counter,
    notifications: Counters<1>,
    holds: Counters<1>,
    skipped: Counters<1>,
    released: Counter,
    release_lateness_seconds: Histogram,
    group_messages: Counter,
    group_members: Histogram,
    deliveries: Counters<2>,
    delivery_seconds: Histograms<1>,
    attempts: Counters<2>,
    attempt_seconds: Histograms<1>,
    test_sends: Counters<2>,
    calls: Counters<2>,
    call_seconds: Histograms<1>,
    refusals: Counters<1>,
    store_losses: Counter,
    pings: Counters<1>,
    renders: Counters<2>,
}

/// The effect of a commit on a delivery, a pending notification or a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CommitStep {
    /// A delivery was created; contains the type of its destination.
    Decided(&'static str),
    /// A shadow rule recorded a delivery; contains the type of its destination.
    Shadowed(&'static str),
    Ended {
        kind: &'static str,
        state: &'static str,
        /// Time since the delivery was created.
        took: Duration,
    },
    /// A test delivery reached a final state.
    Tested {
        kind: &'static str,
        state: &'static str,
    },
    /// A notification was held; contains the reason.
    Held(&'static str),
    /// A held notification was skipped; contains the reason of the hold.
    Skipped(&'static str),
    /// A held notification was sent; contains the time since the end of its hold, or `None` if an
    /// edit or an operator released it early.
    Released(Option<Duration>),
    /// A message about a group was decided; contains the number of members.
    Grouped(u32),
}

impl Default for Families {
    fn default() -> Self {
        let mut to = RegistryBuilder::begin();
        Self {
            events_accepted: to.counters("events_accepted", "Accepted events"),
            events_deduplicated: to.counters(
                "events_deduplicated",
                "Accepted events that repeated an existing occurrence",
            ),
            events_refused: to.counters("events_refused", "Rejected events"),
            events_replayed: to.counters(
                "events_replayed",
                "Events in requests repeated with an idempotency key",
            ),
            intake_commit_seconds: to.histogram(
                "intake_commit_seconds",
                "Time to process and commit a batch of events",
            ),
            intake_wait_seconds: to
                .histogram("intake_wait_seconds", "Time events spent in the queue"),
            evaluations: to.counter(
                "evaluations",
                "Evaluations of all rules for a changed occurrence",
            ),
            matches: to.counter("matches", "Rule matches in evaluations"),
            notifications: to.counters("notifications", "Deliveries created"),
            holds: to.counters("holds", "Holds that began"),
            skipped: to.counters(
                "skipped",
                "Held notifications dropped because the occurrence closed or no longer matched",
            ),
            released: to.counter("released", "Held notifications that were sent"),
            release_lateness_seconds: to.histogram(
                "release_lateness_seconds",
                "Time from the end of a hold until its evaluation",
            ),
            group_messages: to.counter("group_messages", "Messages created for groups"),
            group_members: to.register_family(
                "group_members",
                "Occurrences in a group at the time of its message",
                Histogram::new(MANY),
            ),
            deliveries: to.counters("deliveries", "Deliveries that ended"),
            delivery_seconds: to.histograms(
                "delivery_seconds",
                "Time from the decision until the destination accepted the message",
                || Histogram::new(SLOW),
            ),
            attempts: to.counters("attempts", "Delivery attempts"),
            attempt_seconds: to.histograms(
                "attempt_seconds",
                "Duration of attempts",
                quick_histogram,
            ),
            test_sends: to.counters("test_sends", "Destination tests that were sent"),
            calls: to.counters("calls", "Completed calls"),
            call_seconds: to.histograms(
                "call_seconds",
                "Response time of calls; for a stream, until its start",
                quick_histogram,
            ),
            refusals: to.counters("refusals", "Calls rejected due to key, role or rate"),
            store_losses: to.counter(
                "store_losses",
                "Times the database has lost commits since the process started",
            ),
            pings: to.counters("pings", "Pings of the external monitor"),
            renders: to.counters("renders", "Renderings of messages and mapped documents"),
            registry: to.finish(),
        }
    }
}

pub(crate) struct RegistryBuilder(Registry);

impl RegistryBuilder {
    pub(crate) fn begin() -> Self {
        Self(Registry::with_prefix(PREFIX))
    }

    pub(crate) fn finish(self) -> Registry {
        self.0
    }

    pub(crate) fn register_family<M: Metric + Clone>(
        &mut self,
        name: &str,
        help: &str,
        family: M,
    ) -> M {
        self.0.register(name, help, family.clone());
        family
    }

    fn counter(&mut self, name: &str, help: &str) -> Counter {
        self.register_family(name, help, Counter::default())
    }

    fn counters<const N: usize>(&mut self, name: &str, help: &str) -> Counters<N> {
        self.register_family(name, help, Counters::default())
    }

    fn histogram(&mut self, name: &str, help: &str) -> Histogram {
        self.register_family(name, help, quick_histogram())
    }

    fn histograms<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        made: fn() -> Histogram,
    ) -> Histograms<N> {
        self.register_family(name, help, Family::new_with_constructor(made))
    }
}

fn quick_histogram() -> Histogram {
    Histogram::new(QUICK)
}

#[derive(Debug, Default)]
pub struct LabelValues {
    pub dialects: Vec<&'static str>,
    pub codes: Vec<&'static str>,
    pub methods: Vec<&'static str>,
    pub refusals: Vec<&'static str>,
    pub pings: Vec<&'static str>,
    pub purposes: Vec<&'static str>,
}

impl Metrics {
    /// Creates all series with known labels at 0. A series that appears with its first value shows
    /// no increase, so an alert would miss the first burst.
    ///
    /// For calls, only the series of successful calls and of failures of the service are created:
    /// all methods with all codes would dominate the page.
    pub fn create_series(&self, known: &LabelValues) {
        const ERRORS: [&str; 5] = [
            "ok",
            "internal",
            "unavailable",
            "resource_exhausted",
            "deadline_exceeded",
        ];
        const RENDERED: [&str; 4] = ["done", "late", "refused", "panicked"];
        let it = &self.0;
        create_series(
            &it.renders,
            label_pairs(("purpose", &known.purposes), ("outcome", &RENDERED)),
        );
        for family in [
            &it.events_accepted,
            &it.events_deduplicated,
            &it.events_replayed,
        ] {
            create_series(
                family,
                known.dialects.iter().map(|word| [("dialect", *word)]),
            );
        }
        let each = label_pairs(("dialect", &known.dialects), ("code", &known.codes));
        create_series(&it.events_refused, each);
        create_series(
            &it.calls,
            label_pairs(("method", &known.methods), ("code", &ERRORS)),
        );
        create_series(
            &it.refusals,
            known.refusals.iter().map(|word| [("why", *word)]),
        );
        create_series(
            &it.pings,
            known.pings.iter().map(|word| [("outcome", *word)]),
        );
        let types = DestinationKind::WORDS;
        create_series(
            &it.notifications,
            types.iter().map(|word| [("type", *word)]),
        );
        for family in [&it.deliveries, &it.test_sends] {
            create_series(family, label_pairs(("type", &types), ("state", &ENDS)));
        }
        let outcomes = Outcome::ALL.map(Outcome::as_str);
        create_series(
            &it.attempts,
            label_pairs(("type", &types), ("outcome", &outcomes)),
        );
        for family in [&it.delivery_seconds, &it.attempt_seconds] {
            create_series(family, types.iter().map(|word| [("type", *word)]));
        }
        let holds = HoldKind::ALL.map(HoldKind::as_str);
        for family in [&it.holds, &it.skipped] {
            create_series(family, holds.iter().map(|word| [("kind", *word)]));
        }
    }

    pub fn registry(&self) -> &Registry {
        &self.0.registry
    }

    /// Counts the times that the database lost commits before the service was restarted.
    pub fn record_store_losses(&self, times: u64) {
        self.0.store_losses.inc_by(times);
    }

    pub fn record_accepted(&self, dialect: &'static str, events: usize, opened: usize) {
        let label = [("dialect", dialect)];
        let repeated = events.saturating_sub(opened);
        increase_by(&self.0.events_accepted, &label, events);
        increase_by(&self.0.events_deduplicated, &label, repeated);
    }

    pub fn record_refused(&self, dialect: &'static str, code: &'static str, events: usize) {
        let labels = [("dialect", dialect), ("code", code)];
        increase_by(&self.0.events_refused, &labels, events);
    }

    /// Counts the events of a request that was repeated and received the stored response.
    pub fn record_replayed(&self, dialect: &'static str, events: usize) {
        increase_by(&self.0.events_replayed, &[("dialect", dialect)], events);
    }

    pub fn record_intake_commit(&self, took: Duration) {
        self.0.intake_commit_seconds.observe(took.as_secs_f64());
    }

    pub fn record_intake_wait(&self, waited: Duration) {
        self.0.intake_wait_seconds.observe(waited.as_secs_f64());
    }

    pub fn record_evaluation(&self, matches: usize) {
        self.0.evaluations.inc();
        self.0.matches.inc_by(matches as u64);
    }

    pub fn record_commit(&self, steps: &[CommitStep]) {
        for step in steps {
            match *step {
                CommitStep::Decided(kind) => {
                    increase_by(&self.0.notifications, &[("type", kind)], 1);
                }
                CommitStep::Shadowed(kind) => {
                    increase_by(
                        &self.0.deliveries,
                        &[("type", kind), ("state", "shadowed")],
                        1,
                    );
                }
                CommitStep::Ended { kind, state, took } => {
                    increase_by(&self.0.deliveries, &[("type", kind), ("state", state)], 1);
                    if state == "delivered" {
                        let seconds = self.0.delivery_seconds.get_or_create(&[("type", kind)]);
                        seconds.observe(took.as_secs_f64());
                    }
                }
                CommitStep::Tested { kind, state } => {
                    increase_by(&self.0.test_sends, &[("type", kind), ("state", state)], 1);
                }
                CommitStep::Held(kind) => increase_by(&self.0.holds, &[("kind", kind)], 1),
                CommitStep::Skipped(kind) => increase_by(&self.0.skipped, &[("kind", kind)], 1),
                CommitStep::Released(late) => {
                    self.0.released.inc();
                    if let Some(late) = late {
                        let seconds = late.as_secs_f64();
                        self.0.release_lateness_seconds.observe(seconds);
                    }
                }
                CommitStep::Grouped(members) => {
                    self.0.group_messages.inc();
                    self.0.group_members.observe(members.into());
                }
            }
        }
    }

    pub fn record_attempt(&self, kind: &'static str, outcome: &'static str, took: Duration) {
        let labels = [("type", kind), ("outcome", outcome)];
        increase_by(&self.0.attempts, &labels, 1);
        let seconds = self.0.attempt_seconds.get_or_create(&[("type", kind)]);
        seconds.observe(took.as_secs_f64());
    }

    pub fn record_call(&self, method: &'static str, code: &'static str, took: Duration) {
        increase_by(&self.0.calls, &[("method", method), ("code", code)], 1);
        let seconds = self.0.call_seconds.get_or_create(&[("method", method)]);
        seconds.observe(took.as_secs_f64());
    }

    pub fn record_ping(&self, outcome: &'static str) {
        increase_by(&self.0.pings, &[("outcome", outcome)], 1);
    }

    pub fn record_rendering(&self, purpose: &'static str, outcome: &'static str) {
        let labels = [("purpose", purpose), ("outcome", outcome)];
        increase_by(&self.0.renders, &labels, 1);
    }

    pub fn record_refused_call(&self, why: &'static str) {
        increase_by(&self.0.refusals, &[("why", why)], 1);
    }
}

fn create_series<const N: usize, M, C>(
    family: &Family<[Label; N], M, C>,
    labels: impl Iterator<Item = [Label; N]>,
) where
    C: MetricConstructor<M>,
{
    for labels in labels {
        drop(family.get_or_create(&labels));
    }
}

fn label_pairs<'a>(
    (first, values): (&'static str, &'a [&'static str]),
    (second, others): (&'static str, &'a [&'static str]),
) -> impl Iterator<Item = [Label; 2]> + 'a {
    let pairs = move |value: &'a &'static str| {
        others
            .iter()
            .map(move |other| [(first, *value), (second, *other)])
    };
    values.iter().flat_map(pairs)
}

fn increase_by<const N: usize>(counters: &Counters<N>, labels: &[Label; N], count: usize) {
    if count > 0 {
        counters.get_or_create(labels).inc_by(count as u64);
    }
}
