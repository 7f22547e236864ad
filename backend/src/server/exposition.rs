//! Metrics that are computed on request: pending work by destination, and free resources.

use std::{collections::BTreeMap, path::PathBuf, pin::Pin, sync::Arc};

use bellwether_process::metrics::{MetricsSource, render_registry};
use prometheus_client::{
    metrics::{
        counter::ConstCounter,
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::{Metric, Registry},
};
use tokio::sync::watch;

use crate::{
    clock::{Clock, SystemClock},
    delivery::DispatcherStatus,
    domain::{
        RecordId, Severity, SilenceState, Status,
        counter::{Subject, Tally},
    },
    error::{Error, log_failure},
    metrics::PREFIX,
    ops::{
        delivery::{QueueHold, QueueHolds},
        footprint::store_bytes,
        hold_watch::oldest_due_ms,
        intake::Intake,
        ruleset::Ruleset,
    },
    rpc::access::CallGuard,
    store::{
        Direction, Index, Store,
        engine::{Condition, Range},
        record::bytes::{Key, read_id},
    },
};

/// Destinations with separate series, by name. The remaining destinations share one series.
const DESTINATIONS_MAX: usize = 100;
/// Label of the shared series, which is not a valid destination name.
const OTHERS: &str = "(others)";
/// Deliveries per destination that are examined to find the oldest one: those due first.
const OLDEST_AMONG: usize = 1_000;
/// Maximum counted occurrences with held notifications. Larger numbers are reported as this number.
const HELD_COUNTED_MAX: usize = 10_000;
/// Maximum counted open occurrences per severity. Larger numbers are reported as this number.
const OPEN_COUNTED_MAX: usize = 100_000;
/// Delay above which an evaluation is late, in milliseconds.
const LATE_MS: i64 = 1_000;
/// Bytes before the delivery id in an index entry: destination and due time.
const BEFORE_DELIVERY: usize = 16 + 8;

#[derive(Debug)]
pub(super) struct Exposition {
    pub(super) store: Store,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ruleset: Arc<Ruleset>,
    pub(super) intake: Intake,
    pub(super) guard: CallGuard,
    pub(super) holds: QueueHolds,
    pub(super) dispatcher: watch::Receiver<DispatcherStatus>,
    pub(super) data_dir: PathBuf,
}

#[derive(Debug, Default)]
struct BacklogMetrics {
    count: i64,
    dead: i64,
    oldest_seconds: f64,
    paused: i64,
    breakers_open: i64,
}

impl MetricsSource for Exposition {
    fn render(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async {
            let mut lines = render_registry(self.store.metrics().registry());
            if let Some(registry) = self.store.engine().registry() {
                lines.push_str(&render_registry(registry));
            }
            let mut now = Registry::with_prefix(PREFIX);
            self.add_parts(&mut now);
            self.add_nodes(&mut now).await;
            self.add_disk(&mut now).await;
            if let Err(error) = self.add_stored(&mut now).await {
                // Unavailable values are omitted.
                log_failure("failed to read the metrics of the store", &error);
            }
            lines.push_str(&render_registry(&now));
            lines
        })
    }
}

impl Exposition {
    fn add_parts(&self, to: &mut Registry) {
        let (requests, kib) = self.intake.queue_size();
        write_gauge(
            to,
            "intake_queue_requests",
            "Queued event requests, or parts of such requests",
            requests,
        );
        write_gauge(
            to,
            "intake_queue_bytes",
            "Memory used by events not yet committed",
            kib * 1024,
        );
        write_gauge(
            to,
            "watchers",
            "Open watch streams",
            self.guard.watcher_count(),
        );
        let in_flight = self.dispatcher.borrow().in_flight;
        write_gauge(
            to,
            "deliveries_in_flight",
            "Deliveries in progress, or about to start",
            in_flight,
        );
    }

    async fn add_nodes(&self, to: &mut Registry) {
        let engine = self.store.engine();
        if !engine.is_shared() {
            return;
        }
        if let Ok(nodes) = engine.cluster().nodes().await {
            let help = "Live nodes that share the store";
            write_gauge(to, "nodes_alive", help, nodes.len());
            let leading = nodes.iter().filter(|it| it.leads).count();
            let help = "Nodes that are the leader (0 or 1)";
            write_gauge(to, "nodes_leading", help, leading);
        }
        let help = "Slots owned by this node, which delivers to their destinations";
        let owned = engine.cluster().watch_ownership().borrow().count();
        write_gauge(to, "slots_owned", help, owned);
        let offset_ms = self.clock.now_ms().saturating_sub(SystemClock.now_ms());
        let help = "Offset of the database's clock from this machine's clock";
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let offset_seconds = offset_ms as f64 / 1_000.0;
        write_gauge(to, "clock_offset_seconds", help, offset_seconds);
    }

    async fn add_disk(&self, to: &mut Registry) {
        let condition = self.store.engine().condition();
        let state = Family::<[(&str, &str); 1], Gauge>::default();
        for word in Condition::WORDS {
            let is_in = i64::from(condition.as_str() == word);
            state.get_or_create(&[("state", word)]).set(is_in);
        }
        let help = "Whether the store is in this state; only `writable` accepts events";
        to.register("store_state", help, state);
        if let Some(space) = self.store.engine().free_space() {
            let help = "Free bytes on the disk of the store";
            write_gauge(to, "store_free_bytes", help, space.free_bytes);
            let help = "Free bytes required to accept events";
            write_gauge(to, "store_free_floor_bytes", help, space.floor_bytes);
        }
        let folder = self.data_dir.clone();
        let size = tokio::task::spawn_blocking(move || store_bytes(folder));
        if let Ok(Ok(bytes)) = size.await {
            let help = "Size of the files in the data folder";
            write_gauge(to, "store_bytes", help, bytes);
        }
    }

    async fn add_stored(&self, to: &mut Registry) -> Result<(), Error> {
        let head = self.store.engine().log_head().await?;
        let lag = head.steps_since(self.dispatcher.borrow().log_position);
        write_gauge(
            to,
            "delivery_log_lag_commits",
            "Commits that the dispatcher has not read yet",
            lag,
        );
        to.register(
            "store_commits",
            "Commits since the store was created",
            ConstCounter::new(head.to_number()),
        );
        self.add_open(to).await?;
        self.add_held(to).await?;
        let by_name = self.find_backlog().await?;
        let families = [
            (
                "destination_waiting",
                "Deliveries that have not ended",
                family_by_name(&by_name, |it| it.count),
            ),
            (
                "destination_dead_letters",
                "Stored dead letters that have not been resent",
                family_by_name(&by_name, |it| it.dead),
            ),
            (
                "destination_paused",
                "Whether the destination is paused until it is resumed or edited",
                family_by_name(&by_name, |it| it.paused),
            ),
            (
                "destination_breaker_open",
                "Whether the circuit breaker is open (single messages are tried)",
                family_by_name(&by_name, |it| it.breakers_open),
            ),
        ];
        for (name, help, family) in families {
            to.register(name, help, family);
        }
        let oldest =
            Family::<[(&str, String); 1], Gauge<f64, std::sync::atomic::AtomicU64>>::default();
        for (name, waiting) in &by_name {
            let gauge = oldest.get_or_create(&[("destination", name.clone())]);
            gauge.set(waiting.oldest_seconds);
        }
        to.register(
            "destination_oldest_seconds",
            "Age of the oldest delivery that has not ended; 0 if none",
            oldest,
        );
        Ok(())
    }

    async fn add_open(&self, to: &mut Registry) -> Result<(), Error> {
        let open = Family::<[(&str, &str); 1], Gauge>::default();
        for severity in Severity::ALL {
            let range = Range::with_prefix(&[Status::Open as u8, severity as u8]);
            let index = Index::OccurrenceByState;
            let count = self.store.engine().count(index, range, OPEN_COUNTED_MAX);
            let count = i64::try_from(count.await?).unwrap_or(i64::MAX);
            open.get_or_create(&[("severity", severity.as_str())])
                .set(count);
        }
        to.register(
            "open_occurrences",
            "Open occurrences by severity, counted up to 100,000 each",
            open,
        );
        Ok(())
    }

    async fn add_held(&self, to: &mut Registry) -> Result<(), Error> {
        let engine = self.store.engine();
        let now_ms = self.clock.now_ms();
        let due = Index::OccurrenceByDue;
        let until = |end| Range {
            start: Vec::new(),
            end,
        };
        let held = engine.count(due, until(None), HELD_COUNTED_MAX).await?;
        write_gauge(
            to,
            "pending",
            "Occurrences with held notifications, counted up to 10,000",
            held,
        );
        let late = Key::new().time_ms(now_ms.saturating_sub(LATE_MS)).build();
        let overdue = engine.count(due, until(Some(late)), HELD_COUNTED_MAX);
        write_gauge(
            to,
            "due_overdue",
            "Occurrences with held notifications more than a second overdue, counted up to 10,000",
            overdue.await?,
        );
        let oldest_ms = oldest_due_ms(&self.store, now_ms).await?;
        let age_ms = oldest_ms.map_or(0, |due_ms| now_ms.saturating_sub(due_ms));
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let age_seconds = age_ms as f64 / 1e3;
        write_gauge(
            to,
            "due_oldest_seconds",
            "Age of the oldest due hold not yet evaluated; 0 if none",
            age_seconds,
        );
        let snapshot = self.ruleset.refresh().await?;
        let silences = snapshot.silences().as_slice().iter();
        // A flexible silence is active only once it has started.
        let active = silences.filter(|it| it.state_at(now_ms) == SilenceState::Active);
        write_gauge(to, "silences_active", "Silences in force", active.count());
        Ok(())
    }

    async fn find_backlog(&self) -> Result<BTreeMap<String, BacklogMetrics>, Error> {
        let snapshot = self.ruleset.refresh().await?;
        let mut found: Vec<_> = snapshot.destinations().collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        let ranges: Vec<_> = found
            .iter()
            .map(|destination| Range::with_prefix(&destination.id.to_bytes()))
            .collect();
        let engine = self.store.engine();
        let due = Index::DeliveryByDue;
        let entries = engine.read_ranges(due, &ranges, Direction::Ascending, OLDEST_AMONG);
        let now_ms = self.clock.now_ms().unsigned_abs();
        let mut by_name: BTreeMap<String, BacklogMetrics> = BTreeMap::new();
        let subjects: Vec<_> = found
            .iter()
            .map(|destination| Subject::Destination(destination.id))
            .collect();
        let counted = self.store.current_counts(&subjects).await?;
        let found = found.into_iter().zip(counted).zip(entries.await?);
        for (at, ((destination, counted), entries)) in found.enumerate() {
            let name = if at < DESTINATIONS_MAX {
                destination.name.as_str()
            } else {
                OTHERS
            };
            let deliveries = entries
                .iter()
                .filter_map(|(key, _)| read_id(key, BEFORE_DELIVERY));
            let oldest_ms = deliveries.map(RecordId::time_ms).min().unwrap_or(now_ms);
            let waiting = by_name.entry(name.to_owned()).or_default();
            waiting.count += counted.get(Tally::Waiting);
            waiting.dead += counted.get(Tally::Dead);
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let seconds = now_ms.saturating_sub(oldest_ms) as f64 / 1e3;
            waiting.oldest_seconds = waiting.oldest_seconds.max(seconds);
            match self.holds.get(destination.id) {
                Some(QueueHold::Paused) => waiting.paused += 1,
                Some(QueueHold::Breaker { .. }) => waiting.breakers_open += 1,
                Some(
                    QueueHold::Requested { .. }
                    | QueueHold::Limited { .. }
                    | QueueHold::Rate { .. }
                    | QueueHold::Width { .. },
                )
                | None => {}
            }
        }
        Ok(by_name)
    }
}

fn write_gauge<N>(to: &mut Registry, name: &str, help: &str, value: N)
where
    ConstGauge<N>: Metric,
{
    to.register(name, help, ConstGauge::new(value));
}

fn family_by_name(
    all: &BTreeMap<String, BacklogMetrics>,
    value: fn(&BacklogMetrics) -> i64,
) -> Family<[(&'static str, String); 1], Gauge> {
    let family = Family::default();
    for (name, waiting) in all {
        let labels = [("destination", name.clone())];
        Family::<_, Gauge>::get_or_create(&family, &labels).set(value(waiting));
    }
    family
}
