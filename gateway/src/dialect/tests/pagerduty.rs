//! Events and changes of PagerDuty.

use serde_json::json;

use super::*;

const ENQUEUE: &str = "/v2/enqueue";
const CHANGE: &str = "/v2/change/enqueue";

fn trigger(change: &Value) -> Value {
    let mut message = json!({
        "routing_key": "k1",
        "event_action": "trigger",
        "dedup_key": "db-1/disk",
        "payload": {"summary": "disk is full", "source": "db-1", "severity": "error"},
    });
    for (member, value) in change.as_object().unwrap() {
        message[member] = value.clone();
    }
    message
}

fn ask(change: &Value) -> Ask {
    Ask::body(trigger(change).to_string())
}

#[test]
fn event_action_sets_the_event_state() {
    let table = [
        ("trigger", (4, 0, None)),
        ("acknowledge", (4, 0, Some(true))),
        ("resolve", (4, 3, None)),
    ];
    for (action, expected) in table {
        let event = ask(&json!({"event_action": action})).event(ENQUEUE);
        assert_eq!(state(&event), expected, "{action}");
        assert_eq!(event.name, "pagerduty");
        assert_eq!(dimensions(&event), ["dedup_key=db-1/disk"]);
    }
    // A resolve contains only the key.
    let resolve = json!({"routing_key": "k", "event_action": "resolve", "dedup_key": "db-1/disk"});
    let event = Ask::body(resolve.to_string()).event(ENQUEUE);
    assert_eq!(state(&event), (0, 3, None));
    assert_eq!((&*event.summary, event.metadata_fields), ("", None));
}

#[test]
fn severities_map_one_to_one() {
    for (word, number) in [("critical", 5), ("error", 4), ("warning", 3), ("info", 2)] {
        let payload = json!({"summary": "s", "source": "x", "severity": word});
        assert_eq!(
            ask(&json!({"payload": payload})).event(ENQUEUE).severity,
            number
        );
    }
}

#[test]
fn missing_dedup_key_is_generated_and_returned() {
    let ask = ask(&json!({"dedup_key": null}));
    assert_eq!(
        dimensions(&ask.event(ENQUEUE)),
        [format!("dedup_key={FRESH}")]
    );
    let answer = answer(ask.read(ENQUEUE).unwrap(), &Outcome::default());
    assert_eq!(answer.status, 202);
    let expected = json!({"status": "success", "message": "Event processed", "dedup_key": FRESH});
    assert_eq!(body_json(&answer), expected);
}

#[test]
fn extra_fields_are_retained_except_the_routing_key() {
    let ask = Ask::body(include_bytes!("../../../tests/dialect/pagerduty.json"));
    let event = ask.event(ENQUEUE);
    assert_eq!(event.summary, "High latency on api-1");
    assert_eq!(event.r#type, "latency");
    let stored = metadata(&event);
    assert_eq!(stored["custom_details"]["p99"], 2.4);
    assert_eq!(stored["timestamp"], "2015-07-17T08:42:58.315+0000");
    assert_eq!(stored["links"][0]["href"], "https://example.com/runbook");
    assert_eq!(stored["client"], "Monitoring");
    assert!(!format!("{event:?}").contains("routing"), "{event:?}");
    let find = DIALECTS[2].key_in_body.unwrap();
    assert_eq!(
        find(&ask.body).as_deref(),
        Some("0123456789abcdef0123456789abcdef")
    );
    assert_eq!(find(b"{}"), None);
    assert_eq!(find(b"{\"routing_key\": \" \"}"), None);
}

#[test]
fn change_events_are_closed_and_distinct() {
    let body = json!({"routing_key": "k", "payload": {
        // A Python client of PagerDuty sends timestamps like this one.
        "summary": "deployed", "source": "ci", "timestamp": "2026-01-31T08:00:00+00:00Z",
    }});
    let ask = Ask::body(body.to_string());
    let event = ask.event(CHANGE);
    assert_eq!(state(&event), (2, 3, None));
    assert_eq!((&*event.r#type, &*event.summary), ("change", "deployed"));
    assert_eq!(dimensions(&event), [format!("dedup_key={FRESH}")]);
    let answer = answer(ask.read(CHANGE).unwrap(), &Outcome::default());
    assert_eq!(answer.status, 202);
    assert_eq!(body_json(&answer)["message"], "Change event processed");
}

#[test]
fn all_problems_of_a_request_are_listed() {
    let table = [
        (ENQUEUE, json!({}), vec!["`event_action` is required"]),
        (
            ENQUEUE,
            trigger(&json!({"event_action": "open"})),
            vec!["`event_action` must be `trigger`, `acknowledge` or `resolve`, not `open`"],
        ),
        (
            ENQUEUE,
            trigger(&json!({"payload": null})),
            vec!["`payload` is required"],
        ),
        (
            ENQUEUE,
            trigger(&json!({"payload": {}})),
            vec![
                "`payload.summary` is required",
                "`payload.source` is required",
                "`payload.severity` is required",
            ],
        ),
        (
            ENQUEUE,
            trigger(&json!({"payload": {"summary": "s", "source": "x", "severity": "bad"}})),
            vec![
                "`payload.severity` must be `critical`, `error`, `warning` or `info`, not \
                 `bad`",
            ],
        ),
        (
            ENQUEUE,
            json!({"event_action": "resolve"}),
            vec!["`dedup_key` is required to acknowledge or resolve"],
        ),
        (CHANGE, json!({}), vec!["`payload` is required"]),
        (
            CHANGE,
            json!({"payload": {}}),
            vec!["`payload.summary` is required"],
        ),
    ];
    let headers = HeaderMap::new();
    let context = ErrorContext {
        headers: &headers,
        request_id: "r",
        took: Duration::ZERO,
    };
    for (path, body, expected) in table {
        let error = Ask::body(body.to_string()).read(path).unwrap_err();
        let answer = (DIALECTS[2].error_response)(&context, &error);
        assert_eq!(answer.status, 400, "{body}");
        let reported = body_json(&answer);
        assert_eq!(reported["status"], "invalid event");
        assert_eq!(reported["errors"], json!(expected), "{body}");
    }
}

#[test]
fn unknown_key_is_400_and_rate_limit_is_429() {
    let headers = HeaderMap::new();
    let context = ErrorContext {
        headers: &headers,
        request_id: "r",
        took: Duration::ZERO,
    };
    for (status, expected, word) in [
        (401, 400, "invalid event"),
        (403, 400, "invalid event"),
        (413, 413, "invalid event"),
        (429, 429, "throttle exceeded"),
        (503, 503, "error"),
    ] {
        let error = DialectError::new(StatusCode::from_u16(status).unwrap(), "a sentence");
        let answer = (DIALECTS[2].error_response)(&context, &error);
        assert_eq!(answer.status, expected);
        assert_eq!(body_json(&answer)["status"], word);
        assert_eq!(body_json(&answer)["errors"], json!(["a sentence"]));
    }
}
