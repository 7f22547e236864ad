//! Error responses as clients see them.

use bellwether_gateway::Upstream;
use serde_json::json;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::{
    backend::{Act, Recorder},
    world::{World, config},
};

const LIST: &str = "/v1/notification/triggers";

#[tokio::test]
async fn grpc_codes_map_to_http_statuses_and_reasons() {
    let world = World::new().await;
    let table = [
        (1, 499, "TIMED_OUT"),
        (2, 500, "INTERNAL"),
        (3, 400, "REQUEST_INVALID"),
        (4, 504, "TIMED_OUT"),
        (5, 404, "NOT_FOUND"),
        (6, 409, "NAME_TAKEN"),
        (7, 403, "ROLE_LACKING"),
        (8, 429, "LIMIT_REACHED"),
        (9, 400, "STATE_FORBIDS"),
        (10, 409, "CHANGED_MEANWHILE"),
        (11, 400, "REQUEST_INVALID"),
        (12, 501, "NOT_SERVED"),
        (13, 500, "INTERNAL"),
        (14, 503, "UNAVAILABLE"),
        (15, 500, "INTERNAL"),
        (16, 401, "KEY_NOT_ACCEPTED"),
    ];
    for (code, status, reason) in table {
        world
            .backend
            .next(Act::Fail(Status::new(Code::from_i32(code), "a sentence")));
        let answer = world.get(LIST).await;
        assert_eq!(answer.status, status, "{code}");
        assert_eq!(
            answer.json(),
            json!({"code": code, "message": "a sentence", "details": [{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason,
                "domain": "bellwether",
            }]}),
            "{code}"
        );
        assert_eq!(answer.header("content-type"), "application/json");
        let challenge = answer.header("www-authenticate");
        assert_eq!(challenge.starts_with("Bearer"), status == 401, "{code}");
    }
}

#[tokio::test]
async fn error_details_are_rendered_as_json() {
    let world = World::new().await;
    let mut details = ErrorDetails::new();
    details
        .add_bad_request_violation("type.webhook.url", "is required")
        .set_error_info(
            "NAME_TAKEN",
            "bellwether",
            [("name".to_owned(), "a".to_owned())],
        )
        .set_debug_info(vec!["at src/secret.rs".to_owned()], "never shown");
    let status = Status::with_error_details(Code::InvalidArgument, "no", details);
    world.backend.next(Act::Fail(status));
    let answer = world.get(LIST).await;
    let mut details = answer.json()["details"].as_array().unwrap().clone();
    details.sort_by_key(|detail| detail["@type"].to_string());
    assert_eq!(
        details,
        [
            json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations":
                [{"field": "type.webhook.url", "description": "is required"}]}),
            json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "NAME_TAKEN",
                "domain": "bellwether", "metadata": {"name": "a"}}),
        ]
    );
}

#[tokio::test]
async fn retry_info_becomes_a_retry_after_header() {
    let world = World::new().await;
    let table = [(0, 1_500, 2), (3, 0, 3), (0, 1, 1)];
    for (seconds, millis, header) in table {
        let delay = std::time::Duration::from_millis(seconds * 1_000 + millis);
        let mut details = ErrorDetails::new();
        details.set_retry_info(Some(delay));
        let status = Status::with_error_details(Code::ResourceExhausted, "slower", details);
        world.backend.next(Act::Fail(status));
        let answer = world.get(LIST).await;
        assert_eq!(answer.status, 429);
        assert_eq!(answer.header("retry-after"), header.to_string());
    }
}

#[tokio::test]
async fn unreachable_backend_is_503_without_transport_details() {
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let upstream = Upstream::connect(&format!("http://{free}")).unwrap();
    let world = World::over(config(), Recorder::default(), upstream).await;
    let answer = world.get(LIST).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(answer.message(), "cannot reach the backend");
    assert_eq!(answer.json()["code"], 14);
    assert_eq!(world.get("/readyz").await.status, 503);
    assert_eq!(world.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn tonic_errors_are_translated() {
    let world = World::new().await;
    let table = [
        (Status::cancelled("Timeout expired"), 504, 4),
        (
            Status::out_of_range(
                "Error, decoded message length too large: found 9 bytes, the limit is: 4 bytes",
            ),
            413,
            8,
        ),
        (Status::internal("protocol error: secret"), 500, 13),
        (Status::unknown("h2 protocol error: secret"), 500, 13),
    ];
    for (status, http, code) in table {
        world.backend.next(Act::Fail(status));
        let answer = world.get(LIST).await;
        assert_eq!(answer.status, http);
        assert_eq!(answer.json()["code"], code);
        assert!(!answer.message().contains("secret"), "{}", answer.message());
        assert!(!answer.message().contains("Error"), "{}", answer.message());
    }
}

#[tokio::test]
async fn body_too_large_after_encoding_is_413() {
    // Each zero takes two bytes in JSON and eleven on the wire.
    let world = World::new().await;
    let list = vec!["0"; 500_000].join(",");
    let body = format!(r#"{{"events":[{{"metadataFields":{{"l":[{list}]}}}}]}}"#);
    let answer = world.post("/v1/data-receiver/events", &body).await;
    assert_eq!(answer.status, 413, "{:?}", answer.message());
    assert_eq!(answer.json()["code"], 8);
}

#[tokio::test]
async fn panic_is_500_and_the_next_request_succeeds() {
    let world = World::new().await;
    world.backend.next(Act::Panic);
    let answer = world.get(LIST).await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json()["code"], 13);
    assert_eq!(answer.message(), "internal error");
    assert_eq!(world.get(LIST).await.status, 200);
}

#[tokio::test]
async fn undecodable_response_is_500() {
    let world = World::new().await;
    world.backend.next(Act::Answer(vec![0xff, 0xff].into()));
    assert_eq!(world.get(LIST).await.status, 500);
}

#[tokio::test]
async fn invalid_json_is_400_with_line_and_column() {
    let world = World::new().await;
    for body in ["x", "{\"name\":\n tru}", "{} {}", "[1", "\u{1}"] {
        let answer = world.post(LIST, body).await;
        assert_eq!(answer.status, 400, "{body}");
        let message = answer.message();
        assert!(message.starts_with("the body is not JSON: "), "{message}");
        assert!(
            message.contains(" at line ") && message.contains(" column "),
            "{message}"
        );
    }
}
