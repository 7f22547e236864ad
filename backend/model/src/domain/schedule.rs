//! Schedules: who is on call when.

use jiff::civil::DateTime;

use crate::domain::{Name, RecordId, calendar::Window};

/// Defines who is on call at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Distinguishes it from an earlier schedule of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// The zone of its local times, by its IANA name.
    pub time_zone: String,
    /// Its layers, in the author's order; never empty. A later one goes over those before it.
    pub layers: Vec<Layer>,
    /// Whether times at which no one is on call are meant.
    pub gaps_allowed: bool,
    /// Overrides, in the order in which they were made.
    pub overrides: Vec<Override>,
    /// Which of the addresses that were made for its feed is current; 0 before the first was replaced.
    pub feed_number: u32,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// A rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// For people.
    pub name: String,
    /// Who takes turns; never empty.
    pub slots: Vec<Slot>,
    /// The hand-offs: the starts of this window. How long it lasts does not matter.
    pub hand_offs: Window,
    /// The calendar inside whose windows it has someone; none for at any time.
    pub calendar: Option<Name>,
    /// The local time from which it applies; `None` if from its first hand-off.
    pub from: Option<DateTime>,
    /// The local time at which it ends; `None` if never.
    pub until: Option<DateTime>,
}

/// Those who are on call together for one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The contacts; empty if the layer has no one in this turn.
    pub contacts: Vec<Name>,
}

/// A stretch of time in which others are on call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Its identity.
    pub id: RecordId,
    /// The contacts; empty for no one.
    pub contacts: Vec<Name>,
    /// The start, in milliseconds since 1970.
    pub start_ms: i64,
    /// The end, in milliseconds since 1970.
    pub end_ms: i64,
    /// Why, for people.
    pub reason: String,
    /// Who made it.
    pub author: Option<Name>,
}

impl Schedule {
    /// The contacts that it names, in their order.
    pub fn contacts(&self) -> impl Iterator<Item = &Name> {
        let slots = self.layers.iter().flat_map(|it| &it.slots);
        let others = self.overrides.iter().flat_map(|it| &it.contacts);
        slots.flat_map(|it| &it.contacts).chain(others)
    }

    /// The calendars of its layers, in their order.
    pub fn calendars(&self) -> impl Iterator<Item = &Name> {
        self.layers.iter().filter_map(|it| it.calendar.as_ref())
    }
}
