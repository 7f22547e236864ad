//! Accepts connections, within limits, and lets go of them when the service stops.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::body::Incoming;
use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::connection;
use crate::limits::{CONNECTIONS_MAX, DRAIN_TIME_MAX, HANDSHAKE_TIME_MAX};

/// How long to wait after the listener could not accept, so that a lack of descriptors passes.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Serves HTTP/1.1 and HTTP/2 on one socket until told to stop.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    addr: SocketAddr,
}

impl Listener {
    /// Takes the address; port 0 takes a free one.
    pub(crate) async fn bind(addr: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(addr).await?;
        let addr = socket.local_addr()?;
        Ok(Self { socket, addr })
    }

    /// The address that was taken.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Serves until `shutdown`; then waits for the calls under way, at most [`DRAIN_TIME_MAX`].
    /// With `tls` it serves nothing in clear.
    pub(crate) async fn serve<S, Body>(
        self,
        service: S,
        tls: Option<Arc<ServerConfig>>,
        shutdown: CancellationToken,
    ) where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
        Body: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        Body::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let server = Arc::new(connection::http_server());
        let tls = tls.map(TlsAcceptor::from);
        let mut connections = JoinSet::new();
        loop {
            let (stream, peer) = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = accept(&self.socket) => accepted,
            };
            while connections.try_join_next().is_some() {}
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tracing::warn!(
                    limit = CONNECTIONS_MAX,
                    "too many connections: one was closed"
                );
                continue;
            };
            let (server, service) = (Arc::clone(&server), service.clone());
            let (tls, shutdown) = (tls.clone(), shutdown.clone());
            connections.spawn(async move {
                let _place = place;
                match tls {
                    None => connection::serve(&server, stream, peer, service, shutdown).await,
                    Some(tls) => {
                        if let Some(stream) = handshake(&tls, stream, &shutdown).await {
                            connection::serve(&server, stream, peer, service, shutdown).await;
                        }
                    }
                }
            });
        }
        drop(self.socket);
        let drained = async { while connections.join_next().await.is_some() {} };
        if time::timeout(DRAIN_TIME_MAX, drained).await.is_err() {
            tracing::warn!("connections that did not end in time were closed");
        }
    }
}

/// Agrees on TLS; none when the client does not in time, or the service stops meanwhile.
async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    shutdown: &CancellationToken,
) -> Option<TlsStream<TcpStream>> {
    let agreed = tokio::select! {
        agreed = time::timeout(HANDSHAKE_TIME_MAX, tls.accept(stream)) => agreed,
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

async fn accept(socket: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a socket takes no options");
                }
                return (stream, peer);
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}
