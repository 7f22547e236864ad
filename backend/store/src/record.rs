//! Domain values as records: typed reading, and sets of changes that keep the indexes right.

pub mod bytes;
mod chain;
pub mod counters;
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

use tokio::sync::{RwLock, watch};

pub(super) use self::kinds::{Proven, proven_again, proven_since, with_record};
pub use self::kinds::{RUNNING, by_beat, by_response, by_start, in_thread, uses};
use self::kinds::{shift_of, with_shift};
pub use self::shift::ClockFact;
pub(super) use self::shift::is_of_clock;
pub use self::v1::audit::chained;
use self::{chain::Chain, counters::Counts, noise::NoiseCounts};
use crate::{
    audit::{self, Audited, AuditedChange, Seen},
    decide::Snapshot,
    domain::{
        Name, Occurrence, RecordId, Shift,
        counter::{Counted, Counter},
        noise::DecisionKey,
    },
    engine::{
        Action, Applied, Change, Direction, DiskShare, Duty, Engine, EngineError, Entry, Expect,
        Found, Index, Kind, Lane, LogPosition, Range, Row, Set,
        limits::STORE_LEADER_ADVANCED_EVERY,
        memory::MemoryEngine,
        ownership::{Claim, Owned, slot_of},
        staged::StagedEngine,
    },
    metrics::{CommitStep, Metrics},
    seal::Sealer,
};

/// Whether a new record of this kind adds to what the store must hold. What people change, and what
/// moves deliveries on, does not.
fn adds(kind: Kind) -> bool {
    matches!(kind, Kind::Occurrence | Kind::Delivery)
}

/// Whether decisions rest on records of this kind, so that one who decided by what was before must
/// re-evaluate: what the rules in force are built from.
fn defines(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Trigger
            | Kind::Destination
            | Kind::Rule
            | Kind::Silence
            | Kind::Calendar
            | Kind::Inhibition
            | Kind::Settings
    )
}

/// A domain value that is kept as a record.
pub trait Record: Shift + Clone + Send + Sync + Sized + 'static {
    /// The kind of record.
    const KIND: Kind;
    /// The record's key.
    fn key(&self) -> Vec<u8>;
    /// The index entries that lead to the record, each once.
    fn entries(&self) -> Vec<Entry>;
    /// What it refers to by name.
    fn refers(&self) -> Vec<Reference<'_>> {
        Vec::new()
    }
    /// The destination whose owner alone changes it, where several processes deliver.
    fn of_destination(&self) -> Option<RecordId> {
        None
    }
    /// The slot whose owner alone reviews it, where several processes do.
    fn reviewed_in(&self) -> Option<u8> {
        None
    }
    /// What counts the record.
    fn counted(&self) -> Vec<Counted> {
        Vec::new()
    }
    /// What the audit log says of it; none for what it does not speak of.
    fn seen(&self) -> Option<Seen> {
        None
    }
    /// The value in bytes, in the newest encoding, secrets sealed.
    fn encode(&self, sealer: &Sealer) -> Vec<u8>;
    /// Reads any encoding that a store of the newest layout holds.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when the bytes make no record, or lack the proof that others of the
    /// kind have.
    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError>;
    /// Adds what is counted when it is stored where that was; nothing for most kinds.
    fn steps(&self, _before: Option<&Self>, _to: &mut Vec<CommitStep>) {}
    /// Adds what shows how much of what it notified was noise; nothing for most kinds.
    fn noise(&self, _before: Option<&Self>, _to: &mut NoiseCounts<'_>) {}
}

/// What a record refers to by name, and what must be there.
#[derive(Debug, Clone, Copy)]
pub struct Reference<'a> {
    /// The kind of the other.
    pub kind: Kind,
    /// The name of the other.
    pub name: &'a Name,
    /// Where entries lead from the other to the record.
    pub back: Index,
}

/// A record as it was read: the value, and the version to name when changing it.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    /// The version it was read at.
    pub version: u64,
    /// How many bytes it has in the store.
    pub bytes: usize,
    /// The value, with times that include [`Stored::shift_ms`].
    pub value: T,
    /// The value as it is in the store, if its times there include another shift.
    written: Option<Box<T>>,
    /// The shift that its times include, in milliseconds.
    shift_ms: i64,
}

impl<T> Stored<T> {
    /// A record as the commit that gave it this version has left it in a store.
    pub fn written(version: u64, value: T, store: &Store) -> Self {
        Self {
            version,
            bytes: 0,
            value,
            written: None,
            shift_ms: store.shift_ms(),
        }
    }

    /// Whether its times in the store, and the entries of indexes, include another shift.
    pub fn is_shifted(&self) -> bool {
        self.written.is_some()
    }

    fn as_written(&self) -> &T {
        self.written.as_deref().unwrap_or(&self.value)
    }
}

/// Typed access to an engine. Clones share the engine, and count together.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    sealer: Arc<Sealer>,
    metrics: Metrics,
    chain: Arc<Chain>,
    /// Where it keeps changes back: what they do.
    staged: Option<Arc<Mutex<Vec<AuditedChange>>>>,
    /// What it is for, where not every process that shares the store does that.
    duty: Option<Duty>,
    /// What the process owned when it began what is changed by this, where that is work of owners.
    owns: Option<watch::Receiver<Owned>>,
    /// The lane of what the service does for itself; none for what others wait for.
    own_lane: Option<Lane>,
    /// The shift that the times of records include, in milliseconds: the sum of the steps of the clock.
    shift_ms: Arc<AtomicI64>,
    /// Held while something is decided, and alone while a step of the clock is applied.
    steady: Arc<RwLock<()>>,
}

impl Store {
    /// Puts types on an engine.
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

    /// An empty store that is forgotten when dropped: for tests.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryEngine::new()), Arc::new(Sealer::ephemeral()))
    }

    /// An empty store in memory, whose secrets are sealed as those here.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self::new(Arc::new(MemoryEngine::new()), Arc::clone(&self.sealer))
    }

    /// The engine below, for the change log.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Where those count who work on this store.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Reads one record.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn get<T: Record>(&self, key: Vec<u8>) -> Result<Option<Stored<T>>, EngineError> {
        Ok(self.get_many([key].into()).await?.pop().flatten())
    }

    /// Reads records by key, at one point in time.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn get_many<T: Record>(
        &self,
        keys: Vec<Vec<u8>>,
    ) -> Result<Vec<Option<Stored<T>>>, EngineError> {
        let rows = self.engine.get(T::KIND, &keys).await?;
        let found = keys.iter().zip(rows);
        let read = |(key, row): (&Vec<u8>, Option<Row>)| row.map(|row| self.read(key, &row));
        found.map(|found| read(found).transpose()).collect()
    }

    /// Reads records by key; answers, beside them, the keys of those that cannot be read, each of
    /// which counts as absent. One that cannot be read does not hide the others.
    ///
    /// # Errors
    /// Those of the engine, but for damaged records.
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
                    tracing::error!(kind = ?T::KIND, why, "a stored record cannot be read");
                    records.push(None);
                    unreadable.push(key);
                }
                found => records.push(found?),
            }
        }
        Ok((records, unreadable))
    }

    /// Walks records by key.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn page<T: Record>(
        &self,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Stored<T>>, EngineError> {
        let rows = self.engine.page(T::KIND, range, direction, limit).await?;
        let rows = rows.into_iter();
        rows.map(|(key, row)| self.read(&key, &row)).collect()
    }

    /// Walks records by an index; answers each with its entry's key. A record that is gone by the
    /// time it is read is left out.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn page_by<T: Record>(
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

    /// Reads the last record under each prefix of an index, in the order of the prefixes, all at one
    /// point in time.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn last_under<T: Record>(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<Stored<T>>>, EngineError> {
        let found = self.engine.last_under(index, prefixes).await?;
        let read = |found: Found| self.read(&found.key, &found.row);
        let found = found.into_iter();
        found.map(|found| found.map(read).transpose()).collect()
    }

    /// Reads a row that was found under a key.
    fn read<T: Record>(&self, key: &[u8], row: &Row) -> Result<Stored<T>, EngineError> {
        let mut value = T::decode(&row.value, &self.sealer)?;
        // A proof tells that a record was written, not where it was put.
        if Proven::first_of(T::KIND).is_some() && value.key() != key {
            let word = T::KIND.word();
            let why = format!("a {word} lies under the key of another");
            return Err(EngineError::Corrupt(why));
        }
        let (shift_ms, mut written) = (self.shift_ms(), None);
        if T::MOVES {
            let by_ms = shift_ms - shift_of::<T>(&row.value)?;
            if by_ms != 0 {
                written = Some(Box::new(value.clone()));
                value.shift(by_ms);
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

    /// Reads a value as it is kept.
    pub(super) fn decode<T: Record>(&self, value: &[u8]) -> Result<T, EngineError> {
        T::decode(value, &self.sealer)
    }

    /// Proves that bytes come from who has the keys of this store, and what they are for.
    pub fn prove(&self, purpose: &str, parts: &[&[u8]]) -> Vec<u8> {
        self.sealer.prove(purpose, parts).to_vec()
    }

    /// Whether [`Store::prove`] made that proof for the same bytes.
    pub fn is_proven(&self, purpose: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
        self.sealer.is_proven(purpose, parts, proof)
    }

    /// What seals and proves what is stored.
    pub(super) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// The same, for another store with these keys.
    pub(super) fn shared_sealer(&self) -> Arc<Sealer> {
        Arc::clone(&self.sealer)
    }

    /// An empty set of changes.
    pub fn changes(&self) -> Changes {
        let audited = audit::current().map(Audited::by);
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
            shift_ms: self.shift_ms(),
            has_times: false,
            is_outdated: false,
        }
    }

    /// An empty set of changes for records that are put back: what happened to them is not counted
    /// again.
    pub(super) fn changes_of_the_past(&self) -> Changes {
        Changes {
            is_past: true,
            ..self.changes()
        }
    }

    /// This store for work that of the nodes that share it only the one that leads does: what it
    /// changes is refused once this one does not any more.
    #[must_use]
    pub fn leading(&self, duty: Duty) -> Self {
        Self {
            duty: self.engine.is_shared().then_some(duty),
            own_lane: Some(Lane::Leader),
            ..self.clone()
        }
    }

    /// This store for work that of the nodes that share it each does for the destinations or events that it
    /// owns: what it changes of others is refused, and what it changes of those that it does not own any
    /// more. Where one owns all, nothing is refused.
    #[must_use]
    pub fn owning(self, duty: Duty, owned: watch::Receiver<Owned>) -> Self {
        let is_shared = *owned.borrow() != Owned::All;
        Self {
            duty: is_shared.then_some(duty),
            owns: is_shared.then_some(owned),
            own_lane: Some(Lane::Owner),
            ..self
        }
    }

    /// Records that such work advances, also without a commit.
    pub fn advance(&self) {
        if let Some(duty) = self.duty {
            self.engine.cluster().advance(duty);
        }
    }

    /// Waits until such work is to record again that it advances; for ever where the store is not shared.
    pub async fn until_advance(&self) {
        match self.duty {
            Some(_) => tokio::time::sleep(STORE_LEADER_ADVANCED_EVERY).await,
            None => std::future::pending().await,
        }
    }

    /// This store with nothing changed yet, whose changes are kept back.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn stage(&self) -> Result<StagedStore, EngineError> {
        let engine = Arc::new(StagedEngine::over(Arc::clone(&self.engine)).await?);
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

    /// Applies a set of changes, all or none; returns once it is on disk.
    ///
    /// # Errors
    /// Those of [`Engine::apply`].
    pub async fn apply(&self, lane: Lane, mut changes: Changes) -> Result<Applied, EngineError> {
        let lane = self.lane(lane);
        changes.check_scope()?;
        if changes.is_outdated || changes.has_times && changes.shift_ms != self.shift_ms() {
            // Decided while the clock was set: some times may be those from before.
            return Err(EngineError::conflict());
        }
        let Some(audited) = changes.audited.take().filter(|it| !it.changes.is_empty()) else {
            return self.apply_plain(lane, changes).await;
        };
        let Some(staged) = &self.staged else {
            return self.apply_audited(lane, changes, audited).await;
        };
        let applied = self.apply_plain(lane, changes).await?;
        // It holds whole entries between any two statements.
        let mut kept = staged.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(audited.changes);
        Ok(applied)
    }

    /// The lane that changes wait in: what the service does for itself has its own, whatever is asked for.
    fn lane(&self, asked: Lane) -> Lane {
        self.own_lane.unwrap_or(asked)
    }

    /// What has to be owned for changes in these slots.
    fn claims(&self, slots: &BTreeSet<u8>) -> Result<Vec<Claim>, EngineError> {
        let Some(owns) = &self.owns else {
            return Ok(Vec::new());
        };
        let owned = owns.borrow();
        let claims = slots.iter().map(|slot| {
            let epoch = owned.slot(*slot)?.epoch;
            Some(Claim {
                slot: (*slot).into(),
                epoch,
            })
        });
        let claims: Option<Vec<_>> = claims.collect();
        claims.ok_or_else(|| EngineError::Unavailable("another node owns what is changed".into()))
    }

    /// Applies changes as they are.
    async fn apply_plain(&self, lane: Lane, changes: Changes) -> Result<Applied, EngineError> {
        let mut list = changes.list;
        for owner in changes.owners {
            let is_same = |it: &Change| it.kind == owner.kind && it.key == owner.key;
            if !list.iter().any(is_same) {
                list.push(owner);
            }
        }
        list.extend(changes.counts.changes());
        let set = Set {
            changes: list,
            space: changes.space,
            rests_on: changes.rests_on,
            claims: self.claims(&changes.slots)?,
        };
        let applied = self.engine.apply(lane, set).await?;
        self.metrics.committed(&changes.steps);
        self.advance();
        Ok(applied)
    }
}

/// Applies nothing unless a record is still as it was read.
fn check<T: Record>(old: &Stored<T>) -> Change {
    Change {
        is_logged: false,
        ..Change::new(
            T::KIND,
            &old.value.key(),
            Expect::Version(old.version),
            Action::Check,
        )
    }
}

/// The slot of a destination.
pub fn slot(destination: RecordId) -> u8 {
    slot_of(&destination.to_bytes())
}

/// A store whose changes are kept back, to be applied to the one below together.
#[derive(Debug)]
pub struct StagedStore {
    store: Store,
    engine: Arc<StagedEngine>,
    audited: Arc<Mutex<Vec<AuditedChange>>>,
}

impl StagedStore {
    /// What is below, as it would be.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// What was kept back, for the store below.
    pub fn changes(&self) -> Changes {
        let mut changes = self.store.changes();
        changes.list = self.engine.changes();
        if let Some(audited) = &mut changes.audited {
            let mut kept = self.audited.lock().unwrap_or_else(PoisonError::into_inner);
            audited.changes = audit::merged(std::mem::take(&mut kept));
        }
        changes
    }
}

/// Changes that are applied together, with what they count. Each record may be changed once.
#[derive(Debug)]
pub struct Changes {
    sealer: Arc<Sealer>,
    list: Vec<Change>,
    counts: Counts,
    /// Whether what happened to the records was counted before.
    is_past: bool,
    rests_on: Option<LogPosition>,
    /// The free space that they may use.
    space: DiskShare,
    /// The slots of what is changed, where only their owner changes that,
    slots: BTreeSet<u8>,
    /// and for what.
    owner: Option<Duty>,
    /// What is counted once they are on disk.
    steps: Vec<CommitStep>,
    /// The notifications that are counted, and for what.
    decided: BTreeSet<(DecisionKey, Counter)>,
    /// What they do, where a client is restricted.
    audited: Option<Audited>,
    /// What changed rows belong to, which has to be as it was read.
    owners: Vec<Change>,
    /// The shift that the times of the records include,
    shift_ms: i64,
    /// if any has times that move,
    has_times: bool,
    /// and whether some were read with another one.
    is_outdated: bool,
}

impl Changes {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.counts.is_empty()
    }

    /// Checks that no record is written twice in one commit, which would conflict with itself at every try.
    fn check_single<T: Record>(&self, key: &[u8]) {
        let is_same =
            |it: &&Change| it.kind == T::KIND && it.key == key && it.action != Action::Touch;
        debug_assert!(
            !self.list.iter().any(|it| is_same(&it)),
            "two changes of one {:?} in a commit",
            T::KIND
        );
    }

    /// Whether the client may make them.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`].
    pub fn check_scope(&self) -> Result<(), EngineError> {
        self.audited.as_ref().map_or(Ok(()), Audited::check_scope)
    }

    /// How many records they change.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Says by which state of the rules they were decided. Where the rules changed after it, the changes
    /// conflict.
    pub fn rest_on(&mut self, rules: &Snapshot) {
        self.rests_on = Some(LogPosition::from_number(rules.position()));
    }

    /// Sets which part of the free space they may use.
    pub fn use_space(&mut self, space: DiskShare) {
        self.space = space;
    }

    fn tell<T: Record>(&mut self, before: Option<&T>, after: Option<&T>) {
        if let Some(audited) = &mut self.audited {
            if audit::is_owned(T::KIND) {
                audited.owned = Some(T::KIND);
            }
            let (before, after) = (before.and_then(T::seen), after.and_then(T::seen));
            audited
                .changes
                .extend(AuditedChange::of(T::KIND, before, after));
        }
    }

    fn own<T: Record>(&mut self, record: &T) {
        self.slots.extend(match self.owner {
            Some(Duty::Ageing) => record.reviewed_in(),
            Some(_) => record.of_destination().map(slot),
            None => None,
        });
    }

    /// Counts what shows how much was noise.
    fn note<T: Record>(&mut self, before: Option<&T>, after: &T) {
        if !self.is_past {
            let (counts, decided) = (&mut self.counts, &mut self.decided);
            after.noise(before, &mut NoiseCounts { counts, decided });
        }
    }

    /// Stores a record that must not exist yet.
    pub fn insert<T: Record>(&mut self, new: &T) {
        let value = self.encoded(new);
        self.insert_encoded(new, value);
    }

    fn encoded<T: Record>(&mut self, new: &T) -> Vec<u8> {
        self.has_times |= T::MOVES;
        with_shift::<T>(new.encode(&self.sealer), self.shift_ms, &self.sealer)
    }

    /// Stores a record that must not exist yet, in the bytes that it was read from.
    pub(super) fn insert_encoded<T: Record>(&mut self, new: &T, value: Vec<u8>) {
        self.check_single::<T>(&new.key());
        self.own(new);
        self.counts.come(&new.counted(), self.is_past);
        new.steps(None, &mut self.steps);
        self.note(None, new);
        self.tell(None, Some(new));
        self.list.push(Change {
            kind: T::KIND,
            key: new.key(),
            expect: Expect::Absent,
            action: Action::Put(value),
            remove: Vec::new(),
            add: new.entries(),
            is_logged: T::KIND.is_logged(),
            adds: adds(T::KIND),
            defines: defines(T::KIND),
        });
    }

    /// Replaces a record that must still be as it was read. The key must be the same.
    pub fn update<T: Record>(&mut self, old: &Stored<T>, new: &T) {
        self.check_single::<T>(&old.value.key());
        self.is_outdated |= T::MOVES && old.shift_ms != self.shift_ms;
        self.own(&old.value);
        let (was, is) = (old.value.counted(), new.counted());
        self.counts.become_another(&was, &is);
        new.steps(Some(&old.value), &mut self.steps);
        self.note(Some(&old.value), new);
        self.tell(Some(&old.value), Some(new));
        let (mut remove, mut add) = (old.as_written().entries(), new.entries());
        remove.retain(|entry| match add.iter().position(|other| other == entry) {
            Some(at) => {
                add.swap_remove(at);
                false
            }
            None => true,
        });
        let value = self.encoded(new);
        self.list.push(Change {
            kind: T::KIND,
            key: new.key(),
            expect: Expect::Version(old.version),
            action: Action::Put(value),
            remove,
            add,
            is_logged: T::KIND.is_logged(),
            adds: false,
            defines: defines(T::KIND),
        });
    }

    /// Removes a record that must still be as it was read.
    pub fn delete<T: Record>(&mut self, old: &Stored<T>) {
        self.check_single::<T>(&old.value.key());
        self.own(&old.value);
        self.counts.go(&old.value.counted());
        self.tell(Some(&old.value), None);
        self.list.push(Change {
            kind: T::KIND,
            key: old.value.key(),
            expect: Expect::Version(old.version),
            action: Action::Delete,
            remove: old.as_written().entries(),
            add: Vec::new(),
            is_logged: T::KIND.is_logged(),
            adds: false,
            defines: defines(T::KIND),
        });
    }

    /// Applies nothing unless a record is still as it was read, and leaves it as it is.
    pub fn check<T: Record>(&mut self, old: &Stored<T>) {
        self.list.push(check(old));
    }

    /// Touches a record to which something is done that it does not say itself, and writes that down.
    pub fn act_on<T: Record>(&mut self, old: &Stored<T>) {
        self.tell(Some(&old.value), Some(&old.value));
        self.touch(old);
    }

    /// Names the definition that changed rows belong to; a client that is restricted changes them only if it
    /// may change that. It has to be as it was read.
    pub fn belong_to<T: Record>(&mut self, owner: &Stored<T>) {
        if let (Some(audited), Some(seen)) = (&mut self.audited, owner.value.seen()) {
            audited.owners.push(audit::Owner::of(T::KIND, &seen));
            self.owners.push(check(owner));
        }
    }

    /// Names the event that changed rows are about, which a client that is restricted changes only by a
    /// dimension of its own.
    pub fn belong_to_event(&mut self, occurrence: &Occurrence) {
        if let Some(audited) = &mut self.audited {
            audited.owners.push(audit::Owner::of_event(occurrence));
        }
    }

    /// States that the rows belong only to the client that makes them, as the test of a draft does.
    pub fn belong_to_caller(&mut self) {
        if let Some(audited) = &mut self.audited {
            let tags = audited.by.scope.tags.iter().cloned().collect();
            audited.owners.push(audit::Owner::of_caller(tags));
        }
    }

    /// Leaves a record as it is, and makes every decision that rests on having read it conflict.
    ///
    /// Who makes a record refer to another one touches that other one, so that it cannot be
    /// deleted at the same moment.
    ///
    /// A record that the set changes already is not touched.
    pub fn touch<T: Record>(&mut self, old: &Stored<T>) {
        self.own(&old.value);
        let key = old.value.key();
        let is_same = |other: &Change| other.kind == T::KIND && other.key == key;
        if self.list.iter().any(is_same) {
            return;
        }
        self.list.push(Change {
            kind: T::KIND,
            key,
            expect: Expect::Version(old.version),
            action: Action::Touch,
            remove: Vec::new(),
            add: Vec::new(),
            is_logged: T::KIND.is_logged(),
            adds: false,
            defines: false,
        });
    }
}
