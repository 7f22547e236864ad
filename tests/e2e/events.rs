//! Events over REST: intake, storage, and operators' changes.

use bellwether_tests::{rest::Rest, world::World};
use serde_json::{Value, json};

use crate::samples;

const INTAKE: &str = "/v1/data-receiver/events";

/// Sends an event and returns it as stored, with its newest occurrence.
async fn send(rest: &Rest, event: &Value) -> Value {
    let answer = rest
        .post(INTAKE, &samples::events(std::slice::from_ref(event)))
        .await
        .ok();
    assert_eq!(answer["succeeded"], 1, "{answer}");
    let host = event["dimensions"]["host"].as_str().expect("a host");
    newest(rest, host).await
}

async fn newest(rest: &Rest, host: &str) -> Value {
    let clause = json!({"equals": {"field": "dimensions.host", "stringVal": host}});
    let found = rest
        .post("/v1/events:search", &json!({"query": {"clause": clause}}))
        .await
        .ok();
    let id = found["results"][0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("nothing found: {found}"));
    rest.get(&format!("/v1/events/{id}")).await.ok()["result"].clone()
}

#[tokio::test]
async fn event_is_identified_by_name_and_dimensions() {
    let world = World::start();
    let rest = world.rest();
    let event = samples::event("disk-full", "a1", "SEVERITY_ERROR", "disk is full");

    let first = send(&rest, &event).await;
    let again = send(&rest, &event).await;

    assert_eq!(first["id"].as_str().map(str::len), Some(28));
    assert_eq!(again["id"], first["id"]);
    assert_eq!(again["count"], "2");
    let occurrence = &again["occurrences"][0];
    assert_eq!(
        occurrence["id"],
        format!("{}:1", first["id"].as_str().expect("an id"))
    );
    assert_eq!(occurrence["severity"], "SEVERITY_ERROR");
    assert_eq!(occurrence["status"], "STATUS_OPEN");
    assert_eq!(occurrence["acknowledged"], false);
    assert_eq!(occurrence["count"], "2");
}

#[tokio::test]
async fn event_after_a_close_starts_a_new_occurrence() {
    let world = World::start();
    let rest = world.rest();
    let mut event = samples::event("disk-full", "b1", "SEVERITY_ERROR", "disk is full");
    send(&rest, &event).await;
    event["status"] = json!("STATUS_CLOSED");

    let closed = send(&rest, &event).await;
    assert_eq!(closed["occurrences"][0]["status"], "STATUS_CLOSED");
    assert_eq!(closed["occurrences"][0]["closeReason"], "SENDER");

    event["status"] = json!("STATUS_OPEN");
    let opened = send(&rest, &event).await;
    assert_eq!(opened["occurrences"][0]["number"], 2);
    assert_eq!(opened["occurrences"][0]["status"], "STATUS_OPEN");

    let id = opened["id"].as_str().expect("an id");
    let both = format!("/v1/events/{id}?occurrenceIds={id}:1&occurrenceIds={id}:2");
    let both = rest.get(&both).await.ok();
    assert_eq!(
        both["result"]["occurrences"].as_array().map(Vec::len),
        Some(2),
        "{both}"
    );
}

#[tokio::test]
async fn invalid_events_are_counted_and_do_not_affect_others() {
    let world = World::start();
    let rest = world.rest();
    let good = samples::event("good", "c1", "SEVERITY_INFO", "fine");
    let with = |field: &str, value: Value| {
        let mut event = good.clone();
        event[field] = value;
        event
    };
    let faulty = [
        ("no name", json!({"dimensions": {"host": "c1"}}), "name"),
        ("no dimension", json!({"name": "x"}), "dimension"),
        (
            "a dimension called name",
            with("dimensions", json!({"name": "x"})),
            "name",
        ),
        ("too old", with("timestamp", json!("1000")), "timestamp"),
        ("a long name", with("name", json!("n".repeat(257))), "name"),
        (
            "a long summary",
            with("summary", json!("s".repeat(1_025))),
            "summary",
        ),
    ];
    let mut events: Vec<Value> = faulty.iter().map(|(_, event, _)| event.clone()).collect();
    events.push(good.clone());

    let answer = rest.post(INTAKE, &samples::events(&events)).await.ok();

    assert_eq!(answer["succeeded"], 1, "{answer}");
    assert_eq!(answer["failed"], 6, "{answer}");
    for ((case, _, says), failed) in faulty
        .iter()
        .zip(answer["failedEvents"].as_array().expect("a list"))
    {
        let error = failed["error"].as_str().unwrap_or_default();
        assert!(error.contains(says), "{case}: {error}");
        assert!(failed["event"].is_object(), "{case}");
    }
    let quiet = rest.post(INTAKE, &json!({"events": events})).await.ok();
    assert_eq!(quiet.get("failedEvents"), None);
    assert_eq!(
        rest.post(INTAKE, &json!({"events": []})).await.ok(),
        json!({})
    );
}

#[tokio::test]
async fn intake_accepts_common_sender_formats() {
    let world = World::start();
    let rest = world.rest();
    let now_ms = service_now_ms(&rest).await;
    let event = json!({
        "timestamp": now_ms.to_string(),
        "name": "forms",
        "dimensions": {"host": "d1"},
        "metadata_fields": {"team": "storage", "racks": [1, 2], "nested": {"deep": true}},
        "severity": 5,
        "status": "STATUS_DEFAULT",
        "acknowledged": true,
        "summary": null,
        "fieldOfTheirOwn": {"x": 1},
    });

    let stored = send(&rest, &event).await;

    let occurrence = &stored["occurrences"][0];
    assert_eq!(occurrence["startTime"], now_ms.to_string());
    assert_eq!(occurrence["severity"], "SEVERITY_CRITICAL");
    assert_eq!(occurrence["acknowledged"], true);
    assert_eq!(occurrence["metadataFields"], event["metadata_fields"]);

    let refused = json!({"events": [{"name": "x", "severity": "SEVERITY_AWFUL"}]});
    let answer = rest.post(INTAKE, &refused).await.refused();
    assert_eq!(answer["failed"], 1);
    let message = answer["message"].as_str().expect("a message");
    assert!(message.contains("severity"), "{message}");
}

/// Returns the service's time, by sending an event without a timestamp.
async fn service_now_ms(rest: &Rest) -> i64 {
    let stored = send(
        rest,
        &samples::event("clock", "clock", "SEVERITY_DEBUG", "now"),
    )
    .await;
    let text = stored["occurrences"][0]["startTime"]
        .as_str()
        .expect("int64 is text");
    text.parse().expect("a number")
}

#[tokio::test]
async fn notes_are_added_replaced_and_removed() {
    let world = World::start();
    let rest = world.rest();
    let stored = send(
        &rest,
        &samples::event("noted", "e1", "SEVERITY_ERROR", "note me"),
    )
    .await;
    let annotate = async |items: Value| {
        let body = json!({"annotations": items});
        rest.post("/v1/event-management/annotate", &body).await.ok()["annotationResponses"].clone()
    };

    let answers = annotate(json!([
        {"eventId": stored["id"], "annotation": "looking at it"},
        {"eventId": "no-such-event", "annotation": "lost"},
    ]))
    .await;

    assert_eq!(answers[0]["success"], true, "{answers}");
    let note = answers[0]["annotationId"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(note.len(), 20);
    assert!(
        note.chars()
            .all(|character| character.is_ascii_alphanumeric()),
        "{note}"
    );
    assert!(
        answers[1]["error"]
            .as_str()
            .is_some_and(|error| !error.is_empty()),
        "{answers}"
    );
    assert!(answers[1]["code"].as_i64() > Some(0), "{answers}");
    let nothing = json!({"annotations": [{"eventId": "no-such-event", "annotation": "lost"}]});
    let refused = rest.post("/v1/event-management/annotate", &nothing).await;
    let refused = refused.refused();
    assert_eq!(refused["annotationResponses"][0]["success"], false);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.starts_with("1 of 1 annotations were rejected"),
        "{message}"
    );

    let item = |text: &str| {
        json!([{"eventId": stored["id"], "occurrenceId": format!("{}:1", stored["id"].as_str().expect("an id")),
                "annotationId": note, "annotation": text}])
    };
    annotate(item("it is the log")).await;
    let notes = newest(&rest, "e1").await["occurrences"][0]["annotations"].clone();
    assert_eq!(notes[0]["annotation"], "it is the log");
    assert_eq!(notes[0]["author"], "admin");
    annotate(item("")).await;
    assert_eq!(
        newest(&rest, "e1").await["occurrences"][0].get("annotations"),
        None
    );
}

#[tokio::test]
async fn manual_status_changes_are_retained_in_the_history() {
    let world = World::start();
    let rest = world.rest();
    let stored = send(
        &rest,
        &samples::event("handled", "f1", "SEVERITY_ERROR", "handle me"),
    )
    .await;
    let statuses = json!({"statuses": [
        {"eventId": stored["id"], "acknowledged": true},
        {"eventId": stored["id"], "status": "STATUS_CLOSED"},
        {"eventId": stored["id"], "occurrenceId": "no-such-occurrence", "status": "STATUS_OPEN"},
    ]});

    let answers = rest
        .post("/v1/event-management/status", &statuses)
        .await
        .ok()["statusResponses"]
        .clone();

    assert_eq!(answers[0]["success"], true, "{answers}");
    assert_eq!(answers[1]["success"], true, "{answers}");
    assert!(answers[2]["error"].is_string(), "{answers}");
    assert_eq!(answers[0].get("warnings"), None, "{answers}");
    let warning = answers[1]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("reopens the event") && warning.contains("STATUS_SUPPRESSED"));
    let occurrence = newest(&rest, "f1").await["occurrences"][0].clone();
    assert_eq!(occurrence["acknowledged"], true);
    assert_eq!(occurrence["status"], "STATUS_CLOSED");
    assert_eq!(occurrence["closeReason"], "OPERATOR");
    let history = occurrence["history"].as_array().expect("a history");
    assert!(
        history.iter().any(|entry| entry["author"] == "admin"),
        "{occurrence}"
    );

    // A suppressed event stays suppressed until its sender closes it.
    let status = async |status: &str| {
        let item = json!({"statuses": [{"eventId": stored["id"], "status": status}]});
        rest.post("/v1/event-management/status", &item).await.ok()
    };
    status("STATUS_OPEN").await;
    status("STATUS_SUPPRESSED").await;
    let mut event = samples::event("handled", "f1", "SEVERITY_ERROR", "handle me");
    send(&rest, &event).await;
    let current = async || newest(&rest, "f1").await["occurrences"][0]["status"].clone();
    assert_eq!(current().await, "STATUS_SUPPRESSED");
    event["status"] = json!("STATUS_CLOSED");
    send(&rest, &event).await;
    assert_eq!(current().await, "STATUS_CLOSED");
    let again = status("STATUS_CLOSED").await;
    assert_eq!(
        again["statusResponses"][0].get("warnings"),
        None,
        "its sender closed it"
    );

    let unknown = json!({"statuses": [{"eventId": stored["id"], "stauts": "STATUS_OPEN"}]});
    let refused = rest.post("/v1/event-management/status", &unknown).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("status"), "{}", refused.text());
    let bad = json!({"statuses": [{"eventId": stored["id"], "status": "STATUS_GONE"}]});
    assert_eq!(
        rest.post("/v1/event-management/status", &bad).await.status,
        400
    );
}

#[tokio::test]
async fn event_is_assigned_and_found_by_assignee() {
    let world = World::start();
    let rest = world.rest();
    for host in ["g1", "g2"] {
        let event = samples::event("assigned", host, "SEVERITY_ERROR", "take me");
        send(&rest, &event).await;
    }
    let id = newest(&rest, "g1").await["id"].clone();
    let assign = async |assignee: &str| {
        let statuses = json!({"statuses": [{"eventId": id, "assignee": assignee}]});
        let set = rest.post("/v1/event-management/status", &statuses).await;
        let item = set.json()["statusResponses"][0].clone();
        assert_eq!(set.status == 200, item["success"] == true, "{}", set.text());
        item
    };
    let found = async |filter: &str| {
        let request = json!({"query": {"filter": filter}});
        let answer = rest.post("/v1/events:count", &request).await;
        answer.ok()["count"].clone()
    };
    assert_eq!(assign("admin").await["success"], true);
    let refused = assign("carl").await;
    assert_eq!(refused["success"], false, "{refused}");
    assert_eq!(refused["error"], "assignee: client `carl` not found");
    let occurrence = newest(&rest, "g1").await["occurrences"][0].clone();
    assert_eq!(occurrence["assignee"], "admin");
    let mine = found("name=assigned assignee=admin").await;
    let nobodys = found("name=assigned -has:assignee").await;
    assert_eq!((mine, nobodys), (json!(1), json!(1)));
    let request = json!({"field": "assignee", "query": {"filter": "name=assigned"}});
    let groups = rest.post("/v1/events:group", &request).await.ok();
    assert!(groups.to_string().contains("\"admin\""), "{groups}");
    assert_eq!(assign("").await["success"], true);
    assert_eq!(found("name=assigned has:assignee").await, 0);
}

#[tokio::test]
async fn events_are_searched_counted_and_bucketed_by_time() {
    let world = World::start();
    let rest = world.rest();
    let events: Vec<Value> = (0..25)
        .map(|number| {
            let severity = if number % 5 == 0 {
                "SEVERITY_CRITICAL"
            } else {
                "SEVERITY_WARNING"
            };
            samples::event("many", &format!("g{number}"), severity, "one of many")
        })
        .collect();
    rest.post(INTAKE, &samples::events(&events)).await.ok();

    let count = rest.post("/v1/events:count", &json!({})).await.ok();
    assert_eq!(count["count"], 25);
    let critical = json!({"query": {"severities": ["SEVERITY_CRITICAL"]}});
    assert_eq!(
        rest.post("/v1/events:count", &critical).await.ok()["count"],
        5
    );

    let mut cursor = String::new();
    let mut seen = Vec::new();
    loop {
        let page = json!({"query": {"pageInput": {"limit": 10, "cursor": cursor}}});
        let page = rest.post("/v1/events:search", &page).await.ok();
        let results = page["results"].as_array().expect("a page").iter();
        seen.extend(results.map(|event| event["id"].as_str().unwrap_or_default().to_owned()));
        if page["pageInfo"]["hasNext"] != true {
            break;
        }
        page["pageInfo"]["endCursor"]
            .as_str()
            .expect("a cursor")
            .clone_into(&mut cursor);
    }
    assert_eq!(seen.len(), 25);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 25, "a listing returns every occurrence once");

    let spread = rest
        .post("/v1/events:frequency", &json!({"bucketCount": 24}))
        .await
        .ok();
    let buckets = spread["buckets"].as_array().expect("buckets");
    assert_eq!(buckets.len(), 24);
    let total: i64 = buckets
        .iter()
        .flat_map(|bucket| bucket["countBySeverity"].as_object().into_iter().flatten())
        .filter_map(|(_, count)| count.as_i64())
        .sum();
    assert_eq!(total, 25);
    for wrong in [
        json!({"query": {"pageInput": {"cursor": "forged"}}}),
        json!({"query": {"pageInput": {"limit": -1}}}),
    ] {
        assert_eq!(
            rest.post("/v1/events:search", &wrong).await.status,
            400,
            "{wrong}"
        );
    }
    assert_eq!(
        rest.get("/v1/events/AAAAAAAAAAAAAAAAAAAAAAAAAAA=")
            .await
            .status,
        404
    );
}
