//! Occurrences that one request changes: read together, changed in order, written once.

use std::collections::HashMap;

use crate::{
    domain::{EventId, Occurrence, OccurrenceId, RecordId, Status},
    error::Error,
    ops::find,
    store::{Changes, EngineError, Index, Store, Stored, record::bytes::Key},
};

/// Which occurrence is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccurrenceTarget {
    /// The newest one of an event.
    Newest(EventId),
    /// That one.
    Exactly(OccurrenceId),
}

impl OccurrenceTarget {
    /// The event.
    pub fn event(self) -> EventId {
        match self {
            Self::Newest(event) => event,
            Self::Exactly(id) => id.event,
        }
    }

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
    rows: Vec<Edited>,
    /// By target, the row.
    places: Vec<Option<usize>>,
}

#[derive(Debug)]
struct Edited {
    stored: Stored<Occurrence>,
    next: Occurrence,
}

impl Edits {
    /// Reads what the targets mean.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn read(store: &Store, targets: &[OccurrenceTarget]) -> Result<Self, EngineError> {
        let prefixes: Vec<_> = targets.iter().map(|target| target.prefix()).collect();
        let found = store.last_under::<Occurrence>(Index::OccurrenceByEvent, &prefixes);
        let mut edits = Self {
            rows: Vec::new(),
            places: Vec::with_capacity(targets.len()),
        };
        let mut known: HashMap<RecordId, usize> = HashMap::new();
        for record in found.await? {
            let place = record.map(|stored| {
                *known.entry(stored.value.key).or_insert_with(|| {
                    let next = stored.value.clone();
                    edits.rows.push(Edited { stored, next });
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

    /// Reads the earlier occurrences beside those that were read that operators reopened.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn read_reopened(&mut self, store: &Store) -> Result<(), EngineError> {
        let marks = self.rows.iter().filter_map(|row| {
            let event = row.next.event;
            let number = row.next.reopened?;
            Some(OccurrenceId { event, number })
        });
        for id in marks.collect::<Vec<_>>() {
            if self.rows.iter().any(|row| row.next.id() == id) {
                continue;
            }
            if let Some(stored) = find::stored(store, id).await? {
                let next = stored.value.clone();
                self.rows.push(Edited { stored, next });
            }
        }
        Ok(())
    }

    /// Makes way for an occurrence that is to be reopened, and lets events find it. The newest one of
    /// its event must have been read.
    ///
    /// # Errors
    /// [`Error::FailedPrecondition`] when another one of the event is open.
    pub fn reopen(&mut self, id: OccurrenceId) -> Result<(), Error> {
        let of_event = self
            .rows
            .iter_mut()
            .filter(|row| row.next.event == id.event);
        let mut newest = None;
        for row in of_event {
            let other = row.next.id();
            if other != id && row.next.status != Status::Closed {
                return Err(Error::FailedPrecondition(format!(
                    "occurrence `{id}` cannot be reopened while `{other}` is {}: an event has one \
                     open occurrence at a time; close that one first",
                    row.next.status.word()
                )));
            }
            if newest
                .as_ref()
                .is_none_or(|it: &&mut Edited| it.next.number < other.number)
            {
                newest = Some(row);
            }
        }
        if let Some(newest) = newest.filter(|it| it.next.number > id.number) {
            newest.next.reopened = Some(id.number);
        }
        Ok(())
    }

    /// All of them as they were read, each once.
    pub fn occurrences(&self) -> impl Iterator<Item = &Occurrence> {
        self.rows.iter().map(|row| &row.stored.value)
    }

    /// Those that changed, as they were read and as they will be.
    pub fn changed(&self) -> impl Iterator<Item = (&Occurrence, &Occurrence)> {
        let changed = self.rows.iter().filter(|row| row.stored.value != row.next);
        changed.map(|row| (&row.stored.value, &row.next))
    }

    /// Adds what changed.
    pub fn write(&self, changes: &mut Changes) {
        let changed = self.rows.iter().filter(|row| row.stored.value != row.next);
        changed.for_each(|row| changes.update(&row.stored, &row.next));
    }
}
