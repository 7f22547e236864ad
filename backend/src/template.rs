//! Mustache templates: interpolation, sections and comments; no partials, no lambdas.

mod budget;
mod known;
mod parse;
mod render;
#[cfg(test)]
mod specification;
#[cfg(test)]
mod tests;

pub use budget::{Budget, RenderError};
#[cfg(test)]
pub(crate) use known::{OPEN as OPEN_VARIABLES, VARIABLES};
pub(crate) use known::{VALUES as OWN_VALUES, is_known as is_variable};
pub use render::Escape;
pub(crate) use render::html;

/// A template that parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A piece of a template.
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
    /// Whether a value is put somewhere as it is (`{{{x}}}`).
    pub(crate) fn has_raw(&self) -> bool {
        fn any(parts: &[Part]) -> bool {
            parts.iter().any(|part| match part {
                Part::Text(_) => false,
                Part::Variable { raw, .. } => *raw,
                Part::Section { parts, .. } => any(parts),
            })
        }
        any(&self.parts)
    }
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct TemplateError {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What is wrong: a lower-case fragment without a full stop.
    pub message: String,
}
