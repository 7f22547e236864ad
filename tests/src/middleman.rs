//! A proxy between a console and a service. It makes responses newer than the console, missing, too
//! large, or endless.

use std::{
    collections::BTreeMap,
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http2::SendRequest,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    sync::mpsc,
    task::JoinSet,
};
use tokio_stream::{StreamExt, wrappers::ReceiverStream};

use crate::own_threads::own_threads;

/// A modification of a method's responses.
#[derive(Clone)]
pub enum Change {
    /// Every message is transformed.
    Message(Arc<dyn Fn(Bytes) -> Vec<u8> + Send + Sync>),
    /// The method is unknown.
    Missing,
    /// A message with the maximum announced length, followed by endless data.
    Oversize,
    /// A message that repeats endlessly, as fast as it is read.
    Endless(Bytes),
}

impl fmt::Debug for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Change")
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;
type Body = BoxBody<Bytes, Failed>;

/// A proxy on a free port; it stops when it is dropped.
#[derive(Debug)]
pub struct RewritingProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    // The proxy has its own thread, so that it works while a test blocks.
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<String>,
    changes: Mutex<BTreeMap<String, Change>>,
    makers: Mutex<JoinSet<()>>,
}

/// Size of a message's prefix: the compressed flag and the length.
const HEAD_BYTES: usize = 5;
/// Capacity of the queues of messages and pieces.
const WAITING_MAX: usize = 4;

impl RewritingProxy {
    /// Starts a proxy for the service at this address.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub fn start(target: &str) -> Self {
        let (runtime, listener, address) = own_threads();
        let shared = Arc::new(Shared {
            target: Mutex::new(target.to_owned()),
            changes: Mutex::default(),
            makers: Mutex::default(),
        });
        let of_task = Arc::clone(&shared);
        runtime.spawn(async move {
            listen(TcpListener::from_std(listener).unwrap(), of_task).await;
        });
        Self {
            address,
            shared,
            runtime: Some(runtime),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Modifies the responses of a method from now on. The method is named like
    /// `EventQueryService/SearchEvents`.
    pub fn change(&self, method: &str, change: Change) {
        let path = format!("/bellwether.v1.{method}");
        self.shared.changes.lock().unwrap().insert(path, change);
    }

    /// Removes all modifications.
    pub fn clear_changes(&self) {
        self.shared.changes.lock().unwrap().clear();
    }

    /// Forwards new connections to another address.
    pub fn redirect_to(&self, target: &str) {
        target.clone_into(&mut self.shared.target.lock().unwrap());
    }
}

impl Drop for RewritingProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A plain drop of the runtime would panic where blocking is not allowed.
            runtime.shutdown_background();
        }
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(carry(stream, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// Forwards the calls of a connection until either side ends it.
async fn carry(stream: TcpStream, shared: Arc<Shared>) {
    let target = shared.target.lock().unwrap().clone();
    let Ok(upstream) = TcpStream::connect(target).await else {
        return;
    };
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(upstream));
    let Ok((sender, upstream)) = handshake.await else {
        return;
    };
    let service = service_fn(move |request| respond(request, sender.clone(), Arc::clone(&shared)));
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    tokio::select! {
        _ = server.serve_connection(TokioIo::new(stream), service) => {}
        _ = upstream => {}
    }
}

async fn respond(
    request: Request<Incoming>,
    mut sender: SendRequest<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Body>, Failed> {
    let change = shared
        .changes
        .lock()
        .unwrap()
        .get(request.uri().path())
        .cloned();
    match change {
        None => {
            let response = sender.send_request(request).await?;
            Ok(response.map(|body| body.map_err(Failed::from).boxed()))
        }
        Some(Change::Missing) => {
            let response = Response::builder()
                .header("content-type", "application/grpc")
                .header("grpc-status", "12")
                .header("grpc-message", "this method is gone");
            let body = Empty::new().map_err(|never| match never {}).boxed();
            Ok(response.body(body)?)
        }
        Some(Change::Oversize) => {
            let head = Bytes::from_static(&[0, u8::MAX, u8::MAX, u8::MAX, u8::MAX]);
            let zeros = Bytes::from(vec![0; 64 * 1024]);
            endless(head, zeros)
        }
        Some(Change::Endless(message)) => {
            let message = frame_message(&message);
            endless(message.clone(), message)
        }
        Some(Change::Message(make)) => {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let (pieces, received) = mpsc::channel(WAITING_MAX);
            let mut makers = shared.makers.lock().unwrap();
            while makers.try_join_next().is_some() {}
            makers.spawn(transform(body, make, pieces));
            Ok(Response::from_parts(head, streamed(received)))
        }
    }
}

fn streamed(pieces: mpsc::Receiver<Result<Frame<Bytes>, Failed>>) -> Body {
    BodyExt::boxed(StreamBody::new(ReceiverStream::new(pieces)))
}

fn endless(first: Bytes, again: Bytes) -> Result<Response<Body>, Failed> {
    let pieces = std::iter::once(first).chain(std::iter::repeat(again));
    let stream = tokio_stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(BodyExt::boxed(StreamBody::new(stream)))?)
}

fn frame_message(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    Bytes::from([&[0], &length.to_be_bytes()[..], message].concat())
}

/// Transforms every message of a response, and forwards its trailers.
async fn transform(
    mut body: Incoming,
    make: Arc<dyn Fn(Bytes) -> Vec<u8> + Send + Sync>,
    pieces: mpsc::Sender<Result<Frame<Bytes>, Failed>>,
) {
    let mut held = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let data = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(trailers)) => {
                // The client may have disconnected.
                drop(pieces.send(Ok(trailers)).await);
                continue;
            }
            Err(error) => {
                drop(pieces.send(Err(error.into())).await);
                return;
            }
        };
        held.extend_from_slice(&data);
        while let Some(length) = held.get(1..HEAD_BYTES) {
            let length = u32::from_be_bytes(length.try_into().unwrap());
            let end = HEAD_BYTES + usize::try_from(length).unwrap();
            if held.len() < end {
                break;
            }
            let message = held.split_to(end).freeze().slice(HEAD_BYTES..);
            if pieces
                .send(Ok(Frame::data(frame_message(&make(message)))))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}
