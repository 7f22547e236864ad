//! Key bindings by screen: the defaults and the configured ones.

use std::collections::HashMap;

use crossterm::event::KeyEvent;

use super::{
    ACTIONS,
    actions::{Action, ActionPlace, Entry},
    available_entries, chord,
    command::CustomCommand,
    table::EXCEPTIONS,
};

pub(crate) type Keys = Vec<KeyEvent>;

#[derive(Clone, Debug)]
pub struct Keymap {
    everywhere: HashMap<Action, Vec<Keys>>,
    in_place: HashMap<(Action, ActionPlace), Vec<Keys>>,
    pub(super) commands: Vec<CustomCommand>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyLookup {
    Act(&'static Entry),
    /// The index of a custom command.
    Run(usize),
    Wait,
    Nothing,
}

impl Default for Keymap {
    fn default() -> Self {
        let own = |entry: &Entry| {
            let keys = entry.keys.iter().map(|written| {
                let keys = chord::parse(written).expect("the list has no invalid keys");
                keys.into_iter().map(chord::normalize).collect()
            });
            (entry.action, keys.collect())
        };
        Self {
            everywhere: ACTIONS.iter().map(own).collect(),
            in_place: HashMap::new(),
            commands: Vec::new(),
        }
    }
}

impl Keymap {
    pub(super) fn bind(&mut self, action: Action, place: Option<ActionPlace>, keys: Vec<Keys>) {
        match place {
            None => self.everywhere.insert(action, keys),
            Some(place) => self.in_place.insert((action, place), keys),
        };
    }

    pub(super) fn keys_everywhere(&self, action: Action) -> impl Iterator<Item = &[KeyEvent]> {
        let keys = self.everywhere.get(&action).into_iter();
        keys.flatten().map(Vec::as_slice)
    }

    pub(super) fn keys_bound_in(
        &self,
        action: Action,
        place: ActionPlace,
    ) -> impl Iterator<Item = &[KeyEvent]> {
        let keys = self.in_place.get(&(action, place)).into_iter();
        keys.flatten().map(Vec::as_slice)
    }

    pub(crate) fn keys_for<'a>(
        &'a self,
        entry: &Entry,
        places: &[ActionPlace],
    ) -> impl Iterator<Item = &'a [KeyEvent]> + use<'a> {
        let near = places
            .iter()
            .find_map(|place| self.in_place.get(&(entry.action, *place)));
        let keys = near.or_else(|| self.everywhere.get(&entry.action));
        let typing = places.contains(&ActionPlace::Form);
        let mut exceptions = EXCEPTIONS.iter();
        let exception = exceptions
            .find(|(action, place, _)| *action == entry.action && places.contains(place))
            .filter(|_| near.is_none())
            .map(|(_, _, code)| *code);
        keys.into_iter()
            .flatten()
            .filter(move |keys| !(typing && chord::is_text_input(keys[0])))
            .filter(move |keys| !(keys.len() == 1 && Some(keys[0].code) == exception))
            .map(Vec::as_slice)
    }

    pub(crate) fn hint(&self, entry: &Entry, places: &[ActionPlace]) -> Option<String> {
        self.keys_for(entry, places).next().map(chord::format_keys)
    }

    /// Replaces each `‹name›` in a sentence with the first key of that action.
    pub(crate) fn expand_keys(&self, sentence: &str, places: &[ActionPlace]) -> String {
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
                // Text of this form that is not the name of an action is left unchanged. A test
                // checks the names in the console's sentences.
                message += name;
                rest = after;
                continue;
            };
            let here = self.hint(entry, places);
            let key = here.or_else(|| self.hint(entry, &entry.places[0].enclosing_places()));
            message += &key.unwrap_or_else(|| format!("“{}” in the palette", entry.title));
            rest = after;
        }
        message + rest
    }

    /// Returns the meaning of the keys on a screen; the most specific place wins.
    pub(crate) fn look_up(&self, pressed: &[KeyEvent], places: &[ActionPlace]) -> KeyLookup {
        let mut begun = false;
        for (at, command) in self.commands_in(places) {
            if command.keys == pressed {
                return KeyLookup::Run(at);
            }
            begun |= command.keys.starts_with(pressed);
        }
        for place in places {
            for entry in available_entries(&[*place]) {
                for keys in self.keys_for(entry, places) {
                    if keys == pressed {
                        return KeyLookup::Act(entry);
                    }
                    begun |= keys.starts_with(pressed);
                }
            }
        }
        if begun {
            KeyLookup::Wait
        } else {
            KeyLookup::Nothing
        }
    }

    /// Returns the commands of a screen with their positions.
    pub(crate) fn commands_in(
        &self,
        places: &[ActionPlace],
    ) -> impl Iterator<Item = (usize, &CustomCommand)> {
        let all = self.commands.iter().enumerate();
        all.filter(|(_, command)| command.places.iter().any(|place| places.contains(place)))
    }

    pub(crate) fn command(&self, at: usize) -> Option<&CustomCommand> {
        self.commands.get(at)
    }

    pub(crate) fn continuations(
        &self,
        pressed: &[KeyEvent],
        places: &[ActionPlace],
    ) -> Vec<(String, &'static Entry)> {
        let mut endings = Vec::new();
        for entry in available_entries(places) {
            let begun = self
                .keys_for(entry, places)
                .filter_map(|keys| keys.strip_prefix(pressed));
            endings.extend(begun.map(|rest| (chord::format_keys(rest), entry)));
        }
        endings
    }
}
