//! Enforcement of budgets in a commit. The first delivery over budget waits for the end of the
//! window. Once there is a second one, deliveries are folded into a digest.
//!
//! A digest exists from the first delivery folded into it. At the end of its window it is due like
//! any other delivery.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::try_join;

use super::{CommitPlan, Ledger};
use crate::{
    clock::to_millis,
    delivery::queues::Queues,
    domain::{
        BudgetWindow, Content, Delivery, DeliveryState, Destination, DigestContent,
        DigestMembership, RecordId, delivery::RuleContent,
    },
    ops::decision_context::new_id,
    send::supports_digests,
    store::{EngineError, Store, Stored},
};

/// The budgets involved in a commit, by destination. `None` for an unreadable budget, which does
/// not limit deliveries.
pub(super) type Budgets = BTreeMap<RecordId, Option<BudgetUse>>;

#[derive(Debug)]
pub(super) struct BudgetUse {
    stored: Option<Stored<BudgetWindow>>,
    window: BudgetWindow,
    beyond: Vec<Stored<Delivery>>,
}

impl BudgetUse {
    /// Starts a new window if the last one has ended.
    fn roll_window(&mut self, per: Duration, now_ms: i64) {
        let until_ms = self.window.until_ms;
        let begun_ms = until_ms.saturating_sub(to_millis(per));
        if (begun_ms..until_ms).contains(&now_ms) {
            return;
        }
        self.window = BudgetWindow {
            until_ms: now_ms.saturating_add(to_millis(per)),
            dead: std::mem::take(&mut self.window.dead),
            ..empty_window(self.window.destination)
        };
    }
}

fn empty_window(destination: RecordId) -> BudgetWindow {
    BudgetWindow {
        destination,
        until_ms: i64::MIN,
        sent: 0,
        held: None,
        digest: None,
        dead: Vec::new(),
    }
}

impl CommitPlan {
    pub(super) fn spend_budget(&mut self, destination: RecordId) {
        if let Some(Some(spending)) = self.budgets.get_mut(&destination) {
            spending.window.sent += 1;
        }
    }
}

impl Ledger {
    /// Whether a due delivery is within the budget of its destination. Others are processed by
    /// [`Ledger::plan_budgets`]. A delivery that follows another one into a digest belongs to that
    /// digest while it is open, regardless of the budget.
    pub(super) fn is_within_budget(
        &self,
        plan: &mut CommitPlan,
        delivery: &Stored<Delivery>,
        destination: &Destination,
        behind: Option<RecordId>,
    ) -> bool {
        let budget = destination.delivery.budget;
        // Earlier versions may have stored budgets that are rejected when saved today.
        let Some(budget) = budget.filter(|_| supports_digests(&destination.kind)) else {
            return true;
        };
        let is_counted = delivery.value.folding == DigestMembership::Open
            && delivery.value.attempts == 0
            && delivery.value.retry_of.is_none()
            && !delivery.value.content.is_drill();
        if !is_counted {
            return true;
        }
        let now_ms = self.clock.now_ms();
        let is_begun = behind.is_some_and(|digest| plan.due.contains(&digest));
        let Some(Some(spending)) = plan.budgets.get_mut(&destination.id) else {
            return true;
        };
        spending.roll_window(budget.per, now_ms);
        let is_within = if let Some(digest) = behind {
            is_begun || spending.window.digest != Some(digest)
        } else {
            let severity = delivery.value.content.occurrence.severity;
            budget.allows_another(spending.window.sent, severity)
        };
        if !is_within {
            spending.beyond.push(delivery.clone());
        }
        is_within
    }

    pub(super) async fn plan_budgets(
        &self,
        plan: &mut CommitPlan,
        queues: &Queues,
    ) -> Result<(), EngineError> {
        let dead = plan.dead_digests.clone();
        let destinations = dead.iter().map(|(destination, _)| *destination);
        self.read_budgets(plan, destinations.collect()).await?;
        for (destination, digest) in dead {
            if let Some(Some(spending)) = plan.budgets.get_mut(&destination) {
                spending.window.dead.push(digest);
            }
        }
        let budgets = std::mem::take(&mut plan.budgets);
        let budgets = budgets.into_iter();
        let budgets: Vec<_> = budgets.filter_map(|(id, it)| Some((id, it?))).collect();
        let exceeded = budgets.iter().filter(|(_, it)| !it.beyond.is_empty());
        let due = &plan.due;
        let read = |store: Store, window: &BudgetWindow| {
            let (digest, held) = (window.digest, window.held);
            async move {
                let digest = find_waiting(&store, due, digest);
                try_join(digest, find_waiting(&store, due, held)).await
            }
        };
        let windows = exceeded.map(|(_, it)| &it.window);
        let waiting = self.store.read_each(windows, read).await?;
        let mut waiting = waiting.into_iter();
        for (id, mut spending) in budgets {
            if !spending.beyond.is_empty()
                && let Some(waiting) = waiting.next()
                && let Some(destination) = queues.destination(id)
            {
                self.fold_into_digest(plan, &mut spending, destination, waiting);
            }
            match &spending.stored {
                Some(stored) if stored.value == spending.window => {}
                Some(stored) => plan.changes.update(stored, &spending.window),
                None => plan.changes.insert(&spending.window),
            }
        }
        Ok(())
    }

    pub(super) async fn read_budgets(
        &self,
        plan: &mut CommitPlan,
        mut destinations: BTreeSet<RecordId>,
    ) -> Result<(), EngineError> {
        destinations.retain(|id| !plan.budgets.contains_key(id));
        let keys = destinations.iter().map(|id| id.to_bytes().into()).collect();
        let (found, unreadable) = self.store.get_readable::<BudgetWindow>(keys).await?;
        for (destination, stored) in destinations.into_iter().zip(found) {
            let is_unreadable = unreadable
                .iter()
                .any(|key| key[..] == destination.to_bytes()[..]);
            let window = stored.as_ref().map(|it| it.value.clone());
            let spending = BudgetUse {
                stored,
                window: window.unwrap_or_else(|| empty_window(destination)),
                beyond: Vec::new(),
            };
            let spending = (!is_unreadable).then_some(spending);
            plan.budgets.insert(destination, spending);
        }
        Ok(())
    }

    /// Makes the first delivery over budget wait, because no other may follow, and folds further
    /// ones into a digest.
    fn fold_into_digest(
        &self,
        plan: &mut CommitPlan,
        spending: &mut BudgetUse,
        destination: &Destination,
        (open, held): (Option<Stored<Delivery>>, Option<Stored<Delivery>>),
    ) {
        let BudgetUse { window, beyond, .. } = spending;
        let until_ms = window.until_ms;
        plan.leave_for_later(destination.id, until_ms);
        if let ([only], None, None) = (&beyond[..], &open, &held) {
            window.held = Some(only.value.id);
            let held = Delivery {
                state: DeliveryState::Pending { due_ms: until_ms },
                folding: DigestMembership::Alone,
                ..only.value.clone()
            };
            plan.changes.update(only, &held);
            return;
        }
        let now_ms = self.clock.now_ms();
        let mut content = match open.as_ref().and_then(|it| it.value.content.digest.clone()) {
            Some(content) => content,
            None => DigestContent::new(new_id(now_ms)),
        };
        for delivery in held.iter().chain(&*beyond) {
            let Delivery {
                content: reported,
                create_ms,
                ..
            } = &delivery.value;
            content.add_item(reported.digest_item(*create_ms));
            let folded = fold_delivery(&delivery.value, content.id, now_ms);
            plan.changes.update(delivery, &folded);
        }
        window.held = None;
        window.digest = Some(content.id);
        let digest = digest_delivery(content, destination, until_ms, now_ms);
        match &open {
            None => plan.changes.insert(&digest),
            Some(open) => {
                let digest = Delivery {
                    create_ms: open.value.create_ms,
                    ..digest
                };
                plan.changes.update(open, &digest);
            }
        }
    }
}

/// Finds a delivery that waits for the end of a window and is not started by this commit.
async fn find_waiting(
    store: &Store,
    due: &DueIds,
    id: Option<RecordId>,
) -> Result<Option<Stored<Delivery>>, EngineError> {
    let id = id.filter(|id| !due.contains(id));
    let key = id.map(|id| id.to_bytes().into());
    let (found, _) = store
        .get_readable::<Delivery>(key.into_iter().collect())
        .await?;
    let found = found.into_iter().flatten().next();
    Ok(found.filter(|it| {
        let is_pending = matches!(it.value.state, DeliveryState::Pending { .. });
        is_pending && it.value.attempts == 0
    }))
}

pub(super) type DueIds = BTreeSet<RecordId>;

fn fold_delivery(delivery: &Delivery, digest: RecordId, now_ms: i64) -> Delivery {
    Delivery {
        state: DeliveryState::Folded,
        end_ms: Some(now_ms),
        folding: DigestMembership::Into(digest),
        ..delivery.clone()
    }
}

fn digest_delivery(
    content: DigestContent,
    destination: &Destination,
    due_ms: i64,
    now_ms: i64,
) -> Delivery {
    let clear = content.clear_count == content.count;
    Delivery {
        state: DeliveryState::Pending { due_ms },
        folding: DigestMembership::Alone,
        ..Delivery::new(
            content.id,
            (destination.id, destination.name.to_string()),
            Content {
                clear,
                occurrence: content.most_severe().clone(),
                rule: RuleContent::default(),
                trigger: None,
                destination_kind: destination.kind.clone(),
                template_language: destination.template_language,
                group: None,
                thread: None,
                digest: Some(content),
                contact: None,
                previous: None,
            },
            now_ms,
        )
    }
}
