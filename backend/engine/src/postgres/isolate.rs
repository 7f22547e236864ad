//! Finds the conflicting sets of a group that was rolled back. The expectations are checked in the
//! same order as in the other engines.

use std::collections::{HashMap, HashSet};

use tokio_postgres::Error;

use super::{
    plan::{position_to_db, to_db_integer},
    query::Query,
    session::Session,
    set::EncodedSet,
};
use crate::{
    change::{Action, Change, Entry, Expect},
    error::{EngineError, RecordName},
    index::Index,
    kind::Kind,
    ownership::Claim,
};

#[derive(Debug)]
pub(super) struct CurrentState {
    definitions: i64,
    /// The writer's epoch; `None` if its row was deleted.
    pub(super) epoch: Option<i64>,
    /// The writer's slots; read only if a set claims slots.
    claims: HashSet<Claim>,
    versions: HashMap<RecordName, i64>,
    leads: HashMap<Entry, Vec<u8>>,
}

impl CurrentState {
    /// Reads all records and entries at one point in time. Otherwise a record that changes between
    /// two reads would not match its entries, and would look damaged.
    pub(super) async fn read<'a>(
        session: &Session,
        writer: &[u8],
        sets: impl Iterator<Item = &'a EncodedSet> + Clone,
    ) -> Result<Self, Error> {
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        session.client.batch_execute(begin).await?;
        let read = Self::read_each(session, writer, sets).await;
        session.client.batch_execute("ROLLBACK").await?;
        read
    }

    async fn read_each<'a>(
        session: &Session,
        writer: &[u8],
        sets: impl Iterator<Item = &'a EncodedSet> + Clone,
    ) -> Result<Self, Error> {
        let statement = session.prepare(Query::Fences).await?;
        let row = session.client.query_one(&statement, &[&writer]).await?;
        let mut lying = Self {
            definitions: row.try_get(0)?,
            epoch: row.try_get(1)?,
            claims: HashSet::new(),
            versions: HashMap::new(),
            leads: HashMap::new(),
        };
        if sets.clone().any(|set| !set.claims.is_empty()) {
            let statement = session.prepare(Query::OwnSlots).await?;
            for row in session.client.query(&statement, &[&writer]).await? {
                let (slot, epoch): (i16, i64) = (row.try_get(0)?, row.try_get(1)?);
                lying.claims.insert(Claim {
                    slot: slot.unsigned_abs(),
                    epoch: epoch.unsigned_abs(),
                });
            }
        }
        let changes = || sets.clone().flat_map(|set| &set.changes);
        for kind in Kind::ALL {
            let keys: HashSet<&[u8]> = changes()
                .filter(|change| change.kind == kind)
                .map(|change| &*change.key)
                .collect();
            let keys: Vec<_> = keys.into_iter().collect();
            if keys.is_empty() {
                continue;
            }
            let statement = session.prepare(Query::Get(kind)).await?;
            for row in session.client.query(&statement, &[&keys]).await? {
                let (at, version): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
                let key = usize::try_from(at - 1).ok().and_then(|at| keys.get(at));
                let name = key.map(|key| (kind, key.to_vec()));
                lying.versions.extend(name.map(|it| (it, version)));
            }
        }
        lying.read_leads(session, changes()).await?;
        Ok(lying)
    }

    async fn read_leads<'a>(
        &mut self,
        session: &Session,
        changes: impl Iterator<Item = &'a Change>,
    ) -> Result<(), Error> {
        let mut touched: HashMap<Index, HashSet<&[u8]>> = HashMap::new();
        for entry in changes.flat_map(|change| change.remove.iter().chain(&change.add)) {
            touched.entry(entry.index).or_default().insert(&entry.key);
        }
        for (index, keys) in touched {
            let keys: Vec<_> = keys.into_iter().collect();
            let statement = session.prepare(Query::Lead(index)).await?;
            for row in session.client.query(&statement, &[&keys]).await? {
                let at: i64 = row.try_get(0)?;
                let key = usize::try_from(at - 1).ok().and_then(|at| keys.get(at));
                let Some(key) = key.map(|key| key.to_vec()) else {
                    continue;
                };
                self.leads.insert(Entry { index, key }, row.try_get(1)?);
            }
        }
        Ok(())
    }

    /// Returns the reason why a set cannot be applied, or `None` if there is no obstacle.
    pub(super) fn find_conflict(&self, set: &EncodedSet) -> Option<EngineError> {
        if !set.claims.iter().all(|claim| self.claims.contains(claim)) {
            return Some(not_owner_error());
        }
        if set
            .rests_on
            .is_some_and(|position| position_to_db(position) < self.definitions)
        {
            return Some(EngineError::conflict());
        }
        let mut contested = Vec::new();
        for change in &set.changes {
            let name = (change.kind, change.key.clone());
            let found = self.versions.get(&name);
            let holds = match change.expect {
                Expect::Absent => found.is_none(),
                Expect::Version(expected) => {
                    found.is_some_and(|version| *version == to_db_integer(expected))
                }
                Expect::Any => true,
            };
            if !holds {
                contested.push(name);
            }
        }
        if !contested.is_empty() {
            return Some(EngineError::Conflict(contested));
        }
        self.find_entry_conflict(set)
    }

    fn find_entry_conflict(&self, set: &EncodedSet) -> Option<EngineError> {
        let mut removed = HashSet::new();
        for change in &set.changes {
            for entry in &change.remove {
                if self.leads.get(entry) != Some(&change.key) || !removed.insert(entry) {
                    return Some(EngineError::missing_entry(entry.index));
                }
            }
        }
        let is_in_use = |entry: &Entry| self.leads.contains_key(entry) && !removed.contains(entry);
        let conflicting = set.changes.iter().filter(|it| it.add.iter().any(is_in_use));
        let contested: Vec<_> = conflicting
            .map(|change| (change.kind, change.key.clone()))
            .collect();
        if !contested.is_empty() {
            return Some(EngineError::Conflict(contested));
        }
        let unfit = "this store does not support this change to a record's entries";
        set.is_unfit.then(|| EngineError::Corrupt(unfit.into()))
    }
}

pub(super) fn not_owner_error() -> EngineError {
    EngineError::Unavailable("another node owns the record to be changed".into())
}

/// Whether a set must conflict because a set that was just applied changed the same records.
pub(super) fn conflict_with_applied(
    set: &EncodedSet,
    applied: &HashMap<RecordName, Option<u64>>,
) -> Option<EngineError> {
    let is_refuted = |kind, key: &[u8], expect| {
        let Some(found) = applied.get(&(kind, key.to_vec())) else {
            return false;
        };
        match expect {
            Expect::Absent => found.is_some(),
            Expect::Version(version) => *found != Some(version),
            Expect::Any => false,
        }
    };
    let contested = set.changes.iter();
    let contested = contested.filter(|it| is_refuted(it.kind, &it.key, it.expect));
    let contested: Vec<_> = contested.map(|it| (it.kind, it.key.clone())).collect();
    (!contested.is_empty()).then_some(EngineError::Conflict(contested))
}

/// Returns the state of records after a set was applied: their version, or `None` if they were
/// deleted. Additions to counters and changes that only check are skipped.
pub(super) fn states_after_set(
    set: &EncodedSet,
    version: u64,
) -> impl Iterator<Item = (RecordName, Option<u64>)> {
    set.changes.iter().filter_map(move |change| {
        let version = match change.action {
            Action::Put(_) | Action::Touch => Some(version),
            Action::Delete => None,
            Action::Check | Action::Add(_) => return None,
        };
        Some(((change.kind, change.key.clone()), version))
    })
}
