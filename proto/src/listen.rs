//! Accepts connections within limits, serves each, and lets go of them when the service stops.
//!
//! The backend and the gateway listen in the same way and do not know each other, so the loop is
//! here, behind the feature `listen`, which a console does not need. What they serve and how long
//! they wait is theirs: [`Serve`] and [`Limits`].

mod activity;
mod connection;
mod streams;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

pub use activity::Activity;
pub use connection::Held;
pub use streams::Streams;

/// How long to wait after the listener could not accept, so that a lack of descriptors passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What is served on every connection.
pub trait Serve: Clone + Send + Sync + 'static {
    /// The body of an answer.
    type Body: http_body::Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Unpin
        + 'static;

    /// The limits of the HTTP library; what it spawns goes to `streams`.
    fn http(&self, streams: Streams) -> auto::Builder<Streams>;

    /// A connection was accepted.
    fn connected(&self) {}

    /// Answers a request. It counts as under way until its answer was handed over; what else
    /// happens to it, such as parts of its body that arrive, is noted in `activity`.
    fn answer(
        self,
        request: Request<Incoming>,
        peer: SocketAddr,
        activity: Arc<Activity>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// How much, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections open at once.
    pub connections: usize,
    /// What becomes of further ones.
    pub beyond: Beyond,
    /// How long a client may take to agree on TLS.
    pub handshake: Duration,
    /// How long a connection may stay without its first request.
    pub first_request: Duration,
    /// How long a connection may stay without another request.
    pub idle: Duration,
    /// How long nothing may happen while a request is under way; none is as long as it takes.
    pub silence: Option<Duration>,
    /// How long requests under way may take when the service stops.
    pub drain: Duration,
}

/// What becomes of connections beyond those that may be open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// They wait to be accepted.
    Wait,
    /// They are closed.
    Close,
}

/// A socket that listens.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
}

impl Listener {
    /// Takes the address; port 0 takes a free one.
    ///
    /// # Errors
    /// The system's reason not to give it.
    pub async fn bind(addr: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(addr).await?;
        let addr = socket.local_addr()?;
        Ok(Self { socket, addr })
    }

    /// The address that was taken.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown` is cancelled, then lets requests under way end, for at most
    /// [`Limits::drain`], and returns. Idle connections do not hold it up. With `tls` nothing is
    /// served in clear.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection at once.
    pub async fn serve<S: Serve>(
        self,
        service: S,
        limits: Limits,
        tls: Option<Arc<ServerConfig>>,
        shutdown: CancellationToken,
    ) {
        let places = Arc::new(Semaphore::new(limits.connections));
        let tls = tls.map(TlsAcceptor::from);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&places, limits) => accepted,
            };
            let Some((stream, peer, place)) = accepted else {
                continue;
            };
            service.connected();
            let (service, tls, shutdown) = (service.clone(), tls.clone(), shutdown.clone());
            connections.spawn(async move {
                let _place = place;
                match tls {
                    None => connection::serve(stream, peer, service, limits, shutdown).await,
                    Some(tls) => {
                        if let Some(stream) = handshake(&tls, stream, limits, &shutdown).await {
                            connection::serve(stream, peer, service, limits, shutdown).await;
                        }
                    }
                }
            });
        }
        drop(self.socket);
        let ended = async { while connections.join_next().await.is_some() {} };
        if time::timeout(limits.drain, ended).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "closing connections still in use"
            );
            connections.shutdown().await;
        }
    }

    /// Accepts a connection, with its place among those open. `None` when there is none to serve
    /// this time.
    async fn accept(
        &self,
        places: &Arc<Semaphore>,
        limits: Limits,
    ) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let waited = match limits.beyond {
            Beyond::Wait => Some(Arc::clone(places).acquire_owned().await.ok()?),
            Beyond::Close => None,
        };
        let (stream, peer) = match self.socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                time::sleep(ACCEPT_PAUSE).await;
                return None;
            }
        };
        let Some(place) = waited.or_else(|| Arc::clone(places).try_acquire_owned().ok()) else {
            let limit = limits.connections;
            tracing::warn!(limit, "too many connections: one was closed");
            return None;
        };
        // Without it the last piece of an answer may wait for an acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a socket takes no options");
        }
        Some((stream, peer, place))
    }
}

/// Agrees on TLS; `None` when the client does not in time, or the service stops meanwhile.
async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    limits: Limits,
    shutdown: &CancellationToken,
) -> Option<TlsStream<TcpStream>> {
    let agreed = tokio::select! {
        agreed = time::timeout(limits.handshake, tls.accept(stream)) => agreed,
        () = shutdown.cancelled() => return None,
    };
    match agreed {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client did not agree on TLS");
            None
        }
        Err(_elapsed) => {
            tracing::debug!("a client took too long to agree on TLS");
            None
        }
    }
}
