//! The inhibition sources and groups that were read for a decision, and those that are still
//! required.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::domain::{CauseMark, GroupRef, Occurrence, RecordId, inhibition::EqualValues};

/// The key of sources in the index: the inhibition and the digest of its values.
pub type CauseKey = (RecordId, EqualValues);

/// The data that a decision requires but that is not loaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CauseQuery {
    /// Whether to check if any inhibition has a source.
    pub any: bool,
    pub inhibitions: BTreeSet<RecordId>,
    pub keys: BTreeSet<CauseKey>,
    pub groups: BTreeSet<GroupRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupAt {
    /// Time at which the group's last message other than a `clear` one was decided, in milliseconds
    /// since 1970.
    pub notified_ms: i64,
    /// Earliest time of the next message, in milliseconds since 1970.
    pub next_ms: i64,
    pub is_open: bool,
    /// Whether the end of the group was reported.
    pub is_over: bool,
}

/// The sources and groups that decisions use. Missing ones are recorded and treated as absent. The
/// caller then loads them and decides again, until none is missing. Clones share the data.
#[derive(Debug, Clone, Default)]
pub struct Causes(Arc<Mutex<CauseCache>>);

#[derive(Debug, Default)]
struct CauseCache {
    /// Whether any inhibition has a source. Usually none has one, so that targets need not be
    /// evaluated.
    has_any: Option<bool>,
    /// Whether an inhibition has any source. Most have none, and their sources need not be read for
    /// each target.
    has_sources: BTreeMap<RecordId, bool>,
    known: BTreeMap<CauseKey, CachedSources>,
    /// Occurrences as decided, which override the stored ones.
    decided: BTreeMap<RecordId, Arc<Occurrence>>,
    decided_under: BTreeMap<CauseKey, BTreeSet<RecordId>>,
    /// The inhibitions of which decided occurrences are, or were, sources.
    decided_of: BTreeSet<RecordId>,
    /// Decided occurrences whose state is final for the whole request.
    predicted: BTreeSet<RecordId>,
    groups: BTreeMap<GroupRef, Option<GroupAt>>,
    wanted: CauseQuery,
    rounds: usize,
}

/// The sources read so far, in order of opening.
#[derive(Debug, Default)]
struct CachedSources {
    found: Vec<Arc<Occurrence>>,
    has_more: bool,
}

#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) found: Vec<Arc<Occurrence>>,
    pub(super) has_more: bool,
}

impl CauseCache {
    fn add_decided(&mut self, occurrence: Occurrence) {
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
    fn lock(&self) -> MutexGuard<'_, CauseCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn may_contain_any(&self) -> bool {
        let mut inner = self.lock();
        if !inner.decided_of.is_empty() {
            return true;
        }
        inner.wanted.any |= inner.has_any.is_none();
        inner.has_any.unwrap_or(false)
    }

    pub(super) fn may_contain(&self, inhibition: RecordId) -> bool {
        let mut inner = self.lock();
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

    /// Returns the sources under a key for which `holds` is true. Requests more sources if `holds`
    /// is true for none of those read so far.
    pub(super) fn find_sources(
        &self,
        key: CauseKey,
        holds: impl Fn(&Occurrence) -> bool,
    ) -> Sources {
        let mut inner = self.lock();
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

    pub(super) fn request_more(&self, key: CauseKey) {
        self.lock().wanted.keys.insert(key);
    }

    pub fn cached_count(&self, key: &CauseKey) -> usize {
        let inner = self.lock();
        inner.known.get(key).map_or(0, |it| it.found.len())
    }

    /// Records the decided state of an occurrence that is, or was, a source, unless its final state
    /// for the request is known.
    pub(super) fn record_decided(&self, occurrence: &Occurrence) {
        let mut inner = self.lock();
        if !inner.predicted.contains(&occurrence.key) {
            inner.add_decided(occurrence.clone());
        }
    }

    pub fn begin_request(&self) {
        self.lock().predicted.clear();
    }

    /// Records the final state of an occurrence that is, or was, a source, for the current request.
    pub fn record_predicted(&self, occurrence: Occurrence) {
        let mut inner = self.lock();
        inner.predicted.insert(occurrence.key);
        inner.add_decided(occurrence);
    }

    /// Returns the group, if it exists; requests it if it is not loaded.
    pub(super) fn find_group(&self, ask: GroupRef) -> Option<GroupAt> {
        let mut inner = self.lock();
        let known = inner.groups.get(&ask).copied();
        if known.is_none() {
            inner.wanted.groups.insert(ask);
        }
        known.flatten()
    }

    /// Discards all decided states, and returns the missing data to load.
    pub fn start_round(&self) -> CauseQuery {
        let mut inner = self.lock();
        inner.rounds += 1;
        inner.decided.clear();
        inner.decided_under.clear();
        inner.decided_of.clear();
        inner.predicted.clear();
        std::mem::take(&mut inner.wanted)
    }

    pub fn rounds(&self) -> usize {
        self.lock().rounds
    }

    /// Requests in advance whether there are sources, in general and for these inhibitions.
    pub fn request_in_advance(&self, inhibitions: BTreeSet<RecordId>) {
        let mut inner = self.lock();
        inner.wanted.any = true;
        inner.wanted.inhibitions = inhibitions;
    }

    /// Returns the inhibitions for which it is known whether they have sources. Empty if no
    /// inhibition has a source; `None` if this is not loaded.
    pub fn known_inhibitions(&self) -> Option<BTreeSet<RecordId>> {
        let inner = self.lock();
        let known = inner.has_sources.keys().copied();
        inner.has_any.map(|any| known.filter(|_| any).collect())
    }

    pub fn set_has_any(&self, has_any: bool) {
        self.lock().has_any = Some(has_any);
    }

    pub fn set_has_sources(&self, inhibition: RecordId, has_sources: bool) {
        self.lock().has_sources.insert(inhibition, has_sources);
    }

    pub fn set_group(&self, ask: GroupRef, found: Option<GroupAt>) {
        self.lock().groups.insert(ask, found);
    }

    /// Stores the first sources under a key, and whether there may be more.
    pub fn add_sources(&self, key: CauseKey, found: Vec<Occurrence>, has_more: bool) {
        let found = found.into_iter().map(Arc::new).collect();
        let known = CachedSources { found, has_more };
        self.lock().known.insert(key, known);
    }
}
