//! Jinja templates, by `MiniJinja`: expressions, loops, conditions, macros and filters; nothing of files,
//! other templates or the environment.

mod filters;
mod scan;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, sync::LazyLock};

use minijinja::{
    AutoEscape, Environment, Error, ErrorKind, Output, State, UndefinedBehavior, Value,
};

use super::{
    Budget, Escape, RenderError, TemplateError, check_size,
    escape::escaped,
    known::{UNKNOWN_MAX, VALUES, is_known},
};

pub use filters::FILTERS;

/// Blocks, calls and operators inside each other.
const RECURSION_MAX: usize = 64;

/// A Jinja template that parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jinja {
    source: String,
    /// The names that it asks for and does not define itself, with what it reaches inside.
    names: BTreeSet<String>,
}

/// Everything but what one rendering decides: the source and what it may cost.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_debug(false);
    environment.set_recursion_limit(RECURSION_MAX);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|place| match Escape::of_name(place) {
        Escape::None => AutoEscape::None,
        _ => AutoEscape::Custom("place".into()),
    });
    environment.set_formatter(write);
    environment.remove_global("debug");
    filters::add(&mut environment);
    environment
});

impl Jinja {
    /// Takes a text as a template.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        check_size(source)?;
        scan::check(source)?;
        let template = ENVIRONMENT
            .template_from_named_str(Escape::None.name(), source)
            .map_err(|error| fault(source, &error))?;
        let mut names: BTreeSet<_> = template.undeclared_variables(true).into_iter().collect();
        names.retain(|name| {
            let first = name.split('.').next().unwrap_or_default();
            ENVIRONMENT.globals().all(|(global, _)| global != first)
        });
        Ok(Self {
            source: source.to_owned(),
            names,
        })
    }

    /// Renders the template; every value is escaped for the place.
    ///
    /// # Errors
    /// When a limit is passed, and when an expression fails.
    pub fn render(
        &self,
        data: &Value,
        escape: Escape,
        budget: &mut Budget,
    ) -> Result<String, RenderError> {
        let steps = budget.begin_template();
        let mut environment = ENVIRONMENT.clone();
        environment.set_fuel(Some(steps as u64));
        let rendered = environment
            .template_from_named_str(escape.name(), &self.source)
            .and_then(|it| it.render_captured(data.clone()));
        let (text, consumed) = match rendered {
            Ok(captured) => {
                let consumed = captured.state().fuel_levels().map_or(0, |(spent, _)| spent);
                (captured.into_output(), consumed)
            }
            // What was spent until then is not known.
            Err(error) => {
                let exhausted = budget.exhaust();
                return Err(match error.kind() {
                    ErrorKind::OutOfFuel => exhausted,
                    _ => fault(&self.source, &error).into(),
                });
            }
        };
        budget.spend(usize::try_from(consumed).unwrap_or(usize::MAX).min(steps))?;
        budget.write(0, text.len())?;
        Ok(text)
    }

    /// The variables of a destination's own that it asks for, without what stands before each.
    pub(super) fn own_values(&self) -> Vec<&str> {
        let names = self.names.iter();
        names.filter_map(|name| name.strip_prefix(VALUES)).collect()
    }

    /// The variables that no event can have.
    pub(super) fn unknown_variables(&self) -> Vec<String> {
        let unknown = self.names.iter().filter(|name| !is_known(name));
        unknown.take(UNKNOWN_MAX).cloned().collect()
    }
}

fn fault(source: &str, error: &Error) -> TemplateError {
    let kind = error.kind();
    let message = match error.detail() {
        Some(detail) if kind == ErrorKind::SyntaxError => detail.to_owned(),
        Some(detail) => format!("{kind}: {detail}"),
        None => kind.to_string(),
    };
    if let Some(range) = error.range()
        && source.is_char_boundary(range.start)
    {
        return TemplateError::at(source, range.start, message);
    }
    TemplateError {
        line: error.line().unwrap_or(1),
        column: 1,
        message,
    }
}

/// Writes a value, escaped for the place that the template's name says.
fn write(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let place = Escape::of_name(state.name());
    let text = filters::text(state, value)?;
    let is_markup = value.is_safe()
        && match place {
            Escape::Header => false,
            // Of what its author takes for escaped, only what is so stays.
            Escape::Percent => {
                let is_escaped = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
                text.chars().all(is_escaped) && !text.trim_matches('.').is_empty()
            }
            _ => true,
        };
    if is_markup {
        return Ok(out.write_str(&text)?);
    }
    Ok(out.write_str(&escaped(&text, place))?)
}
