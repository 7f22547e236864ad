//! Schedules, which define who is on call.

use jiff::civil::DateTime;

use crate::domain::{Name, RecordId, calendar::Window};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub time_zone: String,
    /// The layers, in the author's order; never empty. Later layers take precedence.
    pub layers: Vec<Layer>,
    pub gaps_allowed: bool,
    /// The overrides, in order of creation.
    pub overrides: Vec<Override>,
    /// The number of the current URL of the feed; 0 before the first URL was replaced.
    pub feed_number: u32,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub name: String,
    /// The turns of the rotation; never empty.
    pub slots: Vec<Slot>,
    /// The window whose starts are the hand-offs; its length is ignored.
    pub hand_offs: Window,
    /// The calendar in whose windows the layer applies; `None` means always.
    pub calendar: Option<Name>,
    /// The local time from which the layer applies; `None` means from its first hand-off.
    pub from: Option<DateTime>,
    /// The local time at which the layer ends; `None` means never.
    pub until: Option<DateTime>,
}

/// The contacts on call together for one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The contacts; empty if the layer has no contacts in this turn.
    pub contacts: Vec<Name>,
}

/// A period in which other contacts are on call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    pub id: RecordId,
    /// The contacts; empty if no one is on call.
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
