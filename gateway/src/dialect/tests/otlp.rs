//! OpenTelemetry logs.

use prost::Message as _;
use serde_json::json;

use super::*;

const PATH: &str = "/v1/logs";

/// A response, decoded independently of the gateway's types. Field 1 of field 1 is the number of
/// rejected records.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<Partial>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Partial {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    message: String,
}

fn request(records: &Value) -> Ask {
    let attributes = json!([
        {"key": "service.name", "value": {"stringValue": "shop"}},
        {"key": "process.pid", "value": {"intValue": "77"}},
    ]);
    let body = json!({"resourceLogs": [{
        "resource": {"attributes": attributes},
        "scopeLogs": [{"scope": {"name": "orders"}, "logRecords": records}],
    }]});
    Ask::body(body.to_string()).header("content-type", "application/json")
}

#[test]
fn protobuf_and_json_requests_are_equivalent() {
    let protobuf = Ask::body(include_bytes!("../../../tests/dialect/otlp.bin"))
        .header("content-type", "application/x-protobuf");
    let json = Ask::body(include_bytes!("../../../tests/dialect/otlp.json"))
        .header("content-type", "application/json; charset=utf-8");
    let events = protobuf.read(PATH).unwrap().events;
    assert_eq!(json.read(PATH).unwrap().events, events);
    assert_eq!(events.len(), 2);
    let (first, second) = (&events[0], &events[1]);
    assert_eq!((&*first.name, first.severity), ("shop.orders", 4));
    assert_eq!(dimensions(first), ["host.name=web-1", "service.name=shop"]);
    assert_eq!(first.summary, "payment failed");
    assert_eq!(first.body, "payment failed\nfor order 7");
    assert_eq!(first.timestamp, 1_769_846_400_123);
    let stored = metadata(first);
    assert_eq!(stored["attributes"], json!({"order": 7.0, "retry": true}));
    assert_eq!(stored["resource"]["process.pid"], 4711.0);
    assert_eq!(stored["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!((&*second.name, second.severity), ("order.lost", 5));
}

#[test]
fn severity_numbers_map_and_the_floor_filters_records() {
    let table = [
        (1, 1),
        (8, 1),
        (9, 2),
        (12, 2),
        (13, 3),
        (16, 3),
        (17, 4),
        (20, 4),
        (21, 5),
        (24, 5),
    ];
    for (number, severity) in table {
        let mut ask = request(&json!([{"severityNumber": number}]));
        ask.settings.logs.floor = Severity::Debug.into();
        assert_eq!(ask.event(PATH).severity, severity, "{number}");
        ask.settings.logs.floor = Severity::Error.into();
        let accepted = ask.read(PATH).unwrap().events.len();
        assert_eq!(accepted, usize::from(severity >= 4), "{number}");
    }
    for (record, severity) in [
        (json!({"severityText": "FATAL"}), 5),
        (json!({"severityText": "?"}), 2),
        (json!({}), 2),
        (json!({"severityNumber": 99}), 2),
    ] {
        let mut ask = request(&json!([record]));
        ask.settings.logs.floor = Severity::Debug.into();
        assert_eq!(ask.event(PATH).severity, severity, "{record}");
    }
}

#[test]
fn event_name_falls_back_to_the_scope_name() {
    let table = [
        (json!({"eventName": "e"}), "e"),
        (
            json!({"attributes": [{"key": "event.name", "value": {"stringValue": "a"}}]}),
            "a",
        ),
        (json!({}), "orders"),
    ];
    for (mut record, name) in table {
        record["severityNumber"] = json!(17);
        assert_eq!(request(&json!([record])).event(PATH).name, name);
    }
    let bare = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"severityNumber": 21}]}]}]});
    let event = Ask::body(bare.to_string())
        .header("content-type", "application/json")
        .event(PATH);
    assert_eq!(event.name, "log");
    assert_eq!(dimensions(&event), ["service.name=unknown_service"]);
}

#[test]
fn non_text_body_is_rendered_as_json() {
    let body = json!({"kvlistValue": {"values": [
        {"key": "a", "value": {"arrayValue": {"values": [{"doubleValue": 1.5}, {}]}}},
        {"key": "b", "value": {"bytesValue": "AAE="}},
    ]}});
    let event = request(&json!([{"severityNumber": 17, "body": body}])).event(PATH);
    assert_eq!(event.body, r#"{"a":[1.5,null],"b":"AAE="}"#);
    assert_eq!(
        metadata(&event)["body"],
        json!({"a": [1.5, null], "b": "AAE="})
    );
}

#[test]
fn dropped_records_are_reported_in_partial_success() {
    let records = json!([{"severityNumber": 17}, {"severityNumber": 9}, {"severityNumber": 1}]);
    let refused = Outcome {
        result: EventStatusResult {
            failed: 1,
            message: "1 of 1 events were refused".into(),
            ..EventStatusResult::default()
        },
        ..Outcome::default()
    };
    let reported = body_json(&answer(request(&records).read(PATH).unwrap(), &refused));
    let expected = json!({"partialSuccess": {
        "rejectedLogRecords": "3",
        "errorMessage": "2 log records are below the severity `warning`; \
                         1 of 1 events were refused",
    }});
    assert_eq!(reported, expected);
    let whole = request(&json!([{"severityNumber": 17}]))
        .read(PATH)
        .unwrap();
    assert_eq!(body_json(&answer(whole, &Outcome::default())), json!({}));

    let many = (0..bulk::EVENTS_MAX + 3).map(|_| json!({"severityNumber": 17}));
    let reading = request(&many.collect()).read(PATH).unwrap();
    assert_eq!(reading.events.len(), bulk::EVENTS_MAX);
    let reported = body_json(&answer(reading, &Outcome::default()));
    assert_eq!(reported["partialSuccess"]["rejectedLogRecords"], "3");
}

#[test]
fn invalid_record_does_not_affect_the_others() {
    for wrong in [json!({"severityNumber": "high"}), json!(7)] {
        let records = json!([{"severityNumber": 17}, wrong, {"severityNumber": 17}]);
        let reading = request(&records).read(PATH).unwrap();
        assert_eq!(reading.events.len(), 2, "{wrong}");
        let reported = body_json(&answer(reading, &Outcome::default()));
        assert_eq!(
            reported["partialSuccess"]["rejectedLogRecords"], "1",
            "{wrong}"
        );
        let why = reported["partialSuccess"]["errorMessage"].to_string();
        assert!(why.contains("logRecords[1]"), "{why}");
    }
    let records = json!([{"severityNumber": 17}, "BROKEN"]);
    let mut ask = request(&records);
    let body = String::from_utf8(ask.body).unwrap();
    ask.body = body
        .replace("\"BROKEN\"", "{\"severityNumber\": 1e400}")
        .into();
    assert_eq!(ask.read(PATH).unwrap().events.len(), 1);
}

#[test]
fn requests_with_too_many_values_are_rejected() {
    let bomb = [0x0a, 0].repeat(1_000_001);
    let ask = Ask::body(bomb).header("content-type", "application/x-protobuf");
    assert_eq!(ask.read(PATH).unwrap_err().status, 413);
    let bomb = format!("[{}1]", "1,".repeat(1_000_001));
    let ask = Ask::body(bomb).header("content-type", "application/json");
    assert_eq!(ask.read(PATH).unwrap_err().status, 413);
}

#[test]
fn protobuf_request_gets_a_protobuf_response() {
    let ask = Ask::body(include_bytes!("../../../tests/dialect/otlp.bin"))
        .header("content-type", "application/x-protobuf");
    let whole = answer(ask.read(PATH).unwrap(), &Outcome::default());
    assert_eq!(whole.content_type, Some("application/x-protobuf"));
    let reported = Response::decode(whole.body)
        .unwrap()
        .partial_success
        .unwrap();
    assert_eq!(reported.rejected, 1);
    assert!(
        reported.message.contains("below the severity"),
        "{}",
        reported.message
    );
    let context = ErrorContext {
        headers: &ask.headers,
        request_id: "r",
        took: Duration::ZERO,
    };
    let error = (DIALECTS[5].error_response)(&context, &DialectError::new_invalid("a sentence"));
    let status = tonic_types::pb::Status::decode(error.body).unwrap();
    assert_eq!((status.code, &*status.message), (3, "a sentence"));
}

#[test]
fn invalid_requests_name_the_problem() {
    let json = |body: Value| Ask::body(body.to_string()).header("content-type", "application/json");
    let record = |record: Value| request(&json!([record]));
    let table = [
        (Ask::body(""), 415, "the content type must be"),
        (
            Ask::body("").header("content-type", "text/plain"),
            415,
            "the content type must be",
        ),
        (
            Ask::body([0xff]).header("content-type", "application/x-protobuf"),
            400,
            "the body is not a log export request",
        ),
        (json(json!([])), 400, "the body must be an object"),
        (
            json(json!({"evnts": []})),
            400,
            "`resourceLogs` is required",
        ),
        (
            json(json!({"resourceLogs": [7]})),
            400,
            "`resourceLogs[0]` must be an object",
        ),
        (
            record(json!({"severityNumber": "high"})),
            400,
            "`resourceLogs[0].scopeLogs[0].logRecords[0].severityNumber` must be an integer",
        ),
        (
            record(json!({"body": {"bytesValue": "%"}})),
            400,
            "`resourceLogs[0].scopeLogs[0].logRecords[0].body.bytesValue` must be base64",
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
}

#[test]
fn invalid_utf8_in_one_record_does_not_affect_the_others() {
    let recorded: &[u8] = include_bytes!("../../../tests/dialect/otlp.bin");
    let place = recorded.windows(5).position(|it| it == b"order").unwrap();
    let mut broken = recorded.to_vec();
    broken[place] = 0xff;
    let read = |body: &[u8]| {
        let ask = Ask::body(body).header("content-type", "application/x-protobuf");
        ask.read(PATH).unwrap().events
    };
    let (whole, repaired) = (read(recorded), read(&broken));
    assert_eq!(repaired.len(), whole.len());
    assert!(
        format!("{repaired:?}").contains("\u{fffd}rder"),
        "{repaired:?}"
    );
}

#[test]
fn mistyped_record_fields_are_retained_as_text() {
    let record = json!({
        "severityNumber": 17, "traceId": "xyz", "timeUnixNano": "soon", "severityText": 7,
    });
    let event = request(&json!([record])).event(PATH);
    let stored = metadata(&event);
    assert_eq!(
        stored["attributes"],
        json!({"traceId": "xyz", "timeUnixNano": "soon"})
    );
}
