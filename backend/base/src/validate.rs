//! Checks that collect all violations of a draft or a request.

use std::time::Duration;

use crate::{
    clock::to_millis,
    domain::{EventId, NO_EVENT_ID, Name, TemplateLanguage},
    error::{Error, Violation},
    limits::{DESCRIPTION_CHARACTERS_MAX, RULE_NAMES_MAX, TAG_CHARACTERS_MAX, TAGS_MAX},
};

#[derive(Debug, Default)]
pub struct Violations(Vec<Violation>);

impl Violations {
    pub fn new(found: &[Violation]) -> Self {
        Self(found.to_vec())
    }

    /// Reads a part of a draft, collecting violations.
    pub fn read<T>(&mut self, read: impl FnOnce(&mut Vec<Violation>) -> T) -> T {
        read(&mut self.0)
    }

    pub fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(Violation::new(field, description));
    }

    /// Adds a violation unless there is one for the field or a field below it.
    pub fn add_new(&mut self, field: &str, description: impl Into<String>) {
        if !self.0.iter().any(|known| known.field.starts_with(field)) {
            self.add(field, description);
        }
    }

    pub fn check_sentence(&mut self, field: &str, text: &str, characters_max: usize) {
        let characters = text.chars().count();
        if text.trim().is_empty() {
            self.add(field, "is required");
        } else if characters > characters_max {
            let message = format!("has {characters} characters; expected 1 to {characters_max}");
            self.add(field, message);
        }
    }

    /// Adds violations whose paths are relative to `prefix`.
    pub fn add_with_prefix(&mut self, prefix: &str, violations: Vec<Violation>) {
        for violation in violations {
            self.add(
                format!("{prefix}.{}", violation.field),
                violation.description,
            );
        }
    }

    pub fn into_result<T>(self, made: Option<T>) -> Result<T, Error> {
        if self.0.is_empty() {
            return Ok(made.expect("a value that cannot be created has added a violation"));
        }
        Err(Error::Invalid(self.0))
    }

    /// # Errors
    /// Returns [`Error::Invalid`] if there are violations.
    pub fn finish(self) -> Result<(), Error> {
        self.into_result(Some(()))
    }

    /// Checks the number of entries of a filter.
    pub fn check_entries(&mut self, field: &str, count: usize) {
        if count > RULE_NAMES_MAX {
            let message = format!("has {count} entries; the limit is {RULE_NAMES_MAX}");
            self.add(field, message);
        }
    }

    /// Converts the values of an enumeration. `expected` lists those with a result.
    pub fn convert_each<E: TryFrom<i32>, T>(
        &mut self,
        field: &str,
        numbers: &[i32],
        expected: &str,
        convert: impl Fn(E) -> Option<T>,
    ) -> Vec<T> {
        let mut converted = Vec::with_capacity(numbers.len());
        for (at, number) in numbers.iter().enumerate() {
            match E::try_from(*number).ok().and_then(&convert) {
                Some(value) => converted.push(value),
                None => self.add(
                    format!("{field}[{at}]"),
                    format!("is not one of {expected}"),
                ),
            }
        }
        converted
    }

    /// Parses an optional event id. Returns `None` for an empty string.
    pub fn optional_event(&mut self, field: &str, text: &str) -> Option<EventId> {
        let event = EventId::parse(text);
        if event.is_none() && !text.is_empty() {
            self.add(field, NO_EVENT_ID);
        }
        event
    }

    pub fn name(&mut self, text: &str, is_new: bool) -> Option<Name> {
        let name = if is_new {
            Name::parse_new(text)
        } else {
            Name::parse(text)
        };
        name.map_err(|message| self.add("name", message)).ok()
    }

    /// Parses an optional name. Returns `None` for an empty string.
    pub fn optional_name(&mut self, field: &str, text: &str) -> Option<Name> {
        if text.is_empty() {
            return None;
        }
        Name::parse(text)
            .map_err(|message| self.add(field, message))
            .ok()
    }

    pub fn check_texts(&mut self, description: &str, tags: &[String]) {
        let characters = description.chars().count();
        if characters > DESCRIPTION_CHARACTERS_MAX {
            self.add(
                "description",
                format!("has {characters} characters; the limit is {DESCRIPTION_CHARACTERS_MAX}"),
            );
        }
        if tags.len() > TAGS_MAX {
            self.add(
                "tags",
                format!("has {} tags; the limit is {TAGS_MAX}", tags.len()),
            );
        }
        for (at, tag) in tags.iter().enumerate().take(TAGS_MAX) {
            if !(1..=TAG_CHARACTERS_MAX).contains(&tag.chars().count()) {
                self.add(
                    format!("tags[{at}]"),
                    format!(
                        "has {} characters; expected 1 to {TAG_CHARACTERS_MAX}",
                        tag.chars().count()
                    ),
                );
            }
        }
    }

    pub fn extend_new(&mut self, violations: Vec<Violation>) {
        for violation in violations {
            if !self.0.iter().any(|known| known.field == violation.field) {
                self.0.push(violation);
            }
        }
    }

    pub fn extend(&mut self, violations: Vec<Violation>) {
        self.0.extend(violations);
    }
}

pub fn convert_language(number: i32, violations: &mut Violations) -> Option<TemplateLanguage> {
    let language = TemplateLanguage::from_number(number);
    if language.is_none() {
        let message = format!("unknown value {number}; expected one of MUSTACHE, JINJA");
        violations.add("templateLanguage", message);
    }
    language
}

/// Returns a length in milliseconds. Adds a violation if it is out of bounds.
pub fn check_length(
    field: &str,
    length_ms: i64,
    (least, most): (Duration, Duration),
    violations: &mut Violations,
) -> i64 {
    if !(to_millis(least)..=to_millis(most)).contains(&length_ms) {
        let (least, most) = (least.as_secs(), most.as_secs());
        let found = length_ms / 1_000;
        violations.add(field, format!("is {found} s; expected {least} to {most} s"));
    }
    length_ms
}
