//! Inputs of fields: conversion from and to JSON.

use serde_json::{Map, Value};

use super::{ClauseInput, list};
use crate::{
    data::when,
    kind::{FieldKind, FieldSpec},
    model::field::TextField,
};

#[derive(Clone, Debug)]
pub(crate) enum Input {
    Text(TextField),
    Toggle(bool),
    Choice(usize),
    Names(Vec<String>),
    Clause(Box<ClauseInput>),
    Section(bool),
}

impl Input {
    pub(super) fn read(spec: &FieldSpec, value: Option<&Value>) -> Self {
        let text = || match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => String::new(),
            Some(other) => other.to_string(),
        };
        match spec.kind {
            // A private key in PEM has several lines.
            FieldKind::Secret if spec.path.ends_with("privateKey") => {
                Self::Text(TextField::new(text()).with_lines())
            }
            FieldKind::Text | FieldKind::Time | FieldKind::Secret | FieldKind::Number(..) => {
                Self::Text(TextField::new(text()))
            }
            FieldKind::Length => {
                let text = text();
                let shown = when::parse_duration_ms(&text).map(when::format_duration);
                Self::Text(TextField::new(shown.unwrap_or(text)))
            }
            FieldKind::Lines => Self::Text(TextField::new(text()).with_lines()),
            FieldKind::Words => Self::Text(TextField::new(string_values(value).join(", "))),
            FieldKind::Numbers => Self::Text(TextField::new(list::format_numbers(value))),
            FieldKind::Pairs => Self::Text(TextField::new(format_pairs(value)).with_lines()),
            FieldKind::WordPairs(words) => {
                Self::Text(TextField::new(list::format_word_map(value, words)).with_lines())
            }
            FieldKind::Maps => Self::Text(TextField::new(list::format_maps(value)).with_lines()),
            FieldKind::LineFormat(form) => {
                Self::Text(TextField::new(form.format(value)).with_lines())
            }
            FieldKind::Toggle => Self::Toggle(value.and_then(Value::as_bool).unwrap_or_default()),
            FieldKind::Choice(words) => {
                let chosen = match value {
                    Some(Value::Object(object)) => object.keys().next().cloned(),
                    _ => Some(text()),
                };
                let at = words
                    .iter()
                    .position(|word| chosen.as_deref() == Some(*word));
                Self::Choice(at.unwrap_or_default())
            }
            FieldKind::Named(words) => {
                let at = words.iter().position(|(_, name)| *name == text());
                Self::Choice(at.unwrap_or_default())
            }
            FieldKind::Names(_) => Self::Names(string_values(value)),
            FieldKind::Clause => Self::Clause(Box::new(ClauseInput::read(value))),
            FieldKind::Section => Self::Section(false),
        }
    }

    /// Converts the content to a value; `None` if the field is to be omitted.
    pub(super) fn write(&self, spec: &FieldSpec) -> Option<Value> {
        match (self, &spec.kind) {
            (Self::Text(field), FieldKind::Words) => {
                let words = field
                    .text()
                    .split(',')
                    .map(str::trim)
                    .filter(|word| !word.is_empty());
                Some(words.map(Value::from).collect())
            }
            (Self::Text(field), FieldKind::Pairs) => {
                let pairs: Map<String, Value> = field
                    .text()
                    .lines()
                    .filter_map(|line| line.split_once(':'))
                    .map(|(name, value)| (name.trim().to_owned(), Value::from(value.trim())))
                    .collect();
                if pairs.is_empty() {
                    None
                } else {
                    Some(Value::Object(pairs))
                }
            }
            (Self::Text(field), FieldKind::Numbers) => list::parse_numbers(field.text()).ok(),
            (Self::Text(field), FieldKind::WordPairs(words)) => {
                list::parse_word_map(field.text(), words).ok().flatten()
            }
            (Self::Text(field), FieldKind::Maps) => list::parse_maps(field.text()).ok().flatten(),
            (Self::Text(field), FieldKind::LineFormat(form)) => form.parse(field.text()).ok(),
            (Self::Text(field), FieldKind::Number(..)) => {
                field.text().trim().parse::<i64>().ok().map(Value::from)
            }
            (Self::Text(field), FieldKind::Length)
                if when::parse_duration_ms(field.text()).is_some() =>
            {
                let ms = when::parse_duration_ms(field.text())?;
                Some(Value::from(format!("{}s", ms / 1_000)))
            }
            (Self::Text(field), _) => {
                let text = field.text();
                (!text.is_empty()).then(|| Value::from(text))
            }
            (Self::Toggle(on), _) => Some(Value::from(*on)),
            (Self::Choice(at), FieldKind::Choice(words)) => {
                words.get(*at).map(|word| Value::from(*word))
            }
            (Self::Choice(at), FieldKind::Named(words)) => {
                let name = words.get(*at).map(|(_, name)| *name);
                name.filter(|name| !name.is_empty()).map(Value::from)
            }
            (Self::Choice(_) | Self::Section(_), _) => None,
            (Self::Names(names), _) => {
                Some(names.iter().map(String::as_str).map(Value::from).collect())
            }
            (Self::Clause(clause), _) => clause.write(),
        }
    }

    /// Whether the field is empty, or has its first choice.
    pub(super) fn is_blank(&self) -> bool {
        match self {
            Self::Text(field) => field.text().is_empty(),
            Self::Toggle(on) => !on,
            Self::Choice(at) => *at == 0,
            Self::Names(names) => names.is_empty(),
            Self::Clause(clause) => clause.write().is_none() && clause.line.text().is_empty(),
            Self::Section(_) => true,
        }
    }

    pub(super) fn parse_line(spec: &FieldSpec, text: &str) -> Result<Self, String> {
        let lines = || TextField::new(text.replace("\\n", "\n")).with_lines();
        Ok(match spec.kind {
            FieldKind::Text
            | FieldKind::Time
            | FieldKind::Length
            | FieldKind::Secret
            | FieldKind::Number(..)
            | FieldKind::Numbers
            | FieldKind::Words => Self::Text(TextField::new(text)),
            FieldKind::Lines
            | FieldKind::Pairs
            | FieldKind::WordPairs(_)
            | FieldKind::Maps
            | FieldKind::LineFormat(_) => Self::Text(lines()),
            FieldKind::Toggle => match text.to_lowercase().as_str() {
                "yes" | "on" | "true" => Self::Toggle(true),
                "no" | "off" | "false" => Self::Toggle(false),
                _ => return Err("expected yes or no".to_owned()),
            },
            FieldKind::Choice(_) | FieldKind::Named(_) => {
                let words = spec.kind.choice_names();
                let at = words.iter().position(|word| *word == text);
                Self::Choice(at.ok_or_else(|| format!("expected one of {}", words.join(", ")))?)
            }
            FieldKind::Names(_) => {
                let names = text.split(',').map(str::trim);
                Self::Names(
                    names
                        .filter(|it| !it.is_empty())
                        .map(str::to_owned)
                        .collect(),
                )
            }
            FieldKind::Clause => Self::Clause(Box::new(ClauseInput::parse_line(text)?)),
            FieldKind::Section => return Err("is a heading and has no value".to_owned()),
        })
    }

    pub(super) fn error(&self, spec: &FieldSpec) -> Option<String> {
        if let Self::Clause(clause) = self {
            return clause.error(spec.required);
        }
        let Self::Text(field) = self else { return None };
        let text = field.text().trim();
        match spec.kind {
            _ if spec.required && text.is_empty() => Some("is needed".to_owned()),
            FieldKind::Number(low, high) if !text.is_empty() => {
                let fits = text
                    .parse()
                    .is_ok_and(|number| (low..=high).contains(&number));
                (!fits).then(|| format!("expected a whole number from {low} to {high}"))
            }
            FieldKind::Length if !text.is_empty() && when::parse_duration_ms(text).is_none() => {
                Some(format!(
                    "`{text}` is not a valid duration; expected {}",
                    when::LENGTHS
                ))
            }
            FieldKind::Numbers => list::parse_numbers(text).err(),
            FieldKind::WordPairs(words) => list::parse_word_map(text, words).err(),
            FieldKind::Maps => list::parse_maps(text).err(),
            FieldKind::LineFormat(form) => form.parse(text).err(),
            FieldKind::Pairs => {
                // The error does not repeat the line, which may contain a secret.
                let mut lines = text.lines();
                let is_bare = |line: &str| !line.trim().is_empty() && !line.contains(':');
                let at = lines.position(is_bare)?;
                Some(format!("line {}: write `name: value`", at + 1))
            }
            _ => None,
        }
    }
}

fn string_values(value: Option<&Value>) -> Vec<String> {
    let items = value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn format_pairs(value: Option<&Value>) -> String {
    let Some(object) = value.and_then(Value::as_object) else {
        return String::new();
    };
    let line = |(name, value): (&String, &Value)| {
        format!("{name}: {}", value.as_str().unwrap_or_default())
    };
    object.iter().map(line).collect::<Vec<_>>().join("\n")
}
