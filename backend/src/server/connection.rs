//! Serves one connection, and gives it up when nobody uses it.

use std::{convert::Infallible, net::SocketAddr, pin::Pin, sync::Arc, task, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
    time::{self, Instant},
};
use tokio_util::sync::CancellationToken;
use tonic::{Status, body::Body};
use tower::{Service, ServiceExt};

use crate::{
    limits::{
        CONNECTION_IDLE_MAX, FIRST_CALL_TIME_MAX, HEADER_BYTES_MAX, HEADER_READ_TIME_MAX,
        KEEP_ALIVE_INTERVAL, KEEP_ALIVE_TIMEOUT, RESETS_PENDING_MAX, STREAMS_PER_CONNECTION_MAX,
        WINDOW_BYTES,
    },
    rpc::access::Peer,
};

/// How long a connection without a call may stay when the service stops: long enough to tell an
/// HTTP/2 client that it ends.
const FAREWELL: Duration = Duration::from_millis(250);

/// Bytes of one answer that may wait to be read by its caller, beside the message it is part of.
const SEND_BYTES: usize = 64 * 1024;

/// What every connection is served with.
pub(super) fn http_server() -> auto::Builder<TokioExecutor> {
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
        .max_pending_accept_reset_streams(RESETS_PENDING_MAX)
        .max_send_buf_size(SEND_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    server
}

/// Serves calls on a connection until either side ends it, nothing is called for too long, or
/// `shutdown`, which lets calls under way end.
///
/// # Cancel safety
/// Dropping the future closes the connection.
pub(super) async fn serve<Io, S, Out>(
    server: &auto::Builder<TokioExecutor>,
    stream: Io,
    peer: SocketAddr,
    service: S,
    shutdown: CancellationToken,
) where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<Out>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
    Out: http_body::Body<Data = Bytes> + Send + 'static,
    Out::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let calls = Calls::new();
    let mut counted = calls.0.subscribe();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let call = calls.begin();
        request.extensions_mut().insert(Peer(peer.ip()));
        let answer = service.clone().oneshot(request);
        async move {
            let response = answer.await?;
            let hold = |body| Held {
                body: Body::new(body),
                _call: call,
            };
            Ok::<_, Infallible>(response.map(hold))
        }
    });
    let connection = server.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut since = Instant::now();
    let mut leaving = false;
    loop {
        let count = *counted.borrow_and_update();
        let most = match count {
            Count { under_way, .. } if under_way > 0 => None,
            _ if leaving => Some(FAREWELL),
            // Also covers who sends only the beginning of what tells HTTP/2 from HTTP/1.1.
            Count { seen: false, .. } => Some(FIRST_CALL_TIME_MAX),
            Count { .. } => Some(CONNECTION_IDLE_MAX),
        };
        let idle = async {
            match most {
                Some(most) => time::sleep_until(since + most).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            // The sender lives in the connection, so there is no end of it to see here.
            Ok(()) = counted.changed() => since = Instant::now(),
            () = shutdown.cancelled(), if !leaving => {
                leaving = true;
                since = Instant::now();
                connection.as_mut().graceful_shutdown();
            }
            () = idle => {
                if leaving || !count.seen {
                    return;
                }
                leaving = true;
                since = Instant::now();
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The calls on a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    under_way: usize,
    seen: bool,
}

#[derive(Debug, Clone)]
struct Calls(Arc<watch::Sender<Count>>);

impl Calls {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Count::default())))
    }

    fn begin(&self) -> Call {
        self.0.send_modify(|count| {
            count.under_way += 1;
            count.seen = true;
        });
        Call(self.clone())
    }
}

/// A call under way, until its answer was handed over.
#[derive(Debug)]
struct Call(Calls);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| count.under_way -= 1);
    }
}

/// The body of an answer, which keeps its call under way.
struct Held {
    body: Body,
    _call: Call,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> task::Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
