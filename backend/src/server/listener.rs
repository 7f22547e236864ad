//! How calls are taken from connections: the limits of the listener, and what it serves.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bellwether_proto::listen::{Activity, Beyond, Limits, Serve, Streams};
use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::{rt::TokioTimer, server::conn::auto};
use tower::{Service, ServiceExt};

use crate::{
    limits::{
        CONNECTION_IDLE_MAX, CONNECTIONS_MAX, DRAIN_TIME_MAX, FIRST_CALL_TIME_MAX,
        HANDSHAKE_TIME_MAX, HEADER_BYTES_MAX, HEADER_READ_TIME_MAX, KEEP_ALIVE_INTERVAL,
        KEEP_ALIVE_TIMEOUT, RESETS_PENDING_MAX, STREAMS_PER_CONNECTION_MAX, WINDOW_BYTES,
    },
    rpc::access::Peer,
};

/// Bytes of one answer that may wait to be read by its caller, beside the message it is part of.
const SEND_BYTES: usize = 64 * 1024;

/// The listener's limits. A call may be silent as long as its own time limit allows, a stream for
/// ever.
pub(super) const LIMITS: Limits = Limits {
    connections: CONNECTIONS_MAX,
    beyond: Beyond::Close,
    handshake: HANDSHAKE_TIME_MAX,
    first_request: FIRST_CALL_TIME_MAX,
    idle: CONNECTION_IDLE_MAX,
    silence: None,
    drain: DRAIN_TIME_MAX,
};

/// The services as they are served on connections: each call is told who called.
#[derive(Debug, Clone)]
pub(super) struct Calls<S>(pub(super) S);

impl<S, Body> Serve for Calls<S>
where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    Body: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    Body::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Body = Body;

    fn http(&self, streams: Streams) -> auto::Builder<Streams> {
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

    async fn answer(
        self,
        mut request: Request<Incoming>,
        peer: SocketAddr,
        _activity: Arc<Activity>,
    ) -> Response<Body> {
        request.extensions_mut().insert(Peer(peer.ip()));
        match self.0.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
