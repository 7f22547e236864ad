//! What other senders speak: their requests become events for one call, and the answers are theirs.
//!
//! A dialect is a row of functions in a file of its own, each pure: bytes, headers and path become a
//! [`Translated`], and what came of it becomes an [`Answer`]. Reading bodies, keys, limits and the call
//! are the same for all of them, and stand in `request::sender`.

mod alert;
mod alertmanager;
mod cloudevents;
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
    cloud::{Event, EventStatusResult},
    json::violation::quoted,
    v1::ReceiveWebhookRequest,
};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use crate::{
    problem::Problem,
    route::{RouteMatch, Router, Template, decode_segment},
};

pub use severity::Severity;

/// All of them.
pub(crate) const DIALECTS: [&Dialect; 7] = [
    &alertmanager::DIALECT,
    &prometheus::DIALECT,
    &pagerduty::DIALECT,
    &opsgenie::DIALECT,
    &cloudevents::DIALECT,
    &otlp::DIALECT,
    &webhooks::DIALECT,
];

/// What the settings say about senders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Labels of Prometheus that only tell replicas of one Prometheus apart: no part of an event.
    pub replica_labels: Vec<String>,
    /// The severity of an alert whose label `severity` is missing or says something unknown.
    pub alert_severity: Severity,
    /// Log records below it are not taken in.
    pub log_floor: Severity,
    /// Attributes of an OTLP resource that name the thing a log record is about.
    pub log_dimensions: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Self {
            replica_labels: texts(&["prometheus_replica", "__replica__"]),
            alert_severity: Severity::Warning,
            log_floor: Severity::Warning,
            log_dimensions: texts(&[
                "service.namespace",
                "service.name",
                "host.name",
                "k8s.cluster.name",
                "k8s.namespace.name",
            ]),
        }
    }
}

/// What one kind of sender speaks.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Its name, by which a client allows it.
    pub(crate) name: &'static str,
    /// The largest body, in bytes, where it is smaller than any request's.
    pub(crate) body_limit_bytes: Option<usize>,
    /// Its key, where the sender puts it into the body.
    pub(crate) key_in_body: Option<FindKey>,
    /// Its paths.
    pub(crate) endpoints: &'static [Endpoint],
    /// A refusal or a failure as its clients expect it.
    pub(crate) fault: fn(&FaultContext<'_>, &Fault) -> Answer,
}

/// Finds a key in a body.
type FindKey = fn(&[u8]) -> Option<String>;

/// A path of a dialect.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// How it is asked.
    pub(crate) method: Method,
    /// Where it is; the segment `{key}` is the sender's key.
    pub(crate) path: &'static str,
    /// What it does, in one sentence.
    pub(crate) about: &'static str,
    /// The status of success.
    pub(crate) success: StatusCode,
    /// Whether it is answered without a key and without the backend.
    pub(crate) open: bool,
    /// What a request asks for.
    pub(crate) read: fn(&Incoming<'_>) -> Result<Translated, Fault>,
}

/// A request of a sender, read whole.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    /// The captured segments of the path, decoded.
    pub(crate) captures: &'a [String],
    /// The query string, without the question mark.
    pub(crate) query: &'a str,
    /// The headers.
    pub(crate) headers: &'a HeaderMap,
    /// The body, no longer compressed.
    pub(crate) body: &'a [u8],
    /// When it came, in milliseconds since 1970.
    pub(crate) now_ms: i64,
    /// When this gateway was started, in milliseconds since 1970.
    pub(crate) started_ms: i64,
    /// 32 hexadecimal digits that no other request has.
    pub(crate) fresh: &'a str,
    /// What the settings say.
    pub(crate) settings: &'a Settings,
}

/// What a request asks for.
#[derive(Debug)]
pub(crate) struct Translated {
    /// To be taken in.
    pub(crate) events: Vec<Event>,
    /// What tells a repeat of the request: at most 255 visible ASCII characters.
    pub(crate) once: Option<String>,
    /// A note on an event, written after the events are taken in.
    pub(crate) note: Option<Note>,
    /// What the backend is to make events of, by way of a stored mapping.
    pub(crate) webhook: Option<ReceiveWebhookRequest>,
    /// What is answered then.
    pub(crate) success: Success,
}

impl Translated {
    /// Events, and what is answered when all of them are on disk.
    fn of(events: Vec<Event>, success: Success) -> Self {
        Self {
            events,
            success,
            once: None,
            note: None,
            webhook: None,
        }
    }
}

/// A note on the newest occurrence of an event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The event.
    pub(crate) event_id: String,
    /// The text.
    pub(crate) text: String,
    /// Whether the request is of no use without it.
    pub(crate) required: bool,
}

/// What is answered once the events are on disk.
pub(crate) enum Success {
    /// This, unless an event was refused: that is a fault.
    Whole(Box<dyn FnOnce(&Outcome) -> Answer + Send>),
    /// This, which tells of events that were refused.
    Partial(Box<dyn FnOnce(&Outcome) -> Answer + Send>),
}

impl Success {
    fn whole(answer: impl FnOnce(&Outcome) -> Answer + Send + 'static) -> Self {
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

/// What became of a request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What the backend says of the events.
    pub(crate) result: EventStatusResult,
    /// How many entries of a webhook were passed over.
    pub(crate) dropped: i32,
    /// Why the note was not kept, when that is no fault.
    pub(crate) note_lost: Option<String>,
    /// How long it took.
    pub(crate) took: Duration,
}

/// What is known of a request that failed.
#[derive(Debug)]
pub(crate) struct FaultContext<'a> {
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// Its id in the log.
    pub(crate) request_id: &'a str,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Why a request is not answered with success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The status that the native interface gives.
    pub(crate) status: StatusCode,
    /// A sentence for people.
    pub(crate) message: String,
    /// Each thing that is wrong; empty when that is the message.
    pub(crate) each: Vec<String>,
}

impl Fault {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            message,
            each: Vec::new(),
        }
    }

    /// The request is wrong.
    fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Several things of the request are wrong; there is at least one.
    fn all(each: Vec<String>) -> Self {
        let message = each.join("; ");
        Self {
            each,
            ..Self::invalid(message)
        }
    }

    /// Some events were refused.
    pub(crate) fn refused(result: &EventStatusResult) -> Self {
        Self::invalid(&*result.message)
    }
}

impl From<&Problem> for Fault {
    fn from(problem: &Problem) -> Self {
        Self::new(problem.status, &*problem.message)
    }
}

/// What a sender is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: StatusCode,
    /// What the body is; none for no body.
    pub(crate) content_type: Option<&'static str>,
    /// The body.
    pub(crate) body: Bytes,
}

impl Answer {
    fn json(status: StatusCode, body: &Value) -> Self {
        Self {
            status,
            content_type: Some("application/json"),
            body: body.to_string().into(),
        }
    }

    fn empty(status: StatusCode) -> Self {
        Self {
            status,
            content_type: None,
            body: Bytes::new(),
        }
    }
}

/// A fault as the native interface words it, without details.
fn plain_fault(_: &FaultContext<'_>, fault: &Fault) -> Answer {
    let code = match fault.status.as_u16() {
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
    let body = serde_json::json!({"code": code, "message": fault.message});
    Answer::json(fault.status, &body)
}

/// All paths of all dialects.
#[derive(Debug)]
pub(crate) struct Senders {
    router: Router,
    endpoints: Vec<(&'static Dialect, &'static Endpoint)>,
}

impl Senders {
    /// The table of paths. The error names two that are the same.
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

    /// The endpoint at a place.
    pub(crate) fn endpoint(&self, at: usize) -> (&'static Dialect, &'static Endpoint) {
        self.endpoints[at]
    }

    /// The endpoint of a method and a raw path, by its place.
    pub(crate) fn find<'p>(&self, method: &Method, path: &'p str) -> RouteMatch<'p> {
        self.router.find(method, path)
    }

    /// A name for each endpoint, by its place, for the counters.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let endpoints = self.endpoints.iter();
        endpoints.map(|(dialect, endpoint)| format!("{}{}", dialect.name, endpoint.path))
    }
}

/// The key that a sender shows: in the path, in the body, in a header; none when it shows none.
pub(crate) fn key_of(dialect: &Dialect, endpoint: &Endpoint, incoming: &Incoming<'_>) -> KeyFound {
    let segments = endpoint.path.split('/');
    let captures = segments.filter(|segment| segment.starts_with('{'));
    let in_path = captures
        .zip(incoming.captures)
        .find_map(|(name, value)| (name == "{key}").then(|| value.clone()));
    if let Some(key) = in_path {
        return KeyFound::InPath(key);
    }
    let in_body = dialect.key_in_body.and_then(|find| find(incoming.body));
    match in_body.or_else(|| key::in_headers(incoming.headers)) {
        Some(key) => KeyFound::Apart(key),
        None => KeyFound::Nowhere,
    }
}

/// Where a sender's key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyFound {
    /// In the path, where others may log it.
    InPath(String),
    /// In a header or in the body.
    Apart(String),
    /// The request shows none.
    Nowhere,
}

/// The captured segments, decoded; none when one is not validly encoded.
pub(crate) fn decoded(captures: &[&str]) -> Option<Vec<String>> {
    captures.iter().map(|it| decode_segment(it)).collect()
}
