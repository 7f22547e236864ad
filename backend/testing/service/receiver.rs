//! A receiver with real sockets for tests: records requests and misbehaves on demand.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use bellwether_backend_base::error::Error;
use bellwether_backend_model::domain::{IncomingEvent, RecordId};
use bellwether_backend_send::EventSink;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinSet};

type Body = UnsyncBoxBody<Bytes, &'static str>;

#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Answer(u16, Vec<(&'static str, String)>, String),
    Hang,
    Close,
    /// Responds with 200 and a body of 100 MB.
    Huge,
    /// Responds with 200 and a truncated body.
    HalfWay,
    Endless,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self::Answer(status, Vec::new(), String::new())
    }

    pub(crate) fn json(body: &serde_json::Value) -> Self {
        Self::Answer(200, Vec::new(), body.to_string())
    }
}

/// Listens on a free port of 127.0.0.1 until dropped.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) addr: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    _server: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start(
        reply: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let received = Arc::default();
        let mut server = JoinSet::new();
        server.spawn(serve_connection(
            listener,
            Arc::clone(&received),
            Arc::new(reply),
        ));
        Self {
            addr,
            received,
            _server: server,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    pub(crate) fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}

async fn serve_connection(
    listener: TcpListener,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    reply: Arc<impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _peer) = listener.accept().await.unwrap();
        let (received, reply) = (Arc::clone(&received), Arc::clone(&reply));
        connections.spawn(async move {
            let service = service_fn(|request: Request<Incoming>| async {
                let request = record_request(request).await;
                let reply = reply(&request);
                received.lock().unwrap().push(request);
                to_response(reply).await
            });
            // Fails only if the client disconnects.
            let _ended = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn record_request(request: Request<Incoming>) -> ReceivedRequest {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    ReceivedRequest {
        method: head.method,
        path: head.uri.path_and_query().unwrap().to_string(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

async fn to_response(reply: Reply) -> Result<Response<Body>, &'static str> {
    const CHUNK: Bytes = Bytes::from_static(&[b'x'; 64 * 1024]);
    let chunks = |count| stream::iter((0..count).map(|_| Ok(Frame::data(CHUNK))));
    match reply {
        Reply::Answer(status, headers, body) => {
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(name, value);
            }
            let body = http_body_util::Full::from(body);
            let body = body.map_err(|infallible: Infallible| match infallible {});
            Ok(response.body(body.boxed_unsync()).unwrap())
        }
        Reply::Hang => std::future::pending().await,
        Reply::Close => Err("closed as requested"),
        Reply::Huge => Ok(Response::new(StreamBody::new(chunks(1600)).boxed_unsync())),
        Reply::HalfWay => {
            let start = stream::once(async { Ok(Frame::data("half".into())) });
            let broken = start.chain(stream::once(async {
                // Send the start before the error.
                tokio::task::yield_now().await;
                Err("closed as requested")
            }));
            Ok(Response::new(StreamBody::new(broken).boxed_unsync()))
        }
        Reply::Endless => {
            let start = stream::once(async { Ok(Frame::data("start".into())) });
            let body = start.chain(stream::pending());
            Ok(Response::new(StreamBody::new(body).boxed_unsync()))
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct RecordingSink(Mutex<Vec<(IncomingEvent, Vec<RecordId>)>>);

impl RecordingSink {
    /// Returns all events received so far, in order, each with its chain of rules.
    pub(crate) fn events(&self) -> Vec<(IncomingEvent, Vec<RecordId>)> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl EventSink for RecordingSink {
    async fn put(&self, event: IncomingEvent, chain: Vec<RecordId>) -> Result<(), Error> {
        self.0.lock().unwrap().push((event, chain));
        Ok(())
    }

    fn report(&self, event: IncomingEvent) {
        self.0.lock().unwrap().push((event, Vec::new()));
    }
}
