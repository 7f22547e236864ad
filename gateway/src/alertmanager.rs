//! Alertmanager's API v2 for reading alerts and managing silences, as pure conversions of
//! parameters, bodies and responses.
//!
//! Alerts are received by `dialect::prometheus`; the calls are in `request::alertmanager`.

pub(crate) mod alert;
pub(crate) mod matcher;
pub(crate) mod openapi;
pub(crate) mod silence;

use std::collections::BTreeSet;

use bellwether_proto::json::violation::quote_for_message;
use http::Method;
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::{
    limits,
    route::{RouteMatch, Router, Template},
};
use matcher::Matcher;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    GetAlerts,
    GetAlertGroups,
    GetReceivers,
    GetSilences,
    PostSilences,
    GetSilence,
    DeleteSilence,
}

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) operation: Operation,
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    about: &'static str,
    /// Names of the query parameters.
    parameters: &'static [&'static str],
}

pub(crate) static ENDPOINTS: [Endpoint; 7] = [
    find_endpoint(
        Operation::GetAlerts,
        Method::GET,
        "/api/v2/alerts",
        "Lists open events as alerts.",
        &[
            "active",
            "silenced",
            "inhibited",
            "unprocessed",
            "filter",
            "receiver",
            "receiver_matchers",
        ],
    ),
    find_endpoint(
        Operation::GetAlertGroups,
        Method::GET,
        "/api/v2/alerts/groups",
        "Lists open events as alerts, grouped by receiver and name.",
        &[
            "active",
            "silenced",
            "inhibited",
            "muted",
            "filter",
            "receiver",
            "receiver_matchers",
        ],
    ),
    find_endpoint(
        Operation::GetReceivers,
        Method::GET,
        "/api/v2/receivers",
        "Lists destinations as receivers.",
        &["receiver_matchers"],
    ),
    find_endpoint(
        Operation::GetSilences,
        Method::GET,
        "/api/v2/silences",
        "Lists silences.",
        &["active", "pending", "expired", "filter"],
    ),
    find_endpoint(
        Operation::PostSilences,
        Method::POST,
        "/api/v2/silences",
        "Creates a silence, or changes the one with this `id`.",
        &["allowBroad"],
    ),
    find_endpoint(
        Operation::GetSilence,
        Method::GET,
        "/api/v2/silence/{silenceID}",
        "Returns a silence.",
        &[],
    ),
    find_endpoint(
        Operation::DeleteSilence,
        Method::DELETE,
        "/api/v2/silence/{silenceID}",
        "Expires a silence.",
        &[],
    ),
];

const fn find_endpoint(
    operation: Operation,
    method: Method,
    path: &'static str,
    about: &'static str,
    parameters: &'static [&'static str],
) -> Endpoint {
    Endpoint {
        operation,
        method,
        path,
        about,
        parameters,
    }
}

impl Endpoint {
    /// Returns the value of a `warning` header if the query has unknown parameters.
    pub(crate) fn unknown_parameters(&self, pairs: &[(String, String)]) -> Option<String> {
        let names = pairs.iter().map(|(name, _)| name.as_str());
        let unknown: BTreeSet<_> = names
            .filter(|name| !self.parameters.contains(name))
            .collect();
        let shown = unknown.iter().take(limits::UNKNOWN_PARAMETERS_SHOWN);
        let shown: Vec<_> = shown.map(|name| quote_for_message(name)).collect();
        let more = match unknown.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let expected = match self.parameters {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let shown = shown.join(", ");
        let text = format!("unknown query parameter {shown}{more} ignored; expected {expected}");
        let printable = |c: &char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
        let text: String = text.chars().filter(printable).collect();
        (!unknown.is_empty()).then(|| format!("199 - \"{text}\""))
    }
}

/// Reads a boolean parameter; true if it is absent.
pub(crate) fn read_flag(pairs: &[(String, String)], name: &str) -> Result<bool, String> {
    match find_parameter(pairs, name) {
        None | Some("true" | "1") => Ok(true),
        Some("false" | "0") => Ok(false),
        Some(_) => Err(format!("`{name}` must be `true` or `false`")),
    }
}

fn find_parameter<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str())
}

/// Reads the matchers of a parameter that can be repeated.
pub(crate) fn read_matchers(
    pairs: &[(String, String)],
    name: &str,
) -> Result<Vec<Matcher>, String> {
    let pairs = pairs.iter().filter(|(key, _)| key == name);
    matcher::parse_all(pairs.map(|(_, value)| value.as_str()))
}

#[derive(Debug)]
pub(crate) struct Paths(Router);

impl Paths {
    pub(crate) fn new() -> Result<Self, String> {
        let mut router = Router::default();
        for (at, endpoint) in ENDPOINTS.iter().enumerate() {
            router.add(&endpoint.method, &Template::parse(endpoint.path)?, at)?;
        }
        Ok(Self(router))
    }

    /// Finds the index in [`ENDPOINTS`] for a method and a raw path, which may have a trailing
    /// slash.
    pub(crate) fn find<'p>(&self, method: &Method, path: &'p str) -> RouteMatch<'p> {
        self.0.find(method, path.trim_end_matches('/'))
    }
}

pub(crate) fn operation_names() -> impl Iterator<Item = String> {
    let endpoints = ENDPOINTS.iter();
    endpoints.map(|endpoint| format!("alertmanager/{:?}", endpoint.operation))
}

/// Parses a time as Alertmanager does: RFC 3339, or without an offset (as UTC), with a space, and
/// to the minute or the day.
pub(crate) fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let without_zone = || {
        let moment: DateTime = text.parse().ok()?;
        Some(moment.to_zoned(TimeZone::UTC).ok()?.timestamp())
    };
    text.parse().ok().or_else(without_zone)
}

fn format_time(at_ms: i64) -> String {
    let at = Timestamp::from_millisecond(at_ms).unwrap_or_default();
    at.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_a_zone_is_utc() {
        let expected: Timestamp = "2026-01-31T08:00:00Z".parse().unwrap();
        for text in [
            "2026-01-31T08:00:00Z",
            "2026-01-31T08:00:00.000Z",
            "2026-01-31T09:00:00+01:00",
            "2026-01-31T08:00:00",
            "2026-01-31T08:00",
            "2026-01-31 08:00",
            "2026-01-31 08:00:00",
            " 2026-01-31 08:00Z ",
        ] {
            assert_eq!(parse_time(text), Some(expected), "{text}");
        }
        let midnight = "2026-01-31T00:00:00Z".parse().ok();
        assert_eq!(parse_time("2026-01-31"), midnight);
        for text in ["", "soon", "08:00", "2026-13-31"] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }
}
