//! Serves one connection, and gives it up when nothing happens on it.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{net::TcpStream, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{config::HEADER_BUFFER_BYTES, limits, request::Handler};

/// How often a connection is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// What happens on a connection.
#[derive(Debug)]
pub(crate) struct Activity {
    opened: Instant,
    last_ms: AtomicU64,
    under_way: AtomicUsize,
    any_request: AtomicBool,
}

impl Activity {
    fn new() -> Self {
        Self {
            opened: Instant::now(),
            last_ms: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            any_request: AtomicBool::new(false),
        }
    }

    /// Something happened: a part of a body came or went.
    pub(crate) fn note(&self) {
        let now_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now_ms, Relaxed);
    }

    /// A request, or its answer, is under way.
    pub(crate) fn begin(&self) {
        self.any_request.store(true, Relaxed);
        self.under_way.fetch_add(1, Relaxed);
        self.note();
    }

    /// What was begun has ended.
    pub(crate) fn end(&self) {
        self.under_way.fetch_sub(1, Relaxed);
        self.note();
    }

    fn quiet(&self) -> Duration {
        self.opened
            .elapsed()
            .saturating_sub(Duration::from_millis(self.last_ms.load(Relaxed)))
    }
}

/// Serves requests on a connection until either side ends it. When `shutdown` is cancelled,
/// requests under way are answered and the connection is closed.
///
/// # Cancel safety
/// Dropping the future closes the connection and cancels its requests.
pub(crate) async fn serve(stream: TcpStream, handler: Arc<Handler>, shutdown: CancellationToken) {
    let (deadline, header_timeout) = (handler.config.deadline, handler.config.header_timeout);
    let activity = Arc::new(Activity::new());
    let service = {
        let activity = Arc::clone(&activity);
        service_fn(move |request| {
            let (handler, activity) = (Arc::clone(&handler), Arc::clone(&activity));
            async move { Ok::<_, Infallible>(handler.answer(request, activity).await) }
        })
    };
    let builder = builder();
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let mut look = tokio::time::interval(LOOK);
    let mut draining = false;
    loop {
        tokio::select! {
            // A client that breaks off is the client's business.
            _ = connection.as_mut() => return,
            () = shutdown.cancelled(), if !draining => {
                draining = true;
                activity.note();
                connection.as_mut().graceful_shutdown();
            }
            _ = look.tick() => {
                let under_way = activity.under_way.load(Relaxed) > 0;
                let most = match activity.any_request.load(Relaxed) {
                    _ if draining && !under_way => LOOK,
                    // Also covers a client that sends the beginning of the HTTP/2 preface.
                    false => header_timeout,
                    // A request under way may be silent until its deadline.
                    true => limits::IDLE.max(deadline + header_timeout),
                };
                if activity.quiet() > most {
                    return;
                }
            }
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
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
        .keep_alive_interval(limits::KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(limits::KEEP_ALIVE_TIMEOUT);
    builder
}

/// As [`HEADER_BUFFER_BYTES`], for HTTP/2.
const HEADER_LIST_BYTES: u32 = 128 * 1024;
