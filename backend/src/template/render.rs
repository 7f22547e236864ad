//! From template and data to text.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{Part, Template};

/// Parts looked at while rendering, so that sections in sections over long lists come to an end.
const STEPS_MAX: usize = 200_000;

/// What cannot stand in a part of a path, or in a value of a query or a form.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// What `{{x}}` does to a value, by the place it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    /// Nothing.
    None,
    /// `&`, `<`, `>`, `"` and `'` become HTML entities.
    Html,
    /// As inside the quotes of a JSON string.
    Json,
    /// As one part of a path or one value of a query or a form: all but letters, digits, `-`, `.`,
    /// `_` and `~` is percent-encoded. A value of dots alone, which would lead up a path, is `_`.
    Percent,
}

/// Why a template was not rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The text would be longer than the limit.
    #[error("the text is longer than {0} bytes")]
    TooLong(usize),
    /// Sections over long lists inside each other.
    #[error("the template takes more than {STEPS_MAX} steps")]
    TooManySteps,
}

impl Template {
    /// Renders the template. A variable that the data lacks is empty.
    ///
    /// A section is left out when its value is absent, `null`, `false`, an empty text or an empty
    /// list; it is repeated for each entry of a list.
    ///
    /// # Errors
    /// When a limit is passed; nothing of the text is answered then.
    pub fn render(
        &self,
        data: &Value,
        escape: Escape,
        bytes_max: usize,
    ) -> Result<String, RenderError> {
        let mut renderer = Renderer {
            stack: vec![data],
            escape,
            bytes_max,
            steps: 0,
            text: String::new(),
        };
        renderer.parts(&self.parts)?;
        Ok(renderer.text)
    }
}

struct Renderer<'a> {
    stack: Vec<&'a Value>,
    escape: Escape,
    bytes_max: usize,
    steps: usize,
    text: String,
}

impl<'a> Renderer<'a> {
    fn parts(&mut self, parts: &[Part]) -> Result<(), RenderError> {
        for part in parts {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return Err(RenderError::TooManySteps);
            }
            match part {
                Part::Text(text) => self.push(text)?,
                Part::Variable { name, raw } => {
                    let shown = self.find(name).map_or(Cow::Borrowed(""), shown);
                    let escape = if *raw { Escape::None } else { self.escape };
                    self.push(&escaped(&shown, escape))?;
                }
                Part::Section {
                    name,
                    inverted,
                    parts,
                } => self.section(name, *inverted, parts)?,
            }
        }
        Ok(())
    }

    fn section(&mut self, name: &str, inverted: bool, parts: &[Part]) -> Result<(), RenderError> {
        let value = self.find(name).filter(|value| is_something(value));
        match (value, inverted) {
            (None, true) => self.parts(parts),
            (None, false) | (Some(_), true) => Ok(()),
            (Some(Value::Array(entries)), false) => entries
                .iter()
                .try_for_each(|entry| self.inside(entry, parts)),
            (Some(value), false) => self.inside(value, parts),
        }
    }

    fn inside(&mut self, value: &'a Value, parts: &[Part]) -> Result<(), RenderError> {
        self.stack.push(value);
        let rendered = self.parts(parts);
        self.stack.pop();
        rendered
    }

    fn push(&mut self, text: &str) -> Result<(), RenderError> {
        if self.text.len() + text.len() > self.bytes_max {
            return Err(RenderError::TooLong(self.bytes_max));
        }
        self.text.push_str(text);
        Ok(())
    }

    /// The innermost data that knows the name's first part decides.
    fn find(&self, name: &str) -> Option<&'a Value> {
        if name == "." {
            return self.stack.last().copied();
        }
        self.stack
            .iter()
            .rev()
            .find_map(|value| look_up(value, name))?
    }
}

/// None when the value does not know the name's first part; `Some(None)` when it leads nowhere.
///
/// A key may hold dots itself: the longest part of the name that is a key is taken.
#[expect(
    clippy::option_option,
    reason = "unknown here, so look further out; or known here and leading nowhere, so stop"
)]
fn look_up<'a>(value: &'a Value, name: &str) -> Option<Option<&'a Value>> {
    let Value::Object(fields) = value else {
        return None;
    };
    if let Some(found) = fields.get(name) {
        return Some(Some(found));
    }
    let mut ends = name.rmatch_indices('.').map(|(at, _)| at);
    let (inner, rest) = ends.find_map(|at| Some((fields.get(&name[..at])?, &name[at + 1..])))?;
    Some(look_up(inner, rest).flatten())
}

fn is_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(_) | Value::Object(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
    }
}

/// A value as text: texts as they are, lists and objects as JSON, nothing for `null`.
fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 && number.is_f64() => {
                Cow::Owned((float as i64).to_string())
            }
            _ => Cow::Owned(number.to_string()),
        },
        other => Cow::Owned(other.to_string()),
    }
}

fn escaped(text: &str, escape: Escape) -> Cow<'_, str> {
    match escape {
        Escape::None => Cow::Borrowed(text),
        Escape::Html => html(text),
        Escape::Percent if !text.is_empty() && text.bytes().all(|it| it == b'.') => "_".into(),
        Escape::Percent => utf8_percent_encode(text, &RESERVED).into(),
        Escape::Json => {
            let quoted = Value::from(text).to_string();
            let inner = quoted
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            Cow::Owned(inner.unwrap_or_default().to_owned())
        }
    }
}

/// A text as it stands in HTML.
pub(crate) fn html(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}
