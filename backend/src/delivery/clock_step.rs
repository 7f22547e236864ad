//! A clock that was set: what waits continues waiting as long as it was to.
//!
//! Due times are kept as times of day, since they outlive the process. When the clock is set, the
//! waits that were begun before are moved along; what is decided afterwards is in the new time
//! already. The change log distinguishes them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use crate::{
    clock::{Clock, STEP_MIN_MS, millis},
    delivery::{ledger::Ledger, ownership::Ownership, queues::Queues},
    domain::{BudgetWindow, Delivery, DeliveryState, Folding},
    error::Error,
    ops::commit::commit,
    store::{
        Direction, EngineError, Index, Kind, Lane, LogPosition, Record, Store, Stored,
        engine::Range,
        record::bytes::{id_at, moment_at},
    },
};

/// Deliveries that are looked at in one commit.
const PAGE: usize = 256;
/// A clock that is set forward by more than this was plainly wrong before: what is due by the new
/// time is due.
const FORWARD_MAX: Duration = Duration::from_secs(24 * 3600);

/// Notices when the clock is set.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    store: Store,
    clock: Arc<dyn Clock>,
    /// How far the clock was ahead of the time that has passed; none before the first look.
    offset_ms: Option<i64>,
    /// The newest place in the change log then.
    position: LogPosition,
}

impl ClockWatch {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            offset_ms: None,
            position: LogPosition::START,
        }
    }

    /// Moves what waits along with a clock that was set since the last look.
    pub(crate) async fn look(
        &mut self,
        queues: &mut Queues,
        ledger: &Ledger,
        ownership: &Ownership,
    ) -> Result<(), Error> {
        let offset_ms = self.clock.offset_ms();
        let by_ms = offset_ms - self.offset_ms.unwrap_or(offset_ms);
        if by_ms.abs() >= STEP_MIN_MS {
            tracing::warn!(by_ms, "the clock was changed; due times are adjusted");
            queues.shift(by_ms);
            if by_ms <= millis(FORWARD_MAX) {
                self.move_along(by_ms, ledger, ownership).await?;
                self.move_budgets(by_ms, ownership).await?;
            }
        }
        self.offset_ms = Some(offset_ms);
        self.position = *self.store.engine().log_signal().borrow();
        Ok(())
    }

    async fn move_along(
        &self,
        by_ms: i64,
        ledger: &Ledger,
        ownership: &Ownership,
    ) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let before_ms = now_ms.saturating_sub(by_ms);
        let mut range = Range::under(&[]);
        loop {
            let engine = self.store.engine();
            let index = Index::DeliveryByDue;
            let page = engine.entries(index, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range.go_on_after(last);
            let waiting = page.into_iter().filter(|(entry, _)| {
                let is_later =
                    moment_at(entry, 16).is_some_and(|due_ms| due_ms > before_ms.min(now_ms));
                let is_owned = id_at(entry, 0).is_some_and(|id| ownership.has(id));
                let id = id_at(entry, 24);
                is_later && is_owned && id.is_some_and(|id| !ledger.holds(id))
            });
            let keys: Vec<_> = waiting.map(|(_, key)| key).collect();
            if keys.is_empty() {
                continue;
            }
            let decide = || async {
                let mut changes = self.store.changes();
                let newer = self.newer().await?;
                let found = self.store.get_many::<Delivery>(keys.clone()).await?;
                for delivery in found.into_iter().flatten() {
                    if newer.contains(&delivery.value.key()) {
                        continue;
                    }
                    if let Some(state) = moved(&delivery, by_ms, now_ms) {
                        let moved = Delivery {
                            state,
                            ..delivery.value.clone()
                        };
                        changes.update(&delivery, &moved);
                    }
                }
                Ok((changes, ()))
            };
            commit(&self.store, Lane::Bulk, decide).await?;
        }
    }

    /// Moves the windows of budgets along.
    async fn move_budgets(&self, by_ms: i64, ownership: &Ownership) -> Result<(), Error> {
        let mut pages = self.store.pages::<BudgetWindow>(Range::under(&[]));
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(()),
                Err(EngineError::Corrupt(why)) => {
                    tracing::error!(why, "not all budgets were adjusted");
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            };
            let owned = page.iter().filter(|it| ownership.has(it.value.destination));
            let keys: Vec<_> = owned.map(|it| it.value.key()).collect();
            let decide = || async {
                let mut changes = self.store.changes();
                let found = self
                    .store
                    .get_readable::<BudgetWindow>(keys.clone())
                    .await?;
                for window in found.0.into_iter().flatten() {
                    let until_ms = window.value.until_ms.saturating_add(by_ms);
                    let moved = BudgetWindow {
                        until_ms,
                        ..window.value.clone()
                    };
                    changes.update(&window, &moved);
                }
                Ok((changes, ()))
            };
            commit(&self.store, Lane::Bulk, decide).await?;
        }
    }

    /// The deliveries that were changed since the last look.
    async fn newer(&self) -> Result<HashSet<Vec<u8>>, Error> {
        let (mut newer, mut place) = (HashSet::new(), self.position);
        // What the log has forgotten was changed long before.
        while let Some(steps) = self.store.engine().log_after(place, PAGE).await? {
            let Some(last) = steps.last() else { break };
            place = last.position;
            let changed = steps.into_iter().flat_map(|step| step.changed);
            let deliveries = changed.filter(|(kind, _)| *kind == Kind::Delivery);
            newer.extend(deliveries.map(|(_, key)| key));
        }
        Ok(newer)
    }
}

/// The state of a delivery after the clock was set; none when it stays as it is.
fn moved(delivery: &Stored<Delivery>, by_ms: i64, now_ms: i64) -> Option<DeliveryState> {
    match delivery.value.state {
        DeliveryState::Retry { due_ms } => Some(DeliveryState::Retry {
            due_ms: due_ms.saturating_add(by_ms),
        }),
        // What is to be reported when the window of a budget ends.
        DeliveryState::Pending { due_ms } if delivery.value.folding == Folding::Alone => {
            Some(DeliveryState::Pending {
                due_ms: due_ms.saturating_add(by_ms),
            })
        }
        // The first attempt is due when it is decided.
        DeliveryState::Pending { due_ms } if due_ms > now_ms => {
            Some(DeliveryState::Pending { due_ms: now_ms })
        }
        _ => None,
    }
}
