//! Decides what waits anew: when it is due, and when what it rests on was edited or is over.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, PoisonError},
};

use futures_util::{
    future::join_all,
    stream::{self, StreamExt as _, TryStreamExt as _},
};
use tokio::sync::Mutex;
use tracing::error;

use crate::{
    decide::{Causes, Silences, Snapshot, Step, StepKind, Transition, freed_key, notify},
    domain::{
        CauseMark, GroupKey, HeldBy, HoldKind, Inhibition, Occurrence, Pending, Progress, RecordId,
        Rule, Status,
    },
    error::Error,
    limits::{LOOK_BATCH, LOOKS_AT_ONCE, TELLS_AT_ONCE},
    ops::{
        asked::settle,
        commit::commit,
        deciding::{Deciding, new_id},
        group::tell::{self, Due},
        intake::Intake,
        loop_guard::Reports,
        revision,
        search::{Filter, NEWEST_FIRST, Walk},
        silence::keeper,
    },
    store::{
        Changes, Direction, EngineError, Index, Lane, Record as _, Standing, Stored,
        engine::Range,
        record::bytes::{Key, id_at, moment_at},
    },
};

/// By rule, the group of what is freed of it at once.
type Together = BTreeMap<RecordId, GroupKey>;

/// Decides what waits anew.
#[derive(Debug)]
pub struct Looks {
    deciding: Deciding,
    intake: Intake,
    seen: Mutex<Seen>,
}

/// What the last look rested on. Nothing is lost with it: what is under way is seen in the store.
#[derive(Debug, Default)]
struct Seen {
    /// Up to which edit of rules and triggers what waits was decided.
    edition: Option<u64>,
    /// The silences that were not over.
    silences: Option<Arc<Silences>>,
}

impl Looks {
    /// Decides what waits in that store; what the service has to say of it goes through the intake.
    pub fn new(deciding: Deciding, intake: Intake) -> Self {
        Self {
            deciding,
            intake,
            seen: Mutex::default(),
        }
    }

    /// Decides everything anew that may not be held any more at this moment.
    ///
    /// # Errors
    /// Those of the store: what was not decided is at the next look.
    pub async fn pass(&self) -> Result<(), Error> {
        let mut seen = self.seen.lock().await;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let now_ms = self.deciding.clock.now_ms();
        let in_force = in_force(&snapshot, now_ms);
        self.free(&in_force).await?;
        let is_edited = seen.edition != Some(snapshot.edition());
        let is_first = seen.edition.is_none();
        let all = snapshot.silences().all().iter();
        let new: Vec<_> = all
            .map(|it| &it.silence)
            .filter(|it| in_force.contains(&(it.id, it.revision)))
            .filter(|it| {
                let is_counted = it.progress.counted_revision == it.revision;
                let is_for_some = !it.rule_names.is_empty();
                !is_counted || is_edited && !is_first && is_for_some
            })
            .collect();
        let all = snapshot.inhibitions().all().iter();
        let unseen = all.map(|it| &it.inhibition);
        let unseen: Vec<_> = unseen
            .filter(|it| it.counted_revision != it.revision)
            .collect();
        if !new.is_empty() || !unseen.is_empty() {
            self.open().await?;
        }
        for inhibition in unseen {
            self.note_counted(inhibition).await?;
        }
        for silence in new {
            let revision = silence.revision;
            let counted = |progress: &mut Progress| progress.counted_revision = revision;
            keeper::note(&self.deciding, silence, &counted, None).await?;
        }
        let all = Key::new().moment(i64::MAX).byte(u8::MAX).build();
        let due = Key::new().moment(now_ms.saturating_add(1)).build();
        let range = |end| Range {
            end: Some(end),
            ..Range::under(&[])
        };
        // A window that begins frees at once what waited for it.
        let is_freed = |it: &HeldBy| {
            let is_over = it.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
            is_over && it.kind == HoldKind::ActiveTimes
        };
        let index = Index::OccurrenceByDue;
        let mut together = Together::new();
        let has_window = |it: &Arc<Rule>| it.active_calendar.is_some() && it.group.is_none();
        if snapshot.rules().iter().any(has_window) {
            together = self.together(index, range(due.clone()), &is_freed).await?;
        }
        let end = if is_edited { all } else { due };
        self.walk(index, range(end), &together).await?;
        *seen = Seen {
            edition: Some(snapshot.edition()),
            silences: Some(Arc::clone(snapshot.silences())),
        };
        Ok(())
    }

    /// Whether rules, triggers or silences were edited since the last look.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn is_outdated(&self) -> Result<bool, Error> {
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let seen = self.seen.lock().await;
        let silences = seen.silences.as_ref();
        let is_same = silences.is_some_and(|seen| Arc::ptr_eq(seen, snapshot.silences()));
        Ok(!is_same || seen.edition != Some(snapshot.edition()))
    }

    /// Decides anew what silences hold or cover that are not in force.
    async fn free(&self, in_force: &BTreeSet<(RecordId, u64)>) -> Result<(), Error> {
        let ids: BTreeSet<_> = in_force.iter().map(|(id, _)| *id).collect();
        for standing in [Standing::Covered, Standing::Pending] {
            let mut range = Range::under(&[standing as u8]);
            loop {
                let engine = self.deciding.store.engine();
                let index = Index::OccurrenceBySilence;
                let next = engine.entries(index, range.clone(), Direction::Ascending, 1);
                let next = next.await?;
                let Some(id) = next.first().and_then(|(key, _)| id_at(key, 1)) else {
                    break;
                };
                let prefix = Key::new().byte(standing as u8).id(id).build();
                let under = Range::under(&prefix);
                if let Some(end) = &under.end {
                    range.start.clone_from(end);
                }
                if !ids.contains(&id) {
                    let is_freed =
                        |it: &HeldBy| it.kind == HoldKind::Silence && !ids.contains(&it.id);
                    let together = self.together(index, under.clone(), &is_freed).await?;
                    self.walk(index, under, &together).await?;
                }
                if under_is_last(&range) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The rules without groups of which so much is freed at once that it is told of as one group: what
    /// of an index waits for nothing else.
    async fn together(
        &self,
        index: Index,
        mut range: Range,
        is_freed: &(dyn Fn(&HeldBy) -> bool + Sync),
    ) -> Result<Together, Error> {
        let store = &self.deciding.store;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let mut counts: BTreeMap<RecordId, usize> = BTreeMap::new();
        loop {
            let (ascending, most) = (Direction::Ascending, LOOK_BATCH);
            let found = store.page_by::<Occurrence>(index, range.clone(), ascending, most);
            let found = found.await?;
            let Some((last, _)) = found.last() else { break };
            range.go_on_after(last);
            let open = found
                .iter()
                .filter(|(_, it)| it.value.status == Status::Open);
            let waiting = open.flat_map(|(_, it)| &it.value.pending);
            let freed = waiting.filter(|it| it.is_opening && it.held_by.iter().all(is_freed));
            for pending in freed {
                *counts.entry(pending.rule).or_default() += 1;
            }
        }
        counts.retain(|rule, count| {
            let rule = snapshot.rule(*rule);
            *count > self.deciding.released_singly_max && rule.is_some_and(|it| it.group.is_none())
        });
        let now_ms = self.deciding.clock.now_ms();
        let key = |rule| (rule, freed_key(rule, now_ms));
        Ok(counts.into_keys().map(key).collect())
    }

    /// Looks through everything that is open, for silences and inhibitions that are new or edited.
    async fn open(&self) -> Result<(), Error> {
        let open = Filter {
            statuses: vec![Status::Open, Status::Suppressed],
            ..Filter::default()
        };
        let store = self.deciding.store.clone();
        let mut walk = Walk::new(&store, &open, NEWEST_FIRST, None);
        loop {
            let places = walk.next_places(LOOK_BATCH).await?;
            if places.is_empty() {
                return Ok(());
            }
            let keys = places.into_iter().map(|(_, key)| key).collect();
            self.step(keys, &Together::new()).await;
            tokio::task::yield_now().await;
        }
    }

    /// Decides what an index leads to, from its first key on.
    async fn walk(&self, index: Index, mut range: Range, together: &Together) -> Result<(), Error> {
        loop {
            let engine = self.deciding.store.engine();
            let most = LOOK_BATCH * LOOKS_AT_ONCE;
            let found = engine.entries(index, range.clone(), Direction::Ascending, most);
            let found = found.await?;
            let Some((last, _)) = found.last() else {
                return Ok(());
            };
            range.go_on_after(last);
            let keys = found.into_iter().map(|(_, record)| record).collect();
            self.step(keys, together).await;
        }
    }

    /// Notes that everything open was looked through for an inhibition.
    async fn note_counted(&self, inhibition: &Inhibition) -> Result<(), Error> {
        let store = &self.deciding.store;
        let decide = async || {
            let mut changes = store.changes();
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

    /// Decides anew what was held by those of the occurrences that are causes no more.
    async fn free_held(&self, found: &[Stored<Occurrence>]) -> Result<(), Error> {
        let store = &self.deciding.store;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        if snapshot.inhibitions().all().is_empty() {
            return Ok(());
        }
        let now_ms = self.deciding.clock.now_ms();
        let is_over = |it: &CauseMark| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        let over = found.iter().map(|it| &it.value);
        for cause in over.filter(|it| it.causes.iter().any(is_over)) {
            let prefix = Key::new().byte(Standing::Inhibited as u8).id(cause.key);
            let mut range = Range::under(&prefix.build());
            let over: Vec<_> = cause.causes.iter().filter(|it| is_over(it)).collect();
            let is_freed = |it: &HeldBy| {
                let mut over = over.iter();
                it.kind == HoldKind::Inhibition && over.any(|mark| mark.inhibition == it.id)
            };
            let index = Index::OccurrenceBySilence;
            let together = self.together(index, range.clone(), &is_freed).await?;
            loop {
                let engine = store.engine();
                let held = engine.entries(index, range.clone(), Direction::Ascending, LOOK_BATCH);
                let held = held.await?;
                let Some((last, _)) = held.last() else { break };
                range.go_on_after(last);
                let keys = held.into_iter().map(|(_, record)| record).collect();
                self.decide_all(keys, None, &together).await;
            }
        }
        Ok(())
    }

    /// Decides some occurrences anew, after what was held by them.
    async fn step(&self, keys: Vec<Vec<u8>>, together: &Together) {
        let freed = async {
            let found = self.read(&keys).await?;
            self.free_held(&found).await?;
            Ok::<_, Error>(found)
        };
        let found = match freed.await {
            Ok(found) => found,
            // They are due for as long as that was not done.
            Err(error) => {
                return error!(%error, "what causes held that are over was not decided anew");
            }
        };
        let told = self.tell(&found).await;
        let is_as_read = told.is_ok();
        let told = told.unwrap_or_else(|error| {
            error!(%error, "a group was not told of");
            BTreeSet::new()
        });
        let mut found = found.into_iter().filter(|it| !told.contains(&it.value.key));
        let batches = std::iter::from_fn(|| {
            let batch: Vec<_> = found.by_ref().take(LOOK_BATCH).collect();
            (!batch.is_empty()).then_some(batch)
        });
        // While one waits for its commit, the next is decided.
        let decided = batches.map(|batch| {
            let keys = batch.iter().map(|it| it.value.key()).collect();
            self.decide_all(keys, is_as_read.then_some(batch), together)
        });
        join_all(decided.collect::<Vec<_>>()).await;
    }

    async fn read(&self, keys: &[Vec<u8>]) -> Result<Vec<Stored<Occurrence>>, EngineError> {
        let store = &self.deciding.store;
        let found = store.get_many::<Occurrence>(keys.to_vec()).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Makes the messages of groups that some of the occurrences wait for and that are due; answers what
    /// was decided with that, and of which nothing else is due.
    async fn tell(&self, found: &[Stored<Occurrence>]) -> Result<BTreeSet<RecordId>, Error> {
        let now_ms = self.deciding.clock.now_ms();
        let is_due = |it: &&Pending| it.due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        let pending = found.iter().flat_map(|it| &it.value.pending);
        let due: BTreeSet<_> = pending.filter(is_due).filter_map(Due::of).collect();
        let tells = due.into_iter().map(|due| self.tell_one(due));
        let tells = stream::iter(tells).buffer_unordered(TELLS_AT_ONCE);
        let told: Vec<_> = tells.try_collect().await?;
        let mut all_told: BTreeSet<_> = told.into_iter().flatten().collect();
        // What else of them is due is decided now.
        for occurrence in found.iter().map(|it| &it.value) {
            let mut due = occurrence.pending.iter().filter(is_due);
            if due.any(|it| Due::of(it).is_none()) || !occurrence.causes.is_empty() {
                all_told.remove(&occurrence.key);
            }
        }
        Ok(all_told)
    }

    /// Makes the message of a group if one is due; answers what was decided with that.
    async fn tell_one(&self, due: Due) -> Result<Vec<RecordId>, Error> {
        let deciding = (&self.deciding, &self.intake);
        let (rest, mut told) = tell::tell(deciding, due).await?;
        told.extend(rest.iter().filter_map(|key| id_at(key, 0)));
        for keys in rest.chunks(LOOK_BATCH) {
            self.decide_all(keys.to_vec(), None, &Together::new()).await;
        }
        Ok(told)
    }

    /// Decides some occurrences anew in one commit, which may be known as they are stored; where that
    /// fails, one by one.
    async fn decide_all(
        &self,
        keys: Vec<Vec<u8>>,
        known: Option<Vec<Stored<Occurrence>>>,
        together: &Together,
    ) {
        let Err(fault) = self.decide(&keys, known, together).await else {
            return;
        };
        error!(error = %fault, "a look at what waits failed; its occurrences are looked at one by one");
        for key in keys {
            if let Err(error) = self.decide(&[key], None, together).await {
                error!(%error, "what waits of an occurrence was not decided anew");
            }
        }
    }

    async fn decide(
        &self,
        keys: &[Vec<u8>],
        known: Option<Vec<Stored<Occurrence>>>,
        together: &Together,
    ) -> Result<(), Error> {
        let store = &self.deciding.store;
        // What was read before is good for the first try.
        let known = std::sync::Mutex::new(known);
        let decide = async || {
            let known = known.lock().unwrap_or_else(PoisonError::into_inner).take();
            let found = match known {
                Some(found) => found,
                None => self.read(keys).await?,
            };
            let causes = Causes::default();
            loop {
                let decided = self.decided(&found, &causes, together).await?;
                if settle(store, &causes).await? {
                    return Ok(decided);
                }
            }
        };
        let (reports, _) = commit(store, Lane::Bulk, decide).await?;
        self.intake.report_all(reports);
        Ok(())
    }

    /// What is to be changed of some occurrences, as far as their causes are known.
    async fn decided(
        &self,
        found: &[Stored<Occurrence>],
        causes: &Causes,
        together: &Together,
    ) -> Result<(Changes, Reports), Error> {
        let store = &self.deciding.store;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let past = revision::past(store, &snapshot, found.iter().map(|it| &it.value)).await?;
        let past = past.asking(causes).freeing(together.clone());
        let now_ms = self.deciding.clock.now_ms();
        let mut changes = store.changes();
        changes.rest_on(snapshot.place());
        let mut reports = Reports::default();
        for stored in found {
            let mut next = stored.value.clone();
            let step = Step {
                kind: StepKind::Look,
                transition: Transition::default(),
                matches: &snapshot.matches(&next),
                now_ms,
                past: &past,
            };
            let notices = notify(&mut next, &step, &snapshot, &mut || new_id(now_ms));
            reports.note(&notices, &next, now_ms);
            for delivery in &notices.deliveries {
                changes.insert(delivery);
            }
            if next != stored.value {
                changes.update(stored, &next);
            }
        }
        Ok((changes, reports))
    }

    /// When something that waits is due that was not at that time, in milliseconds since 1970.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn next_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let range = Range {
            start: Key::new().moment(since_ms.saturating_add(1)).build(),
            end: None,
        };
        let engine = self.deciding.store.engine();
        let first = engine.entries(Index::OccurrenceByDue, range, Direction::Ascending, 1);
        let first = first.await?;
        Ok(first.first().and_then(|(key, _)| moment_at(key, 0)))
    }
}

fn in_force(snapshot: &Snapshot, now_ms: i64) -> BTreeSet<(RecordId, u64)> {
    let all = snapshot.silences().all().iter();
    let all = all.filter(|it| it.is_in_force(now_ms));
    all.map(|it| (it.silence.id, it.silence.revision)).collect()
}

/// Whether a range holds no key any more.
fn under_is_last(range: &Range) -> bool {
    range.end.as_ref().is_some_and(|end| *end <= range.start)
}
