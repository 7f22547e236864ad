//! Size limits and timeouts of requests.

use std::time::Duration;

use bellwether_gateway::{Config, Gateway, StartError, Upstream};
use bytes::Bytes;
use http_body_util::{Full, StreamBody};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    backend::{Act, Recorder},
    world::{World, config},
};

const LIST: &str = "/v1/notification/triggers";
const EVENTS: &str = "/v1/data-receiver/events";

#[tokio::test]
async fn body_over_the_limit_is_413() {
    let world = World::new().await;
    let padding = " ".repeat(4 * 1024 * 1024 - 2);
    let answer = world.post(EVENTS, &format!("{{}}{padding}")).await;
    assert_eq!(answer.status, 200, "just fits");
    let answer = world.post(EVENTS, &format!("{{}}{padding} ")).await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.json()["code"], 8);
    assert!(
        answer.message().contains("4194304 bytes"),
        "{}",
        answer.message()
    );
}

#[tokio::test]
async fn body_limit_applies_to_chunked_bodies() {
    let world = World::with(Config {
        body_limit_bytes: 1_000,
        ..config()
    })
    .await;
    let pieces = (0..20)
        .map(|_| Ok::<_, std::io::Error>(http_body::Frame::data(Bytes::from(vec![b' '; 100]))));
    let body = StreamBody::new(tokio_stream::iter(pieces));
    let client = Client::builder(TokioExecutor::new()).build_http();
    let request = world.request("POST", EVENTS).body(body).unwrap();
    assert_eq!(client.request(request).await.unwrap().status(), 413);
}

#[tokio::test]
async fn header_block_over_the_limit_is_431() {
    let world = World::new().await;
    let request = world
        .request("GET", LIST)
        .header("x-padding", "x".repeat(15 * 1024));
    assert_eq!(world.send(request, "").await.status, 200);
    let request = world
        .request("GET", LIST)
        .header("x-padding", "x".repeat(16 * 1024));
    let answer = world.send(request, "").await;
    assert_eq!(answer.status, 431);
    assert_eq!(answer.json()["code"], 8);
}

#[tokio::test]
async fn request_over_the_deadline_is_504() {
    let world = World::with(Config {
        deadline: Duration::from_millis(100),
        ..config()
    })
    .await;
    world.backend.next(Act::Hang);
    let answer = world.get(LIST).await;
    assert_eq!(answer.status, 504);
    assert_eq!(answer.json()["code"], 4);
    let call = world.backend.calls().remove(0);
    let timeout = call.metadata.get("grpc-timeout").unwrap().to_str().unwrap();
    let (digits, unit) = timeout.split_at(timeout.len() - 1);
    let unit_ns = [("n", 1), ("u", 1_000), ("m", 1_000_000)];
    let unit_ns = unit_ns.iter().find(|(name, _)| *name == unit).unwrap().1;
    let left_ns = digits.parse::<u64>().unwrap() * unit_ns;
    assert!(
        (1..=100_000_000).contains(&left_ns),
        "the backend receives the remaining time: {timeout}"
    );
}

#[tokio::test]
async fn missing_body_times_out_with_504() {
    let world = World::with(Config {
        deadline: Duration::from_millis(100),
        ..config()
    })
    .await;
    let mut socket = TcpStream::connect(world.addr).await.unwrap();
    let head = format!("POST {EVENTS} HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    socket.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, b"HTTP/1.1 504");
}

#[tokio::test]
async fn requests_over_the_cap_are_rejected_except_probes() {
    let world = World::with(Config {
        max_in_flight: 1,
        ..config()
    })
    .await;
    world.backend.next(Act::Hang);
    let waiting = world.get(LIST);
    let rejected = async {
        crate::serving::eventually(|| world.backend.calls().len() == 1).await;
        let answer = world.get(LIST).await;
        assert_eq!(answer.status, 503);
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.json()["code"], 14);
        assert_eq!(world.get("/healthz").await.status, 200);
    };
    tokio::select! {
        answer = waiting => panic!("unexpected response: {answer:?}"),
        () = rejected => {}
    }
}

#[tokio::test]
async fn header_timeout_closes_the_connection() {
    let timeout = Duration::from_millis(100);
    let world = World::with(Config {
        header_timeout: timeout,
        ..config()
    })
    .await;
    // An empty request, half a request, half an HTTP/2 preface.
    for start in ["", "GET / HTTP/1.1\r\nhost:", "PRI * HT"] {
        let mut socket = TcpStream::connect(world.addr).await.unwrap();
        socket.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        // An error also means that the connection was closed.
        let closed = tokio::time::timeout(Duration::from_secs(60), socket.read_to_end(&mut rest));
        assert!(closed.await.is_ok(), "{start:?} holds the connection");
    }
}

#[tokio::test]
async fn new_connection_over_the_cap_evicts_an_unauthenticated_one() {
    let world = World::with(Config {
        max_connections: 1,
        ..config()
    })
    .await;
    let mut first = TcpStream::connect(world.addr).await.unwrap();
    assert_eq!(world.get("/healthz").await.status, 200);
    let mut rest = [0; 16];
    // An error also means that the connection was closed.
    let closed = tokio::time::timeout(Duration::from_secs(60), first.read(&mut rest)).await;
    assert!(
        matches!(closed, Ok(Ok(0) | Err(_))),
        "the first one remains"
    );
}

#[tokio::test]
async fn http2_works_with_prior_knowledge() {
    let world = World::new().await;
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = world
        .request("POST", EVENTS)
        .body(Full::new(Bytes::from("{}")))
        .unwrap();
    let response = client.request(request).await.unwrap();
    assert_eq!(
        (response.status(), response.version()),
        (http::StatusCode::OK, http::Version::HTTP_2)
    );
}

#[tokio::test]
async fn invalid_setting_is_named_in_the_error() {
    let table = [
        (
            Config {
                deadline: Duration::ZERO,
                ..config()
            },
            "deadline",
        ),
        (
            Config {
                header_timeout: Duration::ZERO,
                ..config()
            },
            "header_timeout",
        ),
        (
            Config {
                drain: Duration::MAX,
                ..config()
            },
            "drain",
        ),
        (
            Config {
                body_limit_bytes: 0,
                ..config()
            },
            "body_limit_bytes",
        ),
        (
            Config {
                header_limit_bytes: 1 << 20,
                ..config()
            },
            "header_limit_bytes",
        ),
        (
            Config {
                max_connections: 0,
                ..config()
            },
            "max_connections",
        ),
        (
            Config {
                max_in_flight: 0,
                ..config()
            },
            "max_in_flight",
        ),
    ];
    for (config, setting) in table {
        let upstream = Upstream::in_process(Recorder::default().routes());
        match Gateway::bind(config, upstream).await {
            Err(StartError::Config(error)) => assert_eq!(error.setting, setting),
            other => panic!("{setting}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn address_in_use_is_named_in_the_error() {
    let world = World::new().await;
    let upstream = Upstream::in_process(Recorder::default().routes());
    let in_use = Config {
        listen: world.addr,
        ..config()
    };
    let error = Gateway::bind(in_use, upstream).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("failed to listen on {}", world.addr)
    );
}

#[tokio::test]
async fn invalid_backend_url_is_rejected() {
    for uri in ["", "127.0.0.1:1", "ftp://a", "http://", "/x"] {
        let error = Upstream::connect(uri).unwrap_err();
        assert!(
            error.to_string().contains("http://127.0.0.1:8481"),
            "{error}"
        );
    }
}
