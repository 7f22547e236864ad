//! Re-evaluates held notifications when they are due, and when definitions that they depend on were
//! edited or have ended.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::future::try_join_all;
use tokio::sync::Mutex;

use self::{batch::ReviewBatch, together::JointRelease};
use crate::{
    commit::commit,
    decide::{Responders, Silences, Snapshot},
    decision_context::DecisionContext,
    domain::{HeldBy, HoldKind, Inhibition, Progress, RecordId, ResponseState, Rule, Status},
    error::Error,
    intake::Intake,
    limits::{HOLDS_AT_ONCE, HOLDS_BATCH},
    search::{Filter, IndexWalk, NEWEST_FIRST},
    silence::lifecycle,
    store::{
        Direction, EngineError, Index, Lane, Record as _, SilenceStanding, Store,
        engine::Range,
        record::{
            bytes::{Key, read_id, read_time_ms},
            response_prefix,
        },
    },
};

mod batch;
mod together;

#[derive(Debug)]
pub struct PendingReview {
    deciding: DecisionContext,
    intake: Intake,
    seen: Mutex<LastPass>,
    /// Whether the last pass was skipped because the service was in quiet mode.
    was_quiet: AtomicBool,
}

/// The state that the last pass was based on. It may be lost, because the store contains the work
/// that remains.
#[derive(Debug, Default)]
struct LastPass {
    /// Edition of the rules and triggers that held notifications were last evaluated with.
    edition: Option<u64>,
    silences: Option<Arc<Silences>>,
    responders: Option<Arc<Responders>>,
    /// Whether a part of the evaluation after an edit failed.
    is_left: bool,
}

impl LastPass {
    /// Whether contacts, schedules and policies are unchanged since that pass.
    fn has_responders(&self, snapshot: &Snapshot) -> bool {
        let seen = self.responders.as_ref();
        seen.is_some_and(|seen| Arc::ptr_eq(seen, snapshot.responders()))
    }
}

#[derive(Debug, Clone, Copy)]
enum Scan {
    Marks,
    /// Evaluates the notifications that causes hold.
    Effects,
}

impl PendingReview {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self {
            deciding,
            intake,
            seen: Mutex::default(),
            was_quiet: AtomicBool::default(),
        }
    }

    /// Re-evaluates all notifications that may no longer be held. If a part fails, the others
    /// continue, and the next pass repeats it.
    pub async fn run_once(&self) -> Result<(), Error> {
        let mut seen = self.seen.lock().await;
        let snapshot = self.deciding.ruleset.refresh().await?;
        let is_quiet = snapshot.settings().is_quiet_mode();
        self.was_quiet.store(is_quiet, Ordering::Relaxed);
        if is_quiet {
            return Ok(());
        }
        let now_ms = self.deciding.clock.now_ms();
        let in_force = silences_in_force(&snapshot, now_ms);
        let all = Key::new().time_ms(i64::MAX).byte(u8::MAX).build();
        let due = Key::new().time_ms(now_ms.saturating_add(1)).build();
        let range = |end| Range {
            end: Some(end),
            ..Range::with_prefix(&[])
        };
        let is_edited = seen.is_left || seen.edition != Some(snapshot.edition());
        let is_first = seen.edition.is_none();
        // Escalation comes first: no group, silence or edit may delay the responders.
        let escalated = self.run_due_responses(range(due.clone())).await;
        let freed = self.review_released(&in_force).await;
        let bound = self
            .scan_new_holds((&snapshot, &in_force), is_edited && !is_first)
            .await;
        // Notifications held for an active window are released as soon as it begins.
        let is_freed = |it: &HeldBy| {
            let is_over = it.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
            is_over && it.kind == HoldKind::ActiveTimes
        };
        let index = Index::OccurrenceByDue;
        let mut together = JointRelease::default();
        let has_window = |it: &Arc<Rule>| it.active_calendar.is_some() && it.group.is_none();
        if snapshot.rules().iter().any(has_window) {
            together =
                JointRelease::find(&self.deciding, index, range(due.clone()), &is_freed, false)
                    .await?;
        }
        let decided = self
            .review_range(index, range(due.clone()), &together)
            .await;
        let mut edited = Ok(());
        if is_edited {
            let later = Range {
                start: due,
                end: Some(all),
            };
            edited = self.review_range_once(index, later, &together).await;
        }
        if is_edited || !seen.has_responders(&snapshot) {
            // Neither stopped nor unanswered responses have a due time.
            for state in [ResponseState::Stopped, ResponseState::Active] {
                let range = Range::with_prefix(&response_prefix(state).build());
                let index = Index::OccurrenceByResponse;
                edited = edited.and(self.review_range_once(index, range, &together).await);
            }
        }
        *seen = LastPass {
            edition: Some(snapshot.edition()),
            silences: Some(Arc::clone(snapshot.silences())),
            responders: Some(Arc::clone(snapshot.responders())),
            is_left: edited.is_err(),
        };
        escalated.and(freed).and(bound).and(decided).and(edited)
    }

    async fn run_due_responses(&self, mut due: Range) -> Result<(), Error> {
        use ResponseState::{Acknowledged, Active, Held};
        let mut in_progress = HashSet::new();
        for state in [Active, Held, Acknowledged] {
            let mut range = Range::with_prefix(&response_prefix(state).build());
            let index = Index::OccurrenceByResponse;
            while let Some(records) = self.next_keys(index, &mut range).await? {
                in_progress.extend(records);
            }
        }
        let mut escalated = Ok(());
        if in_progress.is_empty() {
            return escalated;
        }
        while let Some(mut records) = self.next_keys(Index::OccurrenceByDue, &mut due).await? {
            records.retain(|it| in_progress.contains(it));
            let batch = self.new_batch().run_responses(records).await;
            escalated = escalated.and(batch);
        }
        escalated
    }

    /// Scans all open occurrences for new or edited silences and inhibitions, and records that they
    /// have been scanned.
    async fn scan_new_holds(
        &self,
        (snapshot, in_force): (&Snapshot, &BTreeSet<(RecordId, u64)>),
        is_edited: bool,
    ) -> Result<(), Error> {
        let all = snapshot.silences().as_slice().iter();
        let new: Vec<_> = all
            .map(|it| &it.silence)
            .filter(|it| in_force.contains(&(it.id, it.revision)))
            .filter(|it| {
                let is_counted = it.progress.counted_revision == it.revision;
                let is_for_some = !it.rule_names.is_empty();
                !is_counted || is_edited && is_for_some
            })
            .collect();
        let all = snapshot.inhibitions().as_slice().iter();
        let unseen = all.map(|it| &it.inhibition);
        let unseen: Vec<_> = unseen
            .filter(|it| it.counted_revision != it.revision)
            .collect();
        let marked: BTreeSet<_> = unseen.iter().map(|it| (it.id, it.revision)).collect();
        if !marked.is_empty() {
            // Mark all causes before evaluating any of their effects.
            self.scan_open(&self.new_batch(), Scan::Marks).await?;
        }
        if !new.is_empty() || !marked.is_empty() {
            let batch = self.new_batch().with_marked_inhibitions(marked);
            self.scan_open(&batch, Scan::Effects).await?;
        }
        let noted = unseen.into_iter().map(|it| self.record_counted(it));
        try_join_all(noted).await?;
        let counted = new.into_iter().map(async |silence| {
            let revision = silence.revision;
            let counted = |progress: &mut Progress| progress.counted_revision = revision;
            lifecycle::update_progress(&self.deciding, silence, &counted, None).await
        });
        try_join_all(counted).await?;
        Ok(())
    }

    /// Returns whether rules, triggers, silences, or the receivers of policies were edited since
    /// the last pass.
    pub async fn is_outdated(&self) -> Result<bool, Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        let is_quiet = snapshot.settings().is_quiet_mode();
        if is_quiet || self.was_quiet.load(Ordering::Relaxed) {
            return Ok(!is_quiet);
        }
        let seen = self.seen.lock().await;
        let silences = seen.silences.as_ref();
        let is_same = silences.is_some_and(|seen| Arc::ptr_eq(seen, snapshot.silences()));
        let is_edited = seen.edition != Some(snapshot.edition());
        Ok(!is_same || is_edited || !seen.has_responders(&snapshot))
    }

    /// Evaluates notifications that were held by silences that are no longer in force.
    async fn review_released(&self, in_force: &BTreeSet<(RecordId, u64)>) -> Result<(), Error> {
        let ids: BTreeSet<_> = in_force.iter().map(|(id, _)| *id).collect();
        let standings = [
            SilenceStanding::Covered,
            SilenceStanding::Pending,
            SilenceStanding::Response,
        ];
        let ids = &ids;
        let read =
            |store: Store, standing| async move { released_ranges(&store, standing, ids).await };
        let found = self.deciding.store.read_each(standings, read).await?;
        let mut freed = Ok(());
        for under in found.into_iter().flatten() {
            let is_freed = |it: &HeldBy| it.kind == HoldKind::Silence && !ids.contains(&it.id);
            let index = Index::OccurrenceBySilence;
            let range = under.clone();
            let together =
                JointRelease::find(&self.deciding, index, range, &is_freed, true).await?;
            freed = freed.and(self.review_range(index, under, &together).await);
        }
        freed
    }

    async fn scan_open(&self, batch: &ReviewBatch<'_>, scan: Scan) -> Result<(), Error> {
        let mut scanned = Ok(());
        let open = Filter {
            statuses: vec![Status::Open, Status::Suppressed],
            ..Filter::default()
        };
        let store = self.deciding.store.clone();
        let mut walk = IndexWalk::new(&store, &open, NEWEST_FIRST, None);
        loop {
            let places = walk.next_positions(HOLDS_BATCH).await?;
            if places.is_empty() {
                return scanned;
            }
            let keys: Vec<_> = places.into_iter().map(|(_, key)| key).collect();
            let done = match scan {
                Scan::Marks => batch.mark_sources(&keys).await,
                Scan::Effects => {
                    batch
                        .review_occurrences(keys, &JointRelease::default())
                        .await
                }
            };
            scanned = scanned.and(done);
            tokio::task::yield_now().await;
        }
    }

    /// Evaluates all records in a range of an index. A record that moves to a later key within the
    /// range is evaluated again, for example if both its delay and its group's wait have ended.
    async fn review_range(
        &self,
        index: Index,
        mut range: Range,
        together: &JointRelease,
    ) -> Result<(), Error> {
        let mut walked = Ok(());
        while let Some(records) = self.next_keys(index, &mut range).await? {
            let batch = self.new_batch().review_occurrences(records, together).await;
            walked = walked.and(batch);
        }
        walked
    }

    /// Like [`Self::review_range`], for ranges that extend beyond the current time; evaluates each
    /// record once. Records whose key moves with the clock, such as under a silence that would
    /// begin now, would otherwise be evaluated endlessly.
    async fn review_range_once(
        &self,
        index: Index,
        mut range: Range,
        together: &JointRelease,
    ) -> Result<(), Error> {
        let (mut decided, mut walked) = (HashSet::new(), Ok(()));
        while let Some(mut records) = self.next_keys(index, &mut range).await? {
            records.retain(|it| decided.insert(it.clone()));
            let batch = self.new_batch().review_occurrences(records, together).await;
            walked = walked.and(batch);
        }
        walked
    }

    async fn next_keys(
        &self,
        index: Index,
        range: &mut Range,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let engine = self.deciding.store.engine();
        let most = HOLDS_BATCH * HOLDS_AT_ONCE;
        let found = engine.entries(index, range.clone(), Direction::Ascending, most);
        let found = found.await?;
        let Some((last, _)) = found.last() else {
            return Ok(None);
        };
        range.exclude_through(last);
        Ok(Some(found.into_iter().map(|(_, record)| record).collect()))
    }

    fn new_batch(&self) -> ReviewBatch<'_> {
        ReviewBatch::new(&self.deciding, &self.intake)
    }

    async fn record_counted(&self, inhibition: &Inhibition) -> Result<(), Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let mut changes = store.new_changes();
            let stored = store.get::<Inhibition>(inhibition.key()).await?;
            if let Some(stored) = stored.filter(|it| it.value.id == inhibition.id) {
                let mut next = stored.value.clone();
                next.counted_revision = inhibition.revision;
                changes.update(&stored, &next);
            }
            Ok((changes, ()))
        };
        commit(store, Lane::Admin, decide).await?;
        Ok(())
    }

    /// Returns the first time after `since_ms` at which a held notification is due, in milliseconds
    /// since the epoch.
    pub async fn next_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let range = Range {
            start: Key::new().time_ms(since_ms.saturating_add(1)).build(),
            end: None,
        };
        let engine = self.deciding.store.engine();
        let first = engine.entries(Index::OccurrenceByDue, range, Direction::Ascending, 1);
        let first = first.await?;
        Ok(first.first().and_then(|(key, _)| read_time_ms(key, 0)))
    }
}

fn silences_in_force(snapshot: &Snapshot, now_ms: i64) -> BTreeSet<(RecordId, u64)> {
    let all = snapshot.silences().as_slice().iter();
    let all = all.filter(|it| it.is_in_force(now_ms));
    all.map(|it| (it.silence.id, it.silence.revision)).collect()
}

/// Returns the index ranges of silences that have entries but are not in force.
async fn released_ranges(
    store: &Store,
    standing: SilenceStanding,
    in_force: &BTreeSet<RecordId>,
) -> Result<Vec<Range>, EngineError> {
    let mut range = Range::with_prefix(&[standing as u8]);
    let mut released = Vec::new();
    loop {
        let (index, ascending) = (Index::OccurrenceBySilence, Direction::Ascending);
        let engine = store.engine();
        let page = engine.entries(index, range.clone(), ascending, HOLDS_BATCH);
        let page = page.await?;
        let mut ids: Vec<_> = page.iter().filter_map(|(key, _)| read_id(key, 1)).collect();
        ids.dedup();
        for id in &ids {
            let under = Range::with_prefix(&Key::new().byte(standing as u8).id(*id).build());
            // Skip the remaining entries of the last silence.
            range.start = under.end.clone().unwrap_or_default();
            if !in_force.contains(id) {
                released.push(under);
            }
        }
        let is_end = range.end.as_ref().is_some_and(|end| *end <= range.start);
        if page.len() < HOLDS_BATCH || ids.is_empty() || is_end {
            return Ok(released);
        }
    }
}
