//! The sources of inhibitions and the groups, as far as they were read for a decision, and what else
//! it asked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::domain::{CauseMark, GroupRef, Occurrence, RecordId, inhibition::EqualValues};

/// Where sources are found: the inhibition, and what its fields hold.
pub type CauseKey = (RecordId, EqualValues);

/// What was asked for and is not known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CauseQuery {
    /// Whether it is to be known whether any inhibition has a source.
    pub any: bool,
    /// Inhibitions of which it is not known whether they have any source.
    pub inhibitions: BTreeSet<RecordId>,
    /// Where sources are to be found.
    pub keys: BTreeSet<CauseKey>,
    /// Groups.
    pub groups: BTreeSet<GroupRef>,
}

/// A group as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupAt {
    /// When its last message was decided that is not `clear`, in milliseconds since 1970.
    pub notified_ms: i64,
    /// When the next message goes out at the earliest, in milliseconds since 1970.
    pub next_ms: i64,
    /// Whether something of it is open, or about to join.
    pub is_open: bool,
    /// Whether its end was reported.
    pub is_over: bool,
}

/// The sources and groups that decisions ask for. What is not known is noted, and taken for
/// nothing: the decision reads it and is made again, until everything is known. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Causes(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    /// Whether any inhibition has a source. Mostly none has, and then no target is looked at.
    has_any: Option<bool>,
    /// Whether an inhibition has any source. Most have none at a time, and then no one has to look
    /// for those of each target.
    has_sources: BTreeMap<RecordId, bool>,
    known: BTreeMap<CauseKey, Known>,
    /// The results of this decision for occurrences, whatever is stored.
    decided: BTreeMap<RecordId, Arc<Occurrence>>,
    /// The same by where they are found.
    decided_under: BTreeMap<CauseKey, BTreeSet<RecordId>>,
    /// The inhibitions that these are, or were, sources of.
    decided_of: BTreeSet<RecordId>,
    /// Those of them that are known as they are after the whole request that is decided.
    foreseen: BTreeSet<RecordId>,
    groups: BTreeMap<GroupRef, Option<GroupAt>>,
    wanted: CauseQuery,
    /// The number of decisions made with them.
    rounds: usize,
}

/// Sources as far as they were read, in the order in which they were opened.
#[derive(Debug, Default)]
struct Known {
    found: Vec<Arc<Occurrence>>,
    /// Whether there may be more.
    has_more: bool,
}

/// The sources under a key that hold something.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// As far as they are known.
    pub(super) found: Vec<Arc<Occurrence>>,
    /// Whether there may be more.
    pub(super) has_more: bool,
}

impl Inner {
    fn decide(&mut self, occurrence: Occurrence) {
        let key = occurrence.key;
        let of = occurrence.causes.iter().map(|it| it.inhibition);
        self.decided_of.extend(of);
        for under in occurrence.causes.iter().map(CauseMark::key) {
            self.decided_under.entry(under).or_default().insert(key);
        }
        let Some(before) = self.decided.insert(key, Arc::new(occurrence)) else {
            return;
        };
        let after = &self.decided[&key].causes;
        let is_gone = |it: &&CauseMark| !after.iter().any(|mark| mark.key() == it.key());
        for mark in before.causes.iter().filter(is_gone) {
            if let Some(keys) = self.decided_under.get_mut(&mark.key()) {
                keys.remove(&key);
            }
        }
    }
}

impl Causes {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any inhibition may have sources.
    pub(super) fn may_have_any(&self) -> bool {
        let mut inner = self.inner();
        if !inner.decided_of.is_empty() {
            return true;
        }
        inner.wanted.any |= inner.has_any.is_none();
        inner.has_any.unwrap_or(false)
    }

    /// Whether an inhibition may have sources.
    pub(super) fn may_have(&self, inhibition: RecordId) -> bool {
        let mut inner = self.inner();
        if inner.decided_of.contains(&inhibition) {
            return true;
        }
        if inner.has_any == Some(false) {
            return false;
        }
        let known = inner.has_sources.get(&inhibition).copied();
        if known.is_none() {
            inner.wanted.inhibitions.insert(inhibition);
        }
        known.unwrap_or(false)
    }

    /// Returns the sources under a key that hold something; requests more where none of those read does.
    pub(super) fn of(&self, key: CauseKey, holds: impl Fn(&Occurrence) -> bool) -> Sources {
        let mut inner = self.inner();
        let under = inner.decided_under.get(&key).into_iter().flatten();
        let decided = under.filter_map(|it| inner.decided.get(it)).cloned();
        let mut found: Vec<_> = decided.collect();
        let known = inner.known.get(&key);
        let has_more = known.is_some_and(|it| it.has_more);
        let known = known.into_iter().flat_map(|it| &it.found);
        let is_new = |it: &&Arc<Occurrence>| !inner.decided.contains_key(&it.key);
        found.extend(known.filter(is_new).cloned());
        found.retain(|it| holds(it));
        if has_more && found.is_empty() || !inner.known.contains_key(&key) {
            inner.wanted.keys.insert(key);
        }
        Sources { found, has_more }
    }

    /// Has more sources read that are found under a key.
    pub(super) fn want_more(&self, key: CauseKey) {
        self.inner().wanted.keys.insert(key);
    }

    /// Returns the number of sources that were read under a key.
    pub fn known_under(&self, key: &CauseKey) -> usize {
        let inner = self.inner();
        inner.known.get(key).map_or(0, |it| it.found.len())
    }

    /// Notes what a decision makes of an occurrence that is a source, or was one before. What is known
    /// of it after the whole request stays.
    pub(super) fn decide(&self, occurrence: &Occurrence) {
        let mut inner = self.inner();
        if !inner.foreseen.contains(&occurrence.key) {
            inner.decide(occurrence.clone());
        }
    }

    /// Begins to decide a request as a whole, after others.
    pub fn begin_request(&self) {
        self.inner().foreseen.clear();
    }

    /// Notes what the request that is decided makes of an occurrence that is a source, or was one
    /// before.
    pub fn foresee(&self, occurrence: Occurrence) {
        let mut inner = self.inner();
        inner.foreseen.insert(occurrence.key);
        inner.decide(occurrence);
    }

    /// The group that is asked for; none when there is none.
    pub(super) fn group(&self, ask: GroupRef) -> Option<GroupAt> {
        let mut inner = self.inner();
        let known = inner.groups.get(&ask).copied();
        if known.is_none() {
            inner.wanted.groups.insert(ask);
        }
        known.flatten()
    }

    /// Forgets what was decided; returns what was asked for and is not known.
    pub fn begin_again(&self) -> CauseQuery {
        let mut inner = self.inner();
        inner.rounds += 1;
        inner.decided.clear();
        inner.decided_under.clear();
        inner.decided_of.clear();
        inner.foreseen.clear();
        std::mem::take(&mut inner.wanted)
    }

    /// Returns the number of decisions made with them.
    pub fn rounds(&self) -> usize {
        self.inner().rounds
    }

    /// Has it found out before the decision whether there are sources, and of which of these inhibitions.
    pub fn expect(&self, inhibitions: BTreeSet<RecordId>) {
        let mut inner = self.inner();
        inner.wanted.any = true;
        inner.wanted.inhibitions = inhibitions;
    }

    /// The inhibitions of which it is known whether they have sources, as far as any has one; `None` where no
    /// source was asked for.
    pub fn known(&self) -> Option<BTreeSet<RecordId>> {
        let inner = self.inner();
        let known = inner.has_sources.keys().copied();
        inner.has_any.map(|any| known.filter(|_| any).collect())
    }

    /// Notes whether any inhibition has a source.
    pub fn learn_any(&self, has_any: bool) {
        self.inner().has_any = Some(has_any);
    }

    /// Notes whether an inhibition has any source.
    pub fn learn_of(&self, inhibition: RecordId, has_sources: bool) {
        self.inner().has_sources.insert(inhibition, has_sources);
    }

    /// Notes the group that was asked for.
    pub fn learn_group(&self, ask: GroupRef, found: Option<GroupAt>) {
        self.inner().groups.insert(ask, found);
    }

    /// Notes the first sources that are stored under a key, and whether there may be more.
    pub fn learn(&self, key: CauseKey, found: Vec<Occurrence>, has_more: bool) {
        let found = found.into_iter().map(Arc::new).collect();
        let known = Known { found, has_more };
        self.inner().known.insert(key, known);
    }
}
