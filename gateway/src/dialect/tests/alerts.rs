//! Tests of alerts from the webhook of Alertmanager and from Prometheus.

use serde_json::json;

use super::*;

const WEBHOOK: &str = "/v1/intake/alertmanager";
const ALERTS: &str = "/api/v2/alerts";

fn alert(change: &Value) -> Value {
    let mut alert = json!({
        "labels": {"alertname": "DiskFull", "host": "a", "severity": "critical"},
        "annotations": {"summary": "disk is full", "description": "97 %", "runbook_url": "http://r"},
        "startsAt": "2026-01-20T08:00:00Z",
        "generatorURL": "http://p/graph",
    });
    for (member, value) in change.as_object().unwrap() {
        alert[member] = value.clone();
    }
    alert
}

fn one(change: &Value) -> Event {
    Ask::body(json!([alert(change)]).to_string()).event(ALERTS)
}

#[test]
fn prometheus_and_webhook_yield_the_same_event() {
    let by_prometheus = one(&json!({}));
    let message = json!({"version": "4", "receiver": "b", "alerts": [
        alert(&json!({"status": "firing", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "f"})),
    ]});
    let by_webhook = Ask::body(message.to_string()).event(WEBHOOK);
    assert_eq!(by_prometheus.name, by_webhook.name);
    assert_eq!(by_prometheus.dimensions, by_webhook.dimensions);
    assert_eq!(state(&by_prometheus), (5, 0, None));
    assert_eq!(state(&by_webhook), (5, 0, None));
    assert_eq!(by_webhook.name, "DiskFull");
    assert_eq!(dimensions(&by_webhook), ["host=a", "severity=critical"]);
    assert_eq!(by_webhook.summary, "disk is full");
    assert_eq!(by_webhook.body, "97 %");
    assert_eq!(by_webhook.timestamp, 0, "the time of receipt");
    assert_eq!(by_webhook.start_time, by_prometheus.start_time);
    assert_eq!(by_webhook.start_time, Some(1_768_896_000_000));
    assert_eq!(by_webhook.reporter, "http://p/graph");
    let expected = json!({
        "alertname": "DiskFull",
        "annotations": {"runbook_url": "http://r"},
        "fingerprint": "f",
        "generatorURL": "http://p/graph",
        "receiver": "b",
        "startsAt": "2026-01-20T08:00:00Z",
    });
    assert_eq!(metadata(&by_webhook), expected);
}

#[test]
fn nonstandard_severity_label_is_retained_in_metadata() {
    for (label, stored) in [("critical", None), ("major", Some("major")), ("", None)] {
        let labels = json!({"alertname": "A", "host": "a", "severity": label});
        let metadata = metadata(&one(&json!({"labels": labels})));
        assert_eq!(metadata["severity"].as_str(), stored, "{label}");
    }
}

#[test]
fn special_labels_are_not_dimensions() {
    let table = [
        (json!({"alertname": "A", "host": "a"}), "A", vec!["host=a"]),
        (
            json!({"alertname": "A", "host": "a", "prometheus_replica": "r1"}),
            "A",
            vec!["host=a"],
        ),
        (
            json!({"alertname": "A", "host": "a", "replica": "r1", "rule_replica": "r2"}),
            "A",
            vec!["host=a"],
        ),
        (
            json!({"alertname": "A", "host": "a", "empty": ""}),
            "A",
            vec!["host=a"],
        ),
        (
            json!({"alertname": "A", "name": "n"}),
            "A",
            vec!["label_name=n"],
        ),
        (
            json!({"alertname": "A", "name": "n", "label_name": "m"}),
            "A",
            vec!["label_label_name=n", "label_name=m"],
        ),
        (
            json!({"alertname": "A", "severity": "info"}),
            "A",
            vec!["alertname=A", "severity=info"],
        ),
        (json!({"alertname": "A"}), "A", vec!["alertname=A"]),
        (
            json!({"alertname": "A", "host": "a", "severity": "page"}),
            "A",
            vec!["host=a", "severity=page"],
        ),
        (
            json!({"alertname": "A", "host": "a", "severity": ""}),
            "A",
            vec!["host=a"],
        ),
        (json!({"host": "a"}), "alert", vec!["host=a"]),
        (
            json!({"severity": "info"}),
            "alert",
            vec!["alertname=alert", "severity=info"],
        ),
        (
            json!({"alertname": "A", "port": 5432, "ready": false, "none": null}),
            "A",
            vec!["port=5432", "ready=false"],
        ),
    ];
    for (labels, name, expected) in table {
        let event = one(&json!({"labels": labels}));
        assert_eq!(event.name, name, "{labels}");
        assert_eq!(dimensions(&event), expected, "{labels}");
    }
}

#[test]
fn folded_labels_are_not_dimensions() {
    let mut ask = Ask::body(json!([alert(&json!({}))]).to_string());
    ask.settings.fold_labels = vec!["severity".to_owned()];
    let event = ask.event(ALERTS);
    assert_eq!(dimensions(&event), ["host=a"]);
    assert_eq!(event.severity, 5);
    ask.settings.fold_labels.push("host".to_owned());
    assert_eq!(dimensions(&ask.event(ALERTS)), ["alertname=DiskFull"]);
}

#[test]
fn severity_label_sets_the_severity() {
    let table = [
        ("critical", 5),
        ("CRITICAL", 5),
        ("error", 4),
        ("major", 4),
        ("high", 4),
        ("warning", 3),
        ("minor", 3),
        ("info", 2),
        ("debug", 1),
        ("none", 1),
        ("page", 5),
        ("P1", 5),
        ("p4", 2),
        ("Fatal", 5),
        ("emergency", 5),
        ("informational", 2),
        ("notice", 2),
        ("warn", 3),
        ("ok", 1),
        ("colour", 3),
        ("", 3),
    ];
    for (label, number) in table {
        let event = one(&json!({"labels": {"alertname": "A", "severity": label}}));
        assert_eq!(event.severity, number, "{label}");
    }
    let mut ask = Ask::body(json!([alert(&json!({"labels": {"alertname": "A"}}))]).to_string());
    ask.settings.alert_severity = Severity::Error;
    ask.settings.replica_labels.clear();
    assert_eq!(ask.event(ALERTS).severity, 4);
}

#[test]
fn resolved_or_ended_alerts_close_the_event() {
    let closed = 3;
    let table = [
        (json!({}), 0),
        (json!({"status": "firing"}), 0),
        (json!({"status": "resolved"}), closed),
        (
            json!({"status": "resolved", "endsAt": "2026-01-31T07:00:00Z"}),
            closed,
        ),
        (json!({"endsAt": "2026-01-31T08:00:00Z"}), closed),
        (json!({"endsAt": "2026-01-31T09:00:00+01:00"}), closed),
        (json!({"endsAt": "2026-01-31T08:00:00.001Z"}), 0),
        (json!({"endsAt": "0001-01-01T00:00:00Z"}), 0),
        (
            json!({"endsAt": "0001-01-01T00:00:00.000Z", "status": "firing"}),
            0,
        ),
        (json!({"endsAt": ""}), 0),
        (json!({"endsAt": null}), 0),
        (json!({"endsAt": 7}), 0),
        // A time without an offset is UTC.
        (json!({"endsAt": "2026-01-31 08:00"}), closed),
        (json!({"endsAt": "2026-01-31T08:01:00"}), 0),
        // The status takes precedence over the times.
        (
            json!({"status": "firing", "endsAt": "2026-01-31T07:00:00Z"}),
            0,
        ),
        (json!({"status": {"state": "active"}}), 0),
    ];
    for (change, status) in table {
        assert_eq!(one(&change).status, status, "{change}");
    }
}

#[test]
fn future_end_of_a_prometheus_alert_sets_the_expiry() {
    let ahead = json!({"endsAt": "2026-01-31T08:04:00Z"});
    assert_eq!(one(&ahead).expire_time, Some(NOW_MS + 240_000));
    for none in [
        json!({}),
        json!({"endsAt": "0001-01-01T00:00:00Z"}),
        json!({"endsAt": "2026-01-31T07:00:00Z"}),
        json!({"endsAt": "2026-01-31T08:04:00Z", "status": "resolved"}),
    ] {
        assert_eq!(one(&none).expire_time, None, "{none}");
    }
    let message = json!({"alerts": [alert(&ahead)]});
    let by_webhook = Ask::body(message.to_string()).event(WEBHOOK);
    assert_eq!(by_webhook.expire_time, None, "it is not sent again in time");
}

#[test]
fn summary_and_body_come_from_annotations() {
    let table = [
        (
            json!({"summary": "s", "message": "m"}),
            "s",
            json!({"message": "m"}),
        ),
        (json!({"message": "m"}), "m", Value::Null),
        (
            json!({"summary": "", "message": "m"}),
            "m",
            json!({"summary": ""}),
        ),
        (json!({"other": "o"}), "", json!({"other": "o"})),
        (Value::Null, "", Value::Null),
        (
            json!({"summary": 7, "load": 1.5}),
            "7",
            json!({"load": "1.5"}),
        ),
        (json!(["a"]), "", json!(["a"])),
    ];
    for (annotations, summary, stored) in table {
        let event = one(&json!({"annotations": annotations}));
        assert_eq!(event.summary, summary, "{annotations}");
        assert_eq!(metadata(&event)["annotations"], stored, "{annotations}");
    }
}

#[test]
fn truncated_alerts_are_reported_in_a_separate_event() {
    let message = |count: Value| json!({"receiver": "ops", "groupKey": "{}:{}", "truncatedAlerts": count, "alerts": []});
    for none in [json!(0), json!([]), Value::Null] {
        let reading = Ask::body(message(none).to_string()).read(WEBHOOK).unwrap();
        assert!(reading.events.is_empty());
    }
    let event = Ask::body(message(json!("7")).to_string()).event(WEBHOOK);
    assert_eq!(event.name, "alertmanager-truncated");
    assert_eq!(dimensions(&event), ["receiver=ops"]);
    assert!(
        event.summary.contains("omitted 7 alerts"),
        "{}",
        event.summary
    );
}

#[test]
fn grafana_message_is_parsed() {
    let ask = Ask::body(include_bytes!("../../../tests/dialect/grafana.json"));
    let events = ask.read(WEBHOOK).unwrap().events;
    let states: Vec<_> = events.iter().map(|it| (&*it.name, state(it))).collect();
    assert_eq!(
        states,
        [
            ("High memory usage", (3, 0, None)),
            ("High CPU usage", (3, 3, None))
        ]
    );
    assert_eq!(
        dimensions(&events[0]),
        ["grafana_folder=Infra", "instance=web-1", "team=blue"]
    );
    let stored = metadata(&events[0]);
    assert_eq!(stored["values"], json!({"B": 44.25, "C": 1.0}));
    assert_eq!(
        stored["dashboardURL"],
        "https://grafana.example.com/d/dashboard_uid?orgId=1"
    );
    assert_eq!(
        stored["annotations"]["runbook_url"],
        "https://wiki.example.com/memory"
    );
    assert_eq!(stored["ruleUID"], "1afz29v7z");
    let organizations: Vec<_> = events
        .iter()
        .map(|it| metadata(it)["orgId"].clone())
        .collect();
    assert_eq!(
        organizations,
        [json!(2.0), json!(1.0)],
        "of the alert, or of the message"
    );
}

#[test]
fn invalid_requests_name_the_problem() {
    let table = [
        (WEBHOOK, json!({"evnts": []}), "`alerts` is required"),
        (WEBHOOK, json!([]), "the body must be an object, not a list"),
        (
            WEBHOOK,
            json!({"alerts": {}}),
            "`alerts` must be a list, not an object",
        ),
        (
            WEBHOOK,
            json!({"alerts": [1]}),
            "`alerts[0]` must be an object, not a number",
        ),
        (
            WEBHOOK,
            json!({"alerts": [{"labels": {"a": "b"}, "status": "broken"}]}),
            "`alerts[0].status` must be `firing` or `resolved`, not `broken`",
        ),
        (ALERTS, json!({}), "the body must be a list of alerts"),
        (ALERTS, json!([{}]), "`[0].labels` is required"),
        (
            ALERTS,
            json!([{"labels": {"a": ""}}]),
            "`[0].labels` is required",
        ),
        (
            ALERTS,
            json!([{"labels": ["a"]}]),
            "`[0].labels` must be an object, not a list",
        ),
        (
            ALERTS,
            json!([{"labels": {"a": "b"}, "endsAt": "soon"}]),
            "`[0].endsAt` must be a time",
        ),
    ];
    for (path, body, expected) in table {
        let error = Ask::body(body.to_string()).read(path).unwrap_err();
        assert!(
            error.message.starts_with(expected),
            "{body}: {}",
            error.message
        );
        assert_eq!(error.status, 400);
    }
    for body in ["", "{", "\u{0}"] {
        assert_eq!(Ask::body(body).read(WEBHOOK).unwrap_err().status, 400);
    }
}

#[test]
fn invalid_alert_does_not_affect_the_others() {
    let good = |host: &str| json!({"labels": {"alertname": "A", "host": host}});
    for wrong in [
        json!({"labels": {}}),
        json!({"labels": 7}),
        json!({"labels": {"a": "b"}, "startsAt": "soon"}),
        json!({"labels": {"a": "b"}, "status": "broken"}),
        json!(null),
        json!("a"),
    ] {
        let alerts = json!([good("a"), wrong, good("b")]);
        for (path, body) in [
            (ALERTS, alerts.clone()),
            (WEBHOOK, json!({"alerts": alerts, "receiver": "r"})),
        ] {
            let reading = Ask::body(body.to_string()).read(path).unwrap();
            assert_eq!(reading.events.len(), 2, "{body}");
            let error = DialectError::from_rejected(&reading.refused, &Outcome::default()).unwrap();
            assert_eq!(error.status, 400);
            assert!(error.message.contains("[1]"), "{}", error.message);
        }
    }
}

#[test]
fn alert_with_invalid_json_does_not_affect_the_others() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for broken in ["1e400", r#""\ud800""#, &deep] {
        let alerts = format!(
            r#"[{{"labels": {{"alertname": "A", "host": "a"}}}},
                {{"labels": {{"alertname": "A", "host": "b"}}, "values": {broken}}}]"#
        );
        let message = format!(r#"{{"alerts": {alerts}, "receiver": "r"}}"#);
        for (path, body) in [(ALERTS, &alerts), (WEBHOOK, &message)] {
            let reading = Ask::body(body).read(path).unwrap();
            assert_eq!(reading.events.len(), 1, "{body}");
            let error = DialectError::from_rejected(&reading.refused, &Outcome::default()).unwrap();
            assert!(
                error.message.contains("[1]` is not JSON"),
                "{}",
                error.message
            );
        }
    }
}

#[test]
fn alerts_beyond_the_limit_are_reported_in_an_event() {
    let alerts = |count: usize| -> Value {
        let alert = |at| json!({"labels": {"alertname": "A", "host": format!("h{at}")}});
        (0..count).map(alert).collect()
    };
    let storm = json!({"alerts": alerts(1_000), "receiver": "r", "truncatedAlerts": 1});
    let events = Ask::body(storm.to_string()).read(WEBHOOK).unwrap().events;
    assert_eq!(events.len(), 1_001);
    let most = bulk::EVENTS_MAX;
    let storm = json!({"alerts": alerts(most + 5), "receiver": "r", "truncatedAlerts": 2});
    let reading = Ask::body(storm.to_string()).read(WEBHOOK).unwrap();
    assert_eq!(reading.events.len(), most + 1);
    assert_eq!(
        DialectError::from_rejected(&reading.refused, &Outcome::default()),
        None
    );
    let note = reading.events.last().unwrap();
    assert_eq!(note.name, "alertmanager-truncated");
    assert!(note.summary.starts_with("7 alerts"), "{}", note.summary);
    let reading = Ask::body(alerts(most + 5).to_string())
        .read(ALERTS)
        .unwrap();
    assert_eq!(reading.events.len(), most);
    let error = DialectError::from_rejected(&reading.refused, &Outcome::default()).unwrap();
    assert_eq!(error.status, 413);
}

#[test]
fn alert_times_set_start_and_end_but_not_the_timestamp() {
    let ended = 1_769_842_800_000;
    let table = [
        (json!({}), None),
        (json!({"endsAt": "2026-01-31T07:00:00Z"}), Some(ended)),
        (
            json!({"endsAt": "2026-01-31T07:00:00Z", "status": "resolved"}),
            Some(ended),
        ),
        (
            json!({"endsAt": "2026-01-31T08:04:00Z"}),
            Some(NOW_MS + 240_000),
        ),
        (json!({"endsAt": "0001-01-01T00:00:00Z"}), None),
    ];
    for (change, end_time) in table {
        let message = json!({"alerts": [alert(&change)]});
        let by_webhook = Ask::body(message.to_string()).event(WEBHOOK);
        for event in [one(&change), by_webhook] {
            assert_eq!(event.timestamp, 0, "{change}");
            assert_eq!(event.start_time, Some(1_768_896_000_000), "{change}");
            assert_eq!(event.end_time, end_time, "{change}");
        }
    }
}

#[test]
fn reporter_is_the_alertmanager_or_prometheus_url() {
    let labels = json!({"alertname": "A", "host": "a", "replica": "r"});
    let url = "http://p:9090/prom/graph";
    let table = [
        (
            json!({"generatorURL": format!("{url}?g0.expr=up")}),
            url.to_owned(),
        ),
        (json!({"generatorURL": format!("{url}#x")}), url.to_owned()),
        (
            json!({"generatorURL": url, "labels": labels}),
            format!("r {url}"),
        ),
        (json!({"generatorURL": null}), String::new()),
    ];
    for (change, expected) in table {
        assert_eq!(one(&change).reporter, expected, "{change}");
        let message = json!({"externalURL": "http://am:9093", "alerts": [alert(&change)]});
        let by_webhook = Ask::body(message.to_string()).event(WEBHOOK);
        assert_eq!(by_webhook.reporter, "http://am:9093", "{change}");
    }
}

#[test]
fn rate_limit_becomes_503_for_alertmanager() {
    let headers = HeaderMap::new();
    let context = ErrorContext {
        headers: &headers,
        request_id: "r",
        took: Duration::ZERO,
    };
    for (status, expected) in [(429, 503), (503, 503), (400, 400), (401, 401)] {
        let error = DialectError::new(StatusCode::from_u16(status).unwrap(), "a sentence");
        let answer = (DIALECTS[0].error_response)(&context, &error);
        assert_eq!(answer.status, expected);
        assert_eq!(body_json(&answer)["message"], "a sentence");
    }
    let answer = (DIALECTS[1].error_response)(&context, &DialectError::new_invalid("a sentence"));
    assert_eq!(body_json(&answer), "a sentence");
}

#[test]
fn status_has_the_fields_alertmanager_clients_require() {
    let reading = Ask::body("").read("/api/v2/status").unwrap();
    let status = body_json(&answer(reading, &Outcome::default()));
    assert_eq!(status["cluster"]["status"], "disabled");
    assert_eq!(status["uptime"], "2026-01-31T07:59:55Z");
    assert!(status["versionInfo"]["version"].is_string());
    let config = status["config"]["original"].as_str().unwrap();
    assert!(config.starts_with("route:\n  receiver: "), "{config}");
    assert!(config.contains("receivers:\n  - name: "), "{config}");
}

#[test]
fn recorded_prometheus_and_alertmanager_requests_agree() {
    let recorded = [
        (
            ALERTS,
            &include_bytes!("../../../tests/dialect/prometheus.json")[..],
            3,
        ),
        (
            WEBHOOK,
            include_bytes!("../../../tests/dialect/alertmanager.json"),
            0,
        ),
        (
            WEBHOOK,
            include_bytes!("../../../tests/dialect/resolved.json"),
            3,
        ),
    ];
    for (path, body, status) in recorded {
        let mut ask = Ask::body(body);
        // Only the first recording is closed by its `endsAt`, which is later than `NOW_MS`; the
        // webhooks have a status.
        ask.now_ms = if path == ALERTS { i64::MAX } else { NOW_MS };
        let event = ask.event(path);
        assert_eq!(event.name, "DiskFull");
        assert_eq!(dimensions(&event), ["host=db-1", "severity=critical"]);
        assert_eq!(state(&event), (5, status, None), "{path}");
        assert_eq!(
            (&*event.summary, &*event.body),
            ("disk is full", "97 % used")
        );
    }
}

#[test]
fn reference_lists_severity_labels() {
    let topic = Topic::find("senders").unwrap();
    let rows = table(topic, "Alertmanager, Grafana and Prometheus");
    assert_eq!(rows.len(), 5);
    for row in rows {
        for label in row[0].split(", ") {
            let severity = Severity::from_known_name(label.trim_matches('`')).unwrap();
            assert_eq!(severity.as_str(), row[1], "{label}");
        }
    }
}
