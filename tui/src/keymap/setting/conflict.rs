//! Conflicting, unreachable and missing key bindings.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyModifiers};

use super::{KeyProblem, Keymap, Keys, ParsedSetting, notation::write_keys};
use crate::keymap::{
    actions::{Action, ActionPlace, Entry},
    available_entries, entry_for,
};

struct BoundKeys<'a> {
    keys: Keys,
    entry: &'static Entry,
    from: Option<usize>,
    settings: &'a [ParsedSetting<'a>],
}

impl BoundKeys<'_> {
    fn name(&self) -> String {
        match self.from {
            Some(index) => {
                let setting = self.settings[index].setting;
                format!("`{}` ({})", self.entry.action.name(), setting.at)
            }
            None => format!("`{}`", self.entry.action.name()),
        }
    }
}

pub(super) fn find_conflicts(keymap: &Keymap, settings: &[ParsedSetting<'_>]) -> Vec<KeyProblem> {
    // Conflicts by setting and message, so that a conflict on several screens is reported once.
    let mut found: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    for places in ActionPlace::screen_places() {
        let bound = all_bindings(keymap, settings, &places);
        for (index, one) in bound.iter().enumerate() {
            for other in &bound[index + 1..] {
                if let Some((at, problem)) = find_clash(one, other) {
                    let screens = found.entry((at, problem)).or_default();
                    screens.push(places[0].name());
                }
            }
        }
    }
    let mut problems: Vec<KeyProblem> = found
        .into_iter()
        .map(|((at, problem), screens)| {
            let screens = screens.join(", ");
            settings[at]
                .setting
                .problem(format!("{problem} (in {screens})"))
        })
        .collect();
    problems.extend(screens_without_exit(keymap, settings));
    problems
}

fn all_bindings<'a>(
    keymap: &Keymap,
    settings: &'a [ParsedSetting<'a>],
    places: &[ActionPlace],
) -> Vec<BoundKeys<'a>> {
    let mut all = Vec::new();
    for entry in available_entries(places) {
        let set = |place: Option<ActionPlace>| {
            settings
                .iter()
                .rposition(|read| read.entry.action == entry.action && read.place == place)
        };
        let near = places.iter().find_map(|place| set(Some(*place)));
        let from = near.or_else(|| set(None));
        all.extend(keymap.keys_for(entry, places).map(|keys| BoundKeys {
            keys: keys.to_vec(),
            entry,
            from,
            settings,
        }));
    }
    all
}

fn find_clash(one: &BoundKeys<'_>, other: &BoundKeys<'_>) -> Option<(usize, String)> {
    let same_action = one.entry.action == other.entry.action;
    let (at, mine, others) = match (one.from, other.from) {
        (None, None) => return None,
        (Some(a), Some(b)) if b < a => (a, one, other),
        (_, Some(at)) => (at, other, one),
        (Some(at), None) => (at, one, other),
    };
    if mine.keys == others.keys {
        let problem = format!("`{}` is also {}", write_keys(&mine.keys), others.name());
        return (!same_action).then_some((at, problem));
    }
    let (long, short, owner) = if mine.keys.starts_with(&others.keys) {
        (&mine.keys, &others.keys, others)
    } else if others.keys.starts_with(&mine.keys) {
        (&others.keys, &mine.keys, mine)
    } else {
        return None;
    };
    let problem = format!(
        "`{}` is unreachable, because `{}` is {}",
        write_keys(long),
        write_keys(short),
        owner.name()
    );
    Some((at, problem))
}

fn screens_without_exit(keymap: &Keymap, settings: &[ParsedSetting<'_>]) -> Vec<KeyProblem> {
    let mut problems = Vec::new();
    let is_interrupt = |keys: &Keys| {
        let key = keys[0];
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL)
    };
    for read in settings {
        if read.entry.action != Action::Quit && read.keys.iter().any(is_interrupt) {
            let problem = "`ctrl-c` always quits and cannot be bound";
            problems.push(read.setting.problem(problem));
        }
    }
    for action in [Action::Quit, Action::Help] {
        // Ctrl-C leaves a form regardless of the bindings.
        let safe =
            |places: &[ActionPlace; 3]| action == Action::Quit && places[0] == ActionPlace::Form;
        let without: Vec<String> = ActionPlace::screen_places()
            .filter(|places| {
                keymap.keys_for(entry_for(action), places).next().is_none() && !safe(places)
            })
            .map(|places| places[0].name())
            .collect();
        let read = settings.iter().rfind(|read| read.entry.action == action);
        if let Some(read) = read.filter(|_| !without.is_empty()) {
            problems.push(read.setting.problem(format!(
                "needs a key on every screen, and in forms a key that does not type text; none is \
                 bound in {}",
                without.join(", ")
            )));
        }
    }
    problems
}
