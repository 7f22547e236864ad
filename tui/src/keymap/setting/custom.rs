//! Configured commands: parsing, and checks for conflicts with other keys.

use crossterm::event::KeyEvent;

use super::{KeyProblem, Keymap, find_place, notation};
use crate::{
    data::Screen,
    keymap::{actions::ActionPlace, available_entries, command::CustomCommand},
};

/// A command in the configuration file.
#[derive(Clone, Debug, Default)]
pub struct CommandSetting {
    pub name: String,
    pub key: String,
    /// Names of places, such as `events`; empty for the list and the page of events.
    pub screens: Vec<String>,
    /// The program and its arguments; `{dimensions.host}` stands for a field.
    pub run: Vec<String>,
    /// Position of the setting to change.
    pub at: String,
}

impl CommandSetting {
    fn problem(&self, field: &str, problem: impl Into<String>) -> KeyProblem {
        KeyProblem {
            at: self.at.clone(),
            name: format!("commands.{}.{field}", self.name),
            problem: problem.into(),
        }
    }

    fn parse(&self) -> Result<CustomCommand, KeyProblem> {
        let keys = notation::parse_keys(&self.key);
        let keys = keys.map_err(|problem| self.problem("key", problem))?;
        let places = self.screens.iter().map(|name| find_item_place(name));
        let places: Result<Vec<_>, String> = places.collect();
        let mut places = places.map_err(|problem| self.problem("screens", problem))?;
        if places.is_empty() {
            places = vec![ActionPlace::Screen(Screen::Events), ActionPlace::Event];
        }
        CustomCommand::new(self.name.clone(), keys, places, &self.run)
            .map_err(|problem| self.problem("run", problem))
    }
}

fn find_item_place(name: &str) -> Result<ActionPlace, String> {
    use ActionPlace::{Delivery, Event, Many, One};
    use Screen::{Deliveries, Events};

    match find_place(name)? {
        place
        @ (ActionPlace::Screen(Events | Deliveries) | Event | Many(_) | One(_) | Delivery) => {
            Ok(place)
        }
        _ => Err(format!(
            "`{name}` shows no item; expected screens such as events, event or rules"
        )),
    }
}

impl Keymap {
    /// Adds commands to the keymap.
    ///
    /// # Errors
    /// Returns all errors: unknown screens, invalid keys and arguments, and keys that already have
    /// a meaning on one of the screens.
    pub fn with_commands(mut self, settings: &[CommandSetting]) -> Result<Self, Vec<KeyProblem>> {
        let mut problems = Vec::new();
        for setting in settings {
            match setting.parse() {
                Ok(command) => match self.find_owner(&command) {
                    Some(owner) => {
                        let problem = format!("`{}` is also {owner}", setting.key);
                        problems.push(setting.problem("key", problem));
                    }
                    None => self.commands.push(command),
                },
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() {
            Ok(self)
        } else {
            Err(problems)
        }
    }

    /// Returns the action or command that already uses the command's key on one of its screens.
    fn find_owner(&self, command: &CustomCommand) -> Option<String> {
        let wanted = command.keys.as_slice();
        let clashes = |keys: &[KeyEvent]| keys.starts_with(wanted) || wanted.starts_with(keys);
        command.places.iter().find_map(|place| {
            let places = place.enclosing_places();
            let mut entries = available_entries(&places);
            let owner = entries.find(|entry| self.keys_for(entry, &places).any(clashes));
            let mut others = self.commands_in(&places);
            let other = others.find(|(_, other)| clashes(&other.keys));
            let owner = owner.map(|entry| entry.action.name());
            let owner = owner.or_else(|| Some(format!("commands.{}", other?.1.name)))?;
            Some(format!("`{owner}` (in {})", place.name()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, screens: &[&str], run: &[&str]) -> CommandSetting {
        let owned = |words: &[&str]| words.iter().map(|it| (*it).to_owned()).collect();
        CommandSetting {
            name: "ssh".to_owned(),
            key: key.to_owned(),
            screens: owned(screens),
            run: owned(run),
            at: "here".to_owned(),
        }
    }

    #[test]
    fn invalid_command_is_rejected_with_its_setting() {
        let ssh = ["ssh", "{dimensions.host}"];
        for (given, problem) in [
            (
                setting("a", &[], &ssh),
                "ssh.key: `a` is also `acknowledge` (in events)",
            ),
            (
                setting("g x", &["event"], &ssh),
                "is also `go_mappings` (in event)",
            ),
            (setting("g", &["rules"], &ssh), "(in rules)"),
            (
                setting("X", &["rulez"], &ssh),
                "ssh.screens: unknown place `rulez`",
            ),
            (
                setting("X", &["overview"], &ssh),
                "`overview` shows no item",
            ),
            (
                setting("hyper-x", &[], &ssh),
                "ssh.key: `hyper-x` is not a key",
            ),
            (setting("X", &[], &[]), "ssh.run: expected a program"),
            (
                setting("X", &[], &["{name}"]),
                "ssh.run: expected a program",
            ),
            (
                setting("X", &[], &["ssh", "{name"]),
                "ssh.run: `{name`: expected a field",
            ),
            (setting("X", &[], &["ssh", "a}"]), "write {{ or }}"),
            (setting("X", &[], &["ssh", "{}"]), "expected a field"),
        ] {
            let problems = Keymap::default().with_commands(&[given]).unwrap_err();
            let found = problems[0].to_string();
            assert!(found.contains(problem), "{found}");
        }
        let mut other = setting("X", &["event"], &ssh);
        other.name = "ping".to_owned();
        let both = [setting("X", &[], &ssh), other];
        let problems = Keymap::default().with_commands(&both).unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "here: commands.ping.key: `X` is also `commands.ssh` (in event)"
        );
    }
}
