//! The configuration file: TOML that may contain only known keys.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use toml::{Table, Value};

use super::{ConfigError, commands, contexts, setting, views};

/// The section of key bindings, which [`super::keys`] reads with their lines.
pub(super) const KEYS_SECTION: &str = "keys";

pub(crate) struct Values {
    pub(crate) settings: Vec<(String, Value)>,
    pub(crate) contexts: Option<Value>,
    pub(crate) views: Option<Value>,
    pub(crate) commands: Option<Value>,
}

/// Returns the file to read: the named file, else the user's file, else the system's file if this
/// user may read it.
pub(super) fn select_file(
    named: Option<PathBuf>,
    own: Option<PathBuf>,
    system: &Path,
) -> Option<PathBuf> {
    let own = own.filter(|file| file.exists());
    let system = || File::open(system).is_ok().then(|| system.to_owned());
    named.or(own).or_else(system)
}

/// Returns the settings of a file, and its contexts, views and commands unparsed.
///
/// # Errors
/// Returns an error with line and column if the text is not TOML, or with the nearest known key if
/// a key is unknown.
pub(crate) fn read_values(text: &str, path: &Path) -> Result<Values, ConfigError> {
    let mut table: Table = toml::from_str(text).map_err(|error| {
        let (line, column) = line_and_column(text, error.span().map_or(0, |span| span.start));
        let (path, message) = (path.display(), error.message());
        ConfigError(format!("{path}:{line}:{column}: {message}"))
    })?;
    table.remove(KEYS_SECTION);
    let contexts = table.remove(contexts::SECTION);
    let views = table.remove(views::SECTION);
    let commands = table.remove(commands::SECTION);
    let mut settings = Vec::new();
    flatten_table("", table, &mut settings, path)?;
    Ok(Values {
        settings,
        contexts,
        views,
        commands,
    })
}

fn flatten_table(
    prefix: &str,
    table: Table,
    values: &mut Vec<(String, Value)>,
    path: &Path,
) -> Result<(), ConfigError> {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        match value {
            value if setting::find_setting(&key).is_some() => values.push((key, value)),
            Value::Table(section) if setting::is_section(&key) => {
                flatten_table(&format!("{key}."), section, values, path)?;
            }
            Value::Table(_) if prefix.is_empty() => return Err(unknown_section(&key, path)),
            _ => return Err(unknown_setting_error(&key, path)),
        }
    }
    Ok(())
}

fn unknown_section(name: &str, path: &Path) -> ConfigError {
    let others = [
        KEYS_SECTION,
        commands::SECTION,
        contexts::SECTION,
        views::SECTION,
    ];
    let sections = setting::section_names().chain(others);
    let nearest = setting::nearest_name(sections, name);
    let path = path.display();
    ConfigError(format!(
        "[{name}] (in {path}): unknown section; the nearest is [{nearest}]"
    ))
}

fn unknown_setting_error(key: &str, path: &Path) -> ConfigError {
    let why = setting::removal_message(key).unwrap_or_else(|| {
        let nearest = setting::nearest_key(key);
        format!("unknown setting; the nearest is {nearest}")
    });
    ConfigError(format!("{key} (in {}): {why}", path.display()))
}

pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.matches('\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}
