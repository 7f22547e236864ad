//! Parsers of single settings, from a value of the file or the text of a flag or variable.

use std::{
    net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _},
    path::PathBuf,
    str::FromStr,
    time::Duration,
};

use toml::Value;

/// A value, or a description of the expected one.
pub(crate) type Read<T> = Result<T, String>;

pub(crate) fn parse_text(value: &Value) -> Read<String> {
    match value.as_str() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        Some(_) => Err(invalid_value_message("a string that is not empty", value)),
        None => Err(non_string_error(value)),
    }
}

/// Returns the error message for a value that is not a string.
pub(crate) fn non_string_error(value: &Value) -> String {
    let problem = invalid_value_message("a string", value);
    match value {
        Value::Array(_) | Value::Table(_) => problem,
        _ => problem + "; quote it",
    }
}

pub(crate) fn parse_path(value: &Value) -> Read<PathBuf> {
    parse_text(value).map(PathBuf::from)
}

/// Parses an address to listen on. A host name resolves to its first IPv4 address if it has one, as
/// in the defaults; without a host, the result covers all IPv4 addresses.
pub(crate) fn parse_address(value: &Value) -> Read<SocketAddr> {
    let expected = "an address and a port such as \"127.0.0.1:8480\", \"localhost:8480\", \":8480\" or \
         \"[::1]:0\"";
    let text = value.as_str().unwrap_or_default();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let parts = text.split_once(':');
    let named = parts.and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
    let Some((name, port)) = named else {
        return Err(invalid_value_message(expected, value));
    };
    if name.is_empty() {
        return Ok((Ipv4Addr::UNSPECIFIED, port).into());
    }
    let found = (name, port).to_socket_addrs();
    let found = found.map_err(|error| format!("the name {name:?} cannot be resolved: {error}"))?;
    let found = found.min_by_key(SocketAddr::is_ipv6);
    found.ok_or_else(|| format!("the name {name:?} resolves to no address"))
}

pub(crate) fn parse_url(value: &Value) -> Read<String> {
    let expected = "an address such as \"http://127.0.0.1:8481\"";
    let url: tonic::transport::Uri = parse_from_str(value, expected)?;
    match url.scheme_str() {
        Some("http" | "https") if url.host().is_some() => parse_text(value),
        _ => Err(invalid_value_message(expected, value)),
    }
}

pub(crate) fn parse_flag(value: &Value) -> Read<bool> {
    match value {
        Value::Boolean(flag) => Ok(*flag),
        _ => parse_from_str(value, "true or false"),
    }
}

/// Parses a duration with its unit: `ms`, `s`, `m`, `h` or `d`.
pub(crate) fn parse_duration(value: &Value) -> Read<Duration> {
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
        invalid_value_message(
            "a duration with a unit (ms, s, m, h, d) such as \"30s\"",
            value,
        )
    })
}

pub(crate) fn parse_from_str<T: FromStr>(value: &Value, expected: &str) -> Read<T> {
    value
        .as_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| invalid_value_message(expected, value))
}

pub(crate) fn one_of_names<T: Copy>(value: &Value, words: &[(&str, T)]) -> Read<T> {
    let found = words
        .iter()
        .find(|(word, _)| value.as_str() == Some(*word))
        .map(|(_, meaning)| *meaning);
    found.ok_or_else(|| {
        let words: Vec<_> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
        invalid_value_message(&join_alternatives(&words), value)
    })
}

fn join_alternatives(words: &[String]) -> String {
    match words {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        _ => words.concat(),
    }
}

pub(crate) fn invalid_value_message(expected: &str, value: &Value) -> String {
    format!("expected {expected}, found {value}")
}

pub(crate) fn number_and_unit(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}
