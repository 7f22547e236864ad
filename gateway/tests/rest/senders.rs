//! Senders of other dialects: the calls to the backend, and the responses.

use std::io::Write as _;

use bellwether_proto::{
    cloud::{EventStatusResult, Events},
    v1::{AnnotateRequest, AnnotateResponse, AnnotationResult},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http_body_util::Full;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{
    backend::Act,
    world::{Answer, World, config},
};

const ALERTMANAGER: &str = include_str!("../dialect/alertmanager.json");
const PROMETHEUS: &str = include_str!("../dialect/prometheus.json");
const PAGERDUTY: &str = include_str!("../dialect/pagerduty.json");
const OPSGENIE: &str = include_str!("../dialect/opsgenie.json");
const CLOUDEVENT: &str = include_str!("../dialect/cloudevent.json");
const LOGS: &[u8] = include_bytes!("../dialect/otlp.bin");

const STRUCTURED: &str = "application/cloudevents+json";
const PROTOBUF: &str = "application/x-protobuf";

struct Ask {
    method: &'static str,
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Bytes,
}

fn ask(path: &'static str, body: &'static str) -> Ask {
    Ask {
        method: "POST",
        path,
        headers: vec![("content-type", "application/json")],
        body: body.into(),
    }
}

impl Ask {
    fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value));
        self
    }

    fn get(mut self) -> Self {
        self.method = "GET";
        self
    }

    async fn send(&self, world: &World) -> Answer {
        let mut request = world.request(self.method, self.path);
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        world
            .send_request(request.body(Full::new(self.body.clone())).unwrap())
            .await
    }
}

fn cloudevent() -> Ask {
    ask("/v1/intake/cloudevents", CLOUDEVENT).with("content-type", STRUCTURED)
}

fn logs(body: impl Into<Bytes>) -> Ask {
    Ask {
        body: body.into(),
        ..ask("/v1/logs", "").with("content-type", PROTOBUF)
    }
}

/// Returns one valid request per path, each with the status of its successful response.
fn requests() -> Vec<(Ask, u16)> {
    vec![
        (ask("/v1/intake/alertmanager", ALERTMANAGER), 200),
        (ask("/v1/intake/alertmanager/k1", ALERTMANAGER), 200),
        (ask("/api/v2/alerts", PROMETHEUS), 200),
        (ask("/v2/enqueue", PAGERDUTY), 202),
        (ask("/v2/change/enqueue", PAGERDUTY), 202),
        (ask("/v2/alerts", OPSGENIE), 202),
        (ask("/v2/alerts/db%2Fdisk%201/close", "{}"), 202),
        (ask("/v2/alerts/db%2Fdisk%201/acknowledge", "{}"), 202),
        (ask("/v2/heartbeats/nightly/ping", "").get(), 202),
        (ask("/v2/heartbeats/nightly/ping", ""), 202),
        (cloudevent(), 204),
        (
            ask("/v1/intake/cloudevents/k1", CLOUDEVENT).with("content-type", STRUCTURED),
            204,
        ),
        (logs(LOGS), 200),
    ]
}

#[tokio::test]
async fn each_sender_request_makes_one_backend_call() {
    let world = World::new().await;
    for (request, status) in requests() {
        let answer = request.send(&world).await;
        assert_eq!(answer.status, status, "{}: {:?}", request.path, answer.body);
        let call = world.backend.calls().pop().unwrap();
        assert_eq!(call.path, "/zenoss.cloud.DataReceiverService/PutEvents");
        assert!(call.metadata.contains_key("bellwether-dialect"));
        let events = call.decode::<Events>().events;
        assert!(!events.is_empty(), "{}", request.path);
        for event in events {
            assert!(
                !event.name.is_empty() && !event.dimensions.is_empty(),
                "{event:?}"
            );
        }
    }
    let paths = requests().len();
    assert_eq!(world.backend.calls().len(), paths);
}

#[tokio::test]
async fn sender_key_reaches_the_backend_from_any_location() {
    let world = World::new().await;
    let webhook = || ask("/v1/intake/alertmanager", ALERTMANAGER);
    let table = [
        (
            webhook().with("authorization", "Bearer k2"),
            Some("Bearer k2"),
        ),
        (
            webhook().with("authorization", "Basic cHJvbWV0aGV1czprMg=="),
            Some("Bearer k2"),
        ),
        (webhook().with("zenoss-api-key", "k2"), Some("Bearer k2")),
        (webhook(), None),
        (webhook().with("authorization", "Digest k2"), None),
        (
            ask("/v1/intake/alertmanager/k%2F2", ALERTMANAGER),
            Some("Bearer k/2"),
        ),
        (
            ask("/v2/alerts", OPSGENIE).with("authorization", "GenieKey k2"),
            Some("Bearer k2"),
        ),
        (
            ask("/v2/enqueue", PAGERDUTY).with("authorization", "Bearer other"),
            Some("Bearer 0123456789abcdef0123456789abcdef"),
        ),
    ];
    for (request, expected) in table {
        request.send(&world).await;
        let call = world.backend.calls().pop().unwrap();
        let key = call.metadata.get("authorization");
        let key = key.map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(key.as_deref(), expected, "{}", request.path);
        let is_in_path = request.path.ends_with("/k%2F2");
        let reported = call.metadata.contains_key("bellwether-key-in-path");
        assert_eq!(reported, is_in_path, "{}", request.path);
    }
}

#[tokio::test]
async fn unauthenticated_request_gets_no_body_errors() {
    let world = World::new().await;
    for path in [
        "/v1/intake/alertmanager",
        "/api/v2/alerts",
        "/v2/enqueue",
        "/v2/alerts",
    ] {
        let status = Status::unauthenticated("a key is missing");
        world.backend.next(Act::Fail(status));
        let answer = ask(path, "{").send(&world).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(text.contains("a key is missing"), "{path}: {text}");
        let call = world.backend.calls().pop().unwrap();
        assert!(call.decode::<Events>().events.is_empty());
    }
}

#[tokio::test]
async fn invalid_sender_requests_never_succeed() {
    let world = World::new().await;
    let table = [
        (ask("/v1/intake/alertmanager", "{\"evnts\":[]}"), 400),
        (ask("/v1/intake/alertmanager", ""), 400),
        (ask("/api/v2/alerts", "{}"), 400),
        (ask("/api/v2/alerts", "[{}]"), 400),
        (ask("/v2/enqueue", "{}"), 400),
        (ask("/v2/change/enqueue", "[]"), 400),
        (ask("/v2/alerts", "{}"), 422),
        (ask("/v2/alerts/a/notes", "{}"), 422),
        (ask("/v2/alerts/requests/unknown", "").get(), 404),
        (ask("/v2/alerts/%2/close", "{}"), 400),
        (ask("/v1/intake/cloudevents", "{}"), 415),
        (
            cloudevent().with("content-type", "application/cloudevents-batch+json"),
            400,
        ),
        (logs("\u{ff}"), 400),
        (logs(LOGS).with("content-type", "text/plain"), 415),
        (logs(LOGS).with("content-encoding", "gzip"), 400),
        (logs(LOGS).with("content-encoding", "br"), 415),
        (
            ask("/v2/enqueue", PAGERDUTY).with("content-encoding", "gzip"),
            400,
        ),
    ];
    for (request, status) in table {
        let answer = request.send(&world).await;
        assert_eq!(answer.status, status, "{}", request.path);
        assert!(!answer.body.is_empty(), "{}", request.path);
    }
    for path in ["/v2/enqueue", "/v1/logs", "/v1/intake/alertmanager"] {
        let answer = world.get(path).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("allow")),
            (405, "POST"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn event_rejected_by_the_backend_is_a_client_error() {
    let world = World::new().await;
    for (request, _) in requests() {
        world.backend.answer(&EventStatusResult {
            failed: 1,
            succeeded: 0,
            message: "1 of 1 events were rejected; events[0]: dimensions: too many".into(),
            ..EventStatusResult::default()
        });
        let answer = request.send(&world).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(
            text.contains("dimensions: too many"),
            "{}: {text}",
            request.path
        );
        // The response to logs is a success with the number of rejected records; all other
        // responses are errors.
        let expected = if request.path == "/v1/logs" { 200 } else { 400 };
        assert_eq!(answer.status, expected, "{}", request.path);
    }
}

#[tokio::test]
async fn overload_and_rate_limits_make_senders_retry() {
    let world = World::new().await;
    let table = [
        (Code::ResourceExhausted, [503, 429, 429, 429, 429, 429]),
        (Code::Unavailable, [503; 6]),
        (Code::DeadlineExceeded, [504; 6]),
        (Code::Unauthenticated, [401, 401, 400, 401, 401, 401]),
        (Code::PermissionDenied, [403, 403, 400, 403, 403, 403]),
    ];
    let ask_each = || {
        [
            ask("/v1/intake/alertmanager", ALERTMANAGER),
            ask("/api/v2/alerts", PROMETHEUS),
            ask("/v2/enqueue", PAGERDUTY),
            ask("/v2/alerts", OPSGENIE),
            cloudevent(),
            logs(LOGS),
        ]
    };
    for (code, expected) in table {
        for (request, status) in ask_each().into_iter().zip(expected) {
            world
                .backend
                .next(Act::Fail(Status::new(code, "a sentence")));
            let answer = request.send(&world).await;
            assert_eq!(answer.status, status, "{code:?} {}", request.path);
            let is_unavailable = code == Code::Unavailable;
            assert!(!is_unavailable || !answer.header("retry-after").is_empty());
        }
    }
}

#[tokio::test]
async fn repeated_cloudevent_has_the_same_idempotency_key_and_response() {
    let world = World::new().await;
    let key_of = |call: crate::backend::Call| {
        let key = call.metadata.get("idempotency-key");
        key.map(|value| value.to_str().unwrap().to_owned())
    };
    cloudevent().send(&world).await;
    let key = key_of(world.backend.calls().pop().unwrap()).unwrap();
    assert!(key.starts_with("cloudevents-"), "{key}");
    let used = || Act::Fail(Status::already_exists("the key stands for another request"));
    world.backend.next(used());
    let again = cloudevent().send(&world).await;
    assert_eq!(again.status, 204, "{:?}", again.body);
    assert_eq!(key_of(world.backend.calls().pop().unwrap()), Some(key));
    // For an idempotency key chosen by the sender, the conflict is reported.
    world.backend.next(used());
    let own = cloudevent()
        .with("idempotency-key", "mine")
        .send(&world)
        .await;
    assert_eq!(own.status, 409);
    let own = key_of(world.backend.calls().pop().unwrap());
    assert_eq!(own.as_deref(), Some("mine"));
}

#[tokio::test]
async fn note_becomes_an_annotation_and_its_failure_is_reported() {
    let world = World::new().await;
    let note = "{\"note\": \"looking\", \"user\": \"ada\"}";
    let stored = AnnotateResponse {
        annotation_responses: vec![AnnotationResult {
            success: Some(true),
            ..AnnotationResult::default()
        }],
    };
    world.backend.answer(&stored);
    let answer = ask("/v2/alerts/a/notes", note).send(&world).await;
    assert_eq!(answer.status, 202);
    let call = world.backend.calls().pop().unwrap();
    assert_eq!(call.path, "/bellwether.v1.EventManagementService/Annotate");
    let item = call.decode::<AnnotateRequest>().annotations.remove(0);
    assert_eq!(item.annotation, "ada: looking");
    assert_eq!(item.event_id.len(), 28);

    let refused = Status::permission_denied("this requires the role `operator`");
    world.backend.next(Act::Fail(refused.clone()));
    let answer = ask("/v2/alerts/a/notes", note).send(&world).await;
    assert_eq!(
        (answer.status.as_u16(), answer.message()),
        (403, refused.message().to_owned())
    );

    world.backend.answer(&EventStatusResult::default());
    world.backend.next(Act::Fail(refused));
    let answer = ask("/v2/alerts/a/close", note).send(&world).await;
    assert_eq!(answer.status, 202);
    let result = answer.json()["result"].to_string();
    assert!(
        result.contains("its note was not stored: this requires the role"),
        "{result}"
    );
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn compressed_logs_are_limited_by_decompressed_size() {
    let mut settings = config();
    settings.body_limit_bytes = 64 * 1024;
    let world = World::with(settings).await;
    let gzip = |bytes: &[u8]| logs(compressed(bytes)).with("content-encoding", "gzip");
    let answer = gzip(LOGS).send(&world).await;
    assert_eq!(answer.status, 200);
    let call = world.backend.calls().pop().unwrap();
    assert_eq!(call.decode::<Events>().events.len(), 2);
    let bomb = vec![0; 64 * 1024 + 1];
    assert!(compressed(&bomb).len() < 1024);
    assert_eq!(gzip(&bomb).send(&world).await.status, 413);
    let broken = &compressed(LOGS)[..40];
    let broken = logs(broken.to_vec()).with("content-encoding", "gzip");
    assert_eq!(broken.send(&world).await.status, 400);
}

#[tokio::test]
async fn pagerduty_accepts_bodies_up_to_512_kib() {
    let world = World::new().await;
    let sized = |bytes: usize| {
        let mut body: Value = serde_json::from_str(PAGERDUTY).unwrap();
        body["payload"]["custom_details"] = json!("");
        let left = bytes - body.to_string().len();
        body["payload"]["custom_details"] = json!("x".repeat(left));
        Ask {
            body: body.to_string().into(),
            ..ask("/v2/enqueue", "")
        }
    };
    assert_eq!(sized(512 * 1024).send(&world).await.status, 202);
    let answer = sized(512 * 1024 + 1).send(&world).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["status"], "invalid event");
}

#[tokio::test]
async fn alertmanager_status_requires_neither_key_nor_backend() {
    let world = World::new().await;
    let answer = world.get("/api/v2/status").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["cluster"]["status"], "disabled");
    assert!(world.backend.calls().is_empty());
}

#[tokio::test]
async fn metrics_of_sender_requests_omit_keys() {
    let world = World::new().await;
    ask("/v1/intake/alertmanager/secret-key", ALERTMANAGER)
        .send(&world)
        .await;
    cloudevent().send(&world).await;
    let metrics = String::from_utf8(world.get("/metrics").await.body.to_vec()).unwrap();
    for line in [
        "operation=\"alertmanager/v1/intake/alertmanager/{key}\",code=\"200\"} 1",
        "operation=\"cloudevents/v1/intake/cloudevents\",code=\"204\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains("secret-key"));
}
