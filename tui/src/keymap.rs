//! The one list of actions: it feeds keys, hints, palette and help.

mod actions;
mod chord;
mod table;

pub(crate) use actions::{Action, Entry, Need, Place};
pub use chord::Unknown;
pub(crate) use chord::{matches, parse, shown};
use crossterm::event::KeyEvent;
pub(crate) use table::ACTIONS;

/// What a key means in these places, the most particular place first.
pub(crate) fn lookup(key: KeyEvent, places: &[Place]) -> Option<&'static Entry> {
    places.iter().find_map(|place| {
        let mut here = ACTIONS.iter().filter(|entry| entry.places.contains(place));
        here.find(|entry| entry.keys.iter().any(|chord| matches(chord, key)))
    })
}

/// The actions there are in these places, in the order of the list.
pub(crate) fn available(places: &[Place]) -> impl Iterator<Item = &'static Entry> {
    ACTIONS
        .iter()
        .filter(|entry| entry.places.iter().any(|place| places.contains(place)))
}

/// The entry of an action.
pub(crate) fn entry(action: Action) -> &'static Entry {
    ACTIONS
        .iter()
        .find(|entry| entry.action == action)
        .expect("every action has an entry")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things_in_one_place() {
        for (index, one) in ACTIONS.iter().enumerate() {
            for other in &ACTIONS[index + 1..] {
                let shared_place = one.places.iter().any(|place| other.places.contains(place));
                let shared_key = one.keys.iter().find(|key| other.keys.contains(key));
                assert!(
                    !(shared_place && shared_key.is_some()),
                    "{shared_key:?}: {} and {}",
                    one.name,
                    other.name
                );
            }
        }
    }

    #[test]
    fn every_key_of_the_list_can_be_read() {
        for entry in ACTIONS {
            for key in entry.keys {
                assert_eq!(parse(key).unwrap().len(), 1, "{key} of {}", entry.name);
            }
        }
    }

    #[test]
    fn a_key_of_the_place_beats_a_key_of_everywhere() {
        let key = parse("p").unwrap()[0];
        let found = lookup(key, &[Place::Events, Place::List, Place::Anywhere]).unwrap();
        assert_eq!(found.action, Action::Pause);
    }
}
