//! Tests that intake over REST drops nothing silently: it reports missing, ignored and rejected
//! parts.

use bellwether_tests::{rest::Rest, world::World};
use http::Method;
use serde_json::{Value, json};

const INTAKE: &str = "/v1/data-receiver/events";

fn event(host: &str, more: &Value) -> Value {
    let mut event = json!({"name": "disk", "dimensions": {"host": host}});
    for (key, value) in more.as_object().expect("an object") {
        event[key] = value.clone();
    }
    event
}

async fn count_stored(rest: &Rest) -> i64 {
    let found = rest.post("/v1/events:count", &json!({"query": {}})).await;
    let count = found.ok()["count"].as_i64();
    count.expect("a number")
}

#[tokio::test]
async fn body_without_events_is_rejected_with_a_suggestion() {
    let world = World::start();
    let rest = world.rest();
    let table = [
        (json!({"evnts": [event("a", &json!({}))]}), "`evnts`"),
        (json!({"Events": []}), "`Events`"),
        (
            json!({"receiver": "x", "status": "firing", "alerts": [{"labels": {}}], "version": "4"}),
            "`alerts`",
        ),
        (
            json!({"event": event("a", &json!({})), "detailedResponse": true}),
            "`event`",
        ),
    ];
    for (body, nearest) in table {
        let answer = rest.post(INTAKE, &body).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (400, 3), "{body}");
        let message = answer.json()["message"].clone();
        let message = message.as_str().expect("a message");
        assert!(message.starts_with("events is missing"), "{message}");
        assert!(message.contains(nearest), "{body}: {message}");
        let violation = &answer.json()["details"][1]["fieldViolations"][0];
        assert_eq!(violation["field"], "events");
    }
    let answer = rest.post(INTAKE, &json!({"detailedResponse": true})).await;
    assert_eq!(answer.status, 400);
    assert_eq!(count_stored(&rest).await, 0);
}

#[tokio::test]
async fn empty_event_list_or_body_returns_an_empty_object() {
    let world = World::start();
    for body in [
        json!({}),
        json!({"events": []}),
        json!({"events": null, "detailedResponse": true}),
    ] {
        assert_eq!(
            world.rest().post(INTAKE, &body).await.ok(),
            json!({}),
            "{body}"
        );
    }
}

#[tokio::test]
async fn unknown_fields_are_ignored_and_the_first_ten_listed() {
    let world = World::start();
    let rest = world.rest();
    let body = json!({
        "agent": {"version": 7},
        "events": [
            event("a", &json!({"prio": 1})),
            event("b", &json!({"metadataFields": {"any": {"thing": 1}}})),
            event("c", &json!({"tags": [], "extra": {"events": []}})),
        ],
        "zone": "z",
    });
    let answer = rest.post(INTAKE, &body).await.ok();
    assert_eq!(answer["succeeded"], 3, "{answer}");
    let paths = json!([
        "agent",
        "events[0].prio",
        "events[2].extra",
        "events[2].tags",
        "zone"
    ]);
    assert_eq!(answer["ignoredFields"], paths);

    let many: Vec<Value> = (0..20)
        .map(|at| event(&format!("h{at}"), &json!({"x": at})))
        .collect();
    let answer = rest.post(INTAKE, &json!({"events": many})).await.ok();
    assert_eq!(answer["ignoredFields"].as_array().map(Vec::len), Some(10));
    assert_eq!(answer["ignoredFields"][9], "events[9].x");

    let answer = rest
        .post(INTAKE, &json!({"events": [event("d", &json!({}))]}))
        .await
        .ok();
    assert_eq!(answer.get("ignoredFields"), None);
}

#[tokio::test]
async fn mistyped_event_is_rejected_and_others_are_stored() {
    let world = World::start();
    let rest = world.rest();
    let wrong = [
        (json!({"severity": "hot"}), "severity"),
        (json!({"severity": true}), "severity"),
        (json!({"timestamp": "yesterday"}), "timestamp"),
        (json!({"summary": ["a"]}), "summary"),
        (json!({"dimensions": {"host": 5}}), "dimensions.host"),
        (json!({"dimensions": []}), "dimensions"),
        (json!({"acknowledged": "maybe"}), "acknowledged"),
    ];
    for (more, field) in &wrong {
        let before = count_stored(&rest).await;
        let body = json!({"detailedResponse": true, "events": [
            event(&format!("first{field}{more}"), &json!({})),
            event("wrong", more),
            event(&format!("last{field}{more}"), &json!({})),
        ]});
        let answer = rest.post(INTAKE, &body).await.ok();
        assert_eq!(
            (&answer["succeeded"], &answer["failed"]),
            (&json!(2), &json!(1)),
            "{answer}"
        );
        let failed = &answer["failedEvents"];
        assert_eq!(failed.as_array().map(Vec::len), Some(1));
        assert_eq!(failed[0]["index"], 1);
        let error = failed[0]["error"].as_str().expect("an error");
        let start = format!("events[1]: {field}: ");
        assert!(error.starts_with(&start), "{error}");
        assert_eq!(failed[0]["event"]["name"], "disk");
        let message = answer["message"].as_str().expect("a message");
        assert_eq!(message, format!("1 of 3 events were rejected; {error}"));
        assert_eq!(count_stored(&rest).await, before + 2, "{more}");
    }
}

#[tokio::test]
async fn gateway_and_backend_rejections_keep_the_list_order() {
    let world = World::start();
    let rest = world.rest();
    let body = |detailed| {
        json!({"detailedResponse": detailed, "events": [
            7,
            event("a", &json!({"dimensions": {"name": "x"}})),
            event("b", &json!({})),
            event("c", &json!({"severity": {}})),
            event("d", &json!({"summary": "x".repeat(2_000)})),
            event("e", &json!({})),
        ]})
    };
    let answer = rest.post(INTAKE, &body(true)).await.ok();
    assert_eq!(
        (&answer["succeeded"], &answer["failed"]),
        (&json!(2), &json!(4)),
        "{answer}"
    );
    let failed = answer["failedEvents"].as_array().expect("a list");
    let places: Vec<_> = failed.iter().map(|one| one["index"].as_i64()).collect();
    assert_eq!(places, [0, 1, 3, 4].map(Some));
    for one in failed {
        let error = one["error"].as_str().expect("an error");
        let start = format!("events[{}]: ", one["index"]);
        assert!(error.starts_with(&start), "{error}");
        assert_eq!(error.matches("events[").count(), 1, "{error}");
    }
    assert!(
        answer["message"]
            .as_str()
            .is_some_and(|it| it.starts_with("4 of 6 events were rejected; events[0]: "))
    );

    let answer = rest.post(INTAKE, &body(false)).await.ok();
    assert_eq!(
        (&answer["succeeded"], &answer["failed"]),
        (&json!(2), &json!(4)),
        "{answer}"
    );
    assert_eq!(answer.get("failedEvents"), None);

    let none = json!({"events": [{"severity": []}, "x"]});
    let answer = rest.post(INTAKE, &none).await.refused();
    assert_eq!(
        (answer.get("succeeded"), &answer["failed"]),
        (None, &json!(2)),
        "{answer}"
    );

    let unknown = rest.with_key(Some("no-such-key")).post(INTAKE, &none).await;
    assert_eq!(unknown.status, 401);
}

#[tokio::test]
async fn event_with_invalid_json_is_rejected_and_others_are_stored() {
    let world = World::start();
    let rest = world.rest();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (at, broken) in ["1e400", &deep, "-"].into_iter().enumerate() {
        let before = count_stored(&rest).await;
        let one = |host: String, value: &str| {
            format!(
                r#"{{"name": "a", "dimensions": {{"host": "{host}"}}, "metadataFields": {{"x": {value}}}}}"#
            )
        };
        let (first, wrong, last) = (
            one(format!("first{at}"), "1"),
            one("wrong".into(), broken),
            one(format!("last{at}"), "2"),
        );
        let body = format!(r#"{{"detailedResponse": true, "events": [{first}, {wrong}, {last}]}}"#);
        let answer = rest.send(Method::POST, INTAKE, body).await.ok();
        assert_eq!(answer["succeeded"], 2, "{answer}");
        let failed = &answer["failedEvents"][0];
        assert_eq!((&failed["index"], &failed["code"]), (&json!(1), &json!(3)));
        let error = failed["error"].as_str().unwrap();
        assert!(error.starts_with("events[1]: is not JSON: "), "{error}");
        assert_eq!(count_stored(&rest).await, before + 2, "{broken}");
        let alone = format!(r#"{{"events": [{wrong}]}}"#);
        let refused = rest.send(Method::POST, INTAKE, alone).await.refused();
        assert_eq!(refused["failed"], 1, "{refused}");
        // A body with a broken structure is rejected as a whole.
        let cut = format!(r#"{{"events": [{first}, {wrong}"#);
        let refused = rest.send(Method::POST, INTAKE, cut).await;
        assert_eq!(refused.status, 400);
        assert!(
            refused.text().contains("the body is not JSON"),
            "{}",
            refused.text()
        );
    }
}

#[tokio::test]
async fn overlong_list_of_invalid_events_is_rejected_as_a_whole() {
    let world = World::start();
    let invalid = vec![json!(0); 5_000];
    let answer = world.rest().post(INTAKE, &json!({"events": invalid})).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
}

#[tokio::test]
async fn severity_and_status_accept_common_words() {
    let world = World::start();
    let rest = world.rest();
    let severities = [
        (json!("critical"), "SEVERITY_CRITICAL"),
        (json!("CRITICAL"), "SEVERITY_CRITICAL"),
        (json!("Error"), "SEVERITY_ERROR"),
        (json!("warning"), "SEVERITY_WARNING"),
        (json!("info"), "SEVERITY_INFO"),
        (json!("debug"), "SEVERITY_DEBUG"),
        (json!("SEVERITY_DEBUG"), "SEVERITY_DEBUG"),
        (json!(5), "SEVERITY_CRITICAL"),
    ];
    let statuses = [
        ("open", "STATUS_OPEN"),
        ("Suppressed", "STATUS_SUPPRESSED"),
        ("CLOSED", "STATUS_CLOSED"),
    ];
    for (at, (sent, stored)) in severities.into_iter().enumerate() {
        let (status, stored_status) = statuses[at % statuses.len()];
        let host = format!("words{at}");
        let one = event(&host, &json!({"severity": sent, "status": status}));
        let answer = rest.post(INTAKE, &json!({"events": [one]})).await.ok();
        assert_eq!(answer["succeeded"], 1, "{answer}");
        let clause = json!({"equals": {"field": "dimensions.host", "stringVal": host}});
        let found = rest
            .post("/v1/events:search", &json!({"query": {"clause": clause}}))
            .await
            .ok();
        let occurrence = &found["results"][0]["occurrences"][0];
        assert_eq!(
            (&occurrence["severity"], &occurrence["status"]),
            (&json!(stored), &json!(stored_status)),
            "{sent}"
        );
    }
    for (sent, says) in [
        ("critcal", "the nearest is `SEVERITY_CRITICAL`"),
        ("SEVERITY_CRITCAL", "the nearest is `SEVERITY_CRITICAL`"),
        // The prefix that all names share does not count as similarity.
        (
            "SEVERITY_AWFUL",
            "expected one of SEVERITY_DEFAULT, SEVERITY_DEBUG",
        ),
        ("awful", "expected one of SEVERITY_DEFAULT, SEVERITY_DEBUG"),
    ] {
        let wrong = event("w", &json!({"severity": sent}));
        let body = json!({"detailedResponse": true, "events": [wrong]});
        let answer = rest.post(INTAKE, &body).await.refused();
        let error = answer["failedEvents"][0]["error"].as_str();
        let error = error.expect("an error");
        assert!(error.contains(says), "{sent}: {error}");
    }
}

#[tokio::test]
async fn metrics_and_models_endpoints_are_not_implemented() {
    let world = World::start();
    for path in ["/v1/data-receiver/metrics", "/v1/data-receiver/models"] {
        let answer = world.rest().post(path, &json!({"metrics": []})).await;
        assert_eq!((answer.status.as_u16(), answer.code()), (501, 12), "{path}");
        assert!(answer.text().contains("events only"), "{}", answer.text());
    }
}
