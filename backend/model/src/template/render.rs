//! Renders Mustache templates.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    Budget, Escape, Part, RenderError, Template, budget::LimitedBuffer, escape::escape_text,
};
use crate::domain::value::list_index;

impl Template {
    /// Renders the template. A variable that is missing in the data is empty.
    ///
    /// A section is omitted if its value is missing, `null`, `false`, an empty string or an empty
    /// list. It is repeated for each entry of a list.
    ///
    /// # Errors
    /// Returns an error, and no text, if a limit is exceeded.
    pub fn render(
        &self,
        data: &Value,
        escape: Escape,
        budget: &mut Budget,
    ) -> Result<String, RenderError> {
        Renderer::new(data, escape, budget).render_all(&self.parts)
    }

    /// Renders the template with unescaped values escaped as well, unless they are valid JSON.
    pub(super) fn render_simply(
        &self,
        data: &Value,
        escape: Escape,
        budget: &mut Budget,
    ) -> Result<String, RenderError> {
        let mut renderer = Renderer::new(data, escape, budget);
        renderer.is_simple = true;
        renderer.render_all(&self.parts)
    }
}

struct Renderer<'a, 'b> {
    stack: Vec<&'a Value>,
    escape: Escape,
    budget: &'b mut Budget,
    is_simple: bool,
    text: String,
}

impl<'a, 'b> Renderer<'a, 'b> {
    fn new(data: &'a Value, escape: Escape, budget: &'b mut Budget) -> Self {
        budget.begin_template();
        Self {
            stack: vec![data],
            escape,
            budget,
            is_simple: false,
            text: String::new(),
        }
    }

    fn render_all(mut self, parts: &[Part]) -> Result<String, RenderError> {
        self.render_parts(parts)?;
        Ok(self.text)
    }

    fn render_parts(&mut self, parts: &[Part]) -> Result<(), RenderError> {
        for part in parts {
            self.budget.spend(1)?;
            match part {
                Part::Text(text) => self.push(text)?,
                Part::Variable { name, raw } => {
                    let found = self.find(name)?;
                    let shown = match found {
                        Some(value) => format_value(value, self.budget)?,
                        None => Cow::Borrowed(""),
                    };
                    if *raw && self.is_simple && self.escape == Escape::Json {
                        let is_text = matches!(found, Some(Value::String(_)));
                        let json = match &*shown {
                            "" if !is_text => "null".into(),
                            _ if is_text => escape_text(&shown, Escape::Json),
                            shown => Cow::Borrowed(shown),
                        };
                        self.push(&json)?;
                        continue;
                    }
                    let is_raw = *raw && !self.is_simple;
                    let escape = if is_raw { Escape::None } else { self.escape };
                    self.push(&escape_text(&shown, escape))?;
                }
                Part::Section {
                    name,
                    inverted,
                    parts,
                } => self.render_section(name, *inverted, parts)?,
            }
        }
        Ok(())
    }

    fn render_section(
        &mut self,
        name: &str,
        inverted: bool,
        parts: &[Part],
    ) -> Result<(), RenderError> {
        let value = self.find(name)?.filter(|value| is_truthy(value));
        match (value, inverted) {
            (None, true) => self.render_parts(parts),
            (None, false) | (Some(_), true) => Ok(()),
            (Some(Value::Array(entries)), false) => entries
                .iter()
                .try_for_each(|entry| self.render_in_scope(entry, parts)),
            (Some(value), false) => self.render_in_scope(value, parts),
        }
    }

    fn render_in_scope(&mut self, value: &'a Value, parts: &[Part]) -> Result<(), RenderError> {
        self.budget.spend(1)?;
        self.stack.push(value);
        let rendered = self.render_parts(parts);
        self.stack.pop();
        rendered
    }

    fn push(&mut self, text: &str) -> Result<(), RenderError> {
        self.budget.spend_output(self.text.len(), text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Looks up a name in the innermost data that contains the first part of the name.
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

/// Returns `None` if the value has no member for the first part of the name, and `Some(None)` if
/// the remaining path does not exist.
///
/// Since keys may contain dots, the longest prefix of the name that is a key is used. In a list,
/// the first part of the name is the index of an entry.
#[expect(
    clippy::option_option,
    reason = "`None` is an unknown name; `Some(None)` is a known name without a value"
)]
fn look_up<'a>(
    mut value: &'a Value,
    mut name: &str,
    budget: &mut Budget,
) -> Result<Option<Option<&'a Value>>, RenderError> {
    let mut is_known = false;
    'inside: loop {
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Array(entries) => {
                budget.spend(1)?;
                let (index, rest) = name.split_once('.').unwrap_or((name, ""));
                let Some(found) = list_index(index).and_then(|at| entries.get(at)) else {
                    break;
                };
                if rest.is_empty() {
                    return Ok(Some(Some(found)));
                }
                (value, name, is_known) = (found, rest, true);
                continue;
            }
            _ => break,
        };
        let ends = name.rmatch_indices('.').map(|(at, _)| at);
        for end in std::iter::once(name.len()).chain(ends) {
            budget.spend_comparison(end)?;
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

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(_) | Value::Object(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Array(entries) => !entries.is_empty(),
    }
}

/// Formats a value as text: strings unchanged, lists and objects as JSON, `null` as an empty
/// string.
fn format_value<'a>(value: &'a Value, budget: &mut Budget) -> Result<Cow<'a, str>, RenderError> {
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
            let mut json = LimitedBuffer::new(budget);
            let written = serde_json::to_writer(&mut json, other);
            Cow::Owned(json.text(written.is_ok())?)
        }
    })
}
