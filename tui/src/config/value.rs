//! Readers of single settings, from a file's value or from the text of a flag or variable.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use toml::Value;

/// A value, or what was expected instead.
pub(crate) type Read<T> = Result<T, String>;

/// A text that is not empty.
pub(crate) fn text(value: &Value) -> Read<String> {
    match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(refuse("a text", value)),
    }
}

/// A text that may be empty.
pub(crate) fn text_or_empty(value: &Value) -> Read<String> {
    let text = value.as_str().ok_or_else(|| refuse("a text", value))?;
    Ok(text.to_owned())
}

/// A path.
pub(crate) fn path(value: &Value) -> Read<PathBuf> {
    text(value).map(PathBuf::from)
}

/// An address to listen on.
pub(crate) fn address(value: &Value) -> Read<SocketAddr> {
    parse(
        value,
        "an address and a port such as \"127.0.0.1:8480\" or \"[::1]:0\"",
    )
}

/// The address of a service.
pub(crate) fn url(value: &Value) -> Read<String> {
    let expected = "an address such as \"http://127.0.0.1:8481\"";
    let url: tonic::transport::Uri = parse(value, expected)?;
    match url.scheme_str() {
        Some("http" | "https") if url.host().is_some() => text(value),
        _ => Err(refuse(expected, value)),
    }
}

/// Yes or no.
pub(crate) fn flag(value: &Value) -> Read<bool> {
    match value {
        Value::Boolean(flag) => Ok(*flag),
        _ => parse(value, "true or false"),
    }
}

/// A whole number in bounds.
pub(crate) fn number<N>(value: &Value, bounds: std::ops::RangeInclusive<N>) -> Read<N>
where
    N: TryFrom<i64> + FromStr + PartialOrd + std::fmt::Display,
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
            refuse(&format!("a whole number from {low} to {high}"), value)
        })
}

/// A share, from 0 to 1.
pub(crate) fn share(value: &Value) -> Read<f64> {
    let share = match value {
        Value::Float(share) => Some(*share),
        Value::Integer(0) => Some(0.0),
        Value::Integer(1) => Some(1.0),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| refuse("a share from 0.0 to 1.0", value))
}

/// A span of time with its unit: `ms`, `s`, `m`, `h` or `d`.
pub(crate) fn duration(value: &Value) -> Read<Duration> {
    let milliseconds = value.as_str().and_then(|text| {
        let (number, unit) = number_and_unit(text)?;
        let unit = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        number.checked_mul(unit)
    });
    milliseconds.map(Duration::from_millis).ok_or_else(|| {
        refuse(
            "a duration with its unit (ms, s, m, h, d) such as \"30s\"",
            value,
        )
    })
}

/// A span of time that is not zero.
pub(crate) fn positive_duration(value: &Value) -> Read<Duration> {
    match duration(value)? {
        Duration::ZERO => Err(refuse("a duration above zero", value)),
        positive => Ok(positive),
    }
}

/// A size in bytes: a number, or a text with the unit `KiB`, `MiB` or `GiB`.
pub(crate) fn size<N: TryFrom<u64>>(value: &Value) -> Read<N> {
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
        .ok_or_else(|| refuse("a size in bytes such as 65536 or \"64MiB\"", value))
}

/// A list; in a flag or variable its items are parted by commas.
pub(crate) fn list<T>(value: &Value, item: impl Fn(&Value) -> Read<T>) -> Read<Vec<T>> {
    match value {
        Value::Array(values) => values.iter().map(item).collect(),
        Value::String(text) => text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| item(&Value::String(part.to_owned())))
            .collect(),
        _ => Err(refuse("a list", value)),
    }
}

/// A text that has a form of its own.
pub(crate) fn parse<T: FromStr>(value: &Value, expected: &str) -> Read<T> {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| refuse(expected, value))
}

/// One of a few words.
pub(crate) fn word<T: Copy>(value: &Value, words: &[(&str, T)]) -> Read<T> {
    let found = words
        .iter()
        .find(|(word, _)| value.as_str() == Some(*word))
        .map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        refuse(&words.join(" or "), value)
    })
}

fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

fn refuse(expected: &str, value: &Value) -> String {
    format!("expected {expected}, found {value}")
}
