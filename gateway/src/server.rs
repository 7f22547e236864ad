//! Binds the listener and accepts connections until told to stop.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::CancellationToken;

use crate::{
    Upstream,
    config::{Config, ConfigError},
    connection,
    request::Handler,
};

/// How long accepting pauses when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The gateway: answers REST requests by calling a backend.
#[derive(Debug)]
pub struct Gateway {
    listener: TcpListener,
    addr: SocketAddr,
    handler: Arc<Handler>,
    tls: Option<Arc<ServerConfig>>,
}

/// Why a gateway could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting cannot be used; change it.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The address cannot be listened on; choose another or end what uses it.
    #[error("failed to listen on {addr}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The interface this program was built with cannot be served; a fault of the build.
    #[error("the interface cannot be served: {0}")]
    Interface(String),
}

impl Gateway {
    /// Compiles the interface and binds the listener; requests are answered from
    /// [`serve`](Self::serve) on.
    ///
    /// # Errors
    /// When a setting cannot be used or the address cannot be listened on.
    pub async fn bind(config: Config, upstream: Upstream) -> Result<Self, StartError> {
        config.validate()?;
        let addr = config.listen;
        let handler = Arc::new(Handler::new(config, upstream).map_err(StartError::Interface)?);
        let refuse = |source| StartError::Listen { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(refuse)?;
        let addr = listener.local_addr().map_err(refuse)?;
        Ok(Self {
            listener,
            addr,
            handler,
            tls: None,
        })
    }

    /// Serves REST over TLS alone. What the configuration offers to agree on has to be `h2` and
    /// `http/1.1`.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<ServerConfig>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Where the gateway listens, with the port it was given.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Answers requests until `shutdown` is cancelled, then answers those under way, for at most
    /// [`Config::drain`], and returns. Idle connections do not hold it up.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection at once.
    pub async fn serve(self, shutdown: CancellationToken) {
        let Self {
            listener,
            handler,
            tls,
            ..
        } = self;
        let room = Arc::new(Semaphore::new(handler.config.max_connections));
        let tls = tls.map(TlsAcceptor::from);
        let drain = handler.config.drain;
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&listener, &room) => accepted,
            };
            let Some((stream, peer, place)) = accepted else {
                continue;
            };
            handler.metrics.connected();
            let (handler, shutdown) = (Arc::clone(&handler), shutdown.clone());
            let tls = tls.clone();
            connections.spawn(async move {
                let _place = place;
                match tls {
                    None => connection::serve(stream, peer, handler, shutdown).await,
                    Some(tls) => {
                        if let Some(stream) = handshake(&tls, stream, &handler, &shutdown).await {
                            connection::serve(stream, peer, handler, shutdown).await;
                        }
                    }
                }
            });
        }
        drop(listener);
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(drain, ended).await.is_err() {
            tracing::warn!(
                connections = connections.len(),
                "closing connections still in use"
            );
            connections.shutdown().await;
        }
    }
}

/// Agrees on TLS; `None` when the client does not in time, or the gateway drains meanwhile.
async fn handshake(
    tls: &TlsAcceptor,
    stream: TcpStream,
    handler: &Handler,
    shutdown: &CancellationToken,
) -> Option<TlsStream<TcpStream>> {
    let most = handler.config.header_timeout;
    tokio::select! {
        agreed = tokio::time::timeout(most, tls.accept(stream)) => match agreed {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a client did not agree on TLS");
                None
            }
            Err(_) => None,
        },
        () = shutdown.cancelled() => None,
    }
}

/// Accepts a connection when there is room for one. `None` when accepting failed this time.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Without it the last piece of an answer may wait for an acknowledgement.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "failed to set nodelay");
            }
            Some((stream, peer, place))
        }
        Err(error) => {
            tracing::warn!(%error, "failed to accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
