//! Configured key bindings: parsing, and checks for conflicts.

mod conflict;
mod custom;
pub(super) mod notation;

pub use self::custom::CommandSetting;
use self::notation::write_keys;
use super::{
    ACTIONS, Keymap,
    actions::{ActionPlace, Entry},
    binding::Keys,
    chord,
};
use crate::limits;

#[derive(Clone, Debug)]
pub struct KeySetting {
    /// The place that the binding applies to; `None` for everywhere.
    pub place: Option<String>,
    pub action: String,
    /// Keys such as `x`, `ctrl-s` or `g g`; an empty list removes all keys.
    pub keys: Vec<String>,
    pub at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {name}: {problem}")]
pub struct KeyProblem {
    /// Position of the setting to change.
    pub at: String,
    pub name: String,
    pub problem: String,
}

impl KeySetting {
    fn name(&self) -> String {
        match &self.place {
            None => format!("keys.{}", self.action),
            Some(place) => format!("keys.{place}.{}", self.action),
        }
    }

    fn problem(&self, problem: impl Into<String>) -> KeyProblem {
        KeyProblem {
            at: self.at.clone(),
            name: self.name(),
            problem: problem.into(),
        }
    }
}

struct ParsedSetting<'a> {
    setting: &'a KeySetting,
    entry: &'static Entry,
    place: Option<ActionPlace>,
    keys: Vec<Keys>,
}

impl Keymap {
    /// Applies key bindings to the defaults.
    ///
    /// # Errors
    /// Returns all errors: unknown names, invalid keys, keys with two meanings on one screen, and
    /// bindings that leave no key to quit or for help.
    pub fn new(settings: &[KeySetting]) -> Result<Self, Vec<KeyProblem>> {
        let mut keymap = Self::default();
        let mut problems = Vec::new();
        let mut good = Vec::new();
        for setting in settings {
            match parse_settings(setting) {
                Ok(read) => {
                    keymap.bind(read.entry.action, read.place, read.keys.clone());
                    good.push(read);
                }
                Err(mut wrong) => problems.append(&mut wrong),
            }
        }
        problems.extend(conflict::find_conflicts(&keymap, &good));
        if problems.is_empty() {
            Ok(keymap)
        } else {
            Err(problems)
        }
    }
}

fn parse_settings(setting: &KeySetting) -> Result<ParsedSetting<'_>, Vec<KeyProblem>> {
    let mut problems = Vec::new();
    let place = setting.place.as_deref().map(find_place).transpose();
    let entry = find_entry(&setting.action);
    for problem in [place.as_ref().err(), entry.as_ref().err()]
        .into_iter()
        .flatten()
    {
        problems.push(setting.problem(problem));
    }
    if setting.keys.len() > limits::KEYS_PER_ACTION {
        let most = limits::KEYS_PER_ACTION;
        problems.push(setting.problem(format!("an action can have at most {most} keys")));
    }
    let mut keys = Vec::new();
    for write_keys in setting.keys.iter().take(limits::KEYS_PER_ACTION) {
        match notation::parse_keys(write_keys) {
            Ok(read) => keys.push(read),
            Err(problem) => problems.push(setting.problem(problem)),
        }
    }
    if let (Ok(place), Ok(entry)) = (place, entry) {
        problems.extend(
            check_place(entry, place, &keys)
                .into_iter()
                .map(|problem| setting.problem(problem)),
        );
        if problems.is_empty() {
            return Ok(ParsedSetting {
                setting,
                entry,
                place,
                keys,
            });
        }
    }
    Err(problems)
}

fn check_place(entry: &Entry, place: Option<ActionPlace>, keys: &[Keys]) -> Vec<String> {
    let reaches = |place: &ActionPlace| {
        let mut screens = ActionPlace::screen_places().filter(|screen| screen.contains(place));
        screens.any(|screen| entry.places.iter().any(|own| screen.contains(own)))
    };
    if let Some(place) = place.filter(|place| !reaches(place)) {
        let places: Vec<String> = entry.places.iter().map(|place| place.name()).collect();
        return vec![format!(
            "is not available in `{}`, only in {}",
            place.name(),
            places.join(", ")
        )];
    }
    let only_in_forms = place == Some(ActionPlace::Form) || entry.places == [ActionPlace::Form];
    let typed = keys
        .iter()
        .filter(|keys| only_in_forms && chord::is_text_input(keys[0]));
    typed
        .map(|keys| {
            format!(
                "`{}` is used for typing in forms; use a key with ctrl or alt, or F1 to F12",
                write_keys(keys)
            )
        })
        .collect()
}

fn find_entry(name: &str) -> Result<&'static Entry, String> {
    let named = |entry: &&Entry| entry.action.name() == name;
    ACTIONS.iter().find(named).ok_or_else(|| {
        let nearest = nearest_name(name, ACTIONS.iter().map(|entry| entry.action.name()));
        format!("unknown action; the nearest is `{nearest}`")
    })
}

fn find_place(name: &str) -> Result<ActionPlace, String> {
    let named = |place: &ActionPlace| place.name() == name;
    ActionPlace::iter().find(named).ok_or_else(|| {
        let nearest = nearest_name(name, ActionPlace::iter().map(ActionPlace::name));
        format!("unknown place `{name}`; the nearest is `{nearest}`")
    })
}

fn nearest_name(name: &str, known: impl Iterator<Item = String>) -> String {
    known
        .min_by_key(|known| strsim::damerau_levenshtein(known, name))
        .unwrap_or_default()
}
