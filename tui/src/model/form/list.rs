//! Lists and maps as text, converted from and to JSON without loss.

use serde_json::{Map, Value, json};

type Words = [(&'static str, &'static str)];

pub(super) fn format_numbers(value: Option<&Value>) -> String {
    let items = value.and_then(Value::as_array);
    let items = items.into_iter().flatten().map(ToString::to_string);
    items.collect::<Vec<_>>().join(", ")
}

pub(super) fn parse_numbers(text: &str) -> Result<Value, String> {
    let items = text.split(',').map(str::trim).filter(|it| !it.is_empty());
    let number = |item: &str| {
        let read = item.parse::<i32>();
        read.map(Value::from)
            .map_err(|_no_number| format!("`{item}`: expected whole numbers separated by commas"))
    };
    items.map(number).collect()
}

pub(super) fn format_word_map(value: Option<&Value>, words: &Words) -> String {
    let line = |(name, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        let word = words.iter().find(|(_, wire)| *wire == value);
        format!("{name}: {}", word.map_or(value, |(word, _)| word))
    };
    format_map_lines(value, line)
}

/// Parses lines of a map to words; `None` if there are no lines.
pub(super) fn parse_word_map(text: &str, words: &Words) -> Result<Option<Value>, String> {
    let known = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>();
    let line = |name: &str, word: &str| {
        let found = words.iter().find(|(known, _)| *known == word);
        let wire = found.map(|(_, wire)| json!(wire));
        wire.ok_or_else(|| format!("`{name}`: expected one of {}", known().join(", ")))
    };
    parse_lines(text, "value: word", line)
}

/// Formats derived variables, one per line; as JSON if the line notation is not sufficient.
pub(super) fn format_maps(value: Option<&Value>) -> String {
    format_map_lines(value, |(name, value): (&String, &Value)| {
        let plain = format_plain_map(value);
        let same = |line: &String| parse_map(line).is_ok_and(|read| read == *value);
        let line = plain.filter(same).unwrap_or_else(|| value.to_string());
        format!("{name}: {line}")
    })
}

/// Parses lines of derived variables; `None` if there are no lines.
pub(super) fn parse_maps(text: &str) -> Result<Option<Value>, String> {
    const SHAPE: &str = "name: variable, value=text, *=text";
    let line = |name: &str, text: &str| {
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|error| format!("`{name}`: {error}"));
        }
        parse_map(text).map_err(|()| format!("`{name}`: write `{SHAPE}`"))
    };
    parse_lines(text, SHAPE, line)
}

fn format_plain_map(value: &Value) -> Option<String> {
    let from = value.get("from").and_then(Value::as_str)?;
    let mut parts = vec![from.to_owned()];
    let map = value.get("map").and_then(Value::as_object);
    for (key, text) in map.into_iter().flatten() {
        parts.push(format!("{key}={}", text.as_str()?));
    }
    if let Some(default) = value.get("default").and_then(Value::as_str) {
        parts.push(format!("*={default}"));
    }
    Some(parts.join(", "))
}

fn parse_map(text: &str) -> Result<Value, ()> {
    let mut parts = text.split(',').map(str::trim);
    let from = parts
        .next()
        .filter(|it| !it.is_empty() && !it.contains('='));
    let mut read = json!({"from": from.ok_or(())?});
    for part in parts {
        let (key, text) = part.split_once('=').ok_or(())?;
        match key {
            "*" => read["default"] = text.into(),
            key => read["map"][key] = text.into(),
        }
    }
    Ok(read)
}

fn format_map_lines<'a>(
    value: Option<&'a Value>,
    line: impl Fn((&'a String, &'a Value)) -> String,
) -> String {
    let pairs = value.and_then(Value::as_object).into_iter().flatten();
    pairs.map(line).collect::<Vec<_>>().join("\n")
}

fn parse_lines(
    text: &str,
    shape: &str,
    read: impl Fn(&str, &str) -> Result<Value, String>,
) -> Result<Option<Value>, String> {
    let mut found = Map::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let parts = line.split_once(':');
        let (name, value) = parts.ok_or_else(|| format!("`{}`: write `{shape}`", line.trim()))?;
        let (name, value) = (name.trim(), value.trim());
        found.insert(name.to_owned(), read(name, value)?);
    }
    Ok((!found.is_empty()).then_some(Value::Object(found)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_round_trip_through_lines() {
        let value = json!({
            "priority": {"from": "event.severity", "map": {"critical": "P1", "error": "P2"}, "default": "P3"},
            "team": {"from": "event.dimensions.team"},
            "odd": {"from": "event.name", "map": {"a, b": "c=d"}},
        });
        let text = format_maps(Some(&value));
        assert!(
            text.contains("priority: event.severity, critical=P1, error=P2, *=P3"),
            "{text}"
        );
        assert_eq!(parse_maps(&text), Ok(Some(value)));
        assert_eq!(parse_maps(" \n"), Ok(None));
        assert!(
            parse_maps("priority: a, b")
                .unwrap_err()
                .contains("`priority`")
        );
        assert!(parse_maps("priority").unwrap_err().contains("`priority`"));
        assert!(parse_maps("priority: {\"from\"").is_err());
    }

    #[test]
    fn words_and_numbers_are_parsed_or_reported() {
        let words: &Words = &[("error", "SEVERITY_ERROR")];
        let value = json!({"high": "SEVERITY_ERROR"});
        assert_eq!(format_word_map(Some(&value), words), "high: error");
        assert_eq!(parse_word_map("high: error", words), Ok(Some(value)));
        assert!(
            parse_word_map("high: bad", words)
                .unwrap_err()
                .contains("error")
        );
        assert_eq!(format_numbers(Some(&json!([200, 202]))), "200, 202");
        assert_eq!(parse_numbers("200,202"), Ok(json!([200, 202])));
        assert!(parse_numbers("200, ok").unwrap_err().contains("`ok`"));
    }
}
