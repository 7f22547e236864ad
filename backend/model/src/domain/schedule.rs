//! Schedules, which define who is on call.

use jiff::civil::DateTime;

use crate::domain::{Name, RecordId, calendar::Window};

/// A schedule: defines who is on call at any time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The identity; distinguishes it from an earlier schedule of the same name.
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    /// The labels, in the author's order.
    pub tags: Vec<String>,
    /// The IANA name of the time zone of its local times.
    pub time_zone: String,
    /// The layers, in the author's order; never empty. Later layers take precedence.
    pub layers: Vec<Layer>,
    /// Whether gaps with no one on call are intended.
    pub gaps_allowed: bool,
    /// The overrides, in order of creation.
    pub overrides: Vec<Override>,
    /// The number of the current URL of its feed; 0 before the first was replaced.
    pub feed_number: u32,
    /// Revision, counted from 1; the etag is derived from it.
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

/// A rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The display name.
    pub name: String,
    /// The turns of the rotation; never empty.
    pub slots: Vec<Slot>,
    /// The window whose starts are the hand-offs; its length is ignored.
    pub hand_offs: Window,
    /// The calendar in whose windows it applies; `None` means always.
    pub calendar: Option<Name>,
    /// The local time from which it applies; `None` if from its first hand-off.
    pub from: Option<DateTime>,
    /// The local time at which it ends; `None` if never.
    pub until: Option<DateTime>,
}

/// The contacts on call together for one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The contacts; empty if the layer has no one in this turn.
    pub contacts: Vec<Name>,
}

/// A period in which other contacts are on call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    pub id: RecordId,
    /// The contacts; empty for no one.
    pub contacts: Vec<Name>,
    pub start_ms: i64,
    pub end_ms: i64,
    pub reason: String,
    pub author: Option<Name>,
}

impl Schedule {
    pub fn contacts(&self) -> impl Iterator<Item = &Name> {
        let slots = self.layers.iter().flat_map(|it| &it.slots);
        let others = self.overrides.iter().flat_map(|it| &it.contacts);
        slots.flat_map(|it| &it.contacts).chain(others)
    }

    pub fn calendars(&self) -> impl Iterator<Item = &Name> {
        self.layers.iter().filter_map(|it| it.calendar.as_ref())
    }
}
