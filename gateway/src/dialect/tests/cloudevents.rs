//! Tests of `CloudEvents` in all three modes.

use serde_json::json;

use super::*;

const PATH: &str = "/v1/intake/cloudevents";
const STRUCTURED: &str = "application/cloudevents+json; charset=utf-8";
const BATCH: &str = "application/cloudevents-batch+json";

fn document(change: &Value) -> Value {
    let mut document = json!({
        "specversion": "1.0",
        "id": "1",
        "source": "/shop",
        "type": "com.example.order",
    });
    for (member, value) in change.as_object().unwrap() {
        document[member] = value.clone();
    }
    document
}

fn structured(change: &Value) -> Ask {
    Ask::body(document(change).to_string()).header("content-type", STRUCTURED)
}

#[test]
fn all_three_content_modes_are_equivalent() {
    let data = json!({"message": "late", "severity": "major"});
    let change = json!({
        "subject": "order 7",
        "time": "2026-01-31T07:59:00Z",
        "datacontenttype": "application/json",
        "region": "eu west",
        "data": data,
    });
    let by_document = structured(&change).event(PATH);
    let binary = Ask::body(data.to_string())
        .header("content-type", "application/json")
        .header("ce-specversion", "1.0")
        .header("ce-id", "1")
        .header("ce-source", "/shop")
        .header("ce-type", "com.example.order")
        .header("ce-subject", "order%207")
        .header("ce-time", "2026-01-31T07:59:00Z")
        .header("ce-region", "eu west");
    assert_eq!(binary.event(PATH), by_document);
    let batch = json!([document(&change)]).to_string();
    let batch = Ask::body(batch).header("content-type", BATCH);
    assert_eq!(batch.event(PATH), by_document);
    let keys = [&binary, &batch, &structured(&change)].map(|it| it.read(PATH).unwrap().once);
    assert!(
        keys[0].is_some() && keys.iter().all(|key| *key == keys[0]),
        "{keys:?}"
    );

    assert_eq!(by_document.name, "com.example.order");
    assert_eq!(
        dimensions(&by_document),
        ["source=/shop", "subject=order 7"]
    );
    assert_eq!(state(&by_document), (4, 0, None));
    assert_eq!(by_document.summary, "late");
    assert_eq!(by_document.timestamp, NOW_MS - 60_000);
    let expected = json!({"id": "1", "data": data, "extensions": {"region": "eu west"}});
    assert_eq!(metadata(&by_document), expected);
}

#[test]
fn duplicates_are_detected_by_source_and_id() {
    let once = |change: &Value| structured(change).read(PATH).unwrap().once.unwrap();
    let key = once(&json!({}));
    assert_eq!(once(&json!({"type": "other"})), key);
    assert_ne!(once(&json!({"id": "2"})), key);
    assert_ne!(
        once(&json!({"source": "/sho", "id": "p1"})),
        once(&json!({"source": "/shop"}))
    );
    let twice = json!([
        document(&json!({})),
        document(&json!({})),
        document(&json!({"id": "2"}))
    ]);
    let batch = Ask::body(twice.to_string()).header("content-type", BATCH);
    assert_eq!(batch.read(PATH).unwrap().events.len(), 2);
    let empty = Ask::body("[]")
        .header("content-type", BATCH)
        .read(PATH)
        .unwrap();
    assert_eq!((empty.events.len(), empty.once), (0, None));
}

#[test]
fn severity_is_read_from_extensions_and_data() {
    let table = [
        (json!({}), 0),
        (json!({"severity": "critical"}), 5),
        (json!({"severity": "Fatal"}), 5),
        (json!({"severity": 4}), 4),
        (json!({"severity": "2"}), 2),
        (json!({"severity": 9}), 0),
        (json!({"severity": "whatever"}), 0),
        (json!({"severitytext": "WARN"}), 3),
        (json!({"severitynumber": 17}), 4),
        (json!({"severitynumber": "5"}), 1),
        (json!({"data": {"severity": "minor"}}), 3),
        (json!({"data": {"severity": 5}}), 5),
        (json!({"data": "severity"}), 0),
        (json!({"severity": "info", "data": {"severity": 5}}), 2),
    ];
    for (change, number) in table {
        assert_eq!(structured(&change).event(PATH).severity, number, "{change}");
    }
}

#[test]
fn type_suffix_or_status_extension_closes_the_event() {
    let table = [
        (
            json!({"type": "disk.full.resolved"}),
            "disk.full",
            (0, 3, None),
        ),
        (
            json!({"type": "disk.full.cleared"}),
            "disk.full",
            (0, 3, None),
        ),
        (json!({"type": ".resolved"}), ".resolved", (0, 0, None)),
        (json!({"type": "unresolved"}), "unresolved", (0, 0, None)),
        (
            json!({"status": "Closed"}),
            "com.example.order",
            (0, 3, None),
        ),
        (json!({"status": "ok"}), "com.example.order", (0, 3, None)),
        (
            json!({"status": "acknowledged"}),
            "com.example.order",
            (0, 0, Some(true)),
        ),
        (
            json!({"status": "suppressed"}),
            "com.example.order",
            (0, 2, None),
        ),
        (json!({"status": "open"}), "com.example.order", (0, 0, None)),
    ];
    for (change, name, expected) in table {
        let event = structured(&change).event(PATH);
        assert_eq!((&*event.name, state(&event)), (name, expected), "{change}");
    }
    let event = structured(&json!({"type": "disk.full.resolved"})).event(PATH);
    assert_eq!(event.r#type, "disk.full.resolved");
}

#[test]
fn data_of_any_type_is_retained_unchanged() {
    let table = [
        (
            json!({"data": {"title": "t", "x": [1]}}),
            "t",
            json!({"title": "t", "x": [1.0]}),
        ),
        (json!({"data": "text"}), "", json!("text")),
        (
            json!({"data_base64": "eyJzdW1tYXJ5IjoicyJ9", "datacontenttype": "application/json"}),
            "s",
            json!({"summary": "s"}),
        ),
        (
            json!({"data_base64": "/w==", "datacontenttype": "image/png"}),
            "",
            Value::Null,
        ),
    ];
    for (change, summary, data) in table {
        let event = structured(&change).event(PATH);
        assert_eq!(event.summary, summary, "{change}");
        assert_eq!(metadata(&event)["data"], data, "{change}");
        assert_eq!(metadata(&event)["data_base64"], change["data_base64"]);
    }
    let bytes = |body: &[u8], kind: &str| {
        let ask = Ask::body(body).header("content-type", kind);
        let ask = ask.header("ce-specversion", "1.0").header("ce-id", "1");
        ask.header("ce-source", "s")
            .header("ce-type", "t")
            .event(PATH)
    };
    assert_eq!(metadata(&bytes(b"hello", "text/plain"))["data"], "hello");
    let untyped = |body: &str| {
        let ask = Ask::body(body).header("ce-specversion", "1.0");
        let ask = ask.header("ce-id", "1").header("ce-source", "s");
        metadata(&ask.header("ce-type", "t").event(PATH))["data"].clone()
    };
    assert_eq!(untyped("hello"), "hello");
    assert_eq!(untyped("{\"a\": 1}"), json!({"a": 1.0}));
    assert_eq!(
        metadata(&bytes(b"\xff", "image/png"))["data_base64"],
        "/w=="
    );
}

#[test]
fn event_is_parsed_without_its_content_type() {
    let one = document(&json!({})).to_string();
    let many = json!([document(&json!({})), document(&json!({"id": "2"}))]).to_string();
    for (body, count) in [(&one, 1), (&many, 2)] {
        for kind in ["", "application/json", "text/plain; charset=utf-8"] {
            let ask = Ask::body(body).header("content-type", kind);
            assert_eq!(ask.read(PATH).unwrap().events.len(), count, "{kind}");
        }
        assert_eq!(Ask::body(body).read(PATH).unwrap().events.len(), count);
    }
}

#[test]
fn invalid_requests_name_the_problem() {
    let header = |name: &str, value: &str| Ask::body("{}").header(name, value);
    let table = [
        (Ask::body("{}"), 415, "the content type must be"),
        (
            header("content-type", "application/json"),
            415,
            "the content type must be",
        ),
        (
            header("content-type", STRUCTURED),
            400,
            "`specversion` is required",
        ),
        (
            header("content-type", BATCH),
            400,
            "the body must be a list of events",
        ),
        (
            header("ce-specversion", "0.3"),
            400,
            "`specversion` must be `1.0`, not `0.3`",
        ),
        (header("ce-specversion", "1.0"), 400, "`id` is required"),
        (structured(&json!({"id": ""})), 400, "`id` is required"),
        (
            structured(&json!({"source": null})),
            400,
            "`source` is required",
        ),
        (structured(&json!({"type": ""})), 400, "`type` is required"),
        (
            structured(&json!({"time": "now"})),
            400,
            "`time` must be a time",
        ),
        (
            structured(&json!({"data_base64": "%"})),
            400,
            "`data_base64` must be base64",
        ),
        (
            header("ce-specversion", "1.0").header("ce-id", "%ff"),
            400,
            "the header `ce-id`",
        ),
    ];
    for (ask, status, expected) in table {
        let error = ask.read(PATH).unwrap_err();
        assert!(
            error.message.starts_with(expected),
            "{expected}: {}",
            error.message
        );
        assert_eq!(error.status, status, "{expected}");
    }
    let second = json!([document(&json!({})), {"specversion": "1.0"}]).to_string();
    let reading = Ask::body(second).header("content-type", BATCH).read(PATH);
    let reading = reading.unwrap();
    assert_eq!(reading.events.len(), 1);
    let error = DialectError::from_rejected(&reading.refused, &Outcome::default()).unwrap();
    assert_eq!(error.message, "`[1].id` is required");
}
