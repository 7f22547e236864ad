//! Tests that responses to calls without HTTP are identical to those over HTTP.

use std::{collections::BTreeMap, net::SocketAddr, task::Poll, time::Duration};

use bellwether_proto::cloud::{Event, EventStatusResult};
use bytes::{BufMut, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full, StreamBody};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tower::ServiceExt;

use super::*;
use crate::{
    clock::{Clock, ManualClock},
    config::Config,
    domain::{Rates, Role},
    limits::{
        EVENTS_PER_REQUEST_MAX, INTAKE_IN_FLIGHT_MAX, MESSAGE_ENTRIES_MAX, REQUEST_BYTES_MAX,
    },
    ops::client::{ClientDraft, Clients},
    server::{
        assemble::{AssembledServer, assemble},
        front::Front,
        work::StartedWork,
    },
    store,
};

const START_MS: i64 = 1_800_000_000_000;

/// A response: code, message, details, headers about rate limits and repeated requests, and body.
#[derive(Debug, PartialEq)]
struct Answered {
    code: i32,
    message: String,
    details: Bytes,
    headers: BTreeMap<String, String>,
    answer: Option<EventStatusResult>,
}

impl Answered {
    fn new(result: Result<(HeaderMap, Bytes), Status>) -> Self {
        let (status, headers, answer) = match result {
            Ok((headers, answer)) => (Status::ok(""), headers, Some(answer)),
            Err(status) => {
                let headers = status.metadata().clone().into_headers();
                (status, headers, None)
            }
        };
        let shown = ["ratelimit", "ratelimit-policy", "idempotent-replayed"];
        let headers = shown.iter().filter_map(|name| {
            let value = headers.get(*name)?.to_str().unwrap();
            Some(((*name).to_owned(), value.to_owned()))
        });
        Self {
            code: status.code().into(),
            message: status.message().to_owned(),
            details: Bytes::copy_from_slice(status.details()),
            headers: headers.collect(),
            answer: answer.map(|bytes| EventStatusResult::decode(bytes).unwrap()),
        }
    }
}

struct World {
    front: Front,
    direct: Direct,
    clients: BTreeMap<&'static str, String>,
    clock: Arc<ManualClock>,
    _work: StartedWork,
    _folder: TempDir,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::new(folder.path().join("data"));
        let clock = Arc::new(ManualClock::starting_at(START_MS));
        let mut keys = BTreeMap::new();
        {
            let store = store::open(&config.location()).await.unwrap();
            let clients = Clients::new(store, Arc::clone(&clock) as Arc<dyn Clock>);
            let slow = Rates {
                requests_per_second: Some(1),
                events_per_second: Some(5),
            };
            for (name, role, rates) in [
                ("sender", Role::Ingest, Rates::default()),
                ("viewer", Role::Viewer, Rates::default()),
                ("slow", Role::Ingest, slow),
            ] {
                let draft = ClientDraft {
                    rates,
                    ..ClientDraft::new(name, role)
                };
                let (_, key) = clients.create(&draft).await.unwrap();
                keys.insert(name, key.reveal().to_owned());
            }
        }
        let own = SocketAddr::from(([127, 0, 0, 1], 1));
        let streams = CancellationToken::new();
        let assembled = assemble(&config, Arc::clone(&clock) as Arc<dyn Clock>, own, streams);
        let AssembledServer {
            direct,
            front,
            work,
            ..
        } = assembled.await.unwrap();
        Self {
            front,
            direct,
            clients: keys,
            clock,
            _work: work.start(&CancellationToken::new()),
            _folder: folder,
        }
    }

    fn headers(&self, client: &str, more: &[(&'static str, String)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        match self.clients.get(client) {
            Some(key) => headers.insert("zenoss-api-key", key.parse().unwrap()),
            None if client.is_empty() => None,
            None => headers.insert("zenoss-api-key", client.parse().unwrap()),
        };
        for (name, value) in more {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    async fn past_http(&self, headers: HeaderMap, message: Bytes) -> Answered {
        let answer = self
            .direct
            .call(MetadataMap::from_headers(headers), message);
        Answered::new(
            answer
                .await
                .map(|(metadata, answer)| (metadata.into_headers(), answer)),
        )
    }

    async fn over_http(&self, headers: HeaderMap, message: Bytes) -> Answered {
        let mut framed = BytesMut::with_capacity(message.len() + 5);
        framed.put_u8(0);
        framed.put_u32(u32::try_from(message.len()).unwrap());
        framed.put(message);
        let request = request(headers, Body::new(Full::new(framed.freeze())));
        let response = self.front.clone().oneshot(request);
        let (head, body) = response.await.unwrap().into_parts();
        if let Some(status) = Status::from_header_map(&head.headers) {
            assert_ne!(i32::from(status.code()), 0);
            return Answered::new(Err(status));
        }
        let body = body.collect().await.unwrap();
        let status = Status::from_header_map(body.trailers().unwrap()).unwrap();
        assert_eq!(i32::from(status.code()), 0, "{status}");
        Answered::new(Ok((head.headers, body.to_bytes().slice(5..))))
    }

    /// Makes the same call without and with HTTP. The clock advances in between, so that the rate
    /// limit of the first call does not affect the second.
    async fn both(
        &self,
        client: &str,
        more: &[(&'static str, String)],
        message: &[u8],
    ) -> [Answered; 2] {
        let message = Bytes::copy_from_slice(message);
        let past = self
            .past_http(self.headers(client, more), message.clone())
            .await;
        self.clock.advance(Duration::from_secs(60));
        let over = self.over_http(self.headers(client, more), message).await;
        self.clock.advance(Duration::from_secs(60));
        [past, over]
    }
}

fn request(mut headers: HeaderMap, body: Body) -> Request<Body> {
    headers.insert("content-type", "application/grpc".parse().unwrap());
    headers.insert("te", "trailers".parse().unwrap());
    let mut request = Request::post(Direct::METHOD).body(body).unwrap();
    *request.headers_mut() = headers;
    request
}

fn events(count: usize, detailed: bool) -> Vec<u8> {
    let event = |number: usize| Event {
        name: "disk".to_owned(),
        dimensions: [("host".to_owned(), format!("h{number}"))].into(),
        ..Event::default()
    };
    let mut events: Vec<_> = (0..count).map(event).collect();
    if let Some(event) = events.get_mut(1) {
        event.dimensions.clear();
    }
    Events {
        detailed_response: detailed,
        events,
    }
    .encode_to_vec()
}

/// Description, client, additional headers, message, and the expected code.
type Row = (&'static str, &'static str, Headers, Vec<u8>, i32);
type Headers = Vec<(&'static str, String)>;

fn key(text: &str) -> Headers {
    vec![("idempotency-key", text.to_owned())]
}

async fn assert_identical_on_both_paths(table: Vec<Row>) {
    let world = World::new().await;
    for (what, client, more, message, code) in table {
        let [past, over] = world.both(client, &more, &message).await;
        assert_eq!(past, over, "{what}");
        assert_eq!(past.code, code, "{what}: {}", past.message);
        assert_eq!(past.message.is_empty(), code == 0, "{what}");
        let has_rates = past.headers.contains_key("ratelimit");
        assert_eq!(has_rates, client == "slow", "{what}");
    }
}

#[tokio::test]
async fn caller_refusals_are_identical_on_both_paths() {
    let one = || events(1, false);
    let long = key(&"k".repeat(300));
    let two = [key("a"), key("b")].concat();
    let no_time = vec![("grpc-timeout", "0n".to_owned())];
    assert_identical_on_both_paths(vec![
        ("no key", "", vec![], one(), 16),
        ("an unknown key", "bw_none", vec![], one(), 16),
        ("a role that is not enough", "viewer", vec![], one(), 7),
        ("an idempotency key too long", "sender", long, one(), 3),
        ("two of them", "sender", two, one(), 3),
        ("no time", "sender", no_time, one(), 4),
    ])
    .await;
}

#[tokio::test]
async fn message_refusals_are_identical_on_both_paths() {
    let many = events(EVENTS_PER_REQUEST_MAX + 1, false);
    let bomb = [0x12, 0].repeat(MESSAGE_ENTRIES_MAX + 1);
    let large = Event {
        body: "x".repeat(REQUEST_BYTES_MAX),
        ..Event::default()
    };
    let large = Events {
        events: vec![large],
        ..Events::default()
    };
    assert_identical_on_both_paths(vec![
        ("too many events", "sender", vec![], many, 3),
        ("too many entries", "sender", vec![], bomb, 3),
        ("too large", "sender", vec![], large.encode_to_vec(), 8),
        ("no message", "sender", vec![], vec![0xff; 3], 3),
    ])
    .await;
}

#[tokio::test]
async fn responses_are_identical_on_both_paths() {
    let more_than_a_second = events(50, false);
    let malformed_text = vec![0x12, 4, 0x12, 2, 0xff, 0xff];
    assert_identical_on_both_paths(vec![
        ("no events", "sender", vec![], vec![], 0),
        ("one event", "sender", vec![], events(1, false), 0),
        ("a faulty one", "sender", vec![], events(3, false), 0),
        ("in detail", "sender", vec![], events(3, true), 0),
        ("malformed text", "sender", vec![], malformed_text, 0),
        ("within the rate", "slow", vec![], events(3, false), 0),
        ("beyond it", "slow", vec![], more_than_a_second, 0),
    ])
    .await;
}

#[tokio::test]
async fn idempotency_keys_are_shared_by_both_paths() {
    let world = World::new().await;
    let more = [("idempotency-key", "once".to_owned())];
    let [past, over] = world.both("sender", &more, &events(3, false)).await;
    assert_eq!(past.answer, over.answer);
    assert_eq!(past.headers.get("idempotent-replayed"), None);
    assert_eq!(over.headers["idempotent-replayed"], "true");
    let [past, over] = world.both("sender", &more, &events(2, false)).await;
    assert_eq!((past.code, &past), (6, &over));
}

#[tokio::test]
async fn rate_limits_are_shared_by_both_paths() {
    let world = World::new().await;
    let message = Bytes::from(events(1, false));
    let headers = || world.headers("slow", &[]);
    assert_eq!(world.over_http(headers(), message.clone()).await.code, 0);
    let past = world.past_http(headers(), message.clone()).await;
    let over = world.over_http(headers(), message).await;
    assert_eq!(past.code, 8, "{past:?}");
    assert_eq!(past, over);

    world.clock.advance(Duration::from_secs(60));
    let many = Bytes::from(events(500, false));
    assert_eq!(world.past_http(headers(), many.clone()).await.code, 0);
    world.clock.advance(Duration::from_secs(2));
    let past = world.past_http(headers(), many.clone()).await;
    world.clock.advance(Duration::from_secs(2));
    let over = world.over_http(headers(), many).await;
    assert_eq!((past.code, over.code), (8, 8), "{past:?} {over:?}");
}

#[tokio::test]
async fn in_flight_capacity_is_shared_by_both_paths() {
    let world = World::new().await;
    assert_eq!(
        world.both("sender", &[], &events(1, false)).await[0].code,
        0
    );
    let mut calls = Vec::new();
    for _ in 0..INTAKE_IN_FLIGHT_MAX {
        let never = StreamBody::new(futures_util::stream::pending::<
            Result<http_body::Frame<Bytes>, Status>,
        >());
        let request = request(world.headers("sender", &[]), Body::new(never));
        let mut call = Box::pin(world.front.clone().oneshot(request));
        let is_in_flight =
            std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending()));
        assert!(is_in_flight.await);
        calls.push(call);
    }
    let [past, over] = world.both("sender", &[], &events(1, false)).await;
    assert_eq!(past.code, 14, "{past:?}");
    assert_eq!(past, over);
    drop(calls);
    assert_eq!(
        world.both("sender", &[], &events(1, false)).await[0].code,
        0
    );
}
