//! The section `[keys]`: key bindings of actions, each with its line in the file.

use std::path::Path;

use bellwether_tui::{KeySetting, Keymap};
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use super::{
    ConfigError,
    file::{self, KEYS_SECTION as SECTION},
};

pub(super) fn parse_keymap(text: &str, path: &Path) -> Result<Option<Keymap>, ConfigError> {
    // The reader of the settings has already reported invalid TOML.
    let Ok(table) = DeTable::parse(text) else {
        return Ok(None);
    };
    let Some(section) = table.get_ref().get(SECTION) else {
        return Ok(None);
    };
    let mut reader = Reader {
        text,
        path,
        settings: Vec::new(),
        problems: Vec::new(),
    };
    match section.get_ref() {
        DeValue::Table(section) => reader.read_section(None, section),
        _ => reader.reject(
            section.span().start,
            SECTION,
            "expected a section such as [keys]",
        ),
    }
    let keymap = Keymap::new(&reader.settings).map_err(|problems| {
        let message = problems.into_iter().map(|problem| problem.to_string());
        reader.problems.extend(message);
    });
    match keymap {
        Ok(keymap) if reader.problems.is_empty() => Ok(Some(keymap)),
        _ => Err(ConfigError(reader.problems.join("\n"))),
    }
}

struct Reader<'a> {
    text: &'a str,
    path: &'a Path,
    settings: Vec<KeySetting>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn read_section(&mut self, place: Option<&str>, section: &DeTable<'_>) {
        let mut rows: Vec<_> = section.iter().collect();
        rows.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in rows {
            match value.get_ref() {
                DeValue::Table(inner) if place.is_none() => {
                    self.read_section(Some(name.get_ref()), inner);
                }
                _ => self.read_setting(place, name, value),
            }
        }
    }

    fn read_setting(
        &mut self,
        place: Option<&str>,
        name: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let keys = match value.get_ref() {
            DeValue::String(key) => Some(vec![key.to_string()]),
            DeValue::Array(keys) => keys
                .iter()
                .map(|key| key.get_ref().as_str().map(str::to_owned))
                .collect(),
            _ => None,
        };
        let Some(keys) = keys else {
            let expected = "expected a key such as \"ctrl-s\" or \"g g\", or a list of them";
            let name = match place {
                None => format!("{SECTION}.{}", name.get_ref()),
                Some(place) => format!("{SECTION}.{place}.{}", name.get_ref()),
            };
            return self.reject(value.span().start, &name, expected);
        };
        self.settings.push(KeySetting {
            place: place.map(str::to_owned),
            action: name.get_ref().to_string(),
            keys,
            at: self.location_at(name.span().start),
        });
    }

    fn reject(&mut self, offset: usize, name: &str, problem: &str) {
        let at = self.location_at(offset);
        self.problems.push(format!("{at}: {name}: {problem}"));
    }

    fn location_at(&self, offset: usize) -> String {
        let (line, _) = file::line_and_column(self.text, offset);
        format!("{}:{line}", self.path.display())
    }
}
