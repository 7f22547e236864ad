//! Accepts connections within limits, serves each, and lets go of them when the service stops.
//!
//! The backend and the gateway listen in the same way and do not know each other, so the loop is
//! here, behind the feature `listen`, which a console does not need. What they serve and how long
//! they wait is theirs: [`Serve`] and [`Limits`].

mod activity;
mod connection;
mod connection_quota;
mod cors;
mod descriptors;
mod identity;
mod peer;
mod pool;
mod streams;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

pub use activity::Activity;
pub use connection::TrackedBody;
pub use connection_quota::{Allowance, network_of};
use connection_quota::{ConnectionQuota, Visit};
pub use cors::{Cors, Origins};
pub use identity::{Hosts, REQUEST_ID, host_fault, request_id};
pub use peer::{FORWARDED_FOR, Peer, Proxies};
pub use pool::{Full, Permit, Pool};
pub use streams::Streams;

/// How long to wait after the listener could not accept, so that a lack of descriptors passes.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a client that did not agree on TLS may read why.
const REFUSED_TIME: Duration = Duration::from_secs(1);
/// Bytes that such a client may have sent already.
const REFUSED_BYTES: u64 = 64 * 1024;

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
        peer: Peer,
        activity: Arc<Activity>,
    ) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// How much, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Concurrent connections, if the system has as many. Above it one that has shown no key is
    /// closed, or else the new one.
    pub connections: usize,
    /// What those may take who have shown no key.
    pub unauthenticated: Allowance,
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

/// What TLS is served with now: a connection takes what is there when it begins.
pub type Tls = watch::Receiver<Secured>;

/// What TLS is served with, until it is renewed.
#[derive(Debug, Clone)]
pub struct Secured {
    /// What is shown, asked for and agreed on.
    pub config: Arc<ServerConfig>,
    /// When the certificate that is shown ends, in milliseconds since 1970.
    pub end_ms: i64,
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
    /// served unencrypted.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection immediately.
    pub async fn serve<S: Serve>(
        self,
        service: S,
        limits: Limits,
        tls: Option<Tls>,
        shutdown: CancellationToken,
    ) {
        let connections = limits.connections.min(descriptors::for_connections());
        let quota = ConnectionQuota::new(connections, limits.unauthenticated);
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.accept(&quota) => accepted,
            };
            let Ok(accepted) = accepted else {
                // A caller that ends meanwhile does not shorten it.
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = time::sleep(ACCEPT_PAUSE) => continue,
                }
            };
            let Some((stream, peer, visit)) = accepted else {
                continue;
            };
            service.connected();
            let acceptor = |tls: &Tls| TlsAcceptor::from(Arc::clone(&tls.borrow().config));
            let tls = tls.as_ref().map(acceptor);
            let (service, shutdown) = (service.clone(), shutdown.clone());
            connections.spawn(async move {
                match tls {
                    None => {
                        let peer = Peer::new(peer, None);
                        connection::serve(stream, peer, visit, service, limits, shutdown).await;
                    }
                    Some(tls) => {
                        if let Some(stream) =
                            handshake(&tls, stream, &visit, limits, &shutdown).await
                        {
                            let shown = stream.get_ref().1.peer_certificates();
                            let peer = Peer::new(peer, shown.and_then(<[_]>::first));
                            connection::serve(stream, peer, visit, service, limits, shutdown).await;
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

    /// Accepts a connection. `None` when there is none to serve this time.
    ///
    /// # Errors
    /// The system's reason, which passes.
    async fn accept(
        &self,
        quota: &Arc<ConnectionQuota>,
    ) -> io::Result<Option<(TcpStream, SocketAddr, Visit)>> {
        let (stream, peer) = match self.socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                quota.make_way();
                return Err(error);
            }
        };
        let Some(visit) = quota.arrive(peer.ip()) else {
            tracing::warn!("too many connections, all with a key: one was closed");
            return Ok(None);
        };
        // Without it the last piece of an answer may wait for an acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a socket takes no options");
        }
        Ok(Some((stream, peer, visit)))
    }
}

/// Agrees on TLS; `None` when the client does not in time, or the service stops meanwhile.
async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    visit: &Visit,
    limits: Limits,
    shutdown: &CancellationToken,
) -> Option<TlsStream<TcpStream>> {
    let agreed = tokio::select! {
        agreed = time::timeout(limits.handshake, tls.accept(stream).into_fallible()) => agreed,
        () = shutdown.cancelled() => return None,
        () = visit.away().cancelled() => return None,
    };
    match agreed {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err((error, stream))) => {
            tracing::debug!(%error, "a client did not agree on TLS");
            tokio::select! {
                () = let_read(stream) => {}
                () = shutdown.cancelled() => {}
                () = visit.away().cancelled() => {}
            }
            None
        }
        Err(_elapsed) => {
            tracing::debug!("a client took too long to agree on TLS");
            None
        }
    }
}

/// Ends a connection so that the client reads why: closing one of which something is left to read takes
/// back what was sent last.
async fn let_read(mut stream: TcpStream) {
    let reading = async {
        stream.shutdown().await?;
        let mut rest = (&mut stream).take(REFUSED_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // Whether the client goes in time or not, the connection ends.
    drop(time::timeout(REFUSED_TIME, reading).await);
}
