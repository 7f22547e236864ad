//! The sections `[commands.NAME]`: the user's own commands for the console.

use std::path::Path;

use bellwether_tui::{CommandSetting, Keymap};
use toml::{Table, Value};

use super::ConfigError;

pub(super) const SECTION: &str = "commands";
const MOST: usize = 50;

/// Adds the commands to the keymap.
pub(super) fn add_commands(
    keys: Keymap,
    table: Option<Value>,
    path: &Path,
) -> Result<Keymap, ConfigError> {
    let at = path.display().to_string();
    let refuse = |key: &str, message: &str| ConfigError(format!("{key} (in {at}): {message}"));
    let commands = match table {
        None => return Ok(keys),
        Some(Value::Table(commands)) => commands,
        Some(_) => return Err(refuse(SECTION, "expected sections such as [commands.ssh]")),
    };
    if commands.len() > MOST {
        return Err(refuse(SECTION, &format!("more than {MOST}")));
    }
    let read = commands.into_iter().map(|(name, value)| {
        let own = format!("{SECTION}.{name}");
        let Value::Table(table) = value else {
            return Err(refuse(&own, "expected a section with `key` and `run`"));
        };
        let mut command = CommandSetting {
            name,
            at: at.clone(),
            ..CommandSetting::default()
        };
        read_command(&mut command, table)
            .map_err(|(key, message)| refuse(&format!("{own}.{key}"), message))?;
        Ok(command)
    });
    let read: Vec<CommandSetting> = read.collect::<Result<_, _>>()?;
    keys.with_commands(&read).map_err(|problems| {
        let lines = problems.iter().map(ToString::to_string);
        ConfigError(lines.collect::<Vec<_>>().join("\n"))
    })
}

/// Reads the fields of a command. An error includes the invalid key.
fn read_command(command: &mut CommandSetting, table: Table) -> Result<(), (String, &'static str)> {
    for (key, value) in table {
        let words = || -> Option<Vec<String>> {
            let words = value.as_array().filter(|it| it.len() <= MOST)?.iter();
            words.map(|it| it.as_str().map(str::to_owned)).collect()
        };
        let (is_read, expected) = match key.as_str() {
            "key" => {
                let key = value.as_str().map(|key| key.clone_into(&mut command.key));
                (key.is_some(), "expected a key such as \"X\" or \"g s\"")
            }
            "screens" => {
                let screens = words().map(|screens| command.screens = screens);
                (
                    screens.is_some(),
                    "expected a list such as [\"events\", \"event\"]",
                )
            }
            "run" => {
                let run = words().map(|run| command.run = run);
                (
                    run.is_some(),
                    "expected a list such as [\"ssh\", \"{dimensions.host}\"]",
                )
            }
            _ => (false, "unknown setting; expected one of key, screens, run"),
        };
        if !is_read {
            return Err((key, expected));
        }
    }
    match (command.key.is_empty(), command.run.is_empty()) {
        (true, _) => Err(("key".to_owned(), "required: a key such as \"X\"")),
        (_, true) => Err(("run".to_owned(), "required: a program and its arguments")),
        _ => Ok(()),
    }
}
