//! Table tests for the pure functions: translated requests and error responses.

mod alerts;
mod cloudevents;
mod opsgenie;
mod otlp;
mod pagerduty;

use std::collections::BTreeSet;

use bellwether_proto::{
    cloud::Event,
    reference::{Block, Topic},
};
use http::{HeaderMap, HeaderName};
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::*;

struct Ask {
    captures: Vec<String>,
    query: &'static str,
    headers: HeaderMap,
    body: Vec<u8>,
    now_ms: i64,
    settings: Settings,
}

/// 2026-01-31T08:00:00Z.
const NOW_MS: i64 = 1_769_846_400_000;
const FRESH: &str = "00112233445566778899aabbccddeeff";

impl Ask {
    fn body(body: impl AsRef<[u8]>) -> Self {
        Self {
            captures: Vec::new(),
            query: "",
            headers: HeaderMap::new(),
            body: body.as_ref().to_vec(),
            now_ms: NOW_MS,
            settings: Settings::default(),
        }
    }

    fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().unwrap();
        self.headers.insert(name, value.parse().unwrap());
        self
    }

    fn captured(mut self, segment: &str) -> Self {
        self.captures.push(segment.to_owned());
        self
    }

    fn incoming(&self) -> IncomingRequest<'_> {
        IncomingRequest {
            captures: &self.captures,
            query: self.query,
            headers: &self.headers,
            body: &self.body,
            now_ms: self.now_ms,
            started_ms: NOW_MS - 5_000,
            fresh: FRESH,
            settings: &self.settings,
        }
    }

    /// Translates this request as the endpoint at `path` does.
    fn read(&self, path: &str) -> Result<Translation, DialectError> {
        let mut endpoints = DIALECTS.iter().flat_map(|dialect| dialect.endpoints);
        let endpoint = endpoints.find(|endpoint| endpoint.path == path).unwrap();
        (endpoint.read)(&self.incoming())
    }

    fn event(&self, path: &str) -> Event {
        let mut events = self.read(path).unwrap().events;
        assert_eq!(events.len(), 1);
        events.remove(0)
    }
}

/// Returns the response to a request with this outcome.
fn answer(reading: Translation, outcome: &Outcome) -> DialectResponse {
    match reading.success {
        Success::Whole(answer) | Success::Partial(answer) => answer(outcome),
    }
}

fn body_json(answer: &DialectResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

fn metadata(event: &Event) -> Value {
    let fields = event.metadata_fields.clone().unwrap_or_default();
    Value::Object(members(fields))
}

fn members(fields: prost_types::Struct) -> Map<String, Value> {
    let fields = fields.fields.into_iter();
    fields.map(|(name, value)| (name, json_of(value))).collect()
}

fn json_of(value: prost_types::Value) -> Value {
    use prost_types::value::Kind;
    match value.kind.unwrap() {
        Kind::NullValue(_) => Value::Null,
        Kind::BoolValue(flag) => flag.into(),
        Kind::NumberValue(number) => number.into(),
        Kind::StringValue(text) => text.into(),
        Kind::ListValue(list) => list.values.into_iter().map(json_of).collect(),
        Kind::StructValue(fields) => members(fields).into(),
    }
}

/// Returns the dimensions as `key=value`, in order.
fn dimensions(event: &Event) -> Vec<String> {
    let pairs = event.dimensions.iter();
    pairs.map(|(key, value)| format!("{key}={value}")).collect()
}

fn state(event: &Event) -> (i32, i32, Option<bool>) {
    (event.severity, event.status, event.acknowledged)
}

/// Returns the rows of the table below a heading of a reference topic, without the header row.
fn table(topic: &Topic, heading: &str) -> Vec<Vec<String>> {
    let mut blocks = topic.blocks().into_iter();
    blocks.find(|block| matches!(block, Block::Heading(title) if title == heading));
    let tables = blocks.filter_map(|block| match block {
        Block::Table(rows) => Some(rows[1..].to_vec()),
        _ => None,
    });
    tables.into_iter().next().unwrap()
}

#[test]
fn reference_lists_exactly_the_served_paths() {
    let topic = Topic::find("senders").unwrap();
    let reported: BTreeSet<_> = table(topic, "Paths")
        .into_iter()
        .map(|row| [&row[0], &row[1]].map(|cell| cell.trim_matches('`').to_owned()))
        .collect();
    let served: BTreeSet<_> = DIALECTS
        .iter()
        .flat_map(|dialect| dialect.endpoints.iter().map(move |it| (dialect, it)))
        .map(|(dialect, it)| {
            [
                dialect.name.to_owned(),
                format!("{} {}", it.method, it.path),
            ]
        })
        .collect();
    assert_eq!(reported, served);
}

#[test]
fn paths_are_unique_and_declare_their_key() {
    let senders = Senders::new().unwrap();
    let names: BTreeSet<_> = senders
        .endpoints
        .iter()
        .map(|(_, endpoint)| (endpoint.path, endpoint.method.as_str()))
        .collect();
    assert_eq!(names.len(), senders.endpoints.len());
    let ask = Ask::body("").captured("k1");
    for (path, expected) in [
        (
            "/v1/intake/alertmanager/{key}",
            SenderKey::InPath("k1".into()),
        ),
        (
            "/v1/intake/cloudevents/{key}",
            SenderKey::InPath("k1".into()),
        ),
        ("/v2/alerts/{id}/close", SenderKey::Nowhere),
    ] {
        let mut endpoints = senders.endpoints.iter();
        let (dialect, endpoint) = endpoints.find(|(_, it)| it.path == path).unwrap();
        assert_eq!(find_key(dialect, endpoint, &ask.incoming()), expected);
    }
}

#[test]
fn literal_segments_take_precedence_and_captures_are_decoded() {
    let senders = Senders::new().unwrap();
    for (path, expected, captured) in [
        ("/v2/alerts/requests/x", "/v2/alerts/requests/{id}", "x"),
        ("/v2/heartbeats/a%20b/ping", PING, "a b"),
        ("/v2/heartbeats/a/ping/", PING, "a"),
    ] {
        let RouteMatch::Operation(at, captures) = senders.find(&Method::GET, path) else {
            panic!("{path}")
        };
        assert_eq!(senders.endpoint(at).1.path, expected);
        assert_eq!(decode_captures(&captures).unwrap(), [captured]);
    }
    let found = senders.find(&Method::POST, "/v2/alerts/db%2Fdisk:1/close");
    let RouteMatch::Operation(_, captures) = found else {
        panic!("not found")
    };
    assert_eq!(decode_captures(&captures).unwrap(), ["db/disk:1"]);
    assert_eq!(decode_captures(&["%2"]), None);
}

const PING: &str = "/v2/heartbeats/{id}/ping";

fn bodies() -> Vec<&'static [u8]> {
    vec![
        include_bytes!("../../tests/dialect/alertmanager.json"),
        include_bytes!("../../tests/dialect/grafana.json"),
        include_bytes!("../../tests/dialect/prometheus.json"),
        include_bytes!("../../tests/dialect/pagerduty.json"),
        include_bytes!("../../tests/dialect/opsgenie.json"),
        include_bytes!("../../tests/dialect/cloudevent.json"),
        include_bytes!("../../tests/dialect/otlp.json"),
        include_bytes!("../../tests/dialect/otlp.bin"),
    ]
}

fn read_by_all(ask: &Ask) {
    for dialect in DIALECTS {
        if let Some(find) = dialect.key_in_body {
            find(&ask.body);
        }
        for endpoint in dialect.endpoints {
            match (endpoint.read)(&ask.incoming()) {
                Ok(reading) => {
                    answer(reading, &Outcome::default());
                }
                Err(error) => {
                    let context = ErrorContext {
                        headers: &ask.headers,
                        request_id: "r1",
                        took: Duration::ZERO,
                    };
                    let answer = (dialect.error_response)(&context, &error);
                    assert!(!answer.status.is_success(), "{dialect:?}: {error:?}");
                }
            }
        }
    }
}

const CONTENT_TYPES: [&str; 6] = [
    "application/json",
    "application/cloudevents+json; charset=utf-8",
    "application/cloudevents-batch+json",
    "application/x-protobuf",
    "text/plain",
    "",
];

proptest! {
    #[test]
    fn readers_never_panic_on_arbitrary_bytes(
        body in proptest::collection::vec(any::<u8>(), 0..400),
        segment in "\\PC{0,20}",
        kind in 0..CONTENT_TYPES.len(),
    ) {
        let ask = Ask::body(body).captured(&segment);
        read_by_all(&ask.header("content-type", CONTENT_TYPES[kind]));
    }

    #[test]
    fn readers_never_panic_on_corrupted_requests(
        which in 0_usize..7,
        changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        kind in 0..CONTENT_TYPES.len(),
    ) {
        let mut body = bodies()[which].to_vec();
        for (at, byte) in changes {
            let at = at % body.len();
            body[at] = byte;
        }
        let ask = Ask::body(body).captured("a");
        read_by_all(&ask.header("content-type", CONTENT_TYPES[kind]).header("ce-specversion", "1.0"));
    }

    #[test]
    fn long_summary_is_shortened_without_losing_text(text in "\\PC{0,1500}", with_body: bool) {
        let mut draft = draft::EventDraft::new("x");
        draft.set_summary(&text);
        if with_body {
            draft.set_body("details");
        }
        let event = draft.finish();
        prop_assert!(event.summary.len() <= limits::SUMMARY_BYTES);
        let stored = metadata(&event)["summary"].as_str().map(str::to_owned);
        let whole = [Some(event.summary), Some(event.body), stored];
        prop_assert!(whole.into_iter().flatten().any(|it| it == text));
    }
}
