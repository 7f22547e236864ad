//! Domain values as records: typed reading, and sets of changes that keep the indexes right.

pub mod bytes;
#[cfg(test)]
mod frozen;
mod kinds;
mod v1;

use std::sync::Arc;

use crate::store::{
    engine::{
        Action, Change, Direction, Engine, EngineError, Entry, Expect, Index, Kind, Lane, Range,
        memory::MemoryEngine,
    },
    seal::Sealer,
};

/// Whether changes of such records are found in the change log. What an attempt, a fact or a
/// destination's health says, nobody follows by itself.
pub fn is_logged(kind: Kind) -> bool {
    !matches!(kind, Kind::Meta | Kind::Attempt | Kind::Health)
}

/// Whether a new record of this kind adds to what the store must hold. What people change, and what
/// moves deliveries on, does not.
fn adds(kind: Kind) -> bool {
    matches!(kind, Kind::Occurrence | Kind::Delivery)
}

/// A domain value that is kept as a record.
pub trait Record: Clone + Send + Sync + Sized + 'static {
    /// The kind of record.
    const KIND: Kind;
    /// The record's key.
    fn key(&self) -> Vec<u8>;
    /// The index entries that lead to the record, each once.
    fn entries(&self) -> Vec<Entry>;
    /// The value in bytes, in the newest encoding, secrets sealed.
    fn encode(&self, sealer: &Sealer) -> Vec<u8>;
    /// Reads any encoding ever written.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] when the bytes make no record.
    fn decode(bytes: &[u8], sealer: &Sealer) -> Result<Self, EngineError>;
}

/// A record as it was read: the value, and the version to name when changing it.
#[derive(Debug, Clone)]
pub struct Stored<T> {
    /// The version it was read at.
    pub version: u64,
    /// How many bytes it has in the store.
    pub bytes: usize,
    /// The value.
    pub value: T,
}

impl<T> Stored<T> {
    /// A record as the commit at that place in the change log has left it.
    pub(crate) fn written(sequence: u64, value: T) -> Self {
        Self {
            version: sequence,
            bytes: 0,
            value,
        }
    }
}

/// Typed access to an engine. Clones share the engine.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    sealer: Arc<Sealer>,
}

impl Store {
    /// Puts types on an engine.
    pub fn new(engine: Arc<dyn Engine>, sealer: Arc<Sealer>) -> Self {
        Self { engine, sealer }
    }

    /// An empty store that is forgotten when dropped: for tests.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryEngine::new()), Arc::new(Sealer::ephemeral()))
    }

    /// The engine below, for the change log.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
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
        let decode = |row: Option<super::engine::Row>| {
            row.map(|row| {
                let value = T::decode(&row.value, &self.sealer)?;
                Ok(Stored {
                    version: row.version,
                    bytes: row.value.len(),
                    value,
                })
            })
            .transpose()
        };
        rows.into_iter().map(decode).collect()
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
        rows.into_iter()
            .map(|(_, row)| {
                let value = T::decode(&row.value, &self.sealer)?;
                Ok(Stored {
                    version: row.version,
                    bytes: row.value.len(),
                    value,
                })
            })
            .collect()
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

    /// Reads a value as it is kept.
    pub(super) fn decode<T: Record>(&self, value: &[u8]) -> Result<T, EngineError> {
        T::decode(value, &self.sealer)
    }

    /// An empty set of changes.
    pub fn changes(&self) -> Changes {
        Changes {
            sealer: Arc::clone(&self.sealer),
            list: Vec::new(),
        }
    }

    /// Applies a set of changes, all or none; returns once it is on disk, with its place in the
    /// change log.
    ///
    /// # Errors
    /// Those of [`Engine::apply`].
    pub async fn apply(&self, lane: Lane, changes: Changes) -> Result<u64, EngineError> {
        self.engine.apply(lane, changes.list).await
    }
}

/// Changes that are applied together. Each record may be changed once.
#[derive(Debug)]
pub struct Changes {
    sealer: Arc<Sealer>,
    list: Vec<Change>,
}

impl Changes {
    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many records they change.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Stores a record that must not exist yet.
    pub fn insert<T: Record>(&mut self, new: &T) {
        self.list.push(Change {
            kind: T::KIND,
            key: new.key(),
            expect: Expect::Absent,
            action: Action::Put(new.encode(&self.sealer)),
            remove: Vec::new(),
            add: new.entries(),
            is_logged: is_logged(T::KIND),
            adds: adds(T::KIND),
        });
    }

    /// Replaces a record that must still be as it was read. The key must be the same.
    pub fn update<T: Record>(&mut self, old: &Stored<T>, new: &T) {
        let (mut remove, mut add) = (old.value.entries(), new.entries());
        remove.retain(|entry| match add.iter().position(|other| other == entry) {
            Some(at) => {
                add.swap_remove(at);
                false
            }
            None => true,
        });
        self.list.push(Change {
            kind: T::KIND,
            key: new.key(),
            expect: Expect::Version(old.version),
            action: Action::Put(new.encode(&self.sealer)),
            remove,
            add,
            is_logged: is_logged(T::KIND),
            adds: false,
        });
    }

    /// Removes a record that must still be as it was read.
    pub fn delete<T: Record>(&mut self, old: &Stored<T>) {
        self.list.push(Change {
            kind: T::KIND,
            key: old.value.key(),
            expect: Expect::Version(old.version),
            action: Action::Delete,
            remove: old.value.entries(),
            add: Vec::new(),
            is_logged: is_logged(T::KIND),
            adds: false,
        });
    }

    /// Leaves a record as it is, and makes every decision that rests on having read it conflict.
    ///
    /// Who makes a record refer to another one touches that other one, so that it cannot be
    /// deleted at the same moment.
    ///
    /// A record that the set changes already is not touched.
    pub fn touch<T: Record>(&mut self, old: &Stored<T>) {
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
            is_logged: is_logged(T::KIND),
            adds: false,
        });
    }
}
