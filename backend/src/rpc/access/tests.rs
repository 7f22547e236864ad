//! Tests of keys and roles with calls through the guard, to a service with streams.

use std::{convert::Infallible, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use tokio_util::sync::CancellationToken;
use tonic::{Code, body::Body};
use tower::{Layer, Service, ServiceExt, service_fn};

use std::sync::Arc;

use super::*;
use crate::{
    domain::Role,
    ops::{
        audit::AuditLog,
        client::{ClientDraft, Clients, Keys},
        page::PageRequest,
    },
    samples::{START_MS, world},
    scan::ScanService,
};

const GET_RULE: &str = "/bellwether.v1.RuleService/GetRule";
const CREATE_RULE: &str = "/bellwether.v1.RuleService/CreateRule";
const PUT_EVENTS: &str = "/zenoss.cloud.DataReceiverService/PutEvents";

type World = world::World<Access>;

/// The guard of a service and the keys that it accepts.
pub(in crate::rpc) struct Access {
    pub(in crate::rpc) clients: Clients,
    pub(in crate::rpc) keys: Arc<Keys>,
    audit: Arc<AuditLog>,
}

impl Access {
    pub(in crate::rpc) async fn open(world: &world::World) -> Self {
        let keys = Keys::open(world.store.clone(), world.clock());
        Self {
            keys: Arc::new(keys.await.unwrap()),
            audit: Arc::new(AuditLog::new(world.store.clone(), world.clock())),
            clients: Clients::new(world.store.clone(), world.clock()),
        }
    }

    pub(in crate::rpc) fn guard(&self) -> CallGuard {
        CallGuard::new(
            Arc::clone(&self.keys),
            Arc::new(Refusals::new(drop)),
            Arc::clone(&self.audit),
            ScanService::start().unwrap(),
        )
    }

    pub(in crate::rpc) async fn key(&self, name: &str, role: Role) -> String {
        let (_, key) = self
            .clients
            .create(&ClientDraft::new(name, role))
            .await
            .unwrap();
        key.reveal().to_owned()
    }
}

impl World {
    async fn new() -> Self {
        let world = world::at_rest();
        let access = Access::open(&world).await;
        world.with(access)
    }

    /// Makes a call with these headers through the guard. Returns the caller that the service
    /// received.
    async fn call(&self, path: &str, headers: &[(&str, &str)]) -> Result<Option<String>, Status> {
        let service = service_fn(|request: Request<Body>| async move {
            let caller = request.extensions().get::<Caller>();
            let mut response = Response::new(Body::empty());
            if let Some(caller) = caller {
                let name = caller.name.as_str().parse().unwrap();
                response.headers_mut().insert("caller", name);
            }
            Ok::<_, Infallible>(response)
        });
        let mut request = Request::post(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let guarded = self.guard().layer(service);
        let request = request.body(Body::empty()).unwrap();
        let response = guarded.oneshot(request).await.unwrap();
        match Status::from_header_map(response.headers()) {
            Some(status) => Err(status),
            None => Ok(response
                .headers()
                .get("caller")
                .map(|name| name.to_str().unwrap().to_owned())),
        }
    }

    async fn code(&self, path: &str, key: &str) -> Code {
        let key = format!("Bearer {key}");
        match self.call(path, &[("authorization", &key)]).await {
            Ok(_) => Code::Ok,
            Err(status) => status.code(),
        }
    }
}

#[tokio::test]
async fn key_is_accepted_in_either_header() {
    let world = World::new().await;
    let key = world.key("ada", Role::Viewer).await;
    let bearer = format!("Bearer {key}");
    let lower = format!("bearer  {key} ");
    let cases: [&[(&str, &str)]; 4] = [
        &[("authorization", &bearer)],
        &[("authorization", &lower)],
        &[("zenoss-api-key", &key)],
        &[("authorization", "Basic YTpi"), ("zenoss-api-key", &key)],
    ];
    for headers in cases {
        let caller = world.call(GET_RULE, headers).await.unwrap();
        assert_eq!(caller.as_deref(), Some("ada"), "{headers:?}");
    }
}

#[tokio::test]
async fn calls_without_a_known_key_are_unauthenticated() {
    let world = World::new().await;
    let key = world.key("ada", Role::Admin).await;
    let cut = format!("Bearer {}", &key[..key.len() - 1]);
    let cases: [&[(&str, &str)]; 6] = [
        &[],
        &[("authorization", "")],
        &[("authorization", "Bearer")],
        &[("authorization", &key)],
        &[("authorization", &cut)],
        &[("zenoss-api-key", "bw_x")],
    ];
    for headers in cases {
        let status = world.call(GET_RULE, headers).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{headers:?}");
        assert!(!status.message().contains("bw_"));
    }
}

#[tokio::test]
async fn insufficient_role_error_names_the_required_role() {
    let world = World::new().await;
    let viewer = world.key("v", Role::Viewer).await;
    let ingest = world.key("i", Role::Ingest).await;
    assert_eq!(world.code(GET_RULE, &viewer).await, Code::Ok);
    assert_eq!(world.code(PUT_EVENTS, &ingest).await, Code::Ok);
    assert_eq!(
        world.code(PUT_EVENTS, &viewer).await,
        Code::PermissionDenied
    );
    assert_eq!(world.code(GET_RULE, &ingest).await, Code::PermissionDenied);
    let bearer = format!("Bearer {viewer}");
    let headers = [("authorization", bearer.as_str())];
    let status = world.call(CREATE_RULE, &headers).await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("`editor`"), "{status:?}");
}

#[tokio::test]
async fn unlisted_method_is_unimplemented() {
    let world = World::new().await;
    let key = world.key("ada", Role::Admin).await;
    let unknown = "/zenoss.cloud.DataReceiverService/PutMetrics";
    assert_eq!(world.code(unknown, &key).await, Code::Unimplemented);
    assert_eq!(world.code(unknown, "bw_x").await, Code::Unauthenticated);
    let health = world.call("/grpc.health.v1.Health/Check", &[]).await;
    assert_eq!(health.unwrap(), None);
}

#[tokio::test]
async fn revoked_key_is_rejected_after_catching_up() {
    let world = World::new().await;
    world.key("keeper", Role::Admin).await;
    let key = world.key("ada", Role::Admin).await;
    assert_eq!(world.code(GET_RULE, &key).await, Code::Ok);
    world.clients.revoke("ada").await.unwrap();
    world.keys.catch_up().await.unwrap();
    assert_eq!(world.code(GET_RULE, &key).await, Code::Unauthenticated);
    // A new client of the same name does not make the old key valid again.
    world.key("ada", Role::Admin).await;
    assert_eq!(world.code(GET_RULE, &key).await, Code::Unauthenticated);
}

#[tokio::test]
async fn revoking_a_key_ends_open_streams_in_both_directions() {
    let world = World::new().await;
    world.key("keeper", Role::Admin).await;
    let key = world.key("ada", Role::Viewer).await;
    // The service echoes the request body, then reports how the body ended.
    let (ended, mut how_it_ended) = mpsc::channel(1);
    let echo = service_fn(move |request: Request<Body>| {
        let ended = ended.clone();
        async move {
            let (answer, frames) = mpsc::channel(1);
            let mut incoming = request.into_body();
            let pump = async move {
                while let Some(frame) = incoming.frame().await {
                    match frame {
                        Ok(frame) => answer.send(Ok::<_, Status>(frame)).await.unwrap(),
                        Err(status) => return ended.send(status).await.unwrap(),
                    }
                }
            };
            let frames = ReceiverStream::new(frames);
            let pumped = futures_util::stream::once(pump).filter_map(|()| None);
            let body = StreamBody::new(StreamExt::merge(frames, pumped));
            Ok::<_, Infallible>(Response::new(Body::new(body)))
        }
    });
    let mut guarded = world.guard().layer(echo);
    let (send, receive) = mpsc::channel::<Result<Frame<Bytes>, Status>>(1);
    let request = Request::post(GET_RULE)
        .header("zenoss-api-key", &key)
        .body(StreamBody::new(ReceiverStream::new(receive)))
        .unwrap();
    let mut body = guarded.call(request).await.unwrap().into_body();
    send.send(Ok(Frame::data(Bytes::from_static(b"one"))))
        .await
        .unwrap();
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "one");

    let revoke = async {
        world.clients.revoke("ada").await.unwrap();
        world.keys.catch_up().await.unwrap();
    };
    let next = tokio::time::timeout(Duration::from_secs(60), body.frame());
    let (next, ()) = tokio::join!(next, revoke);
    let trailers = next.unwrap().unwrap().unwrap().into_trailers().unwrap();
    let status = Status::from_header_map(&trailers).unwrap();
    assert_eq!(status.code(), Code::Unauthenticated);
    assert!(body.frame().await.is_none());
    drop(guarded);
    // The service received an error on its input, or was dropped with its output.
    if let Some(status) = how_it_ended.recv().await {
        assert_eq!(status.code(), Code::Unauthenticated);
    }
}

#[tokio::test]
async fn last_use_is_recorded_to_the_minute() {
    let world = World::new().await;
    let key = world.key("ada", Role::Viewer).await;
    let shutdown = CancellationToken::new();
    let running = Arc::clone(&world.keys).run(shutdown.clone());
    let used = async {
        let page = world.clients.list(&PageRequest::default()).await.unwrap();
        page.items[0].last_used_ms
    };
    let story = async {
        world.clock.advance(Duration::from_secs(30));
        assert_eq!(world.code(GET_RULE, &key).await, Code::Ok);
        assert_eq!(used.await, None);
        shutdown.cancel();
    };
    tokio::join!(running, story);
    let page = world.clients.list(&PageRequest::default()).await.unwrap();
    let used_ms = page.items[0].last_used_ms.unwrap();
    assert_eq!(used_ms % 60_000, 0);
    assert!((START_MS - 30_000..=START_MS + 30_000).contains(&used_ms));
}
