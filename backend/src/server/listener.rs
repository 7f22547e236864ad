//! Accepts connections, within limits, and lets go of them when the service stops.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time,
};
use tokio_util::sync::CancellationToken;
use tower::Service;

use crate::limits::{
    CONNECTIONS_MAX, DRAIN_TIME_MAX, HEADER_BYTES_MAX, HEADER_READ_TIME_MAX, KEEP_ALIVE_INTERVAL,
    KEEP_ALIVE_TIMEOUT, STREAMS_PER_CONNECTION_MAX, WINDOW_BYTES,
};

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
    pub(crate) async fn serve<S, Body>(self, service: S, shutdown: CancellationToken)
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
            + Clone
            + Send
            + 'static,
        S::Future: Send + 'static,
        Body: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        Body::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let server = Arc::new(http_server());
        let mut connections = JoinSet::new();
        loop {
            let stream = tokio::select! {
                () = shutdown.cancelled() => break,
                stream = accept(&self.socket) => stream,
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
            let shutdown = shutdown.clone();
            connections.spawn(async move {
                let _place = place;
                let service = TowerToHyperService::new(service);
                let connection = server.serve_connection(TokioIo::new(stream), service);
                let mut connection = std::pin::pin!(connection);
                let ended = tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = shutdown.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
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

fn http_server() -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_READ_TIME_MAX)
        .max_buf_size(HEADER_BYTES_MAX)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .max_header_list_size(u32::try_from(HEADER_BYTES_MAX).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    server
}

async fn accept(socket: &TcpListener) -> TcpStream {
    loop {
        match socket.accept().await {
            Ok((stream, _peer)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a socket takes no options");
                }
                return stream;
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}
