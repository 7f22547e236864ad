//! Who stands between a console and a service and changes what is answered: what is newer than the
//! console, missing, too large, or without end.

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

/// What happens to the answers of one method.
#[derive(Clone)]
pub enum Change {
    /// Every message is made again by this.
    Message(Arc<dyn Fn(Bytes) -> Vec<u8> + Send + Sync>),
    /// The service does not have the method.
    Missing,
    /// One message is announced with as many bytes as a frame can, and continues without end.
    Oversize,
    /// This message comes again and again, as fast as it is taken.
    Endless(Bytes),
}

impl fmt::Debug for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Change")
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;
type Body = BoxBody<Bytes, Failed>;

/// A middleman on a free port; it ends when it is dropped.
#[derive(Debug)]
pub struct Middleman {
    address: SocketAddr,
    shared: Arc<Shared>,
    // A separate thread: it answers also while a test waits without await.
    runtime: Option<Runtime>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<String>,
    changes: Mutex<BTreeMap<String, Change>>,
    /// Those who make answers again.
    makers: Mutex<JoinSet<()>>,
}

/// Bytes of the head of a message: whether it is compressed, and its length.
const HEAD_BYTES: usize = 5;
/// Messages and pieces that may wait to be taken.
const WAITING_MAX: usize = 4;

impl Middleman {
    /// Stands before the service at that address.
    ///
    /// # Panics
    /// When there is no free port.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the answers of a method from now on, named as `EventQueryService/SearchEvents`.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn change(&self, method: &str, change: Change) {
        let path = format!("/bellwether.v1.{method}");
        self.shared.changes.lock().unwrap().insert(path, change);
    }

    /// Changes nothing any more.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn be_honest(&self) {
        self.shared.changes.lock().unwrap().clear();
    }

    /// Leads new connections to another address.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn lead_to(&self, target: &str) {
        target.clone_into(&mut self.shared.target.lock().unwrap());
    }
}

impl Drop for Middleman {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Also where blocking is not allowed.
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

/// Carries the calls of one connection until either side ends it.
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
    let service = service_fn(move |request| answer(request, sender.clone(), Arc::clone(&shared)));
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    tokio::select! {
        _ = server.serve_connection(TokioIo::new(stream), service) => {}
        _ = upstream => {}
    }
}

async fn answer(
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
            without_end(head, zeros)
        }
        Some(Change::Endless(message)) => {
            let message = framed(&message);
            without_end(message.clone(), message)
        }
        Some(Change::Message(make)) => {
            let (head, body) = sender.send_request(request).await?.into_parts();
            let (pieces, taken) = mpsc::channel(WAITING_MAX);
            let mut makers = shared.makers.lock().unwrap();
            while makers.try_join_next().is_some() {}
            makers.spawn(make_anew(body, make, pieces));
            Ok(Response::from_parts(head, streamed(taken)))
        }
    }
}

fn streamed(pieces: mpsc::Receiver<Result<Frame<Bytes>, Failed>>) -> Body {
    BodyExt::boxed(StreamBody::new(ReceiverStream::new(pieces)))
}

/// An answer that begins so and continues so.
fn without_end(first: Bytes, again: Bytes) -> Result<Response<Body>, Failed> {
    let pieces = std::iter::once(first).chain(std::iter::repeat(again));
    let stream = tokio_stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(BodyExt::boxed(StreamBody::new(stream)))?)
}

fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    Bytes::from([&[0], &length.to_be_bytes()[..], message].concat())
}

/// Makes every message of an answer again, and passes on how it ended.
async fn make_anew(
    mut body: Incoming,
    make: Arc<dyn Fn(Bytes) -> Vec<u8> + Send + Sync>,
    pieces: mpsc::Sender<Result<Frame<Bytes>, Failed>>,
) {
    let mut held = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let data = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => data,
            Ok(Err(trailers)) => {
                // No one may be there to take it.
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
                .send(Ok(Frame::data(framed(&make(message)))))
                .await
                .is_err()
            {
                return;
            }
        }
    }
}
