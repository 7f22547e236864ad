//! A separate listener for the metrics page.

use std::{io, net::SocketAddr, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{rt::TokioTimer, server::conn::auto};
use tokio_util::sync::CancellationToken;

use super::{MetricsPage, PATH};
use crate::listen::{
    Activity, Allowance, Limits, Listener, Peer, ResponseBody, Serve, Streams, Tls, box_body,
};

/// Maximum concurrent connections; Prometheus needs one or two.
const CONNECTIONS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(10);
const IDLE: Duration = Duration::from_secs(300);

const LIMITS: Limits = Limits {
    connections: CONNECTIONS,
    unauthenticated: Allowance {
        connections: CONNECTIONS,
        connections_of_address: CONNECTIONS,
        calls: CONNECTIONS,
        calls_of_address: CONNECTIONS,
        quiet: IDLE,
    },
    handshake: PATIENCE,
    first_request: PATIENCE,
    idle: IDLE,
    silence: Some(PATIENCE),
    drain: PATIENCE,
};

#[derive(Debug)]
pub struct MetricsServer {
    listener: Listener,
    page: Arc<MetricsPage>,
}

impl MetricsServer {
    /// Binds the address; port 0 selects a free port.
    pub async fn bind(addr: SocketAddr, page: Arc<MetricsPage>) -> io::Result<Self> {
        let listener = Listener::bind(addr).await?;
        Ok(Self { listener, page })
    }

    pub fn addr(&self) -> SocketAddr {
        self.listener.addr()
    }

    /// Serves until `shutdown` is cancelled; with `tls`, unencrypted connections are rejected.
    ///
    /// # Cancel safety
    /// Dropping the future closes every connection immediately.
    pub fn serve(
        self,
        tls: Option<Tls>,
        shutdown: CancellationToken,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let service = Arc::new(Pages(self.page));
            self.listener.serve(service, LIMITS, tls, shutdown).await;
        })
    }
}

#[derive(Debug, Clone)]
struct Pages(Arc<MetricsPage>);

impl Serve for Pages {
    fn http_builder(&self, streams: Streams) -> auto::Builder<Streams> {
        let mut server = auto::Builder::new(streams);
        server
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE);
        server.http2().timer(TokioTimer::new());
        server
    }

    fn handle_request(
        self: Arc<Self>,
        request: Request<Incoming>,
        _peer: Peer,
        _activity: Arc<Activity>,
    ) -> Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send>> {
        Box::pin(async move { box_body(self.0.handle(&request).await.map(Full::new)) })
    }
}

impl MetricsPage {
    pub fn is_metrics_request<Body>(request: &Request<Body>) -> bool {
        request.uri().path() == PATH && matches!(*request.method(), Method::GET | Method::HEAD)
    }

    pub async fn handle<Body>(&self, request: &Request<Body>) -> Response<Bytes> {
        let text = |status, text: &'static str| {
            let mut response = Response::new(Bytes::from_static(text.as_bytes()));
            *response.status_mut() = status;
            response
        };
        let mut response = if !Self::is_metrics_request(request) {
            text(StatusCode::NOT_FOUND, "metrics are at /metrics\n")
        } else if !self.is_authorized(request.headers()) {
            let mut refused = text(
                StatusCode::UNAUTHORIZED,
                "a key is required for the metrics: `authorization: Bearer KEY`\n",
            );
            let scheme = HeaderValue::from_static("Bearer");
            refused.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            refused
        } else {
            Response::new(self.cached_text().await)
        };
        let kind = HeaderValue::from_static(super::CONTENT_TYPE);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}
