//! The sections `[contexts.NAME]`: services by name, each with its address, key and colour.

use std::path::Path;

use bellwether_tui::Colour;
use toml::{Table, Value};

use super::{ConfigError, SettingSource, Settings, setting};

pub(super) const SECTION: &str = "contexts";
const KEYS: [&str; 7] = [
    "connect",
    "key_file",
    "tls_ca",
    "tls_name",
    "tls_client_cert",
    "tls_client_key",
    "read_only",
];
const COLOUR: &str = "colour";
/// Limits on the number of contexts in a file, and on the length of a name.
const MOST: usize = 50;
const NAME_LETTERS: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) name: String,
    pub(crate) colour: Option<Colour>,
    values: Vec<(String, Value)>,
}

pub(super) fn parse_contexts(
    table: Option<Value>,
    path: &Path,
) -> Result<Vec<Context>, ConfigError> {
    let refuse = |key: &str, message: &str| {
        let path = path.display();
        ConfigError(format!("{key} (in {path}): {message}"))
    };
    let contexts = match table {
        None => return Ok(Vec::new()),
        Some(Value::Table(contexts)) => contexts,
        Some(_) => return Err(refuse(SECTION, "expected sections such as [contexts.prod]")),
    };
    if contexts.len() > MOST {
        return Err(refuse(SECTION, &format!("more than {MOST}")));
    }
    let mut read = Vec::new();
    for (name, value) in contexts {
        let own = format!("{SECTION}.{name}");
        let is_fit = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        if name.is_empty() || name.len() > NAME_LETTERS || !name.chars().all(is_fit) {
            let message =
                format!("expected a name of 1 to {NAME_LETTERS} letters, digits, `-`, `_` and `.`");
            return Err(refuse(&own, &message));
        }
        let Value::Table(table) = value else {
            return Err(refuse(
                &own,
                "expected a section with `connect` and `key_file`",
            ));
        };
        read.push(
            parse_context(name, table)
                .map_err(|(key, message)| refuse(&format!("{own}.{key}"), &message))?,
        );
    }
    read.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(read)
}

/// Parses a context. An error includes the invalid key.
fn parse_context(name: String, table: Table) -> Result<Context, (String, String)> {
    let mut context = Context {
        name,
        colour: None,
        values: Vec::new(),
    };
    for (key, value) in table {
        if key == COLOUR {
            let colour = value.as_str().and_then(Colour::find);
            let words = Colour::ALL.map(Colour::as_str).join(", ");
            let message = || (key.clone(), format!("expected one of {words}"));
            context.colour = Some(colour.ok_or_else(message)?);
        } else if KEYS.contains(&key.as_str()) {
            let setting = setting::find_setting(&key).expect("these are settings");
            (setting.set)(&mut Settings::default(), &value)
                .map_err(|message| (key.clone(), message))?;
            context.values.push((key, value));
        } else {
            let keys = KEYS.join(", ");
            return Err((
                key,
                format!("unknown setting; expected one of {keys}, {COLOUR}"),
            ));
        }
    }
    if context.values.iter().all(|(key, _)| key != "connect") {
        let message =
            "required: the address of the service, such as \"https://bw.example.net:8481\"";
        return Err(("connect".to_owned(), message.to_owned()));
    }
    Ok(context)
}

impl Settings {
    pub(super) fn apply_context(&mut self, name: &str) -> Result<(), ConfigError> {
        let Some(context) = self.contexts.iter().find(|it| it.name == name).cloned() else {
            let names: Vec<_> = self.contexts.iter().map(|it| it.name.as_str()).collect();
            let message = if names.is_empty() {
                "the configuration file has no contexts; add a section [contexts.NAME]".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            return Err(ConfigError(format!(
                "--context: unknown context `{name}`: {message}"
            )));
        };
        for (key, value) in &context.values {
            let setting = setting::find_setting(key).expect("it was read");
            self.set_value(setting, value, SettingSource::Flag("--context".to_owned()))?;
        }
        self.context = Some(context);
        Ok(())
    }
}
