//! Parsers of numbers, values with units, and lists.

use std::{fmt::Display, ops::RangeInclusive, str::FromStr, time::Duration};

use bellwether_backend::{
    domain::Snippets,
    limits::{SETTING_TIME_MAX, TENANT_CHARACTERS_MAX},
    message::check_snippets,
};
use toml::Value;

pub(crate) use crate::config::value::parse_duration;
use crate::config::value::{Read, invalid_value_message, non_string_error, number_and_unit};

pub(crate) fn text_or_empty(value: &Value) -> Read<String> {
    let text = value.as_str().ok_or_else(|| non_string_error(value))?;
    Ok(text.to_owned())
}

pub(crate) fn parse_number<N>(value: &Value, bounds: RangeInclusive<N>) -> Read<N>
where
    N: TryFrom<i64> + FromStr + PartialOrd + Display,
{
    let number = match value {
        Value::Integer(number) => N::try_from(*number).ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number
        .filter(|number| bounds.contains(number))
        .ok_or_else(|| {
            let (low, high) = (bounds.start(), bounds.end());
            invalid_value_message(&format!("a whole number from {low} to {high}"), value)
        })
}

/// Parses a fraction from 0 to 1.
pub(crate) fn parse_fraction(value: &Value) -> Read<f64> {
    let share = match value {
        Value::Float(share) => Some(*share),
        Value::Integer(0) => Some(0.0),
        Value::Integer(1) => Some(1.0),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| invalid_value_message("a fraction from 0.0 to 1.0", value))
}

pub(crate) fn parse_positive_duration(value: &Value) -> Read<Duration> {
    match parse_duration(value)? {
        Duration::ZERO => Err(invalid_value_message("a duration above zero", value)),
        positive => Ok(positive),
    }
}

pub(crate) fn parse_tenant(value: &Value) -> Read<String> {
    let text = crate::config::value::parse_text(value)?;
    if text.chars().count() > TENANT_CHARACTERS_MAX {
        let expected = format!("a string of at most {TENANT_CHARACTERS_MAX} characters");
        return Err(invalid_value_message(&expected, value));
    }
    Ok(text)
}

pub(crate) fn parse_templates(value: &Value) -> Read<Snippets> {
    let expected = "a table of templates by name";
    let table = value
        .as_table()
        .ok_or_else(|| invalid_value_message(expected, value))?;
    let pairs = table.iter().map(|(name, text)| {
        let text = text.as_str().ok_or_else(|| non_string_error(text))?;
        Ok((name.clone(), text.to_owned()))
    });
    let templates = pairs.collect::<Read<Snippets>>()?;
    match check_snippets(&templates).into_iter().next() {
        None => Ok(templates),
        Some(violation) => Err(format!("{}: {}", violation.field, violation.description)),
    }
}

/// Parses a retention period; zero, if allowed, means forever.
pub(crate) fn parse_retention(value: &Value, may_be_zero: bool) -> Read<Duration> {
    let length = if may_be_zero {
        parse_duration(value)?
    } else {
        parse_positive_duration(value)?
    };
    if length > SETTING_TIME_MAX {
        let days = SETTING_TIME_MAX.as_secs() / 86_400;
        return Err(invalid_value_message(
            &format!("a duration up to \"{days}d\""),
            value,
        ));
    }
    Ok(length)
}

/// Parses a size in bytes: a number, or a text with the unit `KiB`, `MiB` or `GiB`.
pub(crate) fn parse_size<N: TryFrom<u64>>(value: &Value) -> Read<N> {
    let bytes = match value {
        Value::Integer(bytes) => u64::try_from(*bytes).ok(),
        Value::String(text) => number_and_unit(text).and_then(|(number, unit)| {
            let shift = match unit {
                "" | "B" => 0,
                "KiB" => 10,
                "MiB" => 20,
                "GiB" => 30,
                _ => return None,
            };
            number.checked_mul(1 << shift)
        }),
        _ => None,
    };
    bytes
        .and_then(|bytes| N::try_from(bytes).ok())
        .ok_or_else(|| invalid_value_message("a size in bytes such as 65536 or \"64MiB\"", value))
}

/// Parses a list. In a flag or variable, items are separated by commas.
pub(crate) fn parse_list<T>(value: &Value, item: impl Fn(&Value) -> Read<T>) -> Read<Vec<T>> {
    match value {
        Value::Array(values) => values.iter().map(item).collect(),
        Value::String(text) => text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| item(&Value::String(part.to_owned())))
            .collect(),
        _ => Err(invalid_value_message("a list", value)),
    }
}
