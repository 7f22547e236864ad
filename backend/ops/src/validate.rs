//! Checks that collect all violations of a draft.

use std::time::Duration;

use crate::{
    clock::to_millis,
    domain::{Name, TemplateLanguage},
    error::{Error, Violation},
    limits::{DESCRIPTION_CHARACTERS_MAX, TAG_CHARACTERS_MAX, TAGS_MAX},
};

#[derive(Debug, Default)]
pub(super) struct Violations(Vec<Violation>);

impl Violations {
    pub(super) fn new(found: &[Violation]) -> Self {
        Self(found.to_vec())
    }

    /// Reads a part of a draft, collecting violations.
    pub(super) fn read<T>(&mut self, read: impl FnOnce(&mut Vec<Violation>) -> T) -> T {
        read(&mut self.0)
    }

    pub(super) fn add(&mut self, field: impl Into<String>, description: impl Into<String>) {
        self.0.push(Violation::new(field, description));
    }

    /// Adds a violation unless there is one for the field or a field below it.
    pub(super) fn add_new(&mut self, field: &str, description: impl Into<String>) {
        if !self.0.iter().any(|known| known.field.starts_with(field)) {
            self.add(field, description);
        }
    }

    pub(super) fn check_sentence(&mut self, field: &str, text: &str, characters_max: usize) {
        let characters = text.chars().count();
        if text.trim().is_empty() {
            self.add(field, "is required");
        } else if characters > characters_max {
            let message = format!("has {characters} characters; expected 1 to {characters_max}");
            self.add(field, message);
        }
    }

    /// Adds violations whose paths are relative to `prefix`.
    pub(super) fn add_with_prefix(&mut self, prefix: &str, violations: Vec<Violation>) {
        for violation in violations {
            self.add(
                format!("{prefix}.{}", violation.field),
                violation.description,
            );
        }
    }

    pub(super) fn into_result<T>(self, made: Option<T>) -> Result<T, Error> {
        if self.0.is_empty() {
            return Ok(made.expect("a value that cannot be created has added a violation"));
        }
        Err(Error::Invalid(self.0))
    }

    pub(super) fn name(&mut self, text: &str, is_new: bool) -> Option<Name> {
        let name = if is_new {
            Name::parse_new(text)
        } else {
            Name::parse(text)
        };
        name.map_err(|message| self.add("name", message)).ok()
    }

    /// Parses an optional name. Returns `None` for an empty string.
    pub(super) fn optional_name(&mut self, field: &str, text: &str) -> Option<Name> {
        if text.is_empty() {
            return None;
        }
        Name::parse(text)
            .map_err(|message| self.add(field, message))
            .ok()
    }

    pub(super) fn check_texts(&mut self, description: &str, tags: &[String]) {
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

    pub(super) fn extend_new(&mut self, violations: Vec<Violation>) {
        for violation in violations {
            if !self.0.iter().any(|known| known.field == violation.field) {
                self.0.push(violation);
            }
        }
    }

    pub(super) fn extend(&mut self, violations: Vec<Violation>) {
        self.0.extend(violations);
    }
}

pub(super) fn convert_language(
    number: i32,
    violations: &mut Violations,
) -> Option<TemplateLanguage> {
    let language = TemplateLanguage::from_number(number);
    if language.is_none() {
        let message = format!("unknown value {number}; expected one of MUSTACHE, JINJA");
        violations.add("templateLanguage", message);
    }
    language
}

/// Returns a length in milliseconds. Adds a violation if it is out of bounds.
pub(super) fn check_length(
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
