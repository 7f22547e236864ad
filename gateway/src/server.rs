//! The gateway as a whole: bound, served and drained.

use futures_util::future::BoxFuture;
use std::{io, net::SocketAddr, sync::Arc};

use bellwether_process::{
    listen::{Activity, Allowance, Limits, Listener, Peer, Serve, Streams, Tls},
    metrics::{Page, Source},
};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{rt::TokioTimer, server::conn::auto};
use tokio_util::sync::CancellationToken;

use crate::{
    answer::Answer,
    config::{Config, ConfigError, HEADER_BUFFER_BYTES},
    limits,
    request::Handler,
    upstream::Upstream,
};

/// As [`HEADER_BUFFER_BYTES`], for HTTP/2.
const HEADER_LIST_BYTES: u32 = 128 * 1024;

/// The gateway: answers REST requests by calling a backend.
#[derive(Debug)]
pub struct Gateway {
    listener: Listener,
    handler: Handler,
    tls: Option<Tls>,
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

    /// Serves REST over TLS alone. What the configuration offers to agree on has to be `h2` and
    /// `http/1.1`.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// What the gateway counts.
    pub fn metrics(&self) -> Arc<dyn Source> {
        Arc::clone(&self.handler.metrics) as _
    }

    /// Shows this page at `/metrics` in place of the gateway's own counters; none shows nothing there.
    #[must_use]
    pub fn with_metrics(mut self, page: Option<Arc<Page>>) -> Self {
        self.handler.metrics_page = page;
        self
    }

    /// Where the gateway listens, with the port it was given.
    pub fn addr(&self) -> SocketAddr {
        self.listener.addr()
    }

    /// Answers requests until `shutdown` is cancelled, then answers those under way, for at most
    /// [`Config::drain`], and returns. Idle connections do not hold it up.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection immediately.
    pub fn serve(self, shutdown: CancellationToken) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let config = &self.handler.config;
            // A request under way may be silent until its deadline.
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
            let service = Service(Arc::new(self.handler));
            self.listener
                .serve(service, limits, self.tls, shutdown)
                .await;
        })
    }
}

/// The handler as it is served on connections.
#[derive(Debug, Clone)]
struct Service(Arc<Handler>);

impl Serve for Service {
    type Body = Answer;

    fn http(&self, streams: Streams) -> auto::Builder<Streams> {
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

    fn connected(&self) {
        self.0.metrics.connected();
    }

    async fn answer(
        self,
        request: Request<Incoming>,
        peer: Peer,
        activity: Arc<Activity>,
    ) -> Response<Answer> {
        self.0.answer(request, peer, &activity).await
    }
}
