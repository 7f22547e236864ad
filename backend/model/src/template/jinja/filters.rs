//! Filters and tests in addition to those of `MiniJinja`.

use std::{borrow::Cow, io};

use jiff::{Timestamp, fmt::strtime, tz::TimeZone};
use minijinja::{
    Environment, Error, ErrorKind, State, Value,
    value::{Kwargs, ValueKind},
};

use super::{
    super::{Escape, cut, escape::escape_text},
    error::invalid_operation,
    expressions,
};

/// Cost of a time zone lookup and of formatting a date, in steps.
const DATE_STEPS: u64 = 50;
const JSON_STEP_BYTES: usize = 4;
const TRUNCATE_CHARACTERS: usize = 255;
const DATE_FORMAT: &str = "%Y-%m-%d %H:%M %Z";

/// The available filters, in alphabetical order.
pub const FILTERS: [&str; 63] = [
    "abs",
    "ago",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "card",
    "chain",
    "count",
    "d",
    "date",
    "default",
    "dictsort",
    "duration",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "groupby",
    "html",
    "humanize",
    "humanizeBytes",
    "humanizeDuration",
    "humanizePercentage",
    "indent",
    "int",
    "items",
    "join",
    "json",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "markdown",
    "max",
    "min",
    "regex_replace",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slack",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "telegram",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "zip",
];

/// The available tests, in alphabetical order.
pub(super) const TESTS: [&str; 43] = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "matching",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

pub(super) fn add_filters(environment: &mut Environment<'static>) {
    environment.add_filter("truncate", truncate);
    environment.add_filter("regex_replace", regex_replace);
    environment.add_test("matching", matches_pattern);
    environment.add_filter("date", format_date);
    environment.add_filter("ago", format_age);
    environment.add_filter("duration", format_duration);
    environment.add_filter("json", json);
    environment.add_filter("tojson", json);
    for (name, place) in [
        ("card", Escape::Card),
        ("html", Escape::Html),
        ("markdown", Escape::Markdown),
        ("slack", Escape::Slack),
        ("telegram", Escape::Telegram),
        ("urlencode", Escape::Percent),
    ] {
        environment.add_filter(name, move |state: &State<'_, '_>, value: &Value| {
            escape(state, value, place)
        });
    }
}

/// Formats a value as text: strings unchanged, lists and objects as JSON, undefined values as an
/// empty string.
pub(super) fn text<'a>(state: &State<'_, '_>, value: &'a Value) -> Result<Cow<'a, str>, Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok("".into()),
        // The value contains an error, such as out of fuel.
        ValueKind::Invalid => Err(value
            .try_iter()
            .err()
            .unwrap_or_else(|| invalid_operation("is not a value"))),
        ValueKind::Bool => Ok(if value.is_true() { "true" } else { "false" }.into()),
        ValueKind::String | ValueKind::Number => Ok(match value.as_str() {
            Some(text) => text.into(),
            None => number(value).into(),
        }),
        _ => Ok(display_text(state, value)?.into()),
    }
}

fn number(value: &Value) -> String {
    match f64::try_from(value.clone()) {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        Ok(float) if value.is_number() && float.fract() == 0.0 && float.abs() < 9e15 => {
            (float as i64).to_string()
        }
        _ => value.to_string(),
    }
}

fn display_text(state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    let mut json = FuelWriter {
        state,
        bytes: Vec::new(),
        error: None,
    };
    let done = serde_json::to_writer(&mut json, value);
    if let Some(error) = json.error {
        return Err(error);
    }
    done.map_err(|error| invalid_operation(format!("cannot be converted to JSON: {error}")))?;
    String::from_utf8(json.bytes).map_err(|_bytes| invalid_operation("cannot be converted to JSON"))
}

struct FuelWriter<'a, 'b, 'c> {
    state: &'a State<'b, 'c>,
    bytes: Vec<u8>,
    error: Option<Error>,
}

impl io::Write for FuelWriter<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (before, after) = (self.bytes.len(), self.bytes.len() + bytes.len());
        let steps = after / JSON_STEP_BYTES - before / JSON_STEP_BYTES;
        if let Err(error) = self.state.consume_fuel(steps as u64) {
            self.error = Some(error);
            return Err(io::Error::other("too many steps"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Escapes a string for one context. A string that is already escaped for the template's context
/// stays unchanged.
fn escape(state: &State<'_, '_>, value: &Value, place: Escape) -> Result<Value, Error> {
    let text = text(state, value)?;
    let own = Escape::from_name(state.name());
    // Slack text in JSON is escaped for both contexts when it is written.
    let is_done = own == Escape::SlackJson && place == Escape::Slack;
    if is_done || (value.is_safe() && own == place) {
        return Ok(value.clone());
    }
    let text = escape_text(&text, place).into_owned();
    let is_escaped = own == place || place == Escape::Percent;
    Ok(if is_escaped && own != Escape::None {
        Value::from_safe_string(text)
    } else {
        Value::from(text)
    })
}

fn json(state: &State<'_, '_>, value: &Value) -> Result<Value, Error> {
    let text = match value.kind() {
        ValueKind::Undefined => "null".to_owned(),
        _ => display_text(state, value)?,
    };
    Ok(match Escape::from_name(state.name()) {
        Escape::Json => Value::from_safe_string(text),
        _ => Value::from(text),
    })
}

/// Truncates to a length that includes the mark: `truncate(80)`, `truncate(characters=80)` or
/// `truncate(bytes=200)`.
#[expect(
    clippy::needless_pass_by_value,
    reason = "filters receive their arguments by value"
)]
fn truncate(
    state: &State<'_, '_>,
    value: &Value,
    length: Option<usize>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    let text = text(state, value)?;
    let characters: Option<usize> = kwargs.get("characters")?;
    let named: Option<usize> = kwargs.get("length")?;
    let bytes: Option<usize> = kwargs.get("bytes")?;
    kwargs.assert_all_used()?;
    let cut = match bytes {
        Some(bytes) => cut::truncate_bytes(&text, bytes),
        None => text.into_owned(),
    };
    let characters = characters.or(named).or(length);
    Ok(match (characters, bytes) {
        (Some(characters), _) => cut::truncate_chars(&cut, characters),
        (None, Some(_)) => cut,
        (None, None) => cut::truncate_chars(&cut, TRUNCATE_CHARACTERS),
    })
}

fn regex_replace(
    state: &mut State<'_, '_>,
    value: &Value,
    pattern: &str,
    with: &str,
) -> Result<String, Error> {
    let text = text(state, value)?.into_owned();
    expressions::replace(state, &text, pattern, with)
}

fn matches_pattern(state: &mut State<'_, '_>, value: &Value, pattern: &str) -> Result<bool, Error> {
    let text = text(state, value)?.into_owned();
    expressions::is_match(state, &text, pattern)
}

/// Parses an RFC 3339 time, or milliseconds since 1970.
fn parse_time(value: &Value) -> Result<Timestamp, Error> {
    let read = match (value.as_str(), i64::try_from(value.clone())) {
        (Some(text), _) => text.trim().parse().ok(),
        (None, Ok(at_ms)) => Timestamp::from_millisecond(at_ms).ok(),
        (None, Err(_)) => None,
    };
    let wants = || {
        invalid_operation(
            "is not a time; expected RFC 3339, such as `event.timestamp`, or milliseconds since 1970",
        )
    };
    read.ok_or_else(wants)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "filters receive their arguments by value"
)]
fn format_date(
    state: &State<'_, '_>,
    value: &Value,
    format: Option<&str>,
    zone: Option<&str>,
    kwargs: Kwargs,
) -> Result<String, Error> {
    state.consume_fuel(DATE_STEPS)?;
    let named_format: Option<&str> = kwargs.get("format")?;
    let named_zone: Option<&str> = kwargs.get("zone")?;
    kwargs.assert_all_used()?;
    let format = format.or(named_format).unwrap_or(DATE_FORMAT);
    state.consume_fuel(format.len() as u64)?;
    let zone = zone.or(named_zone).unwrap_or("UTC");
    let known = TimeZone::get(zone);
    let known = known.map_err(|_unknown| {
        invalid_operation(format!(
            "date: unknown time zone `{zone}`; expected an IANA name such as `Europe/Berlin`"
        ))
    })?;
    let at = parse_time(value)?.to_zoned(known);
    strtime::format(format, &at).map_err(|error| invalid_operation(format!("date: {error}")))
}

/// Formats the time between a value and the message, such as `5m 10s ago`.
fn format_age(state: &State<'_, '_>, value: &Value) -> Result<String, Error> {
    let now = state.lookup("timestamp_ms").unwrap_or_default();
    let seconds = parse_time(&now)?.as_second() - parse_time(value)?.as_second();
    Ok(match seconds {
        0 => "now".to_owned(),
        past if past > 0 => format!("{} ago", format_seconds(past.unsigned_abs())),
        ahead => format!("in {}", format_seconds(ahead.unsigned_abs())),
    })
}

fn format_duration(value: &Value) -> Result<String, Error> {
    let number = match value.as_str() {
        Some(text) => text.trim().parse().ok(),
        None => f64::try_from(value.clone()).ok(),
    };
    let Some(seconds) = number.filter(|it: &f64| it.is_finite() && it.abs() < 1e15) else {
        return Err(invalid_operation("duration: not a number of seconds"));
    };
    let sign = if seconds < 0.0 { "-" } else { "" };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, positive and below 10^15"
    )]
    let whole = seconds.abs().round() as u64;
    Ok(format!("{sign}{}", format_seconds(whole)))
}

pub(super) fn format_seconds(seconds: u64) -> String {
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "m"),
        (seconds % 60, "s"),
    ];
    let parts = units.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, unit)| format!("{count}{unit}"))
        .collect();
    if parts.is_empty() {
        "0s".to_owned()
    } else {
        parts.join(" ")
    }
}

pub(super) fn call_method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if value.kind() != ValueKind::Map {
        return Err(Error::from(ErrorKind::UnknownMethod));
    }
    match (name, args) {
        ("items", []) => state.apply_filter("items", std::slice::from_ref(value)),
        ("keys", []) => state.apply_filter("list", std::slice::from_ref(value)),
        ("values", []) => {
            let pairs = state.apply_filter("items", std::slice::from_ref(value))?;
            let last = [pairs, Value::from("last")];
            state.apply_filter("map", &last)
        }
        ("get", [key]) => Ok(value.get_item(key).unwrap_or_default()),
        ("get", [key, other]) => {
            let found = value.get_item(key).unwrap_or_default();
            Ok(if found.is_undefined() {
                other.clone()
            } else {
                found
            })
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}
