//! Domain values as records: typed reads, and the commits of change sets.

pub mod bytes;
mod chain;
mod changes;
pub mod counters;
mod followers;
#[cfg(test)]
mod frozen;
mod kinds;
#[cfg(test)]
mod lane_tests;
pub mod noise;
mod shift;
mod steps;
mod table;
mod v1;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicI64},
};

use futures_util::future::{BoxFuture, try_join_all};
use tokio::sync::{RwLock, watch};

pub use self::changes::{Changes, destination_slot};
use self::kinds::read_shift;
pub(super) use self::kinds::{ProofLevel, renew_proof, upgrade_proof, with_record};
pub use self::kinds::{
    RUNNING, beat_prefix, delivery_thread_prefix, kept_value_prefix, response_prefix, start_prefix,
    thread_prefix, users_prefix, waiting_prefix,
};
pub use self::shift::ClockFact;
pub(super) use self::shift::is_clock_fact;
pub use self::v1::audit::chain_entry;
use self::{chain::Chain, counters::Counts, noise::NoiseCounts};
use crate::{
    audit::{self, AuditSnapshot, AuditedChange, ChangeAudit},
    domain::{Name, RecordId, Shift, counter::CounterTally},
    engine::{
        ApplyResult, Change, ChangeSet, Direction, DiskShare, Duty, Engine, EngineError, Entry,
        Index, IndexedRecord, Kind, Lane, Range, Row,
        limits::STORE_LEADER_ADVANCED_EVERY,
        memory::MemoryEngine,
        merging::MergingEngine,
        ownership::{Claim, OwnedSlots},
        staged::StagedEngine,
    },
    metrics::{CommitStep, Metrics},
    seal::Sealer,
};

pub trait Record: Shift + Clone + Send + Sync + Sized + 'static {
    const KIND: Kind;
    fn key(&self) -> Vec<u8>;
    /// Returns the index entries of the record, without duplicates.
    fn entries(&self) -> Vec<Entry>;
    fn references(&self) -> Vec<Reference<'_>> {
        Vec::new()
    }
    /// Returns the destination whose owning process has to make the changes to the record, or
    /// `None` if any process may make them.
    fn owning_destination(&self) -> Option<RecordId> {
        None
    }
    /// Returns the slot whose owning process has to review the record, or `None` if any process may
    /// review it.
    fn review_slot(&self) -> Option<u8> {
        None
    }
    fn counter_entries(&self) -> Vec<CounterTally> {
        Vec::new()
    }
    /// Returns the record for the audit log; `None` if it is not audited.
    fn audit_snapshot(&self) -> Option<AuditSnapshot> {
        None
    }
    /// Encodes the value in the newest encoding, with secrets sealed.
    fn encode(&self, sealer: &Sealer) -> Vec<u8>;
    /// Decodes any encoding that a store of the newest layout can contain.
    ///
    /// # Errors
    /// Returns [`EngineError::Corrupt`] if the bytes are not a record, or lack the required proof.
    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError>;
    /// Returns the delivery that ends with a change, for the deliveries that wait for its end.
    /// `None` for most kinds.
    fn ended_delivery(_before: &Self, _after: Option<&Self>) -> Option<EndedDelivery> {
        None
    }
    /// Adds the steps to count when this value replaces `_before`. Most kinds add none.
    fn steps(&self, _before: Option<&Self>, _to: &mut Vec<CommitStep>) {}
    /// Adds the noise counts when this value replaces `_before`. Most kinds add none.
    fn count_noise(&self, _before: Option<&Self>, _to: &mut NoiseCounts<'_>) {}
}

#[derive(Debug, Clone, Copy)]
pub struct EndedDelivery {
    pub destination: RecordId,
    pub delivery: RecordId,
    pub at_ms: i64,
}

/// A reference by name to another record, which must exist.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    pub kind: Kind,
    pub name: &'a Name,
    /// Index from the referenced record to this one.
    pub back: Index,
}

/// A stored record: the value, and the version that a change expects.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    pub version: u64,
    pub bytes: usize,
    /// The value, with its times shifted by `shift_ms`.
    pub value: T,
    /// The value as it is in the store, if the stored times include another shift.
    written: Option<Box<T>>,
    /// The shift that the times of `value` include, in milliseconds.
    shift_ms: i64,
}

impl<T> Stored<T> {
    pub fn from_commit(version: u64, value: T, store: &Store) -> Self {
        Self {
            version,
            bytes: 0,
            value,
            written: None,
            shift_ms: store.current_shift_ms(),
        }
    }

    /// Whether the stored times and the index entries include another shift.
    pub fn is_shifted(&self) -> bool {
        self.written.is_some()
    }

    fn as_written(&self) -> &T {
        self.written.as_deref().unwrap_or(&self.value)
    }
}

/// Typed access to an engine. Clones share the engine and the metrics.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    sealer: Arc<Sealer>,
    metrics: Metrics,
    chain: Arc<Chain>,
    staged: Option<Arc<Mutex<Vec<AuditedChange>>>>,
    /// The duty of this store; `None` if every process that shares the engine has it.
    duty: Option<Duty>,
    /// The slots owned when the work began, if the work is divided among owners.
    owns: Option<watch::Receiver<OwnedSlots>>,
    /// Lane for the service's own work. `None` for work that callers wait for.
    own_lane: Option<Lane>,
    /// The shift that the times of records include, in milliseconds: the sum of the clock steps.
    shift_ms: Arc<AtomicI64>,
    /// Locked for reading while a decision is made, and for writing while a clock step is applied.
    steady: Arc<RwLock<()>>,
}

impl Store {
    pub fn new(engine: Arc<dyn Engine>, sealer: Arc<Sealer>) -> Self {
        Self {
            engine,
            sealer,
            metrics: Metrics::default(),
            chain: Arc::default(),
            staged: None,
            duty: None,
            owns: None,
            own_lane: None,
            shift_ms: Arc::default(),
            steady: Arc::default(),
        }
    }

    pub fn in_memory() -> Self {
        Self::new(
            Arc::new(MemoryEngine::new()),
            Arc::new(Sealer::with_random_key()),
        )
    }

    /// Creates an empty store in memory with the same keys.
    #[must_use]
    pub fn empty_copy(&self) -> Self {
        Self::new(Arc::new(MemoryEngine::new()), Arc::clone(&self.sealer))
    }

    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub async fn get<T: Record>(&self, key: Vec<u8>) -> Result<Option<Stored<T>>, EngineError> {
        Ok(self.get_many([key].into()).await?.pop().flatten())
    }

    /// Reads records by key, at one point in time.
    pub async fn get_many<T: Record>(
        &self,
        keys: Vec<Vec<u8>>,
    ) -> Result<Vec<Option<Stored<T>>>, EngineError> {
        let rows = self.engine.get(T::KIND, &keys).await?;
        let found = keys.iter().zip(rows);
        let read = |(key, row): (&Vec<u8>, Option<Row>)| row.map(|row| self.read(key, &row));
        found.map(|found| read(found).transpose()).collect()
    }

    /// Reads records by key. Unreadable records are `None` in the list, and their keys are returned
    /// separately.
    ///
    /// # Errors
    ///
    /// Returns any error of the engine except for damaged records.
    pub async fn get_readable<T: Record>(
        &self,
        keys: Vec<Vec<u8>>,
    ) -> Result<(Vec<Option<Stored<T>>>, Vec<Vec<u8>>), EngineError> {
        match self.get_many(keys.clone()).await {
            Err(EngineError::Corrupt(_)) => {}
            all => return Ok((all?, Vec::new())),
        }
        let mut records = Vec::with_capacity(keys.len());
        let mut unreadable = Vec::new();
        for key in keys {
            match self.get(key.clone()).await {
                Err(EngineError::Corrupt(why)) => {
                    tracing::error!(kind = ?T::KIND, why, "failed to read a stored record");
                    records.push(None);
                    unreadable.push(key);
                }
                found => records.push(found?),
            }
        }
        Ok((records, unreadable))
    }

    /// Runs a read for each item concurrently. Returns the results in the order of the items. Reads
    /// for which all items wait are merged, so the number of statements does not grow with the
    /// number of items.
    pub fn read_each<'a, I, T, E, F>(
        &self,
        items: impl IntoIterator<Item = I>,
        read: impl Fn(Self, I) -> F,
    ) -> BoxFuture<'a, Result<Vec<T>, E>>
    where
        F: Future<Output = Result<T, E>> + Send + 'a,
        T: Send + 'a,
        E: Send + 'a,
    {
        let engine = Arc::new(MergingEngine::new(Arc::clone(&self.engine)));
        let store = Self {
            engine: Arc::clone(&engine) as Arc<dyn Engine>,
            ..self.clone()
        };
        let reads = items.into_iter().map(|item| read(store.clone(), item));
        let all = try_join_all(reads);
        Box::pin(async move { engine.run(all).await })
    }

    pub async fn page<T: Record>(
        &self,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Stored<T>>, EngineError> {
        let rows = self
            .engine
            .read_page(T::KIND, range, direction, limit)
            .await?;
        let rows = rows.into_iter();
        rows.map(|(key, row)| self.read(&key, &row)).collect()
    }

    /// Reads a page of records in index order, each with the key of its entry. A record deleted
    /// meanwhile is omitted.
    pub async fn page_by_index<T: Record>(
        &self,
        index: Index,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Stored<T>)>, EngineError> {
        let entries = self.engine.entries(index, range, direction, limit).await?;
        let (entry_keys, record_keys): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        let records = self.get_many(record_keys).await?;
        let found = entry_keys.into_iter().zip(records);
        Ok(found
            .filter_map(|(key, record)| Some((key, record?)))
            .collect())
    }

    /// Reads the last record under each prefix of an index, in the order of the prefixes, at one
    /// point in time.
    pub async fn last_with_prefix<T: Record>(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<Stored<T>>>, EngineError> {
        let found = self.engine.last_with_prefix(index, prefixes).await?;
        let read = |found: IndexedRecord| self.read(&found.key, &found.row);
        let found = found.into_iter();
        found.map(|found| found.map(read).transpose()).collect()
    }

    /// Decodes a row, and checks that the record belongs to its key.
    fn read<T: Record>(&self, key: &[u8], row: &Row) -> Result<Stored<T>, EngineError> {
        let mut value = T::decode(&row.value, &self.sealer)?;
        // A proof shows that a record was written by the service, but not under which key.
        if ProofLevel::oldest_for_kind(T::KIND).is_some() && value.key() != key {
            let word = T::KIND.as_str();
            let why = format!("a {word} is stored under another record's key");
            return Err(EngineError::Corrupt(why));
        }
        let (shift_ms, mut written) = (self.current_shift_ms(), None);
        if T::MOVES {
            let by_ms = shift_ms - read_shift::<T>(&row.value)?;
            if by_ms != 0 {
                written = Some(Box::new(value.clone()));
                value.shift_times(by_ms);
            }
        }
        Ok(Stored {
            version: row.version,
            bytes: row.value.len(),
            value,
            written,
            shift_ms,
        })
    }

    pub(super) fn decode<T: Record>(&self, value: &[u8]) -> Result<T, EngineError> {
        T::decode(value, &self.sealer)
    }

    /// Creates an authentication code that proves, for one purpose, that bytes were written by an
    /// owner of this store's keys.
    pub fn compute_proof(&self, purpose: &str, parts: &[&[u8]]) -> Vec<u8> {
        self.sealer.compute_proof(purpose, parts).to_vec()
    }

    /// Whether the proof was made by [`Store::compute_proof`] for the same bytes.
    pub fn is_proven(&self, purpose: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
        self.sealer.is_proven(purpose, parts, proof)
    }

    pub(super) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    pub(super) fn shared_sealer(&self) -> Arc<Sealer> {
        Arc::clone(&self.sealer)
    }

    pub fn new_changes(&self) -> Changes {
        let audited = audit::current_actor().map(ChangeAudit::for_actor);
        Changes {
            sealer: Arc::clone(&self.sealer),
            list: Vec::new(),
            counts: Counts::default(),
            is_past: false,
            rests_on: None,
            space: DiskShare::default(),
            slots: BTreeSet::new(),
            owner: self.duty.filter(|_| self.owns.is_some()),
            steps: Vec::new(),
            decided: BTreeSet::new(),
            audited,
            owners: Vec::new(),
            ended: Vec::new(),
            shift_ms: self.current_shift_ms(),
            has_times: false,
            is_outdated: false,
        }
    }

    /// Creates an empty change set for restored records, whose past steps are not counted again.
    pub(super) fn new_past_changes(&self) -> Changes {
        Changes {
            is_past: true,
            ..self.new_changes()
        }
    }

    /// Returns this store for work of the leading node: its changes are rejected once another node
    /// leads.
    #[must_use]
    pub fn for_leader(&self, duty: Duty) -> Self {
        Self {
            duty: self.engine.is_shared().then_some(duty),
            own_lane: Some(Lane::Leader),
            ..self.clone()
        }
    }

    /// Returns this store for work divided among the nodes by destination or event. Changes for
    /// slots that this node does not own are rejected, including slots that it lost in the
    /// meantime. A single node owns all slots.
    #[must_use]
    pub fn for_owner(self, duty: Duty, owned: watch::Receiver<OwnedSlots>) -> Self {
        let is_shared = *owned.borrow() != OwnedSlots::All;
        Self {
            duty: is_shared.then_some(duty),
            owns: is_shared.then_some(owned),
            own_lane: Some(Lane::Owner),
            ..self
        }
    }

    /// Records that this duty makes progress, even without a commit.
    pub fn record_progress(&self) {
        if let Some(duty) = self.duty {
            self.engine.cluster().record_progress(duty);
        }
    }

    /// Waits until progress is due to be recorded. Never returns if the store is not shared.
    pub async fn wait_until_progress_due(&self) {
        match self.duty {
            Some(_) => tokio::time::sleep(STORE_LEADER_ADVANCED_EVERY).await,
            None => std::future::pending().await,
        }
    }

    pub fn is_staged(&self) -> bool {
        self.staged.is_some()
    }

    pub async fn stage(&self) -> Result<StagedStore, EngineError> {
        let engine = Arc::new(StagedEngine::new(Arc::clone(&self.engine)).await?);
        let audited = Arc::default();
        let store = Self {
            staged: Some(Arc::clone(&audited)),
            shift_ms: Arc::clone(&self.shift_ms),
            steady: Arc::clone(&self.steady),
            ..Self::new(
                Arc::clone(&engine) as Arc<dyn Engine>,
                Arc::clone(&self.sealer),
            )
        };
        Ok(StagedStore {
            store,
            engine,
            audited,
        })
    }

    /// Applies a change set atomically. Returns once it is on disk.
    pub async fn apply(
        &self,
        lane: Lane,
        mut changes: Changes,
    ) -> Result<ApplyResult, EngineError> {
        let lane = self.effective_lane(lane);
        changes.check_scope()?;
        self.wake_followers(&mut changes).await?;
        if changes.is_outdated || changes.has_times && changes.shift_ms != self.current_shift_ms() {
            // The decision was made while the clock was set, so some times may be from before the
            // change.
            return Err(EngineError::conflict());
        }
        let Some(audited) = changes.audited.take().filter(|it| !it.changes.is_empty()) else {
            return self.apply_plain(lane, changes).await;
        };
        let Some(staged) = &self.staged else {
            return self.apply_audited(lane, changes, audited).await;
        };
        let applied = self.apply_plain(lane, changes).await?;
        let mut collected = staged.lock().unwrap_or_else(PoisonError::into_inner);
        collected.extend(audited.changes);
        Ok(applied)
    }

    fn effective_lane(&self, requested: Lane) -> Lane {
        self.own_lane.unwrap_or(requested)
    }

    fn claims(&self, slots: &BTreeSet<u8>) -> Result<Vec<Claim>, EngineError> {
        let Some(owns) = &self.owns else {
            return Ok(Vec::new());
        };
        let owned = owns.borrow();
        let claims = slots.iter().map(|slot| {
            let epoch = owned.find(*slot)?.epoch;
            Some(Claim {
                slot: (*slot).into(),
                epoch,
            })
        });
        let claims: Option<Vec<_>> = claims.collect();
        claims.ok_or_else(|| {
            EngineError::Unavailable("another node owns the record to be changed".into())
        })
    }

    async fn apply_plain(&self, lane: Lane, changes: Changes) -> Result<ApplyResult, EngineError> {
        let mut list = changes.list;
        for owner in changes.owners {
            let is_same = |it: &Change| it.kind == owner.kind && it.key == owner.key;
            if !list.iter().any(is_same) {
                list.push(owner);
            }
        }
        list.extend(changes.counts.into_changes());
        let set = ChangeSet {
            changes: list,
            space: changes.space,
            rests_on: changes.rests_on,
            claims: self.claims(&changes.slots)?,
        };
        let applied = self.engine.apply(lane, set).await?;
        self.metrics.record_commit(&changes.steps);
        self.record_progress();
        Ok(applied)
    }
}

/// A store whose changes are staged, to be applied to the underlying store together.
#[derive(Debug)]
pub struct StagedStore {
    store: Store,
    engine: Arc<StagedEngine>,
    audited: Arc<Mutex<Vec<AuditedChange>>>,
}

impl StagedStore {
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn take_changes(&self) -> Changes {
        let mut changes = self.store.new_changes();
        changes.list = self.engine.take_changes();
        if let Some(audited) = &mut changes.audited {
            let mut collected = self.audited.lock().unwrap_or_else(PoisonError::into_inner);
            audited.changes = audit::merge_changes(std::mem::take(&mut collected));
        }
        changes
    }
}
