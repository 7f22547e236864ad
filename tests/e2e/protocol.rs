//! HTTP behaviour of both listeners: hosts, origins, encodings, request ids, time limits.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::{Duration, Instant},
};

use bellwether_proto::v1::{
    ListRulesRequest, WatchEventsRequest, event_query_service_client::EventQueryServiceClient,
    rule_service_client::RuleServiceClient,
};
use bellwether_tests::{rest::Rest, world::World};
use http::Method;
use serde_json::Value;
use tonic::{Code, Request};

use crate::samples;

const RULES: &str = "/v1/notification/rules";
const PAGE: &str = "https://console.example.net";

fn raw(address: &str, request: &str) -> String {
    let mut socket = TcpStream::connect(address).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    drop(socket.read_to_end(&mut answer));
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn request_must_have_exactly_one_host() {
    let world = World::start();
    for part in ["rest", "grpc"] {
        let address = world.service().address(part);
        for hosts in ["", "host: a\r\nhost: b\r\n"] {
            let request = format!("GET /healthz HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
            let answer = raw(address, &request);
            assert!(
                answer.starts_with("HTTP/1.1 400"),
                "{part} {hosts:?}: {answer}"
            );
        }
    }
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let world = World::start();
    let answer = world
        .rest()
        .try_send(Method::GET, RULES, &[("x-request-id", "mine-1")], "")
        .await
        .unwrap();
    assert_eq!(answer.header("x-request-id"), "mine-1");
    let mut rules = RuleServiceClient::new(world.grpc());
    let mut named = Request::new(ListRulesRequest::default());
    named
        .metadata_mut()
        .insert("x-request-id", "mine-2".parse().unwrap());
    let answer = rules.list_rules(named).await.unwrap();
    assert_eq!(answer.metadata().get("x-request-id").unwrap(), "mine-2");
    let mut anonymous = RuleServiceClient::new(bellwether_tests::grpc::channel(
        world.service().address("grpc"),
        None,
    ));
    let refused = anonymous
        .list_rules(ListRulesRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.metadata().get("x-request-id").unwrap().len(), 32);
}

#[tokio::test]
async fn stream_ends_at_the_deadline_of_its_caller() {
    let world = World::start();
    let mut events = EventQueryServiceClient::new(world.grpc());
    let mut watch = Request::new(WatchEventsRequest::default());
    // Set the deadline as a header: a client with a timeout would not return the response.
    watch
        .metadata_mut()
        .insert("grpc-timeout", "500m".parse().unwrap());
    let start = Instant::now();
    let watching = events.watch_events(watch).await;
    let ended = match watching {
        Err(status) => status,
        Ok(watching) => {
            let mut watching = watching.into_inner();
            loop {
                match watching.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("it ended without an error"),
                    Err(status) => break status,
                }
            }
        }
    };
    assert_eq!(ended.code(), Code::DeadlineExceeded, "{ended:?}");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn only_configured_cors_origins_are_allowed() {
    let preflight = [
        ("origin", PAGE),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization"),
    ];
    let allowed = "access-control-allow-origin";
    let usual = World::start();
    let response = usual
        .rest()
        .try_send(Method::OPTIONS, RULES, &preflight, "")
        .await
        .unwrap();
    assert_eq!(response.header(allowed), "", "none over REST");
    let answer = usual
        .rest()
        .try_send(Method::GET, RULES, &preflight[..1], "")
        .await
        .unwrap();
    assert_eq!(answer.header(allowed), "");

    let world = World::with_settings(&format!("cors.origins = [{PAGE:?}]"));
    for part in ["rest", "grpc"] {
        let page = Rest::new(world.service().address(part), None);
        let response = page
            .try_send(Method::OPTIONS, RULES, &preflight, "")
            .await
            .unwrap();
        assert_eq!(
            (response.status.as_u16(), response.header(allowed)),
            (204, PAGE),
            "{part}"
        );
        let named = response.header("access-control-allow-headers");
        assert!(
            named.contains("authorization") && !named.contains('*'),
            "{part}: {named}"
        );
        let other = [
            ("origin", "https://evil.example"),
            preflight[1],
            preflight[2],
        ];
        let response = page
            .try_send(Method::OPTIONS, RULES, &other, "")
            .await
            .unwrap();
        assert_eq!(response.header(allowed), "", "{part}");
        let answer = page
            .try_send(Method::GET, RULES, &preflight[..1], "")
            .await
            .unwrap();
        assert_eq!(answer.header(allowed), PAGE, "{part}");
        let alone = page.try_send(Method::GET, RULES, &[], "").await.unwrap();
        assert_eq!(alone.header(allowed), "", "{part}");
    }
}

#[tokio::test]
async fn responses_are_compressed_when_accepted() {
    let world = World::start();
    let rest = world.rest();
    let plain = rest.get("/openapi.json").await;
    assert_eq!(plain.header("content-encoding"), "");
    let packed = rest
        .try_send(
            Method::GET,
            "/openapi.json",
            &[("accept-encoding", "br, gzip")],
            "",
        )
        .await
        .unwrap();
    assert_eq!(packed.header("content-encoding"), "gzip");
    assert!(packed.body.starts_with(&[0x1f, 0x8b]) && packed.body.len() * 4 < plain.body.len());
    assert!(packed.header("vary").contains("accept-encoding"));
    let tag = packed.header("etag").to_owned();
    assert!(tag.starts_with("W/"), "{tag}");
    let known = rest
        .try_send(Method::GET, "/openapi.json", &[("if-none-match", &tag)], "")
        .await
        .unwrap();
    assert_eq!(known.status, 304);
}

#[tokio::test]
async fn health_check_covers_each_service_by_name() {
    let world = World::start();
    let address = world.service().address("grpc");
    let ask = |service: &str| {
        let mut message = vec![0x0a, u8::try_from(service.len()).unwrap()];
        message.extend_from_slice(service.as_bytes());
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        [&[0][..], &length, &message].concat()
    };
    let headers = [
        ("content-type", "application/grpc-web+proto"),
        ("x-grpc-web", "1"),
    ];
    let health = Rest::new(address, None);
    for service in [
        "bellwether.v1.RuleService",
        "zenoss.cloud.DataReceiverService",
        "bellwether.v1.ClientService",
    ] {
        let path = "/grpc.health.v1.Health/Check";
        let answer = health
            .try_send(Method::POST, path, &headers, ask(service))
            .await
            .unwrap();
        // SERVING is 1 in field 1.
        assert!(
            answer.body.starts_with(&[0, 0, 0, 0, 2, 8, 1]),
            "{service}: {answer:?}"
        );
    }
    let unknown = ask("bellwether.v1.NoService");
    let path = "/grpc.health.v1.Health/Check";
    let answer = health
        .try_send(Method::POST, path, &headers, unknown)
        .await
        .unwrap();
    let reported = format!("{:?} {}", answer.headers, answer.text());
    assert!(
        reported.contains("grpc-status\": \"5") || reported.contains("grpc-status:5"),
        "{reported}"
    );
}

#[tokio::test]
async fn malformed_message_is_an_invalid_argument() {
    let world = World::start();
    let rest = Rest::new(world.service().address("grpc"), Some(&world.admin_key()));
    let headers = [
        ("content-type", "application/grpc-web+proto"),
        ("x-grpc-web", "1"),
    ];
    let wrong: [&[u8]; 4] = [
        &[0, 0, 0, 0, 3, 0xff, 0xff, 0xff],
        &[7, 0, 0, 0, 0],
        &[],
        &[0, 0, 0, 0, 9, 1],
    ];
    for path in [
        "/zenoss.cloud.DataReceiverService/PutEvents",
        "/bellwether.v1.RuleService/GetRule",
        "/zenoss.cloud.DataReceiverService/PutEvent",
    ] {
        for body in wrong {
            if body.is_empty() && path.ends_with("/PutEvent") {
                continue;
            }
            let answer = rest
                .try_send(Method::POST, path, &headers, body.to_vec())
                .await
                .unwrap();
            let reported = format!("{:?} {}", answer.headers, answer.text());
            let is_invalid =
                reported.contains("grpc-status\": \"3") || reported.contains("grpc-status:3");
            assert!(is_invalid, "{path} {body:?}: {reported}");
        }
    }
}

#[tokio::test]
async fn log_line_of_a_call_has_client_and_request_id() {
    let lines = "log_filter = \"bellwether_backend=debug\"\nlog_format = \"json\"\n";
    let world = World::with_settings(lines);
    let rest = world.rest();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let headers = [("x-request-id", "mine-1"), ("traceparent", trace)];
    let path = "/v1/notification/triggers";
    let answer = rest.try_send(Method::GET, path, &headers, "").await;
    assert_eq!(answer.unwrap().status, 200);
    let event = samples::event("full", "a", "SEVERITY_ERROR", "disk is full");
    let body = samples::events(&[event]).to_string();
    let sent = rest.try_send(Method::POST, "/v1/data-receiver/events", &headers, body);
    assert_eq!(sent.await.unwrap().status, 200);
    let channel = bellwether_tests::grpc::channel(world.service().address("grpc"), None);
    let mut anonymous = RuleServiceClient::new(channel);
    let refused = anonymous.list_rules(ListRulesRequest::default()).await;
    assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);

    let log = world.service().log();
    let lines = log.lines().filter(|it| it.contains("\"a call\""));
    let lines: Vec<Value> = lines.map(|it| serde_json::from_str(it).unwrap()).collect();
    let of = |method: &str, code: &str| {
        let is_it = |it: &&Value| {
            it["method"].as_str().is_some_and(|it| it.ends_with(method)) && it["code"] == code
        };
        lines
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{method} {code}: {log}"))
    };
    for method in ["/ListTriggers", "/PutEvents"] {
        let line = of(method, "Ok");
        assert_eq!(line["client"], "admin");
        assert_eq!(line["address"], "127.0.0.1");
        assert_eq!(line["request_id"], "mine-1");
        assert_eq!(line["trace"], trace);
        assert!(line["ms"].as_u64().unwrap() < 10_000);
    }
    let refused = of("/ListRules", "Unauthenticated");
    assert_eq!(refused["client"], Value::Null);
    assert_eq!(refused["request_id"].as_str().unwrap().len(), 32);
    assert!(!log.contains(&world.admin_key()));
}
