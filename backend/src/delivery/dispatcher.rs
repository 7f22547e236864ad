//! Takes due deliveries, has them sent, and records what became of them.

mod follow;
mod jump;
mod lease;
mod order;
mod plan;
mod survey;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
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
    clock::{Clock, millis},
    config::DeliveryConfig,
    delivery::{
        dead_letters::DeadLetters,
        decide,
        lane::{Lane, Lease},
        schedule::{self, Schedule},
    },
    destination::{Report, SendRequest, Sender, Verdict},
    domain::{RecordId, Transcript},
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
    /// The deliveries that are leased here.
    unrecorded: HashMap<RecordId, Finishing>,
    /// Deliveries whose ends were recorded, with the place of that in the change log: what the log
    /// tells about them up to there is our own doing.
    recorded: HashMap<RecordId, u64>,
    /// Deliveries that cannot be read.
    set_aside: HashSet<RecordId>,
    dead_letters: DeadLetters,
    /// How far the change log was read; none before the first look at all that waits.
    cursor: Option<u64>,
    /// What the clock was like when it was last looked at.
    heed: jump::Heed,
    /// Leases that have not ended.
    under_way: usize,
    attempts: JoinSet<Report>,
    /// The delivery of each attempt under way.
    tasks: HashMap<Id, RecordId>,
    standing: watch::Sender<Standing>,
}

/// A lease of ours whose end is not recorded yet.
#[derive(Debug)]
struct Finishing {
    destination: RecordId,
    number: u32,
    /// None while the attempt is under way or has not begun.
    end: Option<End>,
}

/// How a lease ended.
#[derive(Debug, Clone)]
enum End {
    /// With an attempt.
    Made(Arc<Report>),
    /// Before the attempt began.
    GivenBack,
}

/// What a dispatcher is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Deliveries that are leased and whose ends are not recorded yet.
    pub in_flight: usize,
    /// When it goes on by itself, in milliseconds since 1970; the end of time when it need not.
    pub wakes_ms: i64,
    /// How far it has read the change log.
    pub log_sequence: u64,
    /// Whether it waits because the store did not answer.
    pub is_held_up: bool,
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
            set_aside: HashSet::new(),
            dead_letters: DeadLetters::default(),
            cursor: None,
            heed: jump::Heed::default(),
            under_way: 0,
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
            let (wakes_ms, is_held_up) = match self.advance().await {
                Ok(()) => (self.wakes_ms(), false),
                Err(error) => {
                    tracing::warn!(%error, "deliveries wait for the store");
                    let pause_ms = millis(STORE_PAUSE);
                    (self.clock.now_ms().saturating_add(pause_ms), true)
                }
            };
            self.standing.send_replace(Standing {
                in_flight: self.unrecorded.len(),
                wakes_ms,
                log_sequence: self.cursor.unwrap_or_default(),
                is_held_up,
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
        self.heed_clock().await?;
        self.follow().await?;
        self.cancel_for_gone().await?;
        let plan = self.commit_plan(true).await?;
        for lease in plan.leases {
            self.hold(lease);
        }
        let lanes: Vec<_> = self.lanes.keys().copied().collect();
        for lane in lanes {
            self.begin_ahead(lane);
        }
        self.tell_what_is_over();
        Ok(())
    }

    /// Keeps what was leased until its attempt begins.
    fn hold(&mut self, lease: Lease) {
        let now_ms = self.clock.now_ms();
        let finishing = Finishing {
            destination: lease.destination.id,
            number: lease.delivery.attempts,
            end: None,
        };
        self.unrecorded.insert(lease.delivery.id, finishing);
        self.under_way += 1;
        if let Some(lane) = self.lanes.get_mut(&lease.destination.id) {
            lane.unrecorded += 1;
            lane.rate.note(1, now_ms);
            lane.ahead.push_back(lease);
        }
    }

    /// Begins as many attempts to a destination as there are places for.
    fn begin_ahead(&mut self, destination: RecordId) {
        let now_ms = self.clock.now_ms();
        let in_flight_default = self.config.max_in_flight_per_destination;
        while let Some(lane) = self.lanes.get_mut(&destination) {
            let is_closed = lane.is_closed(now_ms);
            if !is_closed && !lane.has_place(in_flight_default) {
                return;
            }
            let Some(lease) = lane.ahead.pop_front() else {
                return;
            };
            let timeout = schedule::timeout(&self.config, &lease.destination);
            if is_closed || !decide::may_begin(&lease.delivery, timeout, now_ms) {
                self.give_back(lease.delivery.id);
            } else {
                lane.running += 1;
                self.begin(lease, timeout);
            }
        }
    }

    fn give_back(&mut self, delivery: RecordId) {
        self.under_way -= 1;
        if let Some(finishing) = self.unrecorded.get_mut(&delivery) {
            finishing.end = Some(End::GivenBack);
        }
    }

    fn begin(&mut self, lease: Lease, timeout: Duration) {
        let Lease {
            delivery,
            destination,
        } = lease;
        let id = delivery.id;
        let sender = self.sender.clone();
        let task = self.attempts.spawn(async move {
            let request = SendRequest {
                delivery: delivery.id,
                rule: delivery.rule,
                content: &delivery.content,
                destination_name: &delivery.destination_name,
                kind: &destination.kind,
                timeout,
            };
            sender.send(request).await
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
        let destination = finishing.destination;
        if let Some(lane) = self.lanes.get_mut(&destination) {
            lane.note(&report, self.clock.now_ms());
        }
        finishing.end = Some(End::Made(Arc::new(report)));
        self.under_way -= 1;
        self.begin_ahead(destination);
    }

    /// When to go on though nothing happens.
    fn wakes_ms(&mut self) -> i64 {
        let now_ms = self.clock.now_ms();
        if self.under_way < self.unrecorded.len() {
            return now_ms;
        }
        let in_flight_default = self.config.max_in_flight_per_destination;
        let is_full = self.under_way >= self.config.max_in_flight;
        let lanes = self.lanes.values_mut();
        let wake = |lane: &mut Lane| match lane.opening(in_flight_default, now_ms) {
            // There is no place; the next end of an attempt wakes.
            Some(opening) if is_full && opening.from_ms <= now_ms => i64::MAX,
            Some(opening) => opening.from_ms,
            None if lane.is_gone() && lane.due_ms < i64::MAX => now_ms,
            None => i64::MAX,
        };
        let wakes_ms = lanes.map(wake).min().unwrap_or(i64::MAX);
        wakes_ms.min(self.dead_letters.next_ms())
    }

    async fn drain(&mut self) {
        let lanes = self.lanes.values_mut();
        let ahead: Vec<_> = lanes.flat_map(|lane| lane.ahead.drain(..)).collect();
        for lease in ahead {
            self.give_back(lease.delivery.id);
        }
        let ends = async {
            if let Err(error) = self.commit_plan(false).await {
                tracing::warn!(%error, "deliveries could not be given back");
            }
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
