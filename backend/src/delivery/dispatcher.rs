//! Takes due deliveries, has them sent, and records what became of them.

mod follow;
mod plan;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use rand::rngs::StdRng;
use tokio::{
    sync::watch,
    task::{Id, JoinError, JoinSet},
};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    config::DeliveryConfig,
    delivery::{
        lane::Lane,
        schedule::{self, Schedule, millis},
        sender::{Order, Sender},
        verdict::{Report, Verdict},
    },
    domain::{Delivery, Destination, Outcome, RecordId, Transcript},
    error::Error,
    store::Store,
};

/// How long to wait after the store did not answer.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// How long attempts under way may take to end when the service stops.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);

/// Delivers: one loop that leases and records in shared commits, and bounded attempts beside it.
///
/// All state that must outlive it is in the store; what it holds in memory is a view of that.
#[derive(Debug)]
pub struct Dispatcher {
    store: Store,
    clock: Arc<dyn Clock>,
    sender: Sender,
    config: DeliveryConfig,
    schedule: Schedule,
    random: StdRng,
    /// By destination, in an order in which they take turns.
    lanes: BTreeMap<RecordId, Lane>,
    /// The lane that was served last.
    turn: RecordId,
    /// The deliveries whose attempts are under way or not recorded yet.
    unrecorded: HashMap<RecordId, Finishing>,
    /// Deliveries whose ends were recorded, with the place of that in the change log: what the log
    /// tells about them up to there is our own doing.
    recorded: HashMap<RecordId, u64>,
    /// How far the change log was read; none before the first look at all that waits.
    cursor: Option<u64>,
    attempts: JoinSet<Report>,
    /// The delivery of each attempt under way.
    tasks: HashMap<Id, RecordId>,
    standing: watch::Sender<Standing>,
}

/// An attempt that is under way, or ended and is not recorded yet.
#[derive(Debug)]
struct Finishing {
    destination: RecordId,
    number: u32,
    /// None while it is under way.
    report: Option<Report>,
}

/// What a dispatcher is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Attempts under way or not recorded yet.
    pub in_flight: usize,
    /// When it goes on by itself, in milliseconds since 1970; the end of time when it need not.
    pub wakes_ms: i64,
    /// How far it has read the change log.
    pub log_sequence: u64,
}

impl Dispatcher {
    /// A dispatcher for what waits in a store; `random` spreads the retries.
    pub fn new(
        store: Store,
        clock: Arc<dyn Clock>,
        sender: Sender,
        config: DeliveryConfig,
        random: StdRng,
    ) -> Self {
        Self {
            store,
            clock,
            sender,
            schedule: Schedule::new(&config),
            config,
            random,
            lanes: BTreeMap::new(),
            turn: RecordId::from_parts(0, 0),
            unrecorded: HashMap::new(),
            recorded: HashMap::new(),
            cursor: None,
            attempts: JoinSet::new(),
            tasks: HashMap::new(),
            standing: watch::Sender::default(),
        }
    }

    /// Follows what it is doing.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Delivers until shutdown; then takes nothing new and lets attempts under way end for a
    /// while. An attempt that does not end by then is found again when its lease runs out.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut committed = self.store.engine().log_signal();
        loop {
            committed.mark_unchanged();
            let wakes_ms = match self.advance().await {
                Ok(()) => self.wakes_ms(),
                Err(error) => {
                    tracing::warn!(%error, "deliveries wait for the store");
                    self.clock.now_ms().saturating_add(millis(STORE_PAUSE))
                }
            };
            self.standing.send_replace(Standing {
                in_flight: self.unrecorded.len(),
                wakes_ms,
                log_sequence: self.cursor.unwrap_or_default(),
            });
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                Some(ended) = self.attempts.join_next_with_id() => self.collect(ended),
                // An engine that is closed says nothing more; the wait below paces the loop.
                Ok(()) = committed.changed() => {}
                () = self.clock.wait_until(wakes_ms) => {}
            }
            self.collect_ended();
        }
        self.drain().await;
    }

    /// Follows the change log, then commits ends and leases and starts what was leased.
    async fn advance(&mut self) -> Result<(), Error> {
        self.follow().await?;
        self.cancel_for_gone().await?;
        let plan = self.commit_plan(true).await?;
        for lease in plan.leases {
            self.start(lease.delivery, lease.destination);
        }
        Ok(())
    }

    fn start(&mut self, delivery: Delivery, destination: Arc<Destination>) {
        let now_ms = self.clock.now_ms();
        if let Some(lane) = self.lanes.get_mut(&destination.id) {
            lane.running += 1;
            lane.unrecorded += 1;
            lane.rate.note(1, now_ms);
        }
        let finishing = Finishing {
            destination: destination.id,
            number: delivery.attempts,
            report: None,
        };
        self.unrecorded.insert(delivery.id, finishing);
        let id = delivery.id;
        let timeout = schedule::timeout(&self.config, &destination);
        let sender = self.sender.clone();
        let task = self.attempts.spawn(async move {
            let order = Order {
                delivery: delivery.id,
                rule: delivery.rule,
                content: &delivery.content,
                destination_name: &delivery.destination_name,
                kind: &destination.kind,
                timeout,
            };
            sender.send(order).await
        });
        self.tasks.insert(task.id(), id);
    }

    fn collect_ended(&mut self) {
        while let Some(ended) = self.attempts.try_join_next_with_id() {
            self.collect(ended);
        }
    }

    /// Keeps an attempt's end until it is recorded.
    fn collect(&mut self, ended: Result<(Id, Report), JoinError>) {
        let (task, report) = ended.unwrap_or_else(|error| (error.id(), fault_of_our_own(&error)));
        let delivery = self.tasks.remove(&task);
        let Some(finishing) = delivery.and_then(|id| self.unrecorded.get_mut(&id)) else {
            return;
        };
        if let Some(lane) = self.lanes.get_mut(&finishing.destination) {
            lane.running -= 1;
            let delivered = report.verdict.outcome == Outcome::Delivered;
            lane.breaker.note(delivered, self.clock.now_ms());
        }
        finishing.report = Some(report);
    }

    /// When to go on though nothing happens.
    fn wakes_ms(&mut self) -> i64 {
        let now_ms = self.clock.now_ms();
        let in_flight_default = self.config.max_in_flight_per_destination;
        let is_full = self.attempts.len() >= self.config.max_in_flight;
        let lanes = self.lanes.values_mut();
        let wake = |lane: &mut Lane| match lane.opening(in_flight_default, now_ms) {
            // There is no place; the next end of an attempt wakes.
            Some(opening) if is_full && opening.from_ms <= now_ms => i64::MAX,
            Some(opening) => opening.from_ms,
            None if lane.destination.is_none() && lane.due_ms < i64::MAX => now_ms,
            None => i64::MAX,
        };
        lanes.map(wake).min().unwrap_or(i64::MAX)
    }

    async fn drain(&mut self) {
        let ends = async {
            while let Some(ended) = self.attempts.join_next_with_id().await {
                self.collect(ended);
                self.collect_ended();
                if let Err(error) = self.commit_plan(false).await {
                    tracing::warn!(%error, "the end of an attempt could not be recorded");
                }
            }
        };
        if tokio::time::timeout(DRAIN_TIME_MAX, ends).await.is_err() {
            tracing::warn!("attempts under way were cut off; they are made again");
        }
    }
}

/// The end of an attempt that panicked.
fn fault_of_our_own(error: &JoinError) -> Report {
    tracing::error!(%error, "an attempt broke");
    Report {
        verdict: Verdict::unknown("the service has an internal fault"),
        duration: Duration::ZERO,
        transcript: Transcript::default(),
    }
}
