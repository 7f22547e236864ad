//! Accepts connections within limits, serves them, and drains them at shutdown.
//!
//! The backend and the gateway use the same loop but not each other, so the loop is in this crate.
//! It is behind the feature `listen`, which the console does not need. Callers pass the service as
//! [`Serve`] and the timeouts as [`Limits`].

mod activity;
mod connection;
mod connection_quota;
mod cors;
mod descriptors;
mod identity;
mod peer;
mod pool;
mod streams;

use std::{error::Error, io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt as _, combinators::UnsyncBoxBody};
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
use tokio_util::{either::Either, sync::CancellationToken};

pub use activity::Activity;
pub use connection_quota::{Allowance, network_key};
use connection_quota::{ConnectionQuota, RegisteredConnection};
pub use cors::{Cors, Origins};
pub use identity::{Hosts, REQUEST_ID, host_error, request_id};
pub use peer::{FORWARDED_FOR, Peer, Proxies};
pub use pool::{Permit, PermitError, Pool};
pub use streams::Streams;

/// Pause after a failed `accept`, during which descriptors may become available.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for a client to read the TLS alert after a failed handshake.
const REFUSED_TIME: Duration = Duration::from_secs(1);
/// Maximum bytes drained from a client after a failed handshake.
const REFUSED_BYTES: u64 = 64 * 1024;

pub type ResponseBody = UnsyncBoxBody<Bytes, Box<dyn Error + Send + Sync>>;

/// Returns the response with its body as a [`ResponseBody`].
pub fn box_body<B>(response: Response<B>) -> Response<ResponseBody>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

/// A service on connections. It is used as a trait object, so that HTTP is compiled only once.
pub trait Serve: Send + Sync + 'static {
    /// Returns the HTTP settings of a connection; its tasks are spawned on `streams`.
    fn http_builder(&self, streams: Streams) -> auto::Builder<Streams>;

    fn on_connection(&self) {}

    /// Handles a request, which counts as in flight until its response has been sent. `activity`
    /// records other progress, such as received parts of the request body.
    fn handle_request(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Peer,
        activity: Arc<Activity>,
    ) -> Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>>;
}

#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum concurrent connections, if the system allows that many. Above the limit, an
    /// unauthenticated connection is closed, or the new connection if all others are authenticated.
    pub connections: usize,
    pub unauthenticated: Allowance,
    pub handshake: Duration,
    /// Time that a connection may stay open without its first request.
    pub first_request: Duration,
    pub idle: Duration,
    /// Time that a request in flight may go without progress; `None` means unlimited.
    pub silence: Option<Duration>,
    /// Time that requests in flight have to finish at shutdown.
    pub drain: Duration,
}

/// The current TLS configuration; a connection uses the configuration that was current when the
/// connection began.
pub type Tls = watch::Receiver<LoadedTlsConfig>;

/// A TLS configuration, replaced on renewal.
#[derive(Debug, Clone)]
pub struct LoadedTlsConfig {
    pub config: Arc<ServerConfig>,
    /// Expiry of the certificate, in milliseconds since 1970.
    pub end_ms: i64,
}

#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
}

impl Listener {
    /// Binds the address; port 0 selects a free port.
    pub async fn bind(addr: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(addr).await?;
        let addr = socket.local_addr()?;
        Ok(Self { socket, addr })
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown` is cancelled, then waits for requests in flight, for at most
    /// [`Limits::drain`], and returns. Idle connections do not delay it. With `tls`, nothing is
    /// served unencrypted.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection immediately.
    pub async fn serve(
        self,
        service: Arc<dyn Serve>,
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
                accepted = self.accept_connection(&quota) => accepted,
            };
            let Ok(accepted) = accepted else {
                // Waits for the whole pause, even if a connection ends in the meantime.
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = time::sleep(ACCEPT_PAUSE) => continue,
                }
            };
            let Some((stream, peer, visit)) = accepted else {
                continue;
            };
            service.on_connection();
            let acceptor = |tls: &Tls| TlsAcceptor::from(Arc::clone(&tls.borrow().config));
            let tls = tls.as_ref().map(acceptor);
            let (service, shutdown) = (Arc::clone(&service), shutdown.clone());
            connections.spawn(async move {
                let (stream, peer) = match tls {
                    None => (Either::Left(stream), Peer::new(peer, None)),
                    Some(tls) => {
                        let agreed = handshake(&tls, stream, &visit, limits, &shutdown).await;
                        let Some(stream) = agreed else { return };
                        let shown = stream.get_ref().1.peer_certificates();
                        let peer = Peer::new(peer, shown.and_then(<[_]>::first));
                        (Either::Right(stream), peer)
                    }
                };
                connection::serve(stream, peer, visit, service, limits, shutdown).await;
            });
        }
        drop(self.socket);
        let ended = async { while connections.join_next().await.is_some() {} };
        if time::timeout(limits.drain, ended).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "closing connections that are still in use"
            );
            connections.shutdown().await;
        }
    }

    /// Accepts a connection. Returns `None` if there is no room for it.
    ///
    /// # Errors
    /// Returns the error of the system, which is transient.
    async fn accept_connection(
        &self,
        quota: &Arc<ConnectionQuota>,
    ) -> io::Result<Option<(TcpStream, SocketAddr, RegisteredConnection)>> {
        let (stream, peer) = match self.socket.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                quota.evict_one();
                return Err(error);
            }
        };
        let Some(visit) = quota.register(peer.ip()) else {
            tracing::warn!("too many connections, all authenticated: closed one");
            return Ok(None);
        };
        // With Nagle's algorithm, the last part of a response could wait for an acknowledgement.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "failed to set socket options");
        }
        Ok(Some((stream, peer, visit)))
    }
}

/// Performs the TLS handshake. Returns `None` if it fails, times out, or is interrupted by
/// shutdown.
async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    visit: &RegisteredConnection,
    limits: Limits,
    shutdown: &CancellationToken,
) -> Option<TlsStream<TcpStream>> {
    let agreed = tokio::select! {
        agreed = time::timeout(limits.handshake, tls.accept(stream).into_fallible()) => agreed,
        () = shutdown.cancelled() => return None,
        () = visit.eviction_token().cancelled() => return None,
    };
    match agreed {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err((error, stream))) => {
            tracing::debug!(%error, "a TLS handshake failed");
            tokio::select! {
                () = close_gracefully(stream) => {}
                () = shutdown.cancelled() => {}
                () = visit.eviction_token().cancelled() => {}
            }
            None
        }
        Err(_elapsed) => {
            tracing::debug!("a TLS handshake timed out");
            None
        }
    }
}

/// Shuts a connection down so that the client receives the alert. Closing a socket with unread data
/// would reset the connection and discard the alert.
async fn close_gracefully(mut stream: TcpStream) {
    let reading = async {
        stream.shutdown().await?;
        let mut rest = (&mut stream).take(REFUSED_BYTES);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // A timeout is ignored: the connection is closed in any case.
    drop(time::timeout(REFUSED_TIME, reading).await);
}
