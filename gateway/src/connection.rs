//! Serves one connection, and gives it up when nothing happens on it.

mod activity;
mod streams;

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::{config::HEADER_BUFFER_BYTES, limits, request::Handler};
pub(crate) use activity::{Activity, UnderWay};
use streams::Streams;

/// How long a connection without a request may stay when the gateway drains: long enough to tell
/// an HTTP/2 client that it ends.
const FAREWELL: Duration = Duration::from_millis(250);

/// Serves requests on a connection until either side ends it. When `shutdown` is cancelled,
/// requests under way are answered and the connection is closed.
///
/// # Cancel safety
/// Dropping the future closes the connection and cancels its requests.
pub(crate) async fn serve<Io>(
    stream: Io,
    peer: SocketAddr,
    handler: Arc<Handler>,
    shutdown: CancellationToken,
) where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let header_timeout = handler.config.header_timeout;
    // A request under way may be silent until its deadline.
    let silence = limits::IDLE.max(handler.config.deadline + header_timeout);
    let activity = Arc::new(Activity::default());
    let service = {
        let activity = Arc::clone(&activity);
        service_fn(move |request| {
            let (handler, activity) = (Arc::clone(&handler), Arc::clone(&activity));
            async move { Ok::<_, Infallible>(handler.answer(request, peer.ip(), &activity).await) }
        })
    };
    let builder = builder();
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut draining = false;
    loop {
        let most = match activity.requests_seen() {
            _ if draining && !activity.is_under_way() => FAREWELL,
            // Also covers a client that sends only the beginning of the HTTP/2 preface.
            false => header_timeout,
            true => silence,
        };
        let Some(left) = most.checked_sub(activity.quiet()) else {
            return;
        };
        // What a drained connection waits for may end without a word to this loop.
        let look = if draining { left.min(FAREWELL) } else { left };
        tokio::select! {
            // A client that breaks off is the client's business.
            _ = connection.as_mut() => return,
            () = shutdown.cancelled(), if !draining => {
                draining = true;
                activity.note();
                connection.as_mut().graceful_shutdown();
            }
            // A little longer, so that the limit has passed for certain.
            () = tokio::time::sleep(look + Duration::from_millis(1)) => {}
        }
    }
}

fn builder() -> auto::Builder<Streams> {
    let mut builder = auto::Builder::new(Streams::default());
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

/// As [`HEADER_BUFFER_BYTES`], for HTTP/2.
const HEADER_LIST_BYTES: u32 = 128 * 1024;
