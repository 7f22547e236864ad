//! What other senders speak: their requests become events for one call, and the answers are theirs.
//!
//! A dialect is a row of functions in a separate file, each pure: bytes, headers and path become a
//! [`Translated`], and its outcome becomes an [`Answer`]. Reading bodies, keys, limits and the call
//! are the same for all of them, and are in `request::sender`.

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
    bulk,
    cloud::{Event, EventStatusResult},
    json::violation::quoted,
    otlp::Settings as LogSettings,
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

pub(crate) use key::in_headers as key_in_headers;
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
    /// Further labels of alerts that are no part of an event's identity.
    pub fold_labels: Vec<String>,
    /// The severity of an alert whose label `severity` is missing or says something unknown.
    pub alert_severity: Severity,
    /// Which log records are accepted, and what they are about.
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

/// What one kind of sender speaks.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// Its name, by which a client allows it.
    pub(crate) name: &'static str,
    /// How large its bodies are.
    pub(crate) bodies: Bodies,
    /// Whether the body of a request with these headers is JSON, in which malformed texts are replaced.
    pub(crate) is_json: fn(&HeaderMap) -> bool,
    /// Its key, where the sender puts it into the body.
    pub(crate) key_in_body: Option<FindKey>,
    /// Its paths.
    pub(crate) endpoints: &'static [Endpoint],
    /// A refusal or a failure as its clients expect it.
    pub(crate) fault: fn(&FaultContext<'_>, &Fault) -> Answer,
}

/// How large the bodies of a dialect may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bodies {
    /// As large as any request's.
    Usual,
    /// At most that many bytes, where that is less than any request's.
    Small(usize),
    /// As large as a message with many events becomes.
    Batches,
}

impl Bodies {
    /// The limit in bytes where `usual` is that of any request. Lowered below its default, the limit
    /// holds for all.
    pub(crate) fn limit_bytes(self, usual: usize) -> usize {
        match self {
            Self::Usual => usual,
            Self::Small(own) => own.min(usual),
            Self::Batches if usual < limits::BODY_BYTES => usual,
            Self::Batches => usual.max(limits::BATCH_BODY_BYTES),
        }
    }
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
    /// To be accepted.
    pub(crate) events: Vec<Event>,
    /// Why items of the request become no events; the others are accepted.
    pub(crate) refused: Refused,
    /// What tells a repeat of the request: at most 255 visible ASCII characters.
    pub(crate) once: Option<String>,
    /// A note on an event, written after the events are accepted.
    pub(crate) note: Option<Note>,
    /// The event that is asked for, by its id.
    pub(crate) query: Option<String>,
    /// The events that are asked for.
    pub(crate) search: Option<SearchEventsRequest>,
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
            refused: Refused::default(),
            once: None,
            note: None,
            query: None,
            search: None,
            webhook: None,
        }
    }
}

/// The items of a request that become no events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Refused {
    count: usize,
    /// What is wrong with the first of them.
    shown: Vec<String>,
    /// How many of them are too many.
    beyond: usize,
}

impl Refused {
    fn add(&mut self, why: String) {
        self.count += 1;
        if self.shown.len() < limits::REFUSED_SHOWN {
            self.shown.push(why);
        }
    }

    /// The fault that is answered although the others are accepted; none when there is none.
    fn fault(&self) -> Option<Fault> {
        let mut each = self.shown.clone();
        if self.count > each.len() {
            each.push(format!("and {} more", self.count - each.len()));
        }
        if self.beyond > 0 {
            each.push(format!(
                "{} are more than the {} that a request may bring; send fewer at a time",
                self.beyond,
                bulk::EVENTS_MAX
            ));
        }
        let fault = (!each.is_empty()).then(|| Fault::all(each))?;
        Some(if self.count == 0 {
            Fault {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                ..fault
            }
        } else {
            fault
        })
    }
}

/// The events of a list of which each item stands alone: one that is wrong leaves the others.
#[derive(Debug, Default)]
struct Batch {
    events: Vec<Event>,
    refused: Refused,
}

impl Batch {
    fn add(&mut self, made: Result<Event, Fault>) {
        match made {
            Err(fault) => self.refused.add(fault.message),
            Ok(_) if self.events.len() >= bulk::EVENTS_MAX => self.refused.beyond += 1,
            Ok(event) => self.events.push(event),
        }
    }

    /// What is asked for; the fault of the items when none of them becomes an event.
    fn translated(self, success: Success) -> Result<Translated, Fault> {
        if self.events.is_empty()
            && let Some(fault) = self.refused.fault()
        {
            return Err(fault);
        }
        Ok(Translated {
            refused: self.refused,
            ..Translated::of(self.events, success)
        })
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
    /// This, which reports events that were refused.
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

/// The outcome of a request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What the backend says of the events.
    pub(crate) result: EventStatusResult,
    /// How many events did not fit into one message for the backend.
    pub(crate) beyond: usize,
    /// The alert that was asked for.
    pub(crate) found: Option<StoredEvent>,
    /// The events that were asked for.
    pub(crate) listed: SearchEventsResponse,
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
    /// A message for people.
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

    /// Some events were refused, by the backend or before; none when none was.
    pub(crate) fn refused(refused: &Refused, outcome: &Outcome) -> Option<Self> {
        let result = &outcome.result;
        let here = refused.fault();
        if result.failed == 0 && outcome.beyond == 0 {
            return here;
        }
        let mut each = here.map_or_else(Vec::new, |fault| fault.each);
        if result.failed > 0 {
            each.push(result.message.clone());
        }
        if outcome.beyond > 0 {
            let beyond = outcome.beyond;
            each.push(format!(
                "{beyond} did not fit beside the others; send fewer at a time"
            ));
        }
        Some(Self::all(each))
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

    /// The endpoint of a method and a raw path, by its place. A path may end in a slash.
    pub(crate) fn find<'p>(&self, method: &Method, path: &'p str) -> RouteMatch<'p> {
        self.router.find(method, path.trim_end_matches('/'))
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
