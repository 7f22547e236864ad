//! Templates in Mustache, without lambdas, and in Jinja.

mod budget;
pub mod cut;
mod escape;
mod jinja;
mod parse;
mod render;
mod snippets;
#[cfg(test)]
mod specification;
#[cfg(test)]
mod tests;
mod variables;

use std::sync::OnceLock;

use serde_json::Value;

use crate::{
    domain::{NO_SNIPPETS, Snippets, TemplateLanguage},
    limits::TEMPLATE_BYTES_MAX,
};

pub use budget::{Budget, RenderError};
pub use escape::Escape;
pub use escape::{escape_html, escape_text};
pub use jinja::FILTERS as JINJA_FILTERS;
pub use jinja::Jinja;
pub use variables::{KEPT as KEPT_VALUES, VALUES as OWN_VALUES, is_known_variable as is_variable};
pub use variables::{OPEN as OPEN_VARIABLES, VARIABLES};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Variable {
        name: String,
        raw: bool,
    },
    Section {
        name: String,
        inverted: bool,
        parts: Vec<Part>,
    },
}

impl Template {
    pub fn has_raw(&self) -> bool {
        fn any_raw(parts: &[Part]) -> bool {
            parts.iter().any(|part| match part {
                Part::Text(_) => false,
                Part::Variable { raw, .. } => *raw,
                Part::Section { parts, .. } => any_raw(parts),
            })
        }
        any_raw(&self.parts)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyTemplate {
    Mustache(Template),
    Jinja(Jinja),
}

impl AnyTemplate {
    pub fn parse(language: TemplateLanguage, source: &str) -> Result<Self, TemplateError> {
        Self::parse_with(language, source, &NO_SNIPPETS)
    }

    pub fn parse_with(
        language: TemplateLanguage,
        source: &str,
        snippets: &Snippets,
    ) -> Result<Self, TemplateError> {
        match language {
            TemplateLanguage::Mustache => {
                Template::parse_with(source, snippets).map(Self::Mustache)
            }
            TemplateLanguage::Jinja => Jinja::parse(source, snippets).map(Self::Jinja),
        }
    }

    /// Parses a template and also checks its regular expressions.
    pub fn check(
        language: TemplateLanguage,
        source: &str,
        snippets: &Snippets,
    ) -> Result<(), TemplateError> {
        Self::parse_with(language, source, snippets)?.check_patterns()
    }

    /// Checks the regular expressions that the template contains as literals, which are otherwise
    /// checked while rendering.
    pub fn check_patterns(&self) -> Result<(), TemplateError> {
        match self {
            Self::Mustache(_) => Ok(()),
            Self::Jinja(template) => template.check_patterns(),
        }
    }

    pub fn render(
        &self,
        data: &Variables,
        escape: Escape,
        budget: &mut Budget,
    ) -> Result<String, RenderError> {
        match self {
            Self::Mustache(template) => template.render(&data.json, escape, budget),
            Self::Jinja(template) => template.render(data.jinja(), escape, budget),
        }
    }

    /// Renders the template with every value escaped. In JSON, an unescaped value is kept if it is
    /// valid JSON on its own.
    pub fn render_simply(
        &self,
        data: &Variables,
        escape: Escape,
        budget: &mut Budget,
    ) -> Result<String, RenderError> {
        match self {
            Self::Mustache(template) => template.render_simply(&data.json, escape, budget),
            Self::Jinja(template) => template.render(data.jinja(), escape, budget),
        }
    }

    /// Returns the distinct variables that no event can have, at most 20.
    pub fn unknown_variables(&self) -> Vec<String> {
        match self {
            Self::Mustache(template) => template.unknown_variables(),
            Self::Jinja(template) => template.unknown_variables(),
        }
    }

    /// Returns the variables with a prefix that the template uses, without the prefix.
    pub fn names_under(&self, prefix: &str) -> Vec<&str> {
        match self {
            Self::Mustache(template) => template.names_under(prefix),
            Self::Jinja(template) => template.names_under(prefix),
        }
    }

    pub fn has_raw(&self) -> bool {
        match self {
            Self::Mustache(template) => template.has_raw(),
            // Irrelevant in a URL: escaping is decided while writing.
            Self::Jinja(_) => false,
        }
    }
}

/// The variables for templates, prepared for each language on first use.
#[derive(Debug, Default)]
pub struct Variables {
    json: Value,
    jinja: OnceLock<minijinja::Value>,
}

impl Variables {
    pub fn new(json: Value) -> Self {
        Self {
            json,
            jinja: OnceLock::new(),
        }
    }

    pub fn edit(&mut self) -> &mut Value {
        self.jinja = OnceLock::new();
        &mut self.json
    }

    fn jinja(&self) -> &minijinja::Value {
        let made = || minijinja::Value::from(minijinja::value::Serde(&self.json));
        self.jinja.get_or_init(made)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TemplateError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The error: a lower-case fragment without a full stop.
    pub message: String,
}

impl TemplateError {
    fn at_offset(text: &str, at: usize, message: impl Into<String>) -> Self {
        let before = &text[..at];
        let line_at = before.rfind('\n').map_or(0, |at| at + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_at..].chars().count() + 1,
            message: message.into(),
        }
    }
}

fn check_size(text: &str) -> Result<(), TemplateError> {
    let bytes = text.len();
    if bytes <= TEMPLATE_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the template is {bytes} bytes; the limit is {TEMPLATE_BYTES_MAX}");
    Err(TemplateError::at_offset(text, 0, message))
}
