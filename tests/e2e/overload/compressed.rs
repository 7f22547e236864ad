//! Compressed messages and bodies, including decompression bombs, over both listeners: those with
//! an unsupported encoding are rejected before they are decompressed.

use std::io::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellwether_tests::{rest::Rest, world::World};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use serde_json::json;

use super::{EVENTS, hostile_times, is_whole, withstands};

const UNFOLDED: usize = 256 * 1024 * 1024;
/// Methods with every kind of streaming. One of them requires no key.
const METHODS: [&str; 5] = [
    "zenoss.cloud.DataReceiverService/PutEvents",
    "zenoss.cloud.DataReceiverService/PutEvent",
    "bellwether.v1.RuleService/ListRules",
    "bellwether.v1.EventQueryService/WatchEvents",
    "grpc.health.v1.Health/Check",
];

/// Returns `bytes` equal bytes, compressed.
pub(super) fn packed(byte: u8, bytes: usize) -> Vec<u8> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::best());
    let piece = vec![byte; 64 * 1024];
    for _ in 0..bytes / piece.len() {
        packing.write_all(&piece).unwrap();
    }
    packing.finish().unwrap()
}

pub(super) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[1], &length[..], message].concat()
}

/// Makes a call; returns its status code, and the encodings that the service accepts.
async fn called(
    address: &str,
    method: &str,
    key: Option<&str>,
    encoding: Option<&str>,
    body: &[u8],
) -> (String, String) {
    let answered = tried(address, method, key, encoding, body).await;
    answered.expect("an answer")
}

/// Makes a call; returns `None` if the connection breaks.
pub(super) async fn tried(
    address: &str,
    method: &str,
    key: Option<&str>,
    encoding: Option<&str>,
    body: &[u8],
) -> Option<(String, String)> {
    let mut request = Request::post(format!("http://{address}/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    if let Some(encoding) = encoding {
        request = request.header("grpc-encoding", encoding);
    }
    let request = request.body(Full::<Bytes>::from(body.to_vec())).unwrap();
    let mut client = Client::builder(TokioExecutor::new());
    let client = client.http2_only(true).build_http();
    let answer = client.request(request).await.ok()?;
    let headers = answer.headers().clone();
    let body = answer.into_body().collect().await.ok()?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    let reported = |name: &str| {
        let value = headers.get(name).or_else(|| trailers.get(name));
        value.map_or("", |it| it.to_str().unwrap()).to_owned()
    };
    Some((reported("grpc-status"), reported("grpc-accept-encoding")))
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_messages_are_limited_by_decompressed_size() {
    const UNAUTHENTICATED: &str = "16";
    const UNIMPLEMENTED: &str = "12";
    const INVALID_ARGUMENT: &str = "3";
    const RESOURCE_EXHAUSTED: &str = "8";

    let world = World::start();
    let address = world.service().address("grpc");
    let key = world.admin_key();
    let bomb = framed(&packed(0, UNFOLDED));
    let small = framed(&packed(0, 64 * 1024));
    for method in METHODS {
        let needs_key = !method.starts_with("grpc.health");
        for (encoding, expected) in [
            // Zeros are not a valid message when decompressed.
            (Some("gzip"), INVALID_ARGUMENT),
            (Some("deflate"), UNIMPLEMENTED),
            (Some("zstd"), UNIMPLEMENTED),
            (Some("x"), UNIMPLEMENTED),
            // The message is compressed, but the header states no compression, or is missing.
            (Some("identity"), INVALID_ARGUMENT),
            (None, INVALID_ARGUMENT),
        ] {
            for body in [&small, &bomb] {
                let case = format!("{method} {encoding:?} {} bytes", body.len());
                let (status, encodings) = called(address, method, Some(&key), encoding, body).await;
                // Methods without a key have a smaller limit, which the bomb exceeds even while it
                // is compressed.
                let is_too_large = !needs_key && body.len() > small.len();
                let is_bomb = encoding == Some("gzip") && (body.len() > small.len() || !needs_key);
                let expected = match expected {
                    INVALID_ARGUMENT if is_too_large || is_bomb => RESOURCE_EXHAUSTED,
                    other => other,
                };
                assert_eq!(status, expected, "{case}");
                if expected == UNIMPLEMENTED {
                    assert_eq!(encodings, "identity,gzip", "{case}");
                }
                if needs_key {
                    let (status, _) = called(address, method, None, encoding, body).await;
                    assert_eq!(status, UNAUTHENTICATED, "{case} without a key");
                }
            }
        }
    }
    // The same applies to both forms of gRPC-Web.
    let web = Rest::new(address, Some(&key));
    for kind in ["application/grpc-web+proto", "application/grpc-web-text"] {
        let headers = [("content-type", kind), ("grpc-encoding", "gzip")];
        let path = format!("/{}", METHODS[0]);
        // Send the small body: the service does not read a large one to its end, so a browser may
        // not get the response.
        let body = if kind.ends_with("text") {
            STANDARD.encode(&small).into_bytes()
        } else {
            small.clone()
        };
        let answer = web.try_send(Method::POST, &path, &headers, body);
        let answer = answer.await.unwrap();
        let reported = format!("{:?} {}", answer.headers, answer.text());
        assert!(
            reported.contains("grpc-status\": \"3") || reported.contains("grpc-status:3"),
            "{kind}: {reported}"
        );
    }
    let many = 0..hostile_times(40, 1_000);
    let many = many.map(|_| tried(address, METHODS[0], Some(&key), Some("gzip"), &bomb));
    // With this many connections, the oldest may be closed before they get a response.
    let answered = futures_util::future::join_all(many).await;
    let answered: Vec<_> = answered.into_iter().flatten().collect();
    assert!(answered.len() >= 20, "{} were answered", answered.len());
    for (status, _) in answered {
        assert_eq!(status, RESOURCE_EXHAUSTED);
    }
    withstands(&world, ()).await;
    is_whole(world).await;
}

#[tokio::test]
async fn compressed_message_is_processed_normally() {
    let world = World::start();
    let address = world.service().address("grpc");
    let key = world.admin_key();
    let mut event = vec![0x12, 4 + 12, 0x12, 1, b'a', 0x1a, 11];
    event.extend(b"\x0a\x04host\x12\x03gz1");
    event[1] = u8::try_from(event.len() - 2).unwrap();
    let mut packing = GzEncoder::new(Vec::new(), Compression::best());
    packing.write_all(&event).unwrap();
    let one = framed(&packing.finish().unwrap());
    let (status, _) = called(address, METHODS[0], Some(&key), Some("gzip"), &one).await;
    assert_eq!(status, "0");
    let clause = json!({"equals": {"field": "dimensions.host", "stringVal": "gz1"}});
    let by_host = json!({"query": {"clause": clause}});
    let found = world.rest().post("/v1/events:count", &by_host).await;
    assert_eq!(found.ok()["count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_bodies_are_limited_by_decompressed_size() {
    let world = World::start();
    let rest = world.rest();
    let bomb = packed(b' ', UNFOLDED);
    let twice = {
        let mut packing = GzEncoder::new(Vec::new(), Compression::best());
        packing.write_all(&bomb).unwrap();
        packing.finish().unwrap()
    };
    let event = br#"{"events": [{"name": "a", "dimensions": {"host": "a"}}]}"#;
    let plain = {
        let mut packing = GzEncoder::new(Vec::new(), Compression::best());
        packing.write_all(event).unwrap();
        packing.finish().unwrap()
    };
    let send = async |encoding: &str, body: &[u8]| {
        let headers = [
            ("content-type", "application/json"),
            ("content-encoding", encoding),
        ];
        let sent = rest.try_send(Method::POST, EVENTS, &headers, body.to_vec());
        sent.await.unwrap()
    };
    for (encoding, body, status) in [
        ("gzip", &plain[..], 200),
        ("gzip", &bomb, 413),
        ("gzip", &bomb[..bomb.len() / 2], 413),
        // A body that was compressed twice is decompressed only once, so it is not JSON.
        ("gzip", &twice, 400),
        ("gzip", event, 400),
        ("gzip, gzip", &twice, 415),
        ("br", &bomb, 415),
        ("deflate", &bomb, 415),
    ] {
        let answer = send(encoding, body).await;
        let reported = answer.text();
        assert_eq!(answer.status, status, "{encoding}: {reported}");
        if status == 415 {
            assert_eq!(answer.header("accept-encoding"), "gzip", "{encoding}");
        }
    }
    let without = rest.with_key(None);
    let headers = [("content-encoding", "gzip")];
    let refused = without.try_send(Method::POST, EVENTS, &headers, bomb.clone());
    assert_eq!(refused.await.unwrap().status, 401);
    // The REST listener accepts no gRPC, compressed or not.
    let key = world.admin_key();
    let address = world.service().address("rest");
    let (status, _) = called(
        address,
        METHODS[0],
        Some(&key),
        Some("gzip"),
        &framed(&bomb),
    )
    .await;
    assert_ne!(status, "0");
    let many = (0..hostile_times(40, 400)).map(|_| send("gzip", &bomb));
    for answer in futures_util::future::join_all(many).await {
        let status = answer.status.as_u16();
        // With many clients, some may have to retry.
        assert!(matches!(status, 413 | 429 | 503), "{}", answer.text());
    }
    withstands(&world, ()).await;
    is_whole(world).await;
}
