//! Building one request from path, query, body and `If-Match`.

use bellwether_proto::{cloud, v1};

use crate::world::World;

const TRIGGER: &str = "/v1/notification/triggers/disk-full";

#[tokio::test]
async fn create_body_is_the_resource() {
    let world = World::new().await;
    let body = r#"{"name":"a","tags":["x","y"],"type":{"event":{"query":{"clause":
        {"greaterAndEquals":{"field":"severity","value":"SEVERITY_ERROR"}}}}}}"#;
    let answer = world
        .post("/v1/notification/triggers?validateOnly=true", body)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let request: v1::CreateTriggerRequest = world.backend.calls()[0].decode();
    assert!(request.validate_only);
    let trigger = request.trigger.unwrap();
    assert_eq!((&*trigger.name, trigger.tags.len()), ("a", 2));
    assert!(matches!(
        trigger.r#type.unwrap().r#type,
        Some(v1::trigger_type::Type::Event(_))
    ));
}

#[tokio::test]
async fn put_body_may_omit_or_repeat_the_name() {
    let world = World::new().await;
    for body in [
        "{}",
        r#"{"name":"disk-full"}"#,
        r#"{"name":""}"#,
        r#"{"name":null}"#,
    ] {
        let answer = world.call("PUT", TRIGGER, body).await;
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
        let request: v1::UpdateTriggerRequest = world.backend.calls().pop().unwrap().decode();
        assert_eq!(request.trigger.unwrap().name, "disk-full", "{body}");
    }
}

#[tokio::test]
async fn put_with_a_different_name_in_the_body_is_rejected() {
    let world = World::new().await;
    let answer = world
        .call("PUT", TRIGGER, r#"{"name":"other","tgs":[]}"#)
        .await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.violated(),
        ["tgs"],
        "the body has to be readable first"
    );
    let answer = world.call("PUT", TRIGGER, r#"{"name":"other"}"#).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.violated(), ["name"]);
    assert_eq!(
        answer.message(),
        "name is `other` in the body but `disk-full` in the path"
    );
    assert!(world.backend.calls().is_empty());
}

#[tokio::test]
async fn query_parameters_are_parsed_by_field_type() {
    let world = World::new().await;
    let query = "pageSize=7&page_token=a%2Bb+c&states=DEAD&states=3&ruleNames=r%26s&ruleNames=\
                 &eventId=e&start=2026-01-01T00:00:00Z";
    let answer = world
        .get(&format!("/v1/notification/deliveries?{query}"))
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let request: v1::ListDeliveriesRequest = world.backend.calls()[0].decode();
    assert_eq!(request.page_size, 7);
    assert_eq!(request.page_token, "a+b c");
    assert_eq!(request.states, [5, 3]);
    assert_eq!(request.rule_names, ["r&s", ""]);
    assert_eq!(request.event_id, "e");
    assert_eq!(request.start.unwrap().seconds, 1_767_225_600);
}

#[tokio::test]
async fn all_invalid_query_parameters_are_reported_together() {
    let world = World::new().await;
    let table = [
        ("GET", "/v1/notification/triggers?pagesize=1", "pagesize"),
        ("GET", "/v1/notification/triggers?pageSize=x", "pageSize"),
        (
            "GET",
            "/v1/notification/triggers?pageSize=1&page_size=2",
            "pageSize",
        ),
        ("GET", "/v1/notification/triggers/a?name=b", "name"),
        ("GET", "/v1/notification/deliveries?states=GONE", "states"),
        ("GET", "/v1/notification/deliveries?start=now", "start"),
        ("DELETE", "/v1/notification/triggers/a?force=1", "force"),
        ("DELETE", "/v1/notification/triggers/a?force", "force"),
        ("GET", "/v1/notification/triggers?q=%zz", ""),
        ("GET", "/v1/overview?x=1", "x"),
    ];
    for (method, path, field) in table {
        let answer = world.call(method, path, "").await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.violated(), [field], "{path}");
    }
    let answer = world
        .get("/v1/notification/triggers?pagesize=1&pageSize=x")
        .await;
    assert_eq!(answer.violated(), ["pagesize", "pageSize"]);
    assert_eq!(
        answer.message(),
        "pagesize is not a query parameter here; the nearest is `pageSize` (and 1 more problem)"
    );
    let answer = world
        .post("/v1/notification/triggers?trigger=x", "{}")
        .await;
    assert_eq!(answer.violated(), ["trigger"]);
    assert!(world.backend.calls().is_empty());
}

#[tokio::test]
async fn extra_query_parameters_of_senders_are_ignored() {
    let world = World::new().await;
    let answer = world
        .post("/v1/data-receiver/events?source=x", r#"{"events":[]}"#)
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn bare_query_flag_is_true_for_heartbeats() {
    let world = World::new().await;
    let answer = world.get("/v1/data-receiver/heartbeats/key?start").await;
    assert_eq!(answer.status, 200);
    let request: v1::BeatByKeyRequest = world.backend.calls()[0].decode();
    assert!(request.start);
}

#[tokio::test]
async fn unknown_heartbeat_parameters_are_rejected() {
    let world = World::new().await;
    let address = "/v1/data-receiver/heartbeats/key";
    for query in ["fial", "exti=1", "exit=x", "state=down", "status=down&x=1"] {
        let answer = world.get(&format!("{address}?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
    }
    let beat = "/v1/data-receiver/heartbeats/backup:beat";
    for body in [r#"{"exti":1}"#, r#"{"status":"down"}"#] {
        assert_eq!(world.post(beat, body).await.status, 400, "{body}");
    }
    assert!(world.backend.calls().is_empty());
}

#[tokio::test]
async fn heartbeat_urls_return_an_empty_body() {
    let world = World::new().await;
    for (path, parts) in [
        ("/key", ("key", "")),
        ("/key/fail", ("key", "fail")),
        ("/nightly%2Dbackup/key", ("nightly-backup", "key")),
    ] {
        let path = format!("/v1/data-receiver/heartbeats{path}");
        for method in ["GET", "POST", "HEAD"] {
            let answer = world.call(method, &path, "").await;
            assert_eq!(answer.status, 200, "{method} {path}");
            assert!(answer.body.is_empty(), "{method} {path}: {answer:?}");
            let calls = world.backend.calls();
            let request: v1::BeatByKeyRequest = calls[calls.len() - 1].decode();
            assert_eq!((&*request.key, &*request.signal), parts, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn delete_reads_force_and_etag_from_query_header_or_body() {
    let world = World::new().await;
    let path = "/v1/notification/triggers/a";
    let requests = [
        (
            world.request("DELETE", &format!("{path}?force=true&etag=v1")),
            "",
        ),
        (
            world
                .request("DELETE", &format!("{path}?force=true"))
                .header("if-match", "\"v1\""),
            "",
        ),
        (
            world.request("DELETE", path),
            r#"{"force":true,"etag":"v1"}"#,
        ),
    ];
    for (request, body) in requests {
        let answer = world.send(request, body).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let request: v1::DeleteTriggerRequest = world.backend.calls().pop().unwrap().decode();
        assert_eq!(
            (&*request.name, request.force, &*request.etag),
            ("a", true, "v1")
        );
    }
}

#[tokio::test]
async fn if_match_becomes_the_etag_of_the_request() {
    let world = World::new().await;
    let table = [
        ("\"v1\"", "{}", Ok("v1")),
        ("W/\"v1\"", "{}", Ok("v1")),
        ("v1", "{}", Ok("v1")),
        ("*", "{}", Ok("")),
        ("\"v1\"", r#"{"etag":"v1"}"#, Ok("v1")),
        ("\"v1\"", r#"{"etag":"\"v1\""}"#, Ok("\"v1\"")),
        ("\"v1\"", r#"{"etag":"v2"}"#, Err(())),
        ("\"v1\", \"v2\"", "{}", Ok("v1,v2")),
        ("\"v1\", *", "{}", Ok("")),
        ("\"v1.0123456789abcdef\"", "{}", Ok("v1")),
        ("\"v2\", \"v1\"", r#"{"etag":"v1"}"#, Ok("v1")),
        ("\"v2\", \"v3\"", r#"{"etag":"v1"}"#, Err(())),
        ("\"v\"1\"", "{}", Err(())),
        ("", "{}", Err(())),
    ];
    for (header, body, wanted) in table {
        let request = world.request("PUT", TRIGGER).header("if-match", header);
        let answer = world.send(request, body).await;
        match wanted {
            Ok(etag) => {
                assert_eq!(answer.status, 200, "{header} {body}");
                let call = world.backend.calls().pop().unwrap();
                let request: v1::UpdateTriggerRequest = call.decode();
                assert_eq!(request.trigger.unwrap().etag, etag, "{header} {body}");
            }
            Err(()) => assert_eq!(answer.violated(), ["etag"], "{header} {body}"),
        }
    }
}

#[tokio::test]
async fn empty_body_is_rejected_when_a_body_is_required() {
    let world = World::new().await;
    let paths = [
        "/v1/notification/triggers",
        "/v1/notification/destinations:test",
        "/v1/data-receiver/events",
        "/v1/events:search",
    ];
    for path in paths {
        let answer = world.post(path, "").await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(
            answer.message(),
            "the body is empty: send a JSON object",
            "{path}"
        );
    }
    let answer = world.call("PUT", TRIGGER, "").await;
    assert_eq!(answer.status, 400);
    assert!(world.backend.calls().is_empty());
    // The path contains all fields.
    let answer = world.post("/v1/notification/deliveries/d:retry", "").await;
    assert_eq!(answer.status, 200);
    let request: v1::RetryDeliveryRequest = world.backend.calls()[0].decode();
    assert_eq!(request.id, "d");
}

#[tokio::test]
async fn any_content_type_is_parsed_as_json() {
    let world = World::new().await;
    for content_type in [
        "application/json; charset=utf-8",
        "text/plain",
        "x",
        "application/xml",
    ] {
        let request = world.request("POST", "/v1/data-receiver/events");
        let answer = world
            .send(request.header("content-type", content_type), "{}")
            .await;
        assert_eq!(answer.status, 200, "{content_type}");
    }
}

#[tokio::test]
async fn unknown_content_encoding_is_415_with_the_supported_encodings() {
    let world = World::new().await;
    let request = || world.request("POST", "/v1/data-receiver/events");
    let answer = world
        .send(request().header("content-encoding", "br"), "{}")
        .await;
    assert_eq!(answer.status, 415);
    assert_eq!(answer.header("accept-encoding"), "gzip");
    let answer = world
        .send(request().header("content-encoding", "gzip"), "{}")
        .await;
    assert_eq!(answer.status, 400, "it is not");
    let answer = world
        .send(request().header("content-encoding", "identity"), "{}")
        .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn events_with_unknown_fields_are_accepted() {
    let world = World::new().await;
    world.backend.answer(&cloud::EventStatusResult {
        succeeded: 1,
        ..Default::default()
    });
    let body = r#"{"detailed_response":true,"extra":{"a":[1]},"events":[{"name":"disk",
        "timestamp":"1767225600000","dimensions":{"host":"a"},"severity":"SEVERITY_ERROR",
        "status":1,"acknowledged":false,"custom":7,"metadataFields":{"n":1.5,"l":[null]}}]}"#;
    let answer = world.post("/v1/data-receiver/events", body).await;
    assert_eq!(
        answer.body,
        r#"{"succeeded":1,"ignoredFields":["extra","events[0].custom"]}"#
    );
    let request: cloud::Events = world.backend.calls()[0].decode();
    assert!(request.detailed_response);
    let event = &request.events[0];
    assert_eq!(event.timestamp, 1_767_225_600_000);
    assert_eq!(event.dimensions["host"], "a");
    assert_eq!(
        (event.severity, event.status, event.acknowledged),
        (4, 1, Some(false))
    );
    assert_eq!(event.metadata_fields.as_ref().unwrap().fields.len(), 2);
}

#[tokio::test]
async fn unknown_fields_are_rejected_with_a_suggestion() {
    let world = World::new().await;
    let table = [
        (
            "POST",
            "/v1/notification/triggers",
            r#"{"nme":"a"}"#,
            "nme",
            "name",
        ),
        (
            "PUT",
            "/v1/notification/destinations/a",
            r#"{"type":{"webhook":{"urll":"x"}}}"#,
            "type.webhook.urll",
            "url",
        ),
        (
            "POST",
            "/v1/notification/rules:preview",
            r#"{"massage":""}"#,
            "massage",
            "message",
        ),
        (
            "POST",
            "/v1/event-management/annotate",
            r#"{"annotations":[{},{"eventID":"x"}]}"#,
            "annotations[1].eventID",
            "eventId",
        ),
        (
            "POST",
            "/v1/events:search",
            r#"{"query":{"clauses":{}}}"#,
            "query.clauses",
            "clause",
        ),
    ];
    for (method, path, body, field, nearest) in table {
        let answer = world.call(method, path, body).await;
        assert_eq!(answer.status, 400, "{path}");
        assert_eq!(answer.violated(), [field], "{path}");
        let sentence = format!("{field} is not a known field; the nearest is `{nearest}`");
        assert_eq!(answer.message(), sentence, "{path}");
    }
}

#[tokio::test]
async fn malformed_events_are_listed_with_those_the_backend_rejects() {
    let world = World::new().await;
    world.backend.answer(&cloud::EventStatusResult {
        succeeded: 1,
        failed: 1,
        failed_events: vec![cloud::EventError {
            error: "events[1]: dimensions: is required".to_owned(),
            index: Some(1),
            ..Default::default()
        }],
        ..Default::default()
    });
    let body = r#"{"events":[{},{"severity":"ERORR","name":"a"},{"name":"b"},
        {"status":"CLOSD","timestamp":"x"}],"detailedResponse":true}"#;
    let answer = world.post("/v1/data-receiver/events", body).await;
    let sent: cloud::Events = world.backend.calls()[0].decode();
    assert_eq!(sent.events.len(), 2);
    let json = answer.json();
    assert_eq!(
        (&json["succeeded"], &json["failed"]),
        (&1.into(), &3.into())
    );
    let failed = json["failedEvents"].as_array().unwrap();
    let found: Vec<_> = failed
        .iter()
        .map(|one| {
            (
                one["index"].as_u64().unwrap(),
                one["error"].as_str().unwrap(),
            )
        })
        .collect();
    let near = |name, given, nearest| {
        format!("must be a {name}, not `{given}`; the nearest is `{nearest}`")
    };
    let time = "must be a whole number from -9223372036854775808 to 9223372036854775807, not `x`";
    assert_eq!(
        found,
        [
            (
                1,
                &*format!(
                    "events[1]: severity: {}",
                    near("Severity", "ERORR", "SEVERITY_ERROR")
                )
            ),
            (2, "events[2]: dimensions: is required"),
            (
                3,
                &*format!(
                    "events[3]: status: {}; timestamp: {time}",
                    near("Status", "CLOSD", "STATUS_CLOSED")
                )
            ),
        ]
    );
    assert_eq!(failed[0]["event"]["name"], "a");
}

#[tokio::test]
async fn depth_of_clauses_is_not_checked_by_the_gateway() {
    let world = World::new().await;
    let leaf = r#"{"equals":{"field":"name","stringVal":"a"}}"#;
    let clause = |depth: usize| {
        let levels = depth - 1;
        r#"{"and":{"clauses":["#.repeat(levels) + leaf + &"]}}".repeat(levels)
    };
    for depth in [32, 33, 40] {
        let query = format!(r#"{{"event":{{"query":{{"clause":{}}}}}}}"#, clause(depth));
        let body = format!(r#"{{"name":"a","type":{query}}}"#);
        let answer = world.post("/v1/notification/triggers", &body).await;
        assert_eq!(answer.status, 200, "{depth}: {answer:?}");
        let _: v1::CreateTriggerRequest = world.backend.calls().pop().unwrap().decode();
    }
    let search = format!(r#"{{"query":{{"clause":{}}}}}"#, clause(200));
    let answer = world.post("/v1/events:search", &search).await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.message().contains("recursion limit"),
        "{}",
        answer.message()
    );
}
