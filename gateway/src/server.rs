//! The gateway: binding, serving and draining.

use std::{io, net::SocketAddr, sync::Arc};

use bellwether_process::{
    listen::{
        Activity, Allowance, Limits, Listener, Peer, ResponseBody, Serve, Streams, Tls, box_body,
    },
    metrics::{MetricsPage, MetricsSource},
};
use futures_util::future::BoxFuture;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{rt::TokioTimer, server::conn::auto};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Config, ConfigError, HEADER_BUFFER_BYTES},
    limits,
    request::Handler,
    upstream::Upstream,
};

/// The limit of [`HEADER_BUFFER_BYTES`] for HTTP/2.
const HEADER_LIST_BYTES: u32 = 128 * 1024;

#[derive(Debug)]
pub struct Gateway {
    listener: Listener,
    handler: Handler,
    tls: Option<Tls>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("failed to listen on {addr}")]
    Listen { addr: SocketAddr, source: io::Error },
    /// The descriptors of this build are unsupported, which is a bug.
    #[error("failed to serve the API: {0}")]
    Interface(String),
}

impl Gateway {
    /// Compiles the descriptors and binds the listener. [`serve`](Self::serve) starts serving
    /// requests.
    pub fn bind(
        config: Config,
        upstream: Upstream,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(async move {
            config.validate()?;
            let addr = config.listen;
            let handler = Handler::new(config, upstream).map_err(StartError::Interface)?;
            let refuse = |source| StartError::Listen { addr, source };
            let listener = Listener::bind(addr).await.map_err(refuse)?;
            Ok(Self {
                listener,
                handler,
                tls: None,
            })
        })
    }

    /// Serves only TLS. The configuration must support the ALPN protocols `h2` and `http/1.1`.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    pub fn metrics(&self) -> Arc<dyn MetricsSource> {
        Arc::clone(&self.handler.metrics) as _
    }

    /// Serves `page` at `/metrics` instead of the gateway's own page; `None` serves none.
    #[must_use]
    pub fn with_metrics(mut self, page: Option<Arc<MetricsPage>>) -> Self {
        self.handler.metrics_page = page;
        self
    }

    /// Returns the bound address, with the actual port.
    pub fn addr(&self) -> SocketAddr {
        self.listener.addr()
    }

    /// Serves until `shutdown` is cancelled, then waits for requests in flight, for at most
    /// [`Config::drain`], and returns. Idle connections do not delay it.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection immediately.
    pub fn serve(self, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let config = &self.handler.config;
            // A connection with a request in flight may be silent until the request's deadline.
            let silence = limits::IDLE.max(config.deadline + config.header_timeout);
            let limits = Limits {
                connections: config.max_connections,
                unauthenticated: Allowance {
                    connections: limits::UNAUTHENTICATED,
                    connections_of_address: limits::UNAUTHENTICATED_OF_ADDRESS,
                    calls: limits::UNAUTHENTICATED_REQUESTS,
                    calls_of_address: limits::UNAUTHENTICATED_REQUESTS_OF_ADDRESS,
                    quiet: limits::UNAUTHENTICATED_QUIET,
                },
                handshake: config.header_timeout,
                first_request: config.header_timeout,
                idle: silence,
                silence: Some(silence),
                drain: config.drain,
            };
            let service = Arc::new(Service(self.handler));
            self.listener
                .serve(service, limits, self.tls, shutdown)
                .await;
        })
    }
}

#[derive(Debug)]
struct Service(Handler);

impl Serve for Service {
    fn http_builder(&self, streams: Streams) -> auto::Builder<Streams> {
        let mut builder = auto::Builder::new(streams);
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(limits::IDLE)
            .max_buf_size(HEADER_BUFFER_BYTES);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits::STREAMS_PER_CONNECTION)
            .max_header_list_size(HEADER_LIST_BYTES)
            .initial_stream_window_size(limits::WINDOW_BYTES)
            .initial_connection_window_size(limits::WINDOW_BYTES)
            .keep_alive_interval(limits::KEEP_ALIVE_INTERVAL)
            .keep_alive_timeout(limits::KEEP_ALIVE_TIMEOUT);
        builder
    }

    fn on_connection(&self) {
        self.0.metrics.record_connection();
    }

    fn handle_request(
        self: Arc<Self>,
        request: Request<Incoming>,
        peer: Peer,
        activity: Arc<Activity>,
    ) -> BoxFuture<'static, Response<ResponseBody>> {
        Box::pin(async move { box_body(self.0.handle(request, peer, &activity).await) })
    }
}
