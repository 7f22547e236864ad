//! The reasons for which deliveries wait, and the times of their next attempts.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use bellwether_proto::v1::WaitCode;
use tokio::sync::watch;

use super::{Deliveries, sequencing};
use crate::{
    clock::MINUTE_MS,
    domain::{
        Delivery, DeliveryState, Folding, Health, HealthState, RecordId, destination::PAUSED_BY,
    },
    error::Error,
    store::{
        Index,
        engine::{Range, ownership::OwnedSlots},
        record::{bytes::Key, slot},
    },
};

/// Maximum number of deliveries counted ahead of a waiting one.
const COUNTED_MAX: usize = 10_000;

const LIMITED: &str = "the receiver limits the rate of messages (429)";

const REQUESTED: &str = "the receiver requested a retry at that time (`Retry-After`)";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
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
pub struct Holds(Arc<RwLock<Option<KnownHolds>>>);

#[derive(Debug)]
struct KnownHolds {
    holds: HashMap<RecordId, Hold>,
    owned: watch::Receiver<OwnedSlots>,
}

impl Holds {
    /// Replaces the holds, by destination, for the slots that this process owns.
    pub fn replace(&self, holds: HashMap<RecordId, Hold>, owned: watch::Receiver<OwnedSlots>) {
        let known = KnownHolds { holds, owned };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }

    /// Clears the holds because this process no longer delivers.
    pub fn forget(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn is_known(&self, destination: RecordId) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let is_owned = |it: &KnownHolds| it.owned.borrow().slot(slot(destination)).is_some();
        known.as_ref().is_some_and(is_owned)
    }

    pub fn get(&self, destination: RecordId) -> Option<Hold> {
        let holds = self.0.read().unwrap_or_else(PoisonError::into_inner);
        holds.as_ref()?.holds.get(&destination).copied()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitReason {
    pub code: WaitCode,
    /// Displayed reason; empty if the delivery only waits for its due time.
    pub reason: String,
    /// Time of the next attempt as far as known, in milliseconds since the epoch; `None` if the
    /// delivery has ended or a user must act first.
    pub next_ms: Option<i64>,
}

/// Context for determining why deliveries wait, for lists, details and explanations alike.
#[derive(Debug)]
pub struct WaitReasons<'a> {
    deliveries: &'a Deliveries,
    healths: HashMap<RecordId, Option<Health>>,
}

impl Deliveries {
    pub fn wait_reasons(&self) -> WaitReasons<'_> {
        WaitReasons {
            deliveries: self,
            healths: HashMap::new(),
        }
    }

    pub async fn wait_reason(
        &self,
        delivery: &Delivery,
        looking: bool,
    ) -> Result<WaitReason, Error> {
        self.wait_reasons().reason(delivery, looking).await
    }

    async fn earlier_count(&self, delivery: &Delivery, due_ms: i64) -> Result<usize, Error> {
        let of_it = Key::new().id(delivery.destination);
        let range = Range {
            start: delivery.destination.to_bytes().into(),
            end: Some(of_it.time_ms(due_ms).id(delivery.id).build()),
        };
        let engine = self.store.engine();
        Ok(engine
            .count(Index::DeliveryByDue, range, COUNTED_MAX)
            .await?)
    }
}

impl WaitReasons<'_> {
    /// Returns why a delivery waits and when it is attempted next. With `looking`, includes the
    /// deliveries ahead of it, which requires extra reads.
    #[expect(
        clippy::too_many_lines,
        reason = "one reason after the other, in the order in which they apply"
    )]
    pub async fn reason(
        &mut self,
        delivery: &Delivery,
        looking: bool,
    ) -> Result<WaitReason, Error> {
        let all = self.deliveries;
        let waiting = |code, reason: String, next_ms| {
            Ok(WaitReason {
                code,
                reason,
                next_ms,
            })
        };
        let due = |next_ms| waiting(WaitCode::Unspecified, String::new(), next_ms);
        let due_ms = match delivery.state {
            DeliveryState::Pending { due_ms } | DeliveryState::Retry { due_ms } => due_ms,
            // The end of the lease is not the time of an attempt.
            DeliveryState::Leased { .. } => return due(None),
            state => return due(state.due_ms()),
        };
        if delivery.test {
            return due(Some(due_ms));
        }
        let now_ms = all.clock.now_ms();
        if delivery.attempts == 0 && delivery.folding == Folding::Alone && due_ms > now_ms {
            let (code, reason) = if delivery.content.digest.is_some() {
                let reason =
                    "a digest, collecting messages above the budget of its destination until then";
                (WaitCode::Digest, reason)
            } else {
                let reason = "above the budget of its destination: sent at that time, in a digest \
                              if there are more";
                (WaitCode::Budget, reason)
            };
            return waiting(code, reason.into(), Some(due_ms));
        }
        let before = if looking {
            sequencing::predecessors(&all.store, delivery).await?
        } else {
            sequencing::Predecessors::default()
        };
        let hold = all.holds.get(delivery.destination);
        if let (Some(until_ms), false) = (before.unblocked_ms(now_ms), hold == Some(Hold::Paused)) {
            let reason = "behind an earlier message of its thread";
            let next_ms = Some(until_ms.max(due_ms));
            return waiting(WaitCode::Thread, reason.into(), next_ms);
        }
        match hold {
            None => {
                let next_ms = Some(due_ms.max(now_ms));
                if !self.is_remote(delivery) {
                    return due(next_ms);
                }
                let reason = "the node that delivers to this destination knows the reason";
                waiting(WaitCode::OtherNode, reason.into(), next_ms)
            }
            Some(Hold::Paused) => {
                waiting(WaitCode::Paused, self.paused_text(delivery).await?, None)
            }
            Some(Hold::Breaker { probe_ms }) => {
                let next_ms = probe_ms.max(due_ms).max(now_ms);
                let reason = self.failing_text(delivery, now_ms).await?;
                waiting(WaitCode::Failing, reason, Some(next_ms))
            }
            Some(Hold::Requested { until_ms }) => {
                let next_ms = Some(until_ms.max(due_ms).max(now_ms));
                waiting(WaitCode::RetryAfter, REQUESTED.into(), next_ms)
            }
            Some(Hold::Limited { until_ms }) => {
                let next_ms = Some(until_ms.max(due_ms).max(now_ms));
                waiting(WaitCode::ReceiverRate, LIMITED.into(), next_ms)
            }
            // A delivery that is due later is not blocked by this hold.
            Some(_) if due_ms > now_ms => due(Some(due_ms)),
            Some(Hold::Rate {
                per_minute,
                until_ms,
            }) => {
                if !looking {
                    let reason = format!("rate {per_minute}/min");
                    return waiting(WaitCode::Rate, reason, Some(until_ms));
                }
                let before = all.earlier_count(delivery, due_ms).await?;
                let before_ms = i64::try_from(before)
                    .unwrap_or(i64::MAX)
                    .saturating_mul(MINUTE_MS);
                waiting(
                    WaitCode::Rate,
                    format!(
                        "rate {per_minute}/min: {} ahead of it",
                        format_count(before)
                    ),
                    Some(until_ms.saturating_add(before_ms / i64::from(per_minute.max(1)))),
                )
            }
            Some(Hold::Width { running }) => {
                let mut reason = format!("{running} attempts are in progress");
                if looking {
                    let before = format_count(all.earlier_count(delivery, due_ms).await?);
                    reason = format!("{reason}: {before} ahead of it");
                }
                waiting(WaitCode::Concurrency, reason, Some(now_ms))
            }
        }
    }

    fn is_remote(&self, delivery: &Delivery) -> bool {
        let all = self.deliveries;
        all.store.engine().is_shared() && !all.holds.is_known(delivery.destination)
    }

    async fn health(&mut self, delivery: &Delivery) -> Result<Option<&Health>, Error> {
        let id = delivery.destination;
        if !self.healths.contains_key(&id) {
            let stored = self.deliveries.store.get::<Health>(id.to_bytes().into());
            let stored = stored.await?.map(|stored| stored.value);
            self.healths.insert(id, stored);
        }
        Ok(self.healths.get(&id).and_then(Option::as_ref))
    }

    async fn paused_text(&mut self, delivery: &Delivery) -> Result<String, Error> {
        let health = self.health(delivery).await?;
        let paused = health.filter(|it| it.state == HealthState::Paused);
        Ok(match paused.map_or("", |it| &it.last_error) {
            "" => "the destination is paused".into(),
            by if by.starts_with(PAUSED_BY) => format!("the destination is {by}"),
            error => format!("the destination is paused: {error}"),
        })
    }

    async fn failing_text(&mut self, delivery: &Delivery, now_ms: i64) -> Result<String, Error> {
        let health = self.health(delivery).await?;
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
            "circuit breaker open: the destination has been failing{since}{error}; one message is tried at that time"
        ))
    }
}

fn format_duration(ms: i64) -> String {
    match ms / MINUTE_MS {
        ..1 => "less than a minute".into(),
        minutes @ 1..120 => format!("{minutes} min"),
        minutes @ 120..2_880 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / 1_440),
    }
}

fn format_count(count: usize) -> String {
    let more = if count == COUNTED_MAX { "+" } else { "" };
    format!("{count}{more}")
}
