//! Fields of forms: paths, labels and limits.

use serde_json::{Value, json};

use super::line_format::LineFormat;
use crate::data::Kind;

#[derive(Clone, Debug)]
pub(crate) struct FieldSpec {
    /// Path in the JSON of the object: `type.webhook.url`.
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    pub(crate) help: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
    /// The destination type that the field belongs to; empty for all.
    pub(crate) only: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    Text,
    /// A time, in any form parsed by [`crate::data::when`].
    Time,
    /// A duration such as `1h30m`; in seconds in the API.
    Length,
    Secret,
    Lines,
    Number(i64, i64),
    Words,
    Toggle,
    Choice(&'static [&'static str]),
    /// One of these words, each with its value in the API; empty for an unset field.
    Named(&'static [(&'static str, &'static str)]),
    Numbers,
    Names(Kind),
    /// One line `name: value` per pair.
    Pairs,
    /// One line `value: word` per pair, with the words and their values in the API.
    WordPairs(&'static [(&'static str, &'static str)]),
    /// One line `name: from, value=text, *=text` for each variable derived from another.
    Maps,
    /// One line per item of a list, edited in a separate form.
    LineFormat(LineFormat),
    Clause,
    /// A heading rather than a field; its path is not part of any message. The fields below it are
    /// collapsed unless one of them is set or the user expands them.
    Section,
}

impl FieldSpec {
    pub(super) const fn new(path: &'static str, label: &'static str, kind: FieldKind) -> Self {
        Self {
            path,
            label,
            help: "",
            kind,
            required: false,
            only: "",
        }
    }

    pub(super) const fn text(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Text)
    }

    pub(super) const fn lines(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Lines)
    }

    pub(super) const fn words(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Words)
    }

    pub(super) const fn pairs(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Pairs)
    }

    pub(super) const fn toggle(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Toggle)
    }

    pub(super) const fn length(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Length)
    }

    pub(super) const fn secret(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Secret)
    }

    pub(super) const fn clause(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Clause)
    }

    pub(super) const fn section(path: &'static str, label: &'static str) -> Self {
        Self::new(path, label, FieldKind::Section)
    }

    pub(super) const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    pub(super) const fn with_required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    pub(super) const fn only_for(self, word: &'static str) -> Self {
        Self { only: word, ..self }
    }
}

impl FieldKind {
    pub(crate) fn choice_names(&self) -> Vec<&'static str> {
        match self {
            Self::Choice(words) => words.to_vec(),
            Self::Named(words) => words.iter().map(|(word, _)| *word).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn placeholder_value(&self) -> Option<Value> {
        match self {
            Self::Text | Self::Lines => Some(json!("")),
            Self::Words | Self::Names(_) | Self::LineFormat(_) => Some(json!([])),
            Self::Toggle => Some(json!(false)),
            Self::Time
            | Self::Length
            | Self::Secret
            | Self::Number(..)
            | Self::Choice(_)
            | Self::Named(_)
            | Self::Numbers
            | Self::Pairs
            | Self::WordPairs(_)
            | Self::Maps
            | Self::Clause
            | Self::Section => None,
        }
    }
}

const LANGUAGES: FieldKind = FieldKind::Named(&[("mustache", ""), ("jinja", "JINJA")]);
pub(super) const LANGUAGE: FieldSpec = FieldSpec::new("templateLanguage", "Templates", LANGUAGES)
    .help("Mustache, or Jinja with conditions, loops and filters. See the topic «templates».");

pub(super) const NAME: FieldSpec = FieldSpec::text("name", "Name")
    .with_required()
    .help("1 to 100 letters, digits, . _ - and inner spaces. Cannot be changed later.");
pub(super) const DESCRIPTION: FieldSpec =
    FieldSpec::text("description", "Description").help("Description, at most 1,000 characters.");
pub(super) const TAGS: FieldSpec =
    FieldSpec::words("tags", "Tags").help("Labels to search by, separated by commas.");
