//! Serves one connection and closes it when it is idle.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame, SizeHint};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time};
use tokio_rustls::server::TlsStream;
use tokio_util::{either::Either, sync::CancellationToken};

use super::{
    Limits, Peer, ResponseBody, Serve,
    activity::{Activity, InFlightRequest},
    connection_quota::RegisteredConnection,
    streams::Streams,
};

/// Grace period of an idle connection at shutdown, long enough to send an HTTP/2 client GOAWAY.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(250);

/// Serves requests on a connection until either side closes it, it is idle for too long, it is
/// evicted, or `shutdown` is cancelled. After `shutdown`, requests in flight may finish.
///
/// # Cancel safety
/// Dropping the future closes the connection and cancels its requests.
pub(super) async fn serve(
    stream: Either<TcpStream, TlsStream<TcpStream>>,
    peer: Peer,
    visit: RegisteredConnection,
    service: Arc<dyn Serve>,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let activity = Arc::new(Activity::new(visit));
    let http = service.http_builder(Streams::default());
    let answers = {
        let activity = Arc::clone(&activity);
        service_fn(move |request: Request<Incoming>| {
            let (activity, service, peer) =
                (Arc::clone(&activity), Arc::clone(&service), peer.clone());
            let in_flight = activity.begin_request();
            async move {
                // Rejects the request before building a response if the connection was evicted in
                // the meantime.
                if activity.quota_visit().eviction_token().is_cancelled() {
                    return Err(EvictedError);
                }
                let response = service.handle_request(request, peer, activity).await;
                Ok(response.map(|body| TrackedBody { body, in_flight }))
            }
        })
    };
    let connection = http.serve_connection(TokioIo::new(stream), answers);
    let mut connection = std::pin::pin!(connection);
    let mut leaving = false;
    loop {
        let (in_flight, seen) = (
            activity.has_requests_in_flight(),
            activity.has_seen_requests(),
        );
        let unauthenticated = activity.idle_limit();
        let most = match (in_flight, leaving) {
            (true, _) => unauthenticated.into_iter().chain(limits.silence).min(),
            (_, true) => Some(SHUTDOWN_GRACE),
            // This also applies to a client that sends only part of the HTTP/2 preface.
            _ if !seen => Some(limits.first_request),
            _ => Some(unauthenticated.map_or(limits.idle, |most| most.min(limits.idle))),
        };
        let left = match most.map(|most| most.checked_sub(activity.idle_time())) {
            None => limits.idle,
            Some(Some(left)) => left,
            Some(None) if in_flight || leaving || !seen => return,
            Some(None) => {
                leaving = true;
                activity.record_activity();
                connection.as_mut().graceful_shutdown();
                continue;
            }
        };
        // A draining connection may become idle without waking this loop.
        let wait = if leaving {
            left.min(SHUTDOWN_GRACE)
        } else {
            left
        };
        tokio::select! {
            // `biased` polls the connection first, and checks for eviction afterwards.
            biased;
            ended = connection.as_mut() => {
                // Logged at debug level: a client that disconnects is not an error of the service.
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended prematurely");
                }
                return;
            }
            () = activity.quota_visit().eviction_token().cancelled() => return,
            () = shutdown.cancelled(), if !leaving => {
                leaving = true;
                activity.record_activity();
                connection.as_mut().graceful_shutdown();
            }
            // Waits one millisecond longer, so that the limit has certainly passed.
            () = time::sleep(wait + Duration::from_millis(1)) => {}
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("closed the connection to make room for others")]
struct EvictedError;

/// A response body that keeps its request in flight until it has been sent.
#[derive(Debug)]
struct TrackedBody {
    body: ResponseBody,
    in_flight: InFlightRequest,
}

impl Body for TrackedBody {
    type Data = Bytes;
    type Error = <ResponseBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.in_flight.record_activity();
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
