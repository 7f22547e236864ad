//! The sources of inhibitions, as far as they were read for a decision, and what else it asked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::domain::{Occurrence, RecordId, inhibition::EqualValues};

/// Where sources are found: the inhibition, and what its fields hold.
pub type CauseKey = (RecordId, EqualValues);

/// The sources that decisions ask for. What is not known is noted, and taken for nothing: whoever
/// decides reads it and decides again, until everything is known. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Causes(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    known: BTreeMap<CauseKey, Vec<Arc<Occurrence>>>,
    /// What this decision made of occurrences, whatever is stored.
    decided: BTreeMap<RecordId, Arc<Occurrence>>,
    wanted: BTreeSet<CauseKey>,
}

impl Causes {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that are found under a key.
    pub(super) fn of(&self, key: CauseKey) -> Vec<Arc<Occurrence>> {
        let mut inner = self.inner();
        let is_under = |it: &Occurrence| {
            let mut marks = it.causes.iter();
            marks.any(|mark| (mark.inhibition, mark.values) == key)
        };
        let decided = inner.decided.values().filter(|it| is_under(it)).cloned();
        let mut found: Vec<_> = decided.collect();
        match inner.known.get(&key) {
            Some(known) => {
                let is_new = |it: &&Arc<Occurrence>| !inner.decided.contains_key(&it.key);
                found.extend(known.iter().filter(is_new).cloned());
            }
            None => drop(inner.wanted.insert(key)),
        }
        found
    }

    /// Notes what a decision makes of an occurrence that is a source, or was one before.
    pub(super) fn decide(&self, occurrence: &Occurrence) {
        let decided = Arc::new(occurrence.clone());
        self.inner().decided.insert(occurrence.key, decided);
    }

    /// Forgets what was decided; answers what was asked for and is not known.
    pub fn begin_again(&self) -> BTreeSet<CauseKey> {
        let mut inner = self.inner();
        inner.decided.clear();
        std::mem::take(&mut inner.wanted)
    }

    /// Notes what is stored under a key.
    pub fn learn(&self, key: CauseKey, found: Vec<Occurrence>) {
        let found = found.into_iter().map(Arc::new).collect();
        self.inner().known.insert(key, found);
    }
}
