//! Occurrences that one request changes: read together, changed in order, written once.

use std::collections::HashMap;

use crate::{
    domain::{EventId, Occurrence, OccurrenceId, RecordId},
    error::Error,
    store::{Changes, EngineError, Index, Store, Stored, record::bytes::Key},
};

/// Which occurrence is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The newest one of an event.
    Newest(EventId),
    /// That one.
    Exactly(OccurrenceId),
}

impl Target {
    /// That nothing is stored there.
    pub fn not_found(self) -> Error {
        Error::NotFound(match self {
            Self::Newest(event) => format!("there is no event `{event}`"),
            Self::Exactly(id) => format!("there is no occurrence `{id}`"),
        })
    }

    /// The start of the index entry, which ends with the number.
    fn prefix(self) -> Vec<u8> {
        match self {
            Self::Newest(event) => Key::new().event(event).build(),
            Self::Exactly(id) => Key::new().event(id.event).number(id.number).build(),
        }
    }
}

/// The occurrences that targets mean, as read and as they will be.
#[derive(Debug)]
pub struct Edits {
    rows: Vec<Row>,
    /// By target, the row.
    places: Vec<Option<usize>>,
}

#[derive(Debug)]
struct Row {
    stored: Stored<Occurrence>,
    next: Occurrence,
}

impl Edits {
    /// Reads what the targets mean.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn read(store: &Store, targets: &[Target]) -> Result<Self, EngineError> {
        let prefixes: Vec<_> = targets.iter().map(|target| target.prefix()).collect();
        let engine = store.engine();
        let found = engine
            .last_under(Index::OccurrenceByEvent, &prefixes)
            .await?;
        let keys: Vec<_> = found.iter().flatten().map(|(_, key)| key.clone()).collect();
        let mut records = store.get_many::<Occurrence>(keys).await?.into_iter();
        let mut edits = Self {
            rows: Vec::new(),
            places: Vec::with_capacity(targets.len()),
        };
        let mut known: HashMap<RecordId, usize> = HashMap::new();
        for entry in found {
            let record = entry.and_then(|_| records.next().flatten());
            let place = record.map(|stored| {
                *known.entry(stored.value.key).or_insert_with(|| {
                    let next = stored.value.clone();
                    edits.rows.push(Row { stored, next });
                    edits.rows.len() - 1
                })
            });
            edits.places.push(place);
        }
        Ok(edits)
    }

    /// The occurrence that a target means, by the target's place in the list; several targets may
    /// mean the same one.
    pub fn get(&mut self, target: usize) -> Option<&mut Occurrence> {
        let place = self.places.get(target).copied().flatten()?;
        self.rows.get_mut(place).map(|row| &mut row.next)
    }

    /// All of them as they were read, each once.
    pub fn occurrences(&self) -> impl Iterator<Item = &Occurrence> {
        self.rows.iter().map(|row| &row.stored.value)
    }

    /// Adds what changed.
    pub fn write(&self, changes: &mut Changes) {
        let changed = self.rows.iter().filter(|row| row.stored.value != row.next);
        changed.for_each(|row| changes.update(&row.stored, &row.next));
    }
}
