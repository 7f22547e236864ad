//! Responses as text: JSON and YAML, and values for display.

use bellwether_language::text::{enum_word, escape_invisible};
use serde_json::Value;

use crate::{cli::script::Output, failure::Failure, output};

/// Prints a value as JSON or YAML, or formatted by `text`.
pub(super) fn write_formatted(
    value: &Value,
    how: Output,
    text: impl FnOnce(&Value) -> String,
) -> Result<(), Failure> {
    match how {
        Output::Text => output::write_output(&text(value)),
        Output::Json => output::write_output(&to_json(value)),
        Output::Yaml => output::write_output(&to_yaml(value)?),
        Output::Agent => output::write_output(&to_compact_json(value)),
    }
}

pub(super) fn to_json(value: &Value) -> String {
    output::escape_controls(&format!("{value:#}\n"))
}

pub(super) fn to_compact_json(value: &Value) -> String {
    output::escape_controls(&format!("{value}\n"))
}

/// Formats a YAML document. Texts with control or bidirectional characters are written in JSON
/// syntax, since only quoted texts can be escaped.
pub(super) fn to_yaml(value: &Value) -> Result<String, Failure> {
    let text = serde_saphyr::to_string(value);
    let mut text =
        text.map_err(|error| Failure::new(format!("cannot be converted to YAML: {error}")))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    if output::escape_controls(&text) != text {
        return Ok(to_json(value));
    }
    Ok(text)
}

/// Formats a value on one line: texts unquoted, others as JSON. Control and bidirectional
/// characters are escaped.
pub(super) fn inline_value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => escape_invisible(text, false),
        other => output::escape_controls(&other.to_string()),
    }
}

pub(super) fn format_time(value: &Value) -> String {
    let number = value
        .as_i64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()));
    let time = number.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(|| "-".to_owned(), |time| format!("{time:.0}"))
}

pub(super) fn event_line(event: &Value) -> String {
    let occurrence = &event["occurrences"][0];
    let word = |field: &str, prefix: &str| {
        enum_word(occurrence[field].as_str().unwrap_or_default(), prefix)
    };
    let dimensions = event["dimensions"].as_object().into_iter().flatten();
    let dimensions = dimensions.map(|(key, value)| {
        let key = inline_value(&Value::String(key.clone()));
        format!("{key}={}", inline_value(value))
    });
    let cells = [
        format_time(&occurrence["lastSeen"]),
        word("severity", "SEVERITY_"),
        word("status", "STATUS_"),
        inline_value(&event["id"]),
        inline_value(&event["name"]),
        dimensions.collect::<Vec<_>>().join(" "),
        inline_value(&occurrence["summary"]),
    ];
    cells.join("\t") + "\n"
}

pub(super) fn open_counts(overview: &Value) -> impl Iterator<Item = String> {
    let counts = overview["openBySeverity"].as_object().into_iter().flatten();
    counts.map(|(severity, count)| format!("{count} open {}", enum_word(severity, "SEVERITY_")))
}

pub(super) fn health_state(destination: &Value) -> String {
    let state = destination["health"]["state"].as_str();
    enum_word(state.unwrap_or_default(), "STATE_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn output_contains_no_control_or_bidi_characters() {
        let text = "a\u{1b}[31m\n\u{7f}\u{9b}31m\u{202e}b\u{e9}";
        let value = json!({"summary": text});
        let is_obeyed = |it: char| (it.is_control() && it != '\n') || it == '\u{202e}';
        let written = [
            to_json(&value),
            inline_value(&value["summary"]),
            inline_value(&value),
        ];
        for written in written {
            assert!(!written.contains(is_obeyed), "{written:?}");
            assert!(written.contains("b\u{e9}"), "{written:?}");
        }
        let yaml = to_yaml(&value).unwrap();
        assert!(!yaml.contains(is_obeyed), "{yaml:?}");
        let read: Value = serde_saphyr::from_str(&yaml).unwrap();
        assert_eq!(read, value);
    }
}
