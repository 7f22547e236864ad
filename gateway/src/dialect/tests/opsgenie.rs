//! Alerts and heartbeats of Opsgenie.

use serde_json::json;

use super::*;

const ALERTS: &str = "/v2/alerts";
const CLOSE: &str = "/v2/alerts/{id}/close";
const ACKNOWLEDGE: &str = "/v2/alerts/{id}/acknowledge";
const NOTES: &str = "/v2/alerts/{id}/notes";
const REQUEST: &str = "/v2/alerts/requests/{id}";

#[test]
fn alert_with_all_fields_is_parsed() {
    let event = Ask::body(include_bytes!("../../../tests/dialect/opsgenie.json")).event(ALERTS);
    assert_eq!(event.name, "opsgenie");
    assert_eq!(dimensions(&event), ["alias=db/disk 1"]);
    assert_eq!(event.summary, "Disk is full");
    assert_eq!(event.body, "97 % of /var");
    assert_eq!(state(&event), (5, 0, None));
    let stored = metadata(&event);
    assert_eq!(stored["tags"], json!(["disk", "db"]));
    assert_eq!(stored["entity"], "db-1");
    assert_eq!(stored["details"], json!({"mount": "/var"}));
}

#[test]
fn priority_maps_to_severity() {
    let table = [
        ("P1", 5),
        ("P2", 4),
        ("P3", 3),
        ("P4", 2),
        ("P5", 1),
        ("", 3),
    ];
    for (priority, number) in table {
        let body = json!({"message": "m", "priority": priority});
        let event = Ask::body(body.to_string()).event(ALERTS);
        assert_eq!(event.severity, number, "{priority}");
        assert_eq!(
            dimensions(&event),
            [format!("alias={FRESH}")],
            "the id is made"
        );
    }
}

#[test]
fn close_and_acknowledge_require_only_the_alias() {
    for (path, expected) in [(CLOSE, (0, 3, None)), (ACKNOWLEDGE, (0, 0, Some(true)))] {
        for body in ["", "{}", "{\"user\": \"me\", \"source\": \"x\"}"] {
            let ask = Ask::body(body).captured("db/disk 1");
            let event = ask.event(path);
            assert_eq!(state(&event), expected, "{path}");
            assert_eq!(dimensions(&event), ["alias=db/disk 1"]);
            assert_eq!(ask.read(path).unwrap().note, None);
        }
    }
}

#[test]
fn update_applies_to_the_event_of_its_alias() {
    let table = [
        ("message", json!({"message": "m"}), ("m", "", 0, None)),
        (
            "description",
            json!({"description": "d"}),
            ("", "d", 0, None),
        ),
        ("priority", json!({"priority": "P1"}), ("", "", 5, None)),
        ("unacknowledge", json!({}), ("", "", 0, Some(false))),
    ];
    for (call, body, expected) in table {
        let ask = Ask::body(body.to_string()).captured("a/b");
        let event = ask.event(&format!("/v2/alerts/{{id}}/{call}"));
        assert_eq!(dimensions(&event), ["alias=a/b"], "{call}");
        let found = (
            &*event.summary,
            &*event.body,
            event.severity,
            event.acknowledged,
        );
        assert_eq!(found, expected, "{call}");
        assert!(event.update_only, "{call}");
    }
}

#[test]
fn calls_without_an_event_change_become_notes() {
    let table = [
        (
            "snooze",
            json!({"endTime": "2026-02-01T08:00:00Z"}),
            "Snoozed alert",
        ),
        (
            "assign",
            json!({"owner": {"username": "ada"}}),
            "Assigned alert",
        ),
        (
            "escalate",
            json!({"escalation": {"name": "ops"}}),
            "Escalated alert",
        ),
        (
            "responders",
            json!({"responder": {"name": "ops"}}),
            "Responder added",
        ),
        ("teams", json!({"team": {"name": "ops"}}), "Team added"),
        ("tags", json!({"tags": ["a"]}), "Tags added"),
        ("details", json!({"details": {"a": "b"}}), "Details added"),
    ];
    for (call, body, expected) in table {
        let ask = Ask::body(body.to_string()).captured("a");
        let reading = ask.read(&format!("/v2/alerts/{{id}}/{call}")).unwrap();
        assert_eq!(reading.events, [], "{call}");
        let note = reading.note.as_ref().unwrap();
        assert!(
            note.text.starts_with(&format!("Opsgenie: {expected}\n")),
            "{note:?}"
        );
        assert!(!note.required, "the key of a sender may not annotate");
        assert_eq!(answer(reading, &Outcome::default()).status, 202, "{call}");
    }
}

#[test]
fn listing_filters_alerts_by_status() {
    let table = [
        ("", "name=opsgenie", 20),
        (
            "query=status%3Aopen&limit=5",
            "name=opsgenie status in (open, suppressed)",
            5,
        ),
        (
            "query=status:+closed&limit=5000",
            "name=opsgenie status in (closed)",
            100,
        ),
    ];
    for (query, filter, limit) in table {
        let mut ask = Ask::body("");
        ask.query = query;
        let search = |path: &str| {
            let mut endpoints = DIALECTS[3].endpoints.iter();
            let wanted = |it: &&Endpoint| it.path == path && it.method == Method::GET;
            let endpoint = endpoints.find(wanted).unwrap();
            (endpoint.read)(&ask.incoming()).unwrap().search.unwrap()
        };
        let found = search(ALERTS).query.unwrap();
        assert_eq!(found.filter, filter, "{query}");
        assert_eq!(found.page_input.unwrap().limit, limit, "{query}");
        assert_eq!(search("/v2/alerts/count").query.unwrap().filter, filter);
    }
}

#[test]
fn note_annotates_the_event_of_its_alias() {
    let body = json!({"note": "looking", "user": "ada"}).to_string();
    let event = Ask::body(json!({"message": "m", "alias": "a"}).to_string()).event(ALERTS);
    let id = identity::event_id(&event.name, &event.dimensions);
    for (path, count, required) in [(NOTES, 0, true), (CLOSE, 1, false)] {
        let reading = Ask::body(&body).captured("a").read(path).unwrap();
        assert_eq!(reading.events.len(), count);
        let note = reading.note.unwrap();
        assert_eq!((&*note.event_id, &*note.text), (&*id, "ada: looking"));
        assert_eq!(note.required, required);
    }
    let outcome = Outcome {
        note_lost: Some("this requires the role `operator`".into()),
        ..Outcome::default()
    };
    let reading = Ask::body(&body).captured("a").read(CLOSE).unwrap();
    let result = body_json(&answer(reading, &outcome))["result"].to_string();
    assert!(
        result.contains("its note was not stored: this requires"),
        "{result}"
    );
}

#[test]
fn event_id_matches_the_reference() {
    let dimensions = [("host", "db-1.example.com"), ("source", "bellwether-test")];
    let dimensions = dimensions.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let id = identity::event_id("disk-full", &dimensions.into());
    assert_eq!(id, "mXYxxdSZLBZlTxbdXUS6hBn8uWM=");
}

#[test]
fn request_id_encodes_the_request() {
    let create = Ask::body(json!({"message": "m", "alias": "a\nb"}).to_string());
    let outcome = Outcome {
        took: Duration::from_micros(12_345),
        ..Outcome::default()
    };
    let created = answer(create.read(ALERTS).unwrap(), &outcome);
    assert_eq!(created.status, 202);
    let created = body_json(&created);
    assert_eq!(created["result"], "Request will be processed");
    assert_eq!(created["took"], 0.012);
    let id = created["requestId"].as_str().unwrap();
    let reading = Ask::body("").captured(id).read(REQUEST).unwrap();
    assert!(reading.events.is_empty());
    let reported = answer(reading, &Outcome::default());
    assert_eq!(reported.status, 200);
    let reported = body_json(&reported);
    assert_eq!(reported["requestId"], id);
    let expected = json!({
        "success": true,
        "isSuccess": true,
        "action": "Create",
        "status": "Created alert",
        "processedAt": "2026-01-31T08:00:00Z",
        "integrationId": "",
        "alertId": "a\nb",
        "alias": "a\nb",
    });
    assert_eq!(reported["data"], expected);
    for unknown in ["", "x", "Q3JlYXRl", FRESH] {
        let error = Ask::body("").captured(unknown).read(REQUEST).unwrap_err();
        assert_eq!(error.status, 404, "{unknown}");
    }
}

#[test]
fn heartbeat_becomes_a_closed_event() {
    let ask = Ask::body("").captured("nightly backup");
    let event = ask.event(PING);
    assert_eq!(
        (&*event.name, state(&event)),
        ("opsgenie-heartbeat", (1, 3, None))
    );
    assert_eq!(dimensions(&event), ["heartbeat=nightly backup"]);
    let pong = answer(ask.read(PING).unwrap(), &Outcome::default());
    assert_eq!(body_json(&pong)["result"], "PONG - Heartbeat received");
}

#[test]
fn invalid_requests_name_the_problem() {
    let mut other_kind = Ask::body("{}").captured("a");
    other_kind.query = "identifierType=name";
    let table = [
        (ALERTS, Ask::body("{}"), 422, "`message` is required"),
        (ALERTS, Ask::body("[]"), 422, "the body must be an object"),
        (ALERTS, Ask::body("{"), 400, "the body is not JSON"),
        (
            ALERTS,
            Ask::body("{\"message\": \"m\", \"priority\": \"P6\"}"),
            422,
            "`priority` must be `P1` to `P5`, not `P6`",
        ),
        (
            NOTES,
            Ask::body("{}").captured("a"),
            422,
            "`note` is required",
        ),
        (
            "/v2/alerts/{id}/message",
            Ask::body("{}").captured("a"),
            422,
            "`message` is required",
        ),
        (
            "/v2/alerts/{id}/priority",
            Ask::body("{\"priority\": \"P9\"}").captured("a"),
            422,
            "`priority` must be `P1` to `P5`, not `P9`",
        ),
        (
            CLOSE,
            other_kind,
            422,
            "`identifierType` must be `id`, `alias` or `tiny`",
        ),
    ];
    let headers = HeaderMap::new();
    let context = ErrorContext {
        headers: &headers,
        request_id: "r1",
        took: Duration::from_millis(3),
    };
    for (path, ask, status, expected) in table {
        let error = ask.read(path).unwrap_err();
        let answer = (DIALECTS[3].error_response)(&context, &error);
        assert_eq!(answer.status, status, "{expected}");
        let body = body_json(&answer);
        assert!(
            body["message"].as_str().unwrap().starts_with(expected),
            "{body}"
        );
        assert_eq!(
            (&body["took"], &body["requestId"]),
            (&json!(0.003), &json!("r1"))
        );
    }
}
