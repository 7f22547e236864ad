//! Jinja templates, parsed by `MiniJinja`: expressions, loops, conditions and filters. The cost of
//! every construct is bounded by the template and its data. There is no access to files or the
//! environment. Included templates become part of the text before it is parsed.

mod apply;
mod arithmetic;
mod check;
mod error;
mod evaluate;
mod expressions;
mod filters;
#[cfg(test)]
mod generated;
mod humanize;
mod include;
mod meter;
mod scan;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeSet, sync::LazyLock};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value, machinery,
    machinery::ast::Stmt, syntax::SyntaxConfig,
};

use super::{
    Budget, Escape, RenderError, TemplateError, check_size, cut,
    escape::escape_text,
    snippets::IncludeStack,
    variables::{UNKNOWN_MAX, is_known_variable},
};
use crate::domain::Snippets;

use evaluate::Evaluation;
pub use filters::FILTERS;

/// Maximum length of an error that quotes the failing value, in bytes.
const DETAIL_BYTES_MAX: usize = 300;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jinja {
    /// The text with the templates that it includes.
    source: String,
    has_included: bool,
    /// The names that the template uses without defining them, each with the paths below it that
    /// the template reads.
    names: BTreeSet<String>,
}

/// The parts of the environment shared by all renderings.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_debug(false);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|place| match Escape::from_name(place) {
        Escape::None => AutoEscape::None,
        _ => AutoEscape::Custom("place".into()),
    });
    environment.set_formatter(write);
    for global in ["debug", "dict", "namespace", "range"] {
        environment.remove_global(global);
    }
    filters::add_filters(&mut environment);
    humanize::add_filters(&mut environment);
    environment
});

impl Jinja {
    pub fn parse(source: &str, snippets: &Snippets) -> Result<Self, TemplateError> {
        check_size(source)?;
        let whole = include::expand_includes(source, &mut IncludeStack::new(source, snippets))?;
        let has_included = matches!(whole, Cow::Owned(_));
        let source = &*whole;
        check(source).map_err(|error| with_include_hint(error, has_included))?;
        let template = ENVIRONMENT
            .template_from_named_str(Escape::None.name(), source)
            .map_err(|error| parser_error(source, &error))?;
        let mut names: BTreeSet<_> = template.undeclared_variables(true).into_iter().collect();
        names.retain(|name| !["dict", "range"].contains(&name.as_str()));
        Ok(Self {
            source: source.to_owned(),
            has_included,
            names,
        })
    }

    pub(super) fn check_patterns(&self) -> Result<(), TemplateError> {
        let found = scan::literal_patterns(&self.source);
        let patterns = found.iter().map(|(_, pattern)| pattern.as_str());
        match expressions::first_invalid(patterns) {
            Some((at, message)) => {
                let error = scan::error_at(&self.source, found[at].0, message);
                Err(with_include_hint(error, self.has_included))
            }
            None => Ok(()),
        }
    }

    pub fn render(
        &self,
        data: &Value,
        escape: Escape,
        budget: &mut Budget,
    ) -> Result<String, RenderError> {
        let steps = budget.begin_template();
        let template = parse_source(&self.source)?;
        let mut environment = ENVIRONMENT.clone();
        environment.set_fuel(Some(steps as u64));
        // The state of an empty template, for filters; its name is the kind of escaping.
        let state = environment
            .template_from_named_str(escape.name(), "")
            .and_then(|it| it.render_captured(data.clone()));
        let mut state = state.map_err(|error| parser_error(&self.source, &error))?;
        let bytes_max = budget.bytes_max();
        let (rendered, consumed, limit, at) = state.with_state_mut(|state| {
            let mut evaluation = Evaluation::new(state, bytes_max);
            let rendered = evaluation.run(&template);
            let (limit, at) = (evaluation.limit(), evaluation.at);
            let consumed = state.fuel_levels().map_or(0, |(spent, _)| spent);
            (rendered, consumed, limit, at)
        });
        let text = match (rendered, limit) {
            (Ok(text), _) => text,
            // The number of steps used is unknown here.
            (Err(_), Some(limit)) => {
                budget.exhaust();
                return Err(limit);
            }
            (Err(error), None) => {
                let exhausted = budget.exhaust();
                return Err(if error.kind() == ErrorKind::OutOfFuel {
                    exhausted
                } else {
                    let error = expression_error(&self.source, &error, at);
                    with_include_hint(error, self.has_included).into()
                });
            }
        };
        budget.spend(usize::try_from(consumed).unwrap_or(usize::MAX).min(steps))?;
        budget.spend_output(0, text.len())?;
        Ok(text)
    }

    pub(super) fn names_under(&self, prefix: &str) -> Vec<&str> {
        let names = self.names.iter();
        names.filter_map(|name| name.strip_prefix(prefix)).collect()
    }

    pub(super) fn unknown_variables(&self) -> Vec<String> {
        let unknown = self.names.iter().filter(|name| !is_known_variable(name));
        unknown.take(UNKNOWN_MAX).cloned().collect()
    }
}

fn check(source: &str) -> Result<(), TemplateError> {
    check::check(source, &parse_source(source)?)
}

fn with_include_hint(mut error: TemplateError, has_included: bool) -> TemplateError {
    if has_included {
        error.message += " (position in the template with its includes expanded)";
    }
    error
}

/// Parses a text into a tree, no deeper than the stack allows.
fn parse_source(source: &str) -> Result<Stmt<'_>, TemplateError> {
    scan::check(source)?;
    let parsed = machinery::parse(source, "template", SyntaxConfig::default());
    parsed.map_err(|error| parser_error(source, &error))
}

fn parser_error(source: &str, error: &Error) -> TemplateError {
    let at = error.range().map(|range| range.start);
    match at.filter(|at| source.is_char_boundary(*at)) {
        Some(at) => TemplateError::at_offset(source, at, error_message(error)),
        None => TemplateError {
            line: error.line().unwrap_or(1),
            column: 1,
            message: error_message(error),
        },
    }
}

/// Converts an error of the expression that starts at byte `at`.
fn expression_error(source: &str, error: &Error, at: u32) -> TemplateError {
    let at = usize::try_from(at).unwrap_or_default();
    let at = if source.is_char_boundary(at) { at } else { 0 };
    TemplateError::at_offset(source, at, error_message(error))
}

fn error_message(error: &Error) -> String {
    let kind = error.kind();
    let message = match error.detail() {
        Some(detail) if kind == ErrorKind::SyntaxError => detail.to_owned(),
        Some(detail) => format!("{kind}: {detail}"),
        None => kind.to_string(),
    };
    cut::truncate_bytes(&message, DETAIL_BYTES_MAX)
}

/// Writes a value, escaped according to the template's name.
fn write(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let place = Escape::from_name(state.name());
    let text = filters::text(state, value)?;
    let is_markup = value.is_safe()
        && match place {
            Escape::Header => false,
            // Values that the author marks as escaped are only kept if they really are escaped.
            Escape::Percent => {
                let is_escaped = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
                text.chars().all(is_escaped) && !text.trim_matches('.').is_empty()
            }
            _ => true,
        };
    if is_markup {
        return Ok(out.write_str(&text)?);
    }
    Ok(out.write_str(&escape_text(&text, place))?)
}
