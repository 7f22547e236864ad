//! The list of actions: the source of keys, hints, palette, help, and the table in the
//! documentation.

mod actions;
mod binding;
mod chord;
mod command;
mod layout;
mod reference;
mod setting;
mod table;

pub(crate) use actions::{Action, ActionPlace, Entry, Group, Requirement};
pub(crate) use binding::KeyLookup;
pub use binding::Keymap;
pub use chord::Unknown;
pub(crate) use chord::{format_keys, normalize, parse};
pub(crate) use layout::to_latin_position;
pub use setting::{CommandSetting, KeyProblem, KeySetting};
pub(crate) use table::ACTIONS;

pub(crate) fn available_entries(places: &[ActionPlace]) -> impl Iterator<Item = &'static Entry> {
    ACTIONS
        .iter()
        .filter(|entry| entry.places.iter().any(|place| places.contains(place)))
}

pub(crate) fn entry_for(action: Action) -> &'static Entry {
    ACTIONS
        .iter()
        .find(|entry| entry.action == action)
        .expect("every action has an entry")
}

#[cfg(test)]
mod tests;
