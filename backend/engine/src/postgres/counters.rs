//! Metrics of the work with the database, shown at `/metrics`.

use std::{sync::Arc, time::Duration};

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry},
};

/// Bucket bounds of the commit time, in seconds.
const COMMIT: [f64; 11] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];
const SETS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 500.0];
/// Bucket bounds of the delay until commits of other nodes are known here, in seconds.
const LAG: [f64; 9] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0];

type Label = (&'static str, &'static str);
type Counters = Family<[Label; 1], Counter>;

#[derive(Debug, Clone)]
pub(super) struct StoreCounters(Arc<Families>);

#[derive(Debug)]
struct Families {
    registry: Registry,
    commit_seconds: Histogram,
    batch_sets: Histogram,
    conflicts: Counters,
    retries: Counters,
    in_doubt: Counters,
    follow_lag_seconds: Histogram,
    connections: Family<[Label; 1], Gauge>,
}

impl Default for StoreCounters {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("bellwether");
        let counters = Self(Arc::new(Families {
            commit_seconds: register_family(
                &mut registry,
                "store_commit_seconds",
                "Duration of commits in the database",
                Histogram::new(COMMIT),
            ),
            batch_sets: register_family(
                &mut registry,
                "store_batch_sets",
                "Change sets per commit",
                Histogram::new(SETS),
            ),
            conflicts: register_family(
                &mut registry,
                "store_conflicts",
                "Change sets rejected because a record they depend on had changed",
                Family::default(),
            ),
            retries: register_family(
                &mut registry,
                "store_retries",
                "Retried commits, by reason",
                Family::default(),
            ),
            in_doubt: register_family(
                &mut registry,
                "store_in_doubt",
                "Commits interrupted by a lost connection, by outcome",
                Family::default(),
            ),
            follow_lag_seconds: register_family(
                &mut registry,
                "store_follow_lag_seconds",
                "Delay from a commit until this node reads it",
                Histogram::new(LAG),
            ),
            connections: register_family(
                &mut registry,
                "store_connections",
                "Connections to the database",
                Family::default(),
            ),
            registry,
        }));
        counters.create_series();
        counters
    }
}

fn register_family<M: Metric + Clone>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    family: M,
) -> M {
    registry.register(name, help, family.clone());
    family
}

impl StoreCounters {
    pub(super) fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub(super) fn record_commit(&self, sets: usize, took: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "a batch has few sets")]
        self.0.batch_sets.observe(sets as f64);
        self.0.commit_seconds.observe(took.as_secs_f64());
    }

    pub(super) fn record_conflict(&self, kind: &'static str) {
        self.0.conflicts.get_or_create(&[("kind", kind)]).inc();
    }

    /// Creates the series with known labels at 0, so that their first increase is visible.
    fn create_series(&self) {
        for why in ["busy", "connection lost"] {
            drop(self.0.retries.get_or_create(&[("why", why)]));
        }
        for outcome in ["written", "not written", "unknown"] {
            drop(self.0.in_doubt.get_or_create(&[("outcome", outcome)]));
        }
    }

    pub(super) fn record_retry(&self, why: &'static str) {
        self.0.retries.get_or_create(&[("why", why)]).inc();
    }

    pub(super) fn record_in_doubt_commit(&self, outcome: &'static str) {
        self.0.in_doubt.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(super) fn record_lag(&self, lag: Duration) {
        self.0.follow_lag_seconds.observe(lag.as_secs_f64());
    }

    pub(super) fn record_connect(&self, role: &'static str) {
        self.connections(role).inc();
    }

    pub(super) fn record_disconnect(&self, role: &'static str) {
        self.connections(role).dec();
    }

    fn connections(&self, role: &'static str) -> Gauge {
        self.0.connections.get_or_create_owned(&[("role", role)])
    }
}
