//! Bulk operations on deliveries: counting, retrying and cancelling in small commits.

use std::collections::{BTreeMap, BTreeSet};

use super::{Deliveries, Filter, cancelled_delivery, resend::Templates, sequencing};
use crate::{
    commit::commit,
    decision_context::new_id,
    domain::{Delivery, DeliveryState, RecordId},
    error::Error,
    limits::{BULK_COUNTED_MAX, BULK_STEP, DELIVERIES_SCANNED_MAX},
    page::TokenScope,
    scan,
    store::{Changes, Lane, Store, Stored},
    tag_scope::check_delivery_owner,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkAction {
    /// Sends ended deliveries again unless that was already done, and makes waiting ones due.
    Retry,
    Cancel,
}

#[derive(Debug, Clone)]
pub enum Selection {
    /// Explicit ids, all handled in one call.
    Ids(Vec<RecordId>),
    /// All that match a filter, newest first. Without states: the dead ones for
    /// [`BulkAction::Retry`], and all that have not ended for [`BulkAction::Cancel`].
    Matching {
        filter: Filter,
        /// Maximum number handled per call; ignored in dry runs.
        limit: usize,
        token: String,
    },
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct BulkTally {
    pub count: usize,
    pub destinations: BTreeMap<String, usize>,
    pub skipped: BTreeMap<SkipReason, usize>,
    /// Each delivery handled, with the delivery that will be attempted for it; empty in dry runs.
    pub handled: Vec<(RecordId, RecordId)>,
    pub next_token: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SkipReason {
    NotFound,
    Test,
    UnderWay,
    RetriedAlready,
    DestinationGone,
    Ended,
    Shadowed,
    Folded,
}

#[derive(Default)]
struct BulkStep {
    tally: BulkTally,
    last: Option<RecordId>,
}

impl BulkStep {
    fn record_skip(&mut self, why: SkipReason) {
        *self.tally.skipped.entry(why).or_default() += 1;
    }

    fn handle(&mut self, old: &Delivery, new: RecordId) {
        self.tally.count += 1;
        let name = old.destination_name.clone();
        *self.tally.destinations.entry(name).or_default() += 1;
        self.tally.handled.push((old.id, new));
    }
}

impl BulkTally {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        for (name, count) in other.destinations {
            *self.destinations.entry(name).or_default() += count;
        }
        for (why, count) in other.skipped {
            *self.skipped.entry(why).or_default() += count;
        }
        self.handled.extend(other.handled);
    }
}

impl Deliveries {
    /// Applies an action to many deliveries, or only counts them with `dry_run`.
    ///
    /// Deliveries are handled in small commits. If a call fails or is dropped, earlier commits
    /// remain; repeating the call does not handle these deliveries again.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] for a token of another selection, [`Error::PermissionDenied`] if
    /// the caller may not act on one of the deliveries, and an error if the store fails.
    pub async fn bulk(
        &self,
        action: BulkAction,
        selection: Selection,
        dry_run: bool,
    ) -> Result<BulkTally, Error> {
        let mut tally = match selection {
            Selection::Ids(mut ids) => {
                ids.sort_unstable();
                ids.dedup();
                let mut tally = BulkTally::default();
                for ids in ids.chunks(BULK_STEP) {
                    let step = self
                        .process_batch(action, ids, None, usize::MAX, dry_run)
                        .await?;
                    tally.add(step.tally);
                }
                tally
            }
            Selection::Matching {
                filter,
                limit,
                token,
            } => {
                let filter = with_default_states(action, filter);
                let limit = if dry_run { usize::MAX } else { limit };
                self.bulk_matching(action, &filter, limit, &token, dry_run)
                    .await?
            }
        };
        if dry_run {
            tally.handled.clear();
        }
        Ok(tally)
    }

    async fn bulk_matching(
        &self,
        action: BulkAction,
        filter: &Filter,
        limit: usize,
        token: &str,
        dry_run: bool,
    ) -> Result<BulkTally, Error> {
        let scope = scope(action, filter, dry_run);
        let scanned_max = if dry_run {
            BULK_COUNTED_MAX
        } else {
            DELIVERIES_SCANNED_MAX
        };
        let mut reach = filter.id_range(scope.last_key(token)?.as_deref());
        // Excludes deliveries created by this call.
        let now = RecordId::first_at_time(self.clock.now_ms().try_into().unwrap_or(0));
        reach.below = Some(reach.below.map_or(now, |below| below.min(now)));
        let walk = self.choose_walk(filter).await?;
        let mut tally = BulkTally::default();
        let mut scanned = 0;
        loop {
            let ids = self.newest_ids(&walk, reach, BULK_STEP).await?;
            let left = limit.saturating_sub(tally.count);
            let step = self
                .process_batch(action, &ids, Some(filter), left, dry_run)
                .await?;
            tally.add(step.tally);
            scanned += ids.len();
            reach.below = step.last.or(reach.below);
            let is_end = ids.len() < BULK_STEP && step.last == ids.last().copied();
            if is_end {
                return Ok(tally);
            }
            if let Some(last) = reach.below
                && (tally.count >= limit || scanned >= scanned_max)
            {
                tally.next_token = scope.encode_token(&last.to_bytes());
                return Ok(tally);
            }
        }
    }

    async fn process_batch(
        &self,
        action: BulkAction,
        ids: &[RecordId],
        filter: Option<&Filter>,
        limit: usize,
        dry_run: bool,
    ) -> Result<BulkStep, Error> {
        let keys: Vec<Vec<u8>> = ids.iter().map(|id| id.to_bytes().into()).collect();
        let decide = || async {
            let found = self.store.get_many::<Delivery>(keys.clone()).await?;
            let mut batch = Batch {
                store: self.store.clone(),
                again: BTreeSet::new(),
                templates: Templates::new(&self.store),
                changes: self.store.new_changes(),
                now_ms: self.clock.now_ms(),
                dry_run,
                step: BulkStep::default(),
            };
            for (id, old) in ids.iter().zip(found) {
                scan::yield_if_needed().await;
                if batch.step.tally.count >= limit {
                    break;
                }
                batch.step.last = Some(*id);
                match (old, filter) {
                    // The delivery was deleted after the index was read.
                    (None, Some(_)) => {}
                    (None, None) => batch.step.record_skip(SkipReason::NotFound),
                    (Some(old), Some(filter)) if !filter.matches(&old.value) => {}
                    (Some(old), _) => {
                        let changes = (&self.store, &mut batch.changes);
                        check_delivery_owner(changes, &old.value).await?;
                        batch.handle_delivery(action, &old).await?;
                    }
                }
            }
            Ok((batch.changes, batch.step))
        };
        let (step, _) = commit(&self.store, Lane::Bulk, decide).await?;
        Ok(step)
    }
}

struct Batch<'a> {
    store: Store,
    again: BTreeSet<RecordId>,
    templates: Templates<'a>,
    changes: Changes,
    now_ms: i64,
    dry_run: bool,
    step: BulkStep,
}

impl Batch<'_> {
    async fn handle_delivery(
        &mut self,
        action: BulkAction,
        old: &Stored<Delivery>,
    ) -> Result<(), Error> {
        if old.value.test {
            self.step.record_skip(SkipReason::Test);
            return Ok(());
        }
        match action {
            BulkAction::Retry => self.retry_delivery(old).await,
            BulkAction::Cancel => {
                self.cancel_delivery(old);
                Ok(())
            }
        }
    }

    async fn retry_delivery(&mut self, old: &Stored<Delivery>) -> Result<(), Error> {
        let id = old.value.id;
        if old.value.state == DeliveryState::Shadowed {
            self.step.record_skip(SkipReason::Shadowed);
        } else if old.value.folding.digest_id().is_some() {
            self.step.record_skip(SkipReason::Folded);
        } else if let DeliveryState::Leased { .. } = old.value.state {
            self.step.record_skip(SkipReason::UnderWay);
        } else if let Some(hastened) = super::make_due(&old.value, self.now_ms) {
            self.step.handle(&old.value, id);
            if !self.dry_run {
                self.changes.update(old, &hastened);
            }
        } else if old.value.retried_as.is_some() || self.again.contains(&id) {
            self.step.record_skip(SkipReason::RetriedAlready);
        } else if !self.templates.has_destination(&old.value).await? {
            self.step.record_skip(SkipReason::DestinationGone);
        } else {
            return self.resend_delivery(old).await;
        }
        Ok(())
    }

    /// Sends an ended delivery again. If a later message of its thread contradicts the delivery
    /// about whether the thread is over, sends that message again as well, afterwards.
    async fn resend_delivery(&mut self, old: &Stored<Delivery>) -> Result<(), Error> {
        let last = sequencing::newest_message(&self.store, &old.value).await?;
        let state = last.as_ref().map(|it| it.value.state);
        if let Some(DeliveryState::Leased { .. }) = state {
            self.step.record_skip(SkipReason::UnderWay);
            return Ok(());
        }
        let last = last.filter(|_| state == Some(DeliveryState::Delivered));
        for old in [Some(old), last.as_ref()].into_iter().flatten() {
            if !self.again.insert(old.value.id) {
                continue;
            }
            let new = new_id(self.now_ms);
            self.step.handle(&old.value, new);
            if !self.dry_run {
                self.templates
                    .resend(&mut self.changes, old, new, self.now_ms)
                    .await?;
            }
        }
        Ok(())
    }

    fn cancel_delivery(&mut self, old: &Stored<Delivery>) {
        if old.value.state.due_ms().is_none() {
            self.step.record_skip(SkipReason::Ended);
            return;
        }
        self.step.handle(&old.value, old.value.id);
        if !self.dry_run {
            self.changes
                .update(old, &cancelled_delivery(&old.value, self.now_ms));
        }
    }
}

fn with_default_states(action: BulkAction, filter: Filter) -> Filter {
    let names_states = filter.condition.as_ref().is_some_and(|it| it.names_states);
    if !filter.states.is_empty() || names_states {
        return filter;
    }
    let due_ms = 0;
    let states = match action {
        BulkAction::Retry => vec![DeliveryState::Dead],
        BulkAction::Cancel => vec![
            DeliveryState::Pending { due_ms },
            DeliveryState::Leased { until_ms: due_ms },
            DeliveryState::Retry { due_ms },
        ],
    };
    Filter {
        states: states.into_iter().map(DeliveryState::number).collect(),
        ..filter
    }
}

/// A page token is only valid for the same action and filter; that of a dry run, only for dry runs.
fn scope(action: BulkAction, filter: &Filter, dry_run: bool) -> TokenScope {
    let word = match action {
        BulkAction::Retry => "retry",
        BulkAction::Cancel => "cancel",
    };
    let run = if dry_run { "dry" } else { "wet" };
    filter.scope().with_field("action", [word, run])
}
