//! The listener: its limits, and the service for connections.

use std::{convert::Infallible, sync::Arc};

use bellwether_process::{
    listen::{
        Activity, Allowance, Cors, Hosts, Limits, Peer, REQUEST_ID, ResponseBody, Serve, Streams,
        box_body, host_error, request_id,
    },
    metrics::MetricsPage,
};
use futures_util::future::BoxFuture;
use http::{HeaderMap, Request, Response, StatusCode, header::ORIGIN};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{rt::TokioTimer, server::conn::auto};
use tonic::body::Body;
use tower::{Service, ServiceExt};

use crate::limits::{
    CONNECTION_IDLE_MAX, CONNECTIONS_MAX, DRAIN_TIME_MAX, FIRST_CALL_TIME_MAX, HANDSHAKE_TIME_MAX,
    HEADER_BYTES_MAX, HEADER_READ_TIME_MAX, KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT,
    RESETS_PENDING_MAX, STREAMS_PER_CONNECTION_MAX, UNAUTHENTICATED_CALLS_MAX,
    UNAUTHENTICATED_CALLS_OF_ADDRESS_MAX, UNAUTHENTICATED_MAX, UNAUTHENTICATED_OF_ADDRESS_MAX,
    UNAUTHENTICATED_QUIET_MAX, WINDOW_BYTES,
};

/// Maximum unsent bytes of a response, in addition to the current message.
const SEND_BYTES: usize = 64 * 1024;

/// Limits of the listener. A call may be silent until its deadline; a stream, without limit.
pub(super) const LIMITS: Limits = Limits {
    connections: CONNECTIONS_MAX,
    unauthenticated: Allowance {
        connections: UNAUTHENTICATED_MAX,
        connections_of_address: UNAUTHENTICATED_OF_ADDRESS_MAX,
        calls: UNAUTHENTICATED_CALLS_MAX,
        calls_of_address: UNAUTHENTICATED_CALLS_OF_ADDRESS_MAX,
        quiet: UNAUTHENTICATED_QUIET_MAX,
    },
    handshake: HANDSHAKE_TIME_MAX,
    first_request: FIRST_CALL_TIME_MAX,
    idle: CONNECTION_IDLE_MAX,
    silence: None,
    drain: DRAIN_TIME_MAX,
};

/// The services for connections: adds the caller to each call, and the request id to each response.
#[derive(Debug)]
pub(super) struct CallServer<S> {
    pub(super) services: S,
    pub(super) cors: Arc<Cors>,
    pub(super) hosts: Arc<Hosts>,
    pub(super) metrics: Option<Arc<MetricsPage>>,
}

impl<S> Serve for CallServer<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    fn http_builder(&self, streams: Streams) -> auto::Builder<Streams> {
        let mut server = auto::Builder::new(streams);
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
            .max_pending_accept_reset_streams(RESETS_PENDING_MAX)
            .max_send_buf_size(SEND_BYTES)
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(WINDOW_BYTES);
        server
    }

    fn handle_request(
        self: Arc<Self>,
        mut request: Request<Incoming>,
        peer: Peer,
        activity: Arc<Activity>,
    ) -> BoxFuture<'static, Response<ResponseBody>> {
        Box::pin(async move {
            let id = request_id(request.headers());
            request.headers_mut().insert(REQUEST_ID, id.clone());
            let mut answer = self.respond(request, peer, activity).await;
            answer.headers_mut().insert(REQUEST_ID, id);
            box_body(answer)
        })
    }
}

impl<S> CallServer<S> {
    async fn respond(
        &self,
        mut request: Request<Incoming>,
        peer: Peer,
        activity: Arc<Activity>,
    ) -> Response<Body>
    where
        S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible> + Clone,
    {
        let bare = |status, headers| {
            let mut response = Response::new(Body::default());
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response
        };
        if host_error(&request).is_some() {
            return bare(StatusCode::BAD_REQUEST, HeaderMap::new());
        }
        if !self.hosts.contains_host(&request) {
            return bare(StatusCode::MISDIRECTED_REQUEST, HeaderMap::new());
        }
        if let Some(page) = self
            .metrics
            .as_ref()
            .filter(|_| MetricsPage::is_metrics_request(&request))
        {
            return page
                .handle(&request)
                .await
                .map(|text| Body::new(Full::new(text)));
        }
        let cors = &self.cors;
        if let Some((status, headers)) = cors.preflight(request.method(), request.headers()) {
            return bare(status, headers);
        }
        let mut requested = HeaderMap::new();
        if let Some(origin) = request.headers().get(ORIGIN) {
            requested.insert(ORIGIN, origin.clone());
        }
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(activity);
        let mut response = match self.services.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        cors.allow_origin(&requested, response.headers_mut());
        response
    }
}
