//! Which keys take which action on which screen: the list's own keys, and those that were set.

use std::collections::HashMap;

use crossterm::event::KeyEvent;

use super::{
    ACTIONS,
    actions::{Action, ActionPlace, Entry},
    available, chord,
};

/// Keys pressed one after the other.
pub(crate) type Keys = Vec<KeyEvent>;

/// All keys of the console. The default has those of the list of actions.
#[derive(Clone, Debug)]
pub struct Keymap {
    everywhere: HashMap<Action, Vec<Keys>>,
    /// Beats `everywhere`.
    in_place: HashMap<(Action, ActionPlace), Vec<Keys>>,
}

/// What keys that were pressed mean.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    Act(&'static Entry),
    /// They are the beginning of something.
    Wait,
    Nothing,
}

impl Default for Keymap {
    fn default() -> Self {
        let own = |entry: &Entry| {
            let keys = entry.keys.iter().map(|written| {
                let keys = chord::parse(written).expect("the list has no wrong keys");
                keys.into_iter().map(chord::normal).collect()
            });
            (entry.action, keys.collect())
        };
        Self {
            everywhere: ACTIONS.iter().map(own).collect(),
            in_place: HashMap::new(),
        }
    }
}

impl Keymap {
    pub(super) fn set(&mut self, action: Action, place: Option<ActionPlace>, keys: Vec<Keys>) {
        match place {
            None => self.everywhere.insert(action, keys),
            Some(place) => self.in_place.insert((action, place), keys),
        };
    }

    /// The keys of an action wherever nothing else is set.
    pub(super) fn everywhere(&self, action: Action) -> impl Iterator<Item = &[KeyEvent]> {
        let keys = self.everywhere.get(&action).into_iter();
        keys.flatten().map(Vec::as_slice)
    }

    /// The keys that are set for an action in one place.
    pub(super) fn only_in(
        &self,
        action: Action,
        place: ActionPlace,
    ) -> impl Iterator<Item = &[KeyEvent]> {
        let keys = self.in_place.get(&(action, place)).into_iter();
        keys.flatten().map(Vec::as_slice)
    }

    /// The keys of an action on a screen.
    pub(crate) fn keys<'a>(
        &'a self,
        entry: &Entry,
        places: &[ActionPlace],
    ) -> impl Iterator<Item = &'a [KeyEvent]> + use<'a> {
        let near = places
            .iter()
            .find_map(|place| self.in_place.get(&(entry.action, *place)));
        let keys = near.or_else(|| self.everywhere.get(&entry.action));
        let typing = places.contains(&ActionPlace::Form);
        keys.into_iter()
            .flatten()
            .filter(move |keys| !(typing && chord::types(keys[0])))
            .map(Vec::as_slice)
    }

    /// The first key of an action on a screen, for hints.
    pub(crate) fn hint(&self, entry: &Entry, places: &[ActionPlace]) -> Option<String> {
        self.keys(entry, places).next().map(chord::shown)
    }

    /// A sentence of ours, with the first key of each action instead of `‹name›`.
    pub(crate) fn tell(&self, sentence: &str, places: &[ActionPlace]) -> String {
        let mut message = String::with_capacity(sentence.len());
        let mut rest = sentence;
        while let Some((before, name, after)) = rest
            .split_once('‹')
            .and_then(|(before, tail)| Some((before, tail.split_once('›')?)))
            .map(|(before, (name, after))| (before, name, after))
        {
            message += before;
            let entry = ACTIONS.iter().find(|entry| entry.action.name() == name);
            let Some(entry) = entry else {
                // A test holds our sentences to the list; what else stands so is left as it is.
                message += name;
                rest = after;
                continue;
            };
            let here = self.hint(entry, places);
            let key = here.or_else(|| self.hint(entry, &entry.places[0].around()));
            message += &key.unwrap_or_else(|| format!("“{}” in the palette", entry.title));
            rest = after;
        }
        message + rest
    }

    /// What these keys mean on a screen; what belongs to the most particular place goes first.
    pub(crate) fn step(&self, pressed: &[KeyEvent], places: &[ActionPlace]) -> Meaning {
        let mut begun = false;
        for place in places {
            for entry in available(&[*place]) {
                for keys in self.keys(entry, places) {
                    if keys == pressed {
                        return Meaning::Act(entry);
                    }
                    begun |= keys.starts_with(pressed);
                }
            }
        }
        if begun {
            Meaning::Wait
        } else {
            Meaning::Nothing
        }
    }

    /// How what was begun can continue: the keys that are missing, and the action.
    pub(crate) fn endings(
        &self,
        pressed: &[KeyEvent],
        places: &[ActionPlace],
    ) -> Vec<(String, &'static Entry)> {
        let mut endings = Vec::new();
        for entry in available(places) {
            let begun = self
                .keys(entry, places)
                .filter_map(|keys| keys.strip_prefix(pressed));
            endings.extend(begun.map(|rest| (chord::shown(rest), entry)));
        }
        endings
    }
}
