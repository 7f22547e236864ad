//! The fields of forms: their paths, words and limits.

use serde_json::{Value, json};

use super::written::Written;
use crate::data::Kind;

/// One field of a form.
#[derive(Clone, Debug)]
pub(crate) struct FieldSpec {
    /// As in the JSON of the object: `type.webhook.url`.
    pub(crate) path: &'static str,
    pub(crate) label: &'static str,
    /// One line of help, shown while the field is focused.
    pub(crate) help: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) required: bool,
    /// The destination type it belongs to; empty for all.
    pub(crate) only: &'static str,
}

/// How a field is typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FieldKind {
    Text,
    /// A moment, in any of the ways that [`crate::data::when`] reads.
    Moment,
    /// A length of time, as `1h30m`; in seconds on the wire.
    Length,
    Secret,
    /// Text with line ends.
    Lines,
    /// A whole number between two bounds.
    Number(i64, i64),
    /// Words separated by commas.
    Words,
    Toggle,
    Choice(&'static [&'static str]),
    /// One of these words, and what the wire calls it; empty leaves it out.
    Word(&'static [(&'static str, &'static str)]),
    /// Whole numbers separated by commas.
    Numbers,
    /// Names of stored resources.
    Names(Kind),
    /// A line `name: value` for each pair.
    Pairs,
    /// A line `value: word` for each, of these words and what the wire calls them.
    WordPairs(&'static [(&'static str, &'static str)]),
    /// A line `name: from, value=text, *=text` for each variable that is built from another one.
    Maps,
    /// A line for each entry of a list, edited in a separate form.
    Written(Written),
    Clause,
    /// No field: the heading of those that follow up to the next one, which are folded away until
    /// one of them holds something or a user unfolds them. Its path is of no message.
    Section,
}

impl FieldSpec {
    pub(super) const fn new(
        path: &'static str,
        label: &'static str,
        kind: FieldKind,
        help: &'static str,
    ) -> Self {
        Self {
            path,
            label,
            help,
            kind,
            required: false,
            only: "",
        }
    }

    /// The heading of the fields that follow, up to the next one.
    pub(super) const fn section(
        path: &'static str,
        label: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(path, label, FieldKind::Section, help)
    }

    /// The same, which must be filled in.
    pub(super) const fn needed(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// The same, for that type of destination alone.
    pub(super) const fn only(self, word: &'static str) -> Self {
        Self { only: word, ..self }
    }
}

impl FieldKind {
    /// The words that are chosen from.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        match self {
            Self::Choice(words) => words.to_vec(),
            Self::Word(words) => words.iter().map(|(word, _)| *word).collect(),
            _ => Vec::new(),
        }
    }

    /// What an unset field is in a text, for those who fill it in there.
    pub(super) fn blank(&self) -> Option<Value> {
        match self {
            Self::Text | Self::Lines | Self::Length => Some(json!("")),
            Self::Words | Self::Names(_) | Self::Written(_) => Some(json!([])),
            Self::Toggle => Some(json!(false)),
            Self::Moment
            | Self::Secret
            | Self::Number(..)
            | Self::Choice(_)
            | Self::Word(_)
            | Self::Numbers
            | Self::Pairs
            | Self::WordPairs(_)
            | Self::Maps
            | Self::Clause
            | Self::Section => None,
        }
    }
}

/// The language of templates.
pub(super) const LANGUAGE: FieldSpec = FieldSpec::new(
    "templateLanguage",
    "Templates",
    FieldKind::Word(&[("mustache", ""), ("jinja", "JINJA")]),
    "Mustache, or Jinja with conditions, loops and filters. The topic templates covers both.",
);

pub(super) const NAME: FieldSpec = FieldSpec::new(
    "name",
    "Name",
    FieldKind::Text,
    "1 to 100 letters, digits, . _ - and inner spaces. Cannot be changed later.",
)
.needed();
pub(super) const DESCRIPTION: FieldSpec = FieldSpec::new(
    "description",
    "Description",
    FieldKind::Text,
    "Description, at most 1,000 characters.",
);
pub(super) const TAGS: FieldSpec = FieldSpec::new(
    "tags",
    "Tags",
    FieldKind::Words,
    "Labels for searching, separated by commas.",
);
