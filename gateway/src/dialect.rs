//! The dialects of other senders: their requests are converted to events, and the results to their
//! responses.
//!
//! A dialect is a table of pure functions in its own file: bytes, headers and path become a
//! [`Translation`], and its outcome becomes a [`DialectResponse`]. `request::sender` handles
//! bodies, keys, limits and calls for all dialects.

mod alert;
mod alertmanager;
mod cloudevents;
mod consent;
mod draft;
mod identity;
mod json;
mod key;
pub(crate) mod openapi;
mod opsgenie;
mod otlp;
mod pagerduty;
mod prometheus;
mod severity;
#[cfg(test)]
mod tests;
mod webhooks;

use std::time::Duration;

use bellwether_proto::{
    bulk,
    cloud::{Event, EventStatusResult},
    json::violation::quote_for_message,
    otlp::ConversionSettings as LogSettings,
    v1::{Event as StoredEvent, ReceiveWebhookRequest, SearchEventsRequest, SearchEventsResponse},
};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use crate::{
    limits,
    problem::Problem,
    route::{RouteMatch, Router, Template, decode_segment},
};

pub(crate) use key::find_in_headers as key_in_headers;
pub use severity::Severity;

pub(crate) const DIALECTS: [&Dialect; 7] = [
    &alertmanager::DIALECT,
    &prometheus::DIALECT,
    &pagerduty::DIALECT,
    &opsgenie::DIALECT,
    &cloudevents::DIALECT,
    &otlp::DIALECT,
    &webhooks::DIALECT,
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Prometheus labels that distinguish replicas; they are not stored with events.
    pub replica_labels: Vec<String>,
    /// Labels that are stored with an event but do not identify it.
    pub fold_labels: Vec<String>,
    /// Severity of an alert whose label `severity` is missing or unknown.
    pub alert_severity: Severity,
    pub logs: LogSettings,
}

impl Default for Settings {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            replica_labels: texts(&[
                "prometheus_replica",
                "__replica__",
                "replica",
                "rule_replica",
                "thanos_ruler_replica",
            ]),
            fold_labels: Vec::new(),
            alert_severity: Severity::Warning,
            logs: LogSettings::default(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Dialect {
    pub(crate) name: &'static str,
    pub(crate) bodies: BodyLimit,
    /// Whether a body with these headers is JSON. Malformed text in JSON is repaired.
    pub(crate) is_json: fn(&HeaderMap) -> bool,
    /// Finds the key in the body, if senders of this dialect send it there.
    pub(crate) key_in_body: Option<FindKey>,
    pub(crate) endpoints: &'static [Endpoint],
    pub(crate) error_response: fn(&ErrorContext<'_>, &DialectError) -> DialectResponse,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyLimit {
    Usual,
    /// The smaller of this number of bytes and the general limit.
    Small(usize),
    Batches,
}

impl BodyLimit {
    /// Returns the limit in bytes, given the general limit. A general limit that was configured
    /// below its default applies to all requests.
    pub(crate) fn limit_bytes(self, usual: usize) -> usize {
        match self {
            Self::Usual => usual,
            Self::Small(own) => own.min(usual),
            Self::Batches if usual < limits::BODY_BYTES => usual,
            Self::Batches => usual.max(limits::BATCH_BODY_BYTES),
        }
    }
}

type FindKey = fn(&[u8]) -> Option<String>;

#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// Path template; the segment `{key}` is the sender's key.
    pub(crate) path: &'static str,
    pub(crate) about: &'static str,
    pub(crate) success: StatusCode,
    /// Whether the path requires neither a key nor the backend.
    pub(crate) open: bool,
    pub(crate) read: fn(&IncomingRequest<'_>) -> Result<Translation, DialectError>,
}

#[derive(Debug)]
pub(crate) struct IncomingRequest<'a> {
    pub(crate) captures: &'a [String],
    pub(crate) query: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) now_ms: i64,
    pub(crate) started_ms: i64,
    /// A unique id of 32 hexadecimal digits.
    pub(crate) fresh: &'a str,
    pub(crate) settings: &'a Settings,
}

#[derive(Debug)]
pub(crate) struct Translation {
    pub(crate) events: Vec<Event>,
    pub(crate) refused: RejectedItems,
    /// An idempotency key of at most 255 visible ASCII characters.
    pub(crate) once: Option<String>,
    pub(crate) note: Option<Note>,
    pub(crate) query: Option<String>,
    pub(crate) search: Option<SearchEventsRequest>,
    pub(crate) webhook: Option<ReceiveWebhookRequest>,
    pub(crate) success: Success,
}

impl Translation {
    fn from_events(events: Vec<Event>, success: Success) -> Self {
        Self {
            events,
            success,
            refused: RejectedItems::default(),
            once: None,
            note: None,
            query: None,
            search: None,
            webhook: None,
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RejectedItems {
    count: usize,
    shown: Vec<String>,
    beyond: usize,
}

impl RejectedItems {
    fn add(&mut self, why: String) {
        self.count += 1;
        if self.shown.len() < limits::REFUSED_SHOWN {
            self.shown.push(why);
        }
    }

    fn error(&self) -> Option<DialectError> {
        let mut each = self.shown.clone();
        if self.count > each.len() {
            each.push(format!("and {} more", self.count - each.len()));
        }
        if self.beyond > 0 {
            each.push(format!(
                "{} exceed the limit of {} per request; send fewer at a time",
                self.beyond,
                bulk::EVENTS_MAX
            ));
        }
        let error = (!each.is_empty()).then(|| DialectError::from_all(each))?;
        Some(if self.count == 0 {
            DialectError {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                ..error
            }
        } else {
            error
        })
    }
}

/// Events of a list with independent items. An invalid item does not affect the others.
#[derive(Debug, Default)]
struct Batch {
    events: Vec<Event>,
    refused: RejectedItems,
}

impl Batch {
    fn add(&mut self, made: Result<Event, DialectError>) {
        match made {
            Err(error) => self.refused.add(error.message),
            Ok(_) if self.events.len() >= bulk::EVENTS_MAX => self.refused.beyond += 1,
            Ok(event) => self.events.push(event),
        }
    }

    fn into_translation(self, success: Success) -> Result<Translation, DialectError> {
        if self.events.is_empty()
            && let Some(error) = self.refused.error()
        {
            return Err(error);
        }
        Ok(Translation {
            refused: self.refused,
            ..Translation::from_events(self.events, success)
        })
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) event_id: String,
    pub(crate) text: String,
    /// Whether the request fails if the note cannot be written.
    pub(crate) required: bool,
}

/// Builds the response once the events are on disk.
pub(crate) enum Success {
    /// A response for full success; if an event was rejected, the request fails.
    Whole(Box<dyn FnOnce(&Outcome) -> DialectResponse + Send>),
    /// A response that can report rejected events.
    Partial(Box<dyn FnOnce(&Outcome) -> DialectResponse + Send>),
}

impl Success {
    fn from_outcome(answer: impl FnOnce(&Outcome) -> DialectResponse + Send + 'static) -> Self {
        Self::Whole(Box::new(answer))
    }
}

impl std::fmt::Debug for Success {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Partial(_) => "Partial",
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) result: EventStatusResult,
    /// Number of events that did not fit into one message to the backend.
    pub(crate) beyond: usize,
    pub(crate) found: Option<StoredEvent>,
    pub(crate) listed: SearchEventsResponse,
    pub(crate) dropped: i32,
    /// The code that completes a handshake; empty for other requests.
    pub(crate) validation: String,
    /// The JSON that the mapping replies with; empty for the default.
    pub(crate) reply: String,
    pub(crate) note_lost: Option<String>,
    pub(crate) took: Duration,
}

#[derive(Debug)]
pub(crate) struct ErrorContext<'a> {
    pub(crate) headers: &'a HeaderMap,
    pub(crate) request_id: &'a str,
    pub(crate) took: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialectError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// Each error; empty if `message` is the only error.
    pub(crate) each: Vec<String>,
}

impl DialectError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            message,
            each: Vec::new(),
        }
    }

    fn new_invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn from_all(each: Vec<String>) -> Self {
        let message = each.join("; ");
        Self {
            each,
            ..Self::new_invalid(message)
        }
    }

    /// Returns the error for events rejected by the backend or earlier; `None` if there are none.
    pub(crate) fn from_rejected(refused: &RejectedItems, outcome: &Outcome) -> Option<Self> {
        let result = &outcome.result;
        let here = refused.error();
        if result.failed == 0 && outcome.beyond == 0 {
            return here;
        }
        let mut each = here.map_or_else(Vec::new, |error| error.each);
        if result.failed > 0 {
            each.push(result.message.clone());
        }
        if outcome.beyond > 0 {
            let beyond = outcome.beyond;
            each.push(format!(
                "{beyond} exceeded the size limit of a request; send fewer at a time"
            ));
        }
        Some(Self::from_all(each))
    }
}

impl From<&Problem> for DialectError {
    fn from(problem: &Problem) -> Self {
        Self::new(problem.status, &*problem.message)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialectResponse {
    pub(crate) status: StatusCode,
    /// `None` without a body.
    pub(crate) content_type: Option<&'static str>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl DialectResponse {
    fn json(status: StatusCode, body: &Value) -> Self {
        Self {
            status,
            content_type: Some("application/json"),
            headers: HeaderMap::new(),
            body: body.to_string().into(),
        }
    }

    fn without_body(status: StatusCode) -> Self {
        Self {
            status,
            content_type: None,
            headers: HeaderMap::new(),
            body: Bytes::new(),
        }
    }
}

fn plain_error(_: &ErrorContext<'_>, error: &DialectError) -> DialectResponse {
    let code = match error.status.as_u16() {
        401 => 16,
        403 => 7,
        404 => 5,
        409 => 10,
        413 | 429 | 431 => 8,
        500 => 13,
        503 => 14,
        504 => 4,
        _ => 3,
    };
    let body = serde_json::json!({"code": code, "message": error.message});
    DialectResponse::json(error.status, &body)
}

#[derive(Debug)]
pub(crate) struct Senders {
    router: Router,
    endpoints: Vec<(&'static Dialect, &'static Endpoint)>,
}

impl Senders {
    pub(crate) fn new() -> Result<Self, String> {
        let mut senders = Self {
            router: Router::default(),
            endpoints: Vec::new(),
        };
        for dialect in DIALECTS {
            for endpoint in dialect.endpoints {
                let template = Template::parse(endpoint.path)?;
                let at = senders.endpoints.len();
                senders.router.add(&endpoint.method, &template, at)?;
                senders.endpoints.push((dialect, endpoint));
            }
        }
        Ok(senders)
    }

    pub(crate) fn endpoint(&self, at: usize) -> (&'static Dialect, &'static Endpoint) {
        self.endpoints[at]
    }

    /// Finds the index of the endpoint for a method and a raw path, which may have a trailing
    /// slash.
    pub(crate) fn find<'p>(&self, method: &Method, path: &'p str) -> RouteMatch<'p> {
        self.router.find(method, path.trim_end_matches('/'))
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let endpoints = self.endpoints.iter();
        endpoints.map(|(dialect, endpoint)| format!("{}{}", dialect.name, endpoint.path))
    }
}

/// Finds the sender's key: in the path, in the body or in a header.
pub(crate) fn find_key(
    dialect: &Dialect,
    endpoint: &Endpoint,
    incoming: &IncomingRequest<'_>,
) -> SenderKey {
    let segments = endpoint.path.split('/');
    let captures = segments.filter(|segment| segment.starts_with('{'));
    let in_path = captures
        .zip(incoming.captures)
        .find_map(|(name, value)| (name == "{key}").then(|| value.clone()));
    if let Some(key) = in_path {
        return SenderKey::InPath(key);
    }
    let in_body = dialect.key_in_body.and_then(|find| find(incoming.body));
    match in_body.or_else(|| key::find_in_headers(incoming.headers)) {
        Some(key) => SenderKey::Apart(key),
        None => SenderKey::Nowhere,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SenderKey {
    /// The key is in the path, which may be logged.
    InPath(String),
    Apart(String),
    Nowhere,
}

pub(crate) fn decode_captures(captures: &[&str]) -> Option<Vec<String>> {
    captures.iter().map(|it| decode_segment(it)).collect()
}
