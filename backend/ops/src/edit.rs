//! Occurrences changed by one request: read together, changed in order, written once.

use std::collections::HashMap;

use crate::{
    domain::{EventId, Occurrence, OccurrenceId, RecordId, Status},
    error::Error,
    find,
    store::{Changes, EngineError, Index, Store, Stored, record::bytes::Key},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OccurrenceTarget {
    Newest(EventId),
    Exactly(OccurrenceId),
}

impl OccurrenceTarget {
    pub fn event(self) -> EventId {
        match self {
            Self::Newest(event) => event,
            Self::Exactly(id) => id.event,
        }
    }

    pub fn not_found(self) -> Error {
        Error::NotFound(match self {
            Self::Newest(event) => format!("event `{event}` not found"),
            Self::Exactly(id) => format!("occurrence `{id}` not found"),
        })
    }

    fn prefix(self) -> Vec<u8> {
        match self {
            Self::Newest(event) => Key::new().event(event).build(),
            Self::Exactly(id) => Key::new().event(id.event).number(id.number).build(),
        }
    }
}

/// The target occurrences, as read and as they will be written.
#[derive(Debug)]
pub struct Edits {
    rows: Vec<EditedOccurrence>,
    places: Vec<Option<usize>>,
}

#[derive(Debug)]
struct EditedOccurrence {
    stored: Stored<Occurrence>,
    next: Occurrence,
}

impl Edits {
    pub async fn read(store: &Store, targets: &[OccurrenceTarget]) -> Result<Self, EngineError> {
        let prefixes: Vec<_> = targets.iter().map(|target| target.prefix()).collect();
        let found = store.last_with_prefix::<Occurrence>(Index::OccurrenceByEvent, &prefixes);
        let mut edits = Self {
            rows: Vec::new(),
            places: Vec::with_capacity(targets.len()),
        };
        let mut known: HashMap<RecordId, usize> = HashMap::new();
        for record in found.await? {
            let place = record.map(|stored| {
                *known.entry(stored.value.key).or_insert_with(|| {
                    let next = stored.value.clone();
                    edits.rows.push(EditedOccurrence { stored, next });
                    edits.rows.len() - 1
                })
            });
            edits.places.push(place);
        }
        Ok(edits)
    }

    /// Returns the occurrence of the target at a position; several targets may refer to the same
    /// one.
    pub fn get(&mut self, target: usize) -> Option<&mut Occurrence> {
        let place = self.places.get(target).copied().flatten()?;
        self.rows.get_mut(place).map(|row| &mut row.next)
    }

    /// Reads earlier occurrences of the same events that operators reopened.
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
            if let Some(stored) = find::find_stored(store, id).await? {
                let next = stored.value.clone();
                self.rows.push(EditedOccurrence { stored, next });
            }
        }
        Ok(())
    }

    /// Checks that an occurrence may be reopened, and makes later events apply to it. The newest
    /// occurrence of its event must have been read.
    ///
    /// # Errors
    /// Returns [`Error::FailedPrecondition`] if another occurrence of the event is open.
    pub fn reopen_occurrence(&mut self, id: OccurrenceId) -> Result<(), Error> {
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
                    row.next.status.as_str()
                )));
            }
            if newest
                .as_ref()
                .is_none_or(|it: &&mut EditedOccurrence| it.next.number < other.number)
            {
                newest = Some(row);
            }
        }
        if let Some(newest) = newest.filter(|it| it.next.number > id.number) {
            newest.next.reopened = Some(id.number);
        }
        Ok(())
    }

    pub fn occurrences(&self) -> impl Iterator<Item = &Occurrence> {
        self.rows.iter().map(|row| &row.stored.value)
    }

    pub fn changed_occurrences(&self) -> impl Iterator<Item = (&Occurrence, &Occurrence)> {
        let changed = self.rows.iter().filter(|row| row.stored.value != row.next);
        changed.map(|row| (&row.stored.value, &row.next))
    }

    pub fn write(&self, changes: &mut Changes) {
        let changed = self.rows.iter().filter(|row| row.stored.value != row.next);
        changed.for_each(|row| changes.update(&row.stored, &row.next));
    }
}
