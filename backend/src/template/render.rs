//! From template and data to text.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{Budget, Part, RenderError, Template, budget::Limited};

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
    /// As in the value of a header: control characters and line breaks become spaces.
    Header,
    /// The same, where `&`, `<` and `>` become the entities of Slack's markup before.
    SlackJson,
    /// As one part of a path or one value of a query or a form: all but letters, digits, `-`, `.`,
    /// `_` and `~` is percent-encoded. A value of dots alone, which would lead up a path, is `_`.
    Percent,
}

impl Template {
    /// Renders the template. A variable that the data lacks is empty.
    ///
    /// A section is left out when its value is absent, `null`, `false`, an empty text or an empty
    /// list; it is repeated for each entry of a list.
    ///
    /// # Errors
    /// When a limit is passed; nothing of the text is returned then.
    pub fn render(
        &self,
        data: &Value,
        escape: Escape,
        budget: &mut Budget,
    ) -> Result<String, RenderError> {
        budget.begin_template();
        let mut renderer = Renderer {
            stack: vec![data],
            escape,
            budget,
            text: String::new(),
        };
        renderer.parts(&self.parts)?;
        Ok(renderer.text)
    }
}

struct Renderer<'a, 'b> {
    stack: Vec<&'a Value>,
    escape: Escape,
    budget: &'b mut Budget,
    text: String,
}

impl<'a> Renderer<'a, '_> {
    fn parts(&mut self, parts: &[Part]) -> Result<(), RenderError> {
        for part in parts {
            self.budget.spend(1)?;
            match part {
                Part::Text(text) => self.push(text)?,
                Part::Variable { name, raw } => {
                    let shown = match self.find(name)? {
                        Some(value) => shown(value, self.budget)?,
                        None => Cow::Borrowed(""),
                    };
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
        let value = self.find(name)?.filter(|value| is_something(value));
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
        self.budget.spend(1)?;
        self.stack.push(value);
        let rendered = self.parts(parts);
        self.stack.pop();
        rendered
    }

    fn push(&mut self, text: &str) -> Result<(), RenderError> {
        self.budget.write(self.text.len(), text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// The innermost data that knows the name's first part decides.
    fn find(&mut self, name: &str) -> Result<Option<&'a Value>, RenderError> {
        if name == "." {
            return Ok(self.stack.last().copied());
        }
        for value in self.stack.iter().rev() {
            if let Some(found) = look_up(value, name, self.budget)? {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// None when the value does not know the name's first part; `Some(None)` when it leads nowhere.
///
/// A key may hold dots itself: the longest part of the name that is a key is taken.
#[expect(
    clippy::option_option,
    reason = "unknown here, so look further out; or known here and leading nowhere, so stop"
)]
fn look_up<'a>(
    mut value: &'a Value,
    mut name: &str,
    budget: &mut Budget,
) -> Result<Option<Option<&'a Value>>, RenderError> {
    let mut is_known = false;
    'inside: while let Value::Object(fields) = value {
        let ends = name.rmatch_indices('.').map(|(at, _)| at);
        for end in std::iter::once(name.len()).chain(ends) {
            budget.compare(end)?;
            let Some(found) = fields.get(&name[..end]) else {
                continue;
            };
            if end == name.len() {
                return Ok(Some(Some(found)));
            }
            (value, name, is_known) = (found, &name[end + 1..], true);
            continue 'inside;
        }
        break;
    }
    Ok(is_known.then_some(None))
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
fn shown<'a>(value: &'a Value, budget: &mut Budget) -> Result<Cow<'a, str>, RenderError> {
    Ok(match value {
        Value::Null => Cow::Borrowed(""),
        Value::String(text) => Cow::Borrowed(text),
        Value::Number(number) => match number.as_f64() {
            #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 && number.is_f64() => {
                Cow::Owned((float as i64).to_string())
            }
            _ => Cow::Owned(number.to_string()),
        },
        other => {
            let mut json = Limited::new(budget);
            let written = serde_json::to_writer(&mut json, other);
            Cow::Owned(json.text(written.is_ok())?)
        }
    })
}

fn escaped(text: &str, escape: Escape) -> Cow<'_, str> {
    match escape {
        Escape::Header if text.contains(char::is_control) => {
            text.replace(char::is_control, " ").into()
        }
        Escape::None | Escape::Header => Cow::Borrowed(text),
        Escape::Html => html(text),
        Escape::Percent if !text.is_empty() && text.bytes().all(|it| it == b'.') => "_".into(),
        Escape::Percent => utf8_percent_encode(text, &RESERVED).into(),
        Escape::SlackJson => {
            let marked = text.replace('&', "&amp;");
            let marked = marked.replace('<', "&lt;").replace('>', "&gt;");
            escaped(&marked, Escape::Json).into_owned().into()
        }
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
