//! Headers, metadata and cancellation between client and backend, and shutdown.

use std::time::{Duration, Instant};

use bellwether_proto::v1;
use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};
use tonic::Status;

use crate::{backend::Act, world::World};

const LIST: &str = "/v1/notification/triggers";

pub(crate) async fn eventually(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "it never had this value"
        );
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn only_allowed_headers_reach_the_backend() {
    let world = World::new().await;
    let request = world
        .request("GET", LIST)
        .header("authorization", "Bearer k")
        .header("zenoss-api-key", "k2")
        .header(
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        )
        .header("tracestate", "a=b")
        .header("idempotency-key", "once")
        .header("x-request-id", "r-1")
        .header("cookie", "secret=1")
        .header("x-other", "1");
    let answer = world.send(request, "").await;
    assert_eq!(answer.header("x-request-id"), "r-1");
    let metadata = world.backend.calls()[0].metadata.clone();
    let get = |name: &str| metadata.get(name).map(|it| it.to_str().unwrap().to_owned());
    assert_eq!(get("authorization").as_deref(), Some("Bearer k"));
    assert_eq!(get("zenoss-api-key").as_deref(), Some("k2"));
    assert!(get("traceparent").unwrap().starts_with("00-0af7"));
    assert_eq!(get("tracestate").as_deref(), Some("a=b"));
    assert_eq!(get("idempotency-key").as_deref(), Some("once"));
    assert_eq!(get("x-request-id").as_deref(), Some("r-1"));
    assert_eq!((get("cookie"), get("x-other")), (None, None));
}

#[tokio::test]
async fn only_allowed_metadata_reaches_the_client() {
    let world = World::new().await;
    let mut status = Status::resource_exhausted("slower");
    let metadata = status.metadata_mut();
    metadata.insert("ratelimit", "\"events\";r=0;t=2".parse().unwrap());
    metadata.insert("deprecation", "@1767225600".parse().unwrap());
    metadata.insert("x-internal", "1".parse().unwrap());
    world.backend.next(Act::Fail(status));
    let answer = world.get(LIST).await;
    assert_eq!(answer.header("ratelimit"), "\"events\";r=0;t=2");
    assert_eq!(answer.header("deprecation"), "@1767225600");
    assert_eq!(answer.header("x-internal"), "");
}

#[tokio::test]
async fn invalid_request_id_is_replaced() {
    let world = World::new().await;
    for id in ["", "a b", "\u{e9}", &"x".repeat(129)] {
        let answer = world
            .send(world.request("GET", LIST).header("x-request-id", id), "")
            .await;
        let made = answer.header("x-request-id");
        assert_eq!(made.len(), 32, "{id:?} became {made:?}");
        let passed = world.backend.calls().pop().unwrap().metadata;
        assert_eq!(passed.get("x-request-id").unwrap(), made);
    }
    let long = "x".repeat(128);
    let answer = world
        .send(
            world
                .request("GET", "/v1/none")
                .header("x-request-id", &long),
            "",
        )
        .await;
    assert_eq!(answer.header("x-request-id"), long, "also on errors");
}

#[tokio::test]
async fn shutdown_completes_in_flight_requests() {
    let mut world = World::new().await;
    let mut socket = TcpStream::connect(world.addr).await.unwrap();
    let head = "POST /v1/data-receiver/events HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{";
    socket.write_all(head.as_bytes()).await.unwrap();
    // The request is in flight once the metrics count the first byte of its body.
    while !String::from_utf8_lossy(&world.get("/metrics").await.body)
        .contains("body_bytes_total 1\n")
    {}
    world.shutdown.cancel();
    eventually(|| std::net::TcpStream::connect(world.addr).is_err()).await;
    socket.write_all(b"}").await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    world.tasks.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn shutdown_does_not_wait_for_idle_connections() {
    let mut world = World::new().await;
    let mut sockets = Vec::new();
    for start in ["", "GET / HT", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI"] {
        let mut socket = TcpStream::connect(world.addr).await.unwrap();
        socket.write_all(start.as_bytes()).await.unwrap();
        sockets.push(socket);
    }
    assert_eq!(world.get("/healthz").await.status, 200);
    let start = Instant::now();
    world.shutdown.cancel();
    world.tasks.join_next().await.unwrap().unwrap();
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "took {:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn shutdown_cancels_hanging_requests_after_the_drain_period() {
    for http2 in [false, true] {
        let config = bellwether_gateway::Config {
            drain: Duration::from_millis(200),
            ..crate::world::config()
        };
        let mut world = World::with(config).await;
        world.backend.next(Act::Hang);
        let client = Client::builder(TokioExecutor::new())
            .http2_only(http2)
            .build_http();
        let request = world.request("GET", LIST);
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { client.request(request).await.map(drop).ok() });
        eventually(|| world.backend.hanging() == 1).await;
        world.shutdown.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(60), world.tasks.join_next());
        ended.await.expect("it ends").unwrap().unwrap();
        eventually(|| world.backend.hanging() == 0).await;
    }
}

#[tokio::test]
async fn client_disconnect_cancels_its_call() {
    let world = World::new().await;
    world.backend.next(Act::Hang);
    let mut socket = TcpStream::connect(world.addr).await.unwrap();
    let head = format!("GET {LIST} HTTP/1.1\r\nhost: a\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    eventually(|| world.backend.hanging() == 1).await;
    drop(socket);
    eventually(|| world.backend.hanging() == 0).await;
}

#[tokio::test]
async fn slow_reader_stays_in_flight_until_the_response_is_sent() {
    let config = bellwether_gateway::Config {
        max_in_flight: 1,
        ..crate::world::config()
    };
    let world = World::with(config).await;
    world.backend.answer(&v1::ListTriggersResponse {
        next_page_token: "x".repeat(32 * 1024 * 1024),
        ..Default::default()
    });
    let mut socket = TcpStream::connect(world.addr).await.unwrap();
    let head = format!("GET {LIST} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut start = [0; 1_000];
    socket.read_exact(&mut start).await.unwrap();
    assert_eq!(
        world.get(LIST).await.status,
        503,
        "the response is still in progress"
    );
    socket.read_to_end(&mut Vec::new()).await.unwrap();
    assert_eq!(world.get(LIST).await.status, 200);
}
