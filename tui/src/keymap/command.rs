//! Custom commands: arguments made from the fields of an item.

use crossterm::event::KeyEvent;
use serde_json::Value;

use super::{actions::ActionPlace, chord};
use crate::limits;

#[derive(Clone, Debug)]
pub(crate) struct CustomCommand {
    pub(crate) name: String,
    pub(super) keys: Vec<KeyEvent>,
    pub(super) places: Vec<ActionPlace>,
    run: Vec<Vec<Part>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(String),
}

impl CustomCommand {
    /// Returns an error if an argument is invalid, or the program is missing.
    pub(super) fn new(
        name: String,
        keys: Vec<KeyEvent>,
        places: Vec<ActionPlace>,
        run: &[String],
    ) -> Result<Self, String> {
        let run = run.iter().map(|it| parse_argument(it));
        let run: Vec<Vec<Part>> = run.collect::<Result<_, _>>()?;
        match run.first().map(Vec::as_slice) {
            Some([Part::Text(program)]) if !program.is_empty() => {}
            _ => return Err("expected a program first, without fields".to_owned()),
        }
        Ok(Self {
            name,
            keys,
            places,
            run,
        })
    }

    pub(crate) fn hint(&self) -> String {
        chord::format_keys(&self.keys)
    }

    /// Returns the program and its arguments for an item. No shell parses them.
    ///
    /// # Errors
    /// Returns an error that names the field if it is missing, or if a program could mistake its
    /// value for an option.
    pub(crate) fn arguments(&self, item: &Value) -> Result<Vec<String>, String> {
        let argument = |parts: &Vec<Part>| {
            let each = parts.iter().map(|part| match part {
                Part::Text(text) => Ok(text.clone()),
                Part::Field(path) => field_text(item, path),
            });
            each.collect::<Result<String, String>>()
        };
        self.run.iter().map(argument).collect()
    }
}

/// Parses an argument: `{path}` is a field, `{{` and `}}` are braces.
fn parse_argument(argument: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut rest = argument;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, tail) = rest.split_at(at);
        text += before;
        let brace = &tail[..1];
        if tail[1..].starts_with(brace) {
            text += brace;
            rest = &tail[2..];
            continue;
        }
        let field = tail.strip_prefix('{').and_then(|it| it.split_once('}'));
        let field = field.filter(|(path, _)| !path.trim().is_empty() && !path.contains('{'));
        let Some((path, after)) = field else {
            return Err(format!(
                "`{argument}`: expected a field such as {{dimensions.host}}; write {{{{ or }}}} \
                 for a brace"
            ));
        };
        if !text.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut text)));
        }
        parts.push(Part::Field(path.trim().to_owned()));
        rest = after;
    }
    text += rest;
    if !text.is_empty() || parts.is_empty() {
        parts.push(Part::Text(text));
    }
    Ok(parts)
}

/// Returns a field of an item, or of the occurrence of an event.
fn field_text(item: &Value, path: &str) -> Result<String, String> {
    let occurrence = || item.get("occurrences")?.get(0);
    let found = find_field(item, path).or_else(|| {
        let inner = path.strip_prefix("metadata.");
        let inner = inner.map(|rest| format!("metadataFields.{rest}"));
        find_field(occurrence()?, inner.as_deref().unwrap_or(path))
    });
    let text = match found {
        Some(Value::String(text)) => match text.split_once('_') {
            Some(("SEVERITY" | "STATUS", word)) => word.to_lowercase(),
            _ => text.clone(),
        },
        Some(value @ (Value::Number(_) | Value::Bool(_))) => value.to_string(),
        _ => String::new(),
    };
    if text.is_empty() {
        return Err(format!("this item has no field `{path}`"));
    }
    if text.starts_with('-') {
        return Err(format!("`{path}` begins with `-`, like an option"));
    }
    if text.chars().any(char::is_control) || text.len() > limits::FIELD_BYTES {
        return Err(format!(
            "`{path}` is too long or contains control characters"
        ));
    }
    Ok(text)
}

/// Returns the value at a dotted path. Names of fields may contain dots too.
fn find_field<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    let inner = || {
        let mut dots = path.match_indices('.').map(|(at, _)| at);
        dots.find_map(|at| find_field(value.get(&path[..at])?, &path[at + 1..]))
    };
    value.get(path).or_else(inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(run: &[&str], item: &Value) -> Result<Vec<String>, String> {
        let run: Vec<String> = run.iter().map(|it| (*it).to_owned()).collect();
        let command = CustomCommand::new("x".to_owned(), Vec::new(), Vec::new(), &run);
        command.unwrap().arguments(item)
    }

    #[test]
    fn fields_are_substituted_as_single_arguments() {
        let event = json!({
            "name": "disk",
            "dimensions": {"host": "db-1; rm -rf /", "k8s.pod": "web 7"},
            "occurrences": [{
                "severity": "SEVERITY_CRITICAL",
                "number": 3,
                "metadataFields": {"annotations": {"runbook_url": "http://r"}},
            }],
        });
        let run = [
            "run",
            "{dimensions.host}",
            "--pod={ dimensions.k8s.pod }",
            "{severity}/{number}",
            "{metadata.annotations.runbook_url}",
            "{{print {name}}}",
            "",
        ];
        let expected = [
            "run",
            "db-1; rm -rf /",
            "--pod=web 7",
            "critical/3",
            "http://r",
            "{print disk}",
            "",
        ];
        assert_eq!(arguments(&run, &event).unwrap(), expected);
    }

    #[test]
    fn unsafe_or_missing_field_is_refused_by_name() {
        let item = json!({"dimensions": {
            "option": "-oProxyCommand=x", "line": "a\nb", "empty": "", "deep": {"a": 1},
        }});
        for (field, problem) in [
            ("dimensions.host", "no field `dimensions.host`"),
            ("dimensions.empty", "no field"),
            ("dimensions.deep", "no field"),
            ("dimensions.option", "begins with `-`"),
            ("dimensions.line", "control characters"),
        ] {
            let found = arguments(&["ssh", &format!("{{{field}}}")], &item).unwrap_err();
            assert!(found.contains(problem) && found.contains(field), "{found}");
        }
    }
}
