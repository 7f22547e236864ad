//! The reasons why deliveries wait, and the times of their next attempts.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, PoisonError, RwLock},
};

use bellwether_language::text::format_duration;
use bellwether_proto::v1::WaitCode;
use tokio::sync::watch;

use super::{Deliveries, sequencing};
use crate::{
    clock::MINUTE_MS,
    domain::{
        Delivery, DeliveryState, DigestMembership, Health, HealthState, RecordId,
        destination::PAUSED_BY,
    },
    error::Error,
    statistics::{StatisticsReader, Throughput},
    store::{
        Direction, Index,
        engine::{Range, ownership::OwnedSlots},
        record::{bytes::Key, destination_slot},
    },
};

/// Maximum number of deliveries to a destination that are read to find the position of a waiting
/// one.
const COUNTED_MAX: usize = 10_000;

const LIMITED: &str = "the receiver limits the message rate (429)";

const REQUESTED: &str = "the receiver requested a pause (`Retry-After`)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueHold {
    /// Paused until the destination is resumed or edited.
    Paused,
    /// The circuit breaker is open; one message is attempted at the given time.
    Breaker {
        /// Time of the next attempt, in milliseconds since the epoch.
        probe_ms: i64,
    },
    /// The receiver requested a pause.
    Requested {
        /// End of the pause, in milliseconds since the epoch.
        until_ms: i64,
    },
    /// The receiver limits the rate.
    Limited {
        /// Time of the next attempt, in milliseconds since the epoch.
        until_ms: i64,
    },
    /// The rate limit of attempts is reached.
    Rate {
        per_minute: u32,
        /// Earliest start of the next attempt, in milliseconds since the epoch.
        until_ms: i64,
    },
    /// The limit of concurrent attempts is reached.
    Width { running: usize },
}

/// The current holds of the destinations that this process delivers to, as reported by its
/// dispatcher. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct QueueHolds(Arc<RwLock<Option<KnownHolds>>>);

#[derive(Debug)]
struct KnownHolds {
    holds: HashMap<RecordId, QueueHold>,
    owned: watch::Receiver<OwnedSlots>,
}

impl QueueHolds {
    /// Replaces the holds, by destination, for the slots that this process owns.
    pub fn replace(&self, holds: HashMap<RecordId, QueueHold>, owned: watch::Receiver<OwnedSlots>) {
        let known = KnownHolds { holds, owned };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }

    /// Clears the holds because this process no longer delivers.
    pub fn clear(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn is_known(&self, destination: RecordId) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_owned = |it: &KnownHolds| {
            it.owned
                .borrow()
                .find(destination_slot(destination))
                .is_some()
        };
        known.as_ref().is_some_and(is_owned)
    }

    pub fn get(&self, destination: RecordId) -> Option<QueueHold> {
        let holds = self.0.read().unwrap_or_else(PoisonError::into_inner);
        holds.as_ref()?.holds.get(&destination).copied()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitReason {
    pub code: WaitCode,
    /// Displayed reason; empty if the delivery only waits for its due time.
    pub reason: String,
    /// Time of the next attempt, in milliseconds since the epoch; an estimate if other deliveries
    /// are ahead. `None` if the delivery has ended, a user must act first, or the rate of the
    /// destination is unknown.
    pub next_ms: Option<i64>,
    /// Number of due deliveries to the destination that became due earlier; `None` if the delivery
    /// is not due.
    pub ahead: Option<usize>,
}

/// Context for determining why deliveries wait, for lists, details and explanations alike.
#[derive(Debug)]
pub struct WaitReasons<'a> {
    deliveries: &'a Deliveries,
    healths: HashMap<RecordId, Option<Health>>,
    backlogs: HashMap<RecordId, Backlog>,
}

#[derive(Debug)]
struct Backlog {
    /// Index keys in the order in which the deliveries become due, at most [`COUNTED_MAX`].
    due: Vec<Vec<u8>>,
    throughput: Option<Throughput>,
}

impl Backlog {
    /// Returns the number of deliveries that become due earlier.
    fn position(&self, delivery: &Delivery, due_ms: i64) -> usize {
        let key = Key::new().id(delivery.destination);
        let key = key.time_ms(due_ms).id(delivery.id).build();
        self.due.partition_point(|it| *it < key)
    }

    /// Estimates the time of the next attempt of a delivery that is eligible from `start_ms` on.
    fn next_ms(&self, ahead: usize, start_ms: i64) -> Option<i64> {
        let wait_ms = match ahead {
            0 => 0,
            ahead => self.throughput?.duration_ms(ahead),
        };
        Some(start_ms.saturating_add(wait_ms))
    }
}

impl Deliveries {
    pub fn wait_reasons(&self) -> WaitReasons<'_> {
        WaitReasons {
            deliveries: self,
            healths: HashMap::new(),
            backlogs: HashMap::new(),
        }
    }

    pub async fn wait_reason(&self, delivery: &Delivery) -> Result<WaitReason, Error> {
        self.wait_reasons().wait_reason(delivery).await
    }
}

impl WaitReasons<'_> {
    /// Returns the reason why a delivery waits, the number of deliveries ahead of it, and the time
    /// of its next attempt.
    pub async fn wait_reason(&mut self, delivery: &Delivery) -> Result<WaitReason, Error> {
        let all = self.deliveries;
        let due_ms = match delivery.state {
            DeliveryState::Pending { due_ms } | DeliveryState::Retry { due_ms } => due_ms,
            // The end of the lease is not the time of an attempt.
            DeliveryState::Leased { .. } => return Ok(WaitReason::default()),
            state => return Ok(wait_until_due_reason(state.due_ms())),
        };
        let now_ms = all.clock.now_ms();
        if delivery.test {
            return Ok(wait_until_due_reason(Some(due_ms)));
        }
        if delivery.attempts == 0 && delivery.folding == DigestMembership::Alone && due_ms > now_ms
        {
            return Ok(budget_wait(delivery, due_ms));
        }
        let before = sequencing::find_predecessors(&all.store, delivery).await?;
        let hold = all.holds.get(delivery.destination);
        if let (Some(until_ms), false) =
            (before.unblocked_ms(now_ms), hold == Some(QueueHold::Paused))
        {
            return Ok(WaitReason {
                code: WaitCode::Thread,
                reason: "behind an earlier message of its thread".into(),
                next_ms: Some(until_ms.max(due_ms)),
                ahead: None,
            });
        }
        self.hold_reason(delivery, hold, due_ms).await
    }

    async fn hold_reason(
        &mut self,
        delivery: &Delivery,
        hold: Option<QueueHold>,
        due_ms: i64,
    ) -> Result<WaitReason, Error> {
        let now_ms = self.deliveries.clock.now_ms();
        let (code, reason, start_ms) = match hold {
            None if self.is_remote(delivery) => {
                let reason = "only the node that delivers to this destination knows the reason";
                (WaitCode::OtherNode, reason.into(), now_ms)
            }
            None => (WaitCode::Unspecified, String::new(), now_ms),
            Some(QueueHold::Paused) => {
                return Ok(WaitReason {
                    code: WaitCode::Paused,
                    reason: self.paused_text(delivery).await?,
                    ..WaitReason::default()
                });
            }
            Some(QueueHold::Breaker { probe_ms }) => {
                let reason = self.failing_text(delivery, now_ms).await?;
                (WaitCode::Failing, reason, probe_ms)
            }
            Some(QueueHold::Requested { until_ms }) => {
                (WaitCode::RetryAfter, REQUESTED.into(), until_ms)
            }
            Some(QueueHold::Limited { until_ms }) => {
                (WaitCode::ReceiverRate, LIMITED.into(), until_ms)
            }
            // These limits only hold deliveries that are due.
            Some(QueueHold::Rate { .. } | QueueHold::Width { .. }) if due_ms > now_ms => {
                return Ok(wait_until_due_reason(Some(due_ms)));
            }
            Some(QueueHold::Rate {
                per_minute,
                until_ms,
            }) => (WaitCode::Rate, format!("rate {per_minute}/min"), until_ms),
            Some(QueueHold::Width { running }) => {
                let reason = match running {
                    1 => "1 attempt is in progress".into(),
                    running => format!("{running} attempts are in progress"),
                };
                (WaitCode::Concurrency, reason, now_ms)
            }
        };
        let backlog = self.read_backlog(delivery.destination).await?;
        let ahead = backlog.position(delivery, due_ms);
        let start_ms = start_ms.max(now_ms);
        let next_ms = match hold {
            Some(QueueHold::Rate { per_minute, .. }) => {
                Some(start_ms.saturating_add(duration_at_rate(ahead, per_minute)))
            }
            _ if due_ms > start_ms => Some(due_ms),
            _ => backlog.next_ms(ahead, start_ms),
        };
        Ok(WaitReason {
            code,
            reason: append_position(reason, ahead),
            next_ms,
            ahead: (due_ms <= now_ms).then_some(ahead),
        })
    }

    async fn read_backlog(&mut self, destination: RecordId) -> Result<&Backlog, Error> {
        let all = self.deliveries;
        let place = match self.backlogs.entry(destination) {
            Entry::Occupied(known) => return Ok(known.into_mut()),
            Entry::Vacant(place) => place,
        };
        let range = Range::with_prefix(&destination.to_bytes());
        let engine = all.store.engine();
        let (index, direction) = (Index::DeliveryByDue, Direction::Ascending);
        let due = engine.entries(index, range, direction, COUNTED_MAX);
        let due = due.await?.into_iter().map(|(key, _)| key).collect();
        let reader = StatisticsReader::new(all.store.clone(), Arc::clone(&all.clock));
        let throughput = reader.throughput(destination).await?;
        Ok(place.insert(Backlog { due, throughput }))
    }

    fn is_remote(&self, delivery: &Delivery) -> bool {
        let all = self.deliveries;
        all.store.engine().is_shared() && !all.holds.is_known(delivery.destination)
    }

    async fn read_health(&mut self, delivery: &Delivery) -> Result<Option<&Health>, Error> {
        let id = delivery.destination;
        if !self.healths.contains_key(&id) {
            let stored = self.deliveries.store.get::<Health>(id.to_bytes().into());
            let stored = stored.await?.map(|stored| stored.value);
            self.healths.insert(id, stored);
        }
        Ok(self.healths.get(&id).and_then(Option::as_ref))
    }

    async fn paused_text(&mut self, delivery: &Delivery) -> Result<String, Error> {
        let health = self.read_health(delivery).await?;
        let paused = health.filter(|it| it.state == HealthState::Paused);
        Ok(match paused.map_or("", |it| &it.last_error) {
            "" => "the destination is paused".into(),
            by if by.starts_with(PAUSED_BY) => format!("the destination is {by}"),
            error => format!("the destination is paused: {error}"),
        })
    }

    async fn failing_text(&mut self, delivery: &Delivery, now_ms: i64) -> Result<String, Error> {
        let health = self.read_health(delivery).await?;
        let failing = health.filter(|it| it.state == HealthState::Failing);
        let (since, error) = failing.map_or((String::new(), ""), |it| {
            let since = format!(" for {}", format_duration(now_ms - it.failing_since_ms()));
            (since, &*it.last_error)
        });
        let error = match error {
            "" => String::new(),
            error => format!(" ({error})"),
        };
        Ok(format!(
            "circuit breaker open: the destination has been failing{since}{error}; one message is tried first"
        ))
    }
}

fn wait_until_due_reason(next_ms: Option<i64>) -> WaitReason {
    WaitReason {
        next_ms,
        ..WaitReason::default()
    }
}

fn budget_wait(delivery: &Delivery, due_ms: i64) -> WaitReason {
    let (code, reason) = if delivery.content.digest.is_some() {
        let reason = "a digest that collects messages over its destination's budget until then";
        (WaitCode::Digest, reason)
    } else {
        let reason =
            "over its destination's budget: sent at that time, in a digest if there are more";
        (WaitCode::Budget, reason)
    };
    WaitReason {
        code,
        reason: reason.into(),
        next_ms: Some(due_ms),
        ahead: None,
    }
}

/// Returns the time for a number of attempts at a rate limit, in milliseconds.
fn duration_at_rate(attempts: usize, per_minute: u32) -> i64 {
    let attempts = i64::try_from(attempts).unwrap_or(i64::MAX);
    attempts.saturating_mul(MINUTE_MS) / i64::from(per_minute.max(1))
}

fn append_position(reason: String, ahead: usize) -> String {
    match ahead {
        _ if reason.is_empty() => reason,
        0 => reason,
        1 => format!("{reason}: 1 delivery ahead"),
        COUNTED_MAX => format!("{reason}: {COUNTED_MAX} or more deliveries ahead"),
        ahead => format!("{reason}: {ahead} deliveries ahead"),
    }
}
