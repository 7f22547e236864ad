//! Tables of cases that define the behaviour of the service, checked over REST and gRPC.
#![expect(clippy::too_many_lines, reason = "a table of cases may be long")]

mod delivering;
mod etags;
mod intake;
mod naming;
mod notifying;
mod reading;

use bellwether_tests::wire::Wire;
use serde_json::{Map, Value, json};

pub(crate) const PUT: &str = "DataReceiverService/PutEvents";
pub(crate) const STATUS: &str = "EventManagementService/SetStatus";
pub(crate) const GET: &str = "EventQueryService/GetEvent";
pub(crate) const SEARCH: &str = "EventQueryService/SearchEvents";

/// Returns the time `seconds` seconds from now as the JSON text of a number of milliseconds since
/// 1970.
pub(crate) fn in_seconds(seconds: i64) -> String {
    let now_ms = jiff::Timestamp::now().as_millisecond();
    (now_ms + seconds * 1_000).to_string()
}

pub(crate) fn with(base: &Value, over: &Value) -> Value {
    let mut members: Map<_, _> = base.as_object().expect("an object").clone();
    members.extend(over.as_object().expect("an object").clone());
    Value::Object(members)
}

/// Returns an event that no other case uses.
pub(crate) fn event(host: &str) -> Value {
    json!({
        "name": "disk-full",
        "dimensions": {"host": host},
        "type": "disk",
        "summary": "disk is full",
        "body": "nothing can be written",
        "metadataFields": {"mount": "/var"},
        "severity": "SEVERITY_ERROR",
    })
}

pub(crate) async fn send(wire: &Wire, events: &[Value]) {
    let request = json!({"detailedResponse": true, "events": events});
    let answer = wire.ok(PUT, &request).await;
    assert_eq!(
        answer["succeeded"],
        events.len(),
        "{}: {answer}",
        wire.name()
    );
}

pub(crate) async fn stored(wire: &Wire, host: &str) -> Value {
    let clause = json!({"equals": {"field": "dimensions.host", "stringVal": host}});
    let found = wire.ok(SEARCH, &json!({"query": {"clause": clause}})).await;
    let id = &found["results"][0]["id"];
    assert!(id.is_string(), "{}: nothing about {host}", wire.name());
    wire.ok(GET, &json!({"id": id})).await["result"].clone()
}

pub(crate) async fn newest(wire: &Wire, host: &str) -> Value {
    stored(wire, host).await["occurrences"][0].clone()
}

pub(crate) async fn set_status(wire: &Wire, host: &str, item: &Value) -> Value {
    let id = stored(wire, host).await["id"].clone();
    let item = with(&json!({"eventId": id}), item);
    let answer = wire.ok(STATUS, &json!({"statuses": [item]})).await;
    answer["statusResponses"][0].clone()
}
