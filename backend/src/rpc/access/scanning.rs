//! Runs calls that may scan many records on the threads for scans.

use std::{
    error::Error as StdError,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::sync::mpsc;
use tonic::{Status, body::Body};
use tower::Service;

use crate::{
    limits::REQUEST_BYTES_MAX,
    scan::{RunningScan, ScanService, Scanner},
    store::audit,
};

const PREFIX_BYTES: usize = 5;

/// Runs a call on this thread, or on the threads for scans once its message was read.
pub(super) async fn run_call<S, Out>(
    inner: &mut S,
    request: Request<Body>,
    scan: Option<(ScanService, Scanner)>,
    is_streaming: bool,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Out>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    Out: hyper::body::Body<Data = Bytes> + Send + 'static,
    Out::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let Some((scans, scanner)) = scan else {
        return Ok(inner.call(request).await?.map(Body::new));
    };
    match read_message(request).await {
        Ok(request) => run_scan(&scans, scanner, is_streaming, inner.call(request)).await,
        Err(status) => Ok(status.into_http()),
    }
}

/// Reads the message of a call, so that a slow client does not occupy a thread.
///
/// # Errors
/// Returns an error if the message is too large or cannot be read.
async fn read_message(request: Request<Body>) -> Result<Request<Body>, Status> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, REQUEST_BYTES_MAX + PREFIX_BYTES);
    let gathered = body.collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            return too_large_status(REQUEST_BYTES_MAX);
        }
        let downcast = error.downcast::<Status>();
        downcast.map_or_else(Status::from_error, |status| *status)
    })?;
    Ok(Request::from_parts(parts, Body::new(gathered)))
}

pub fn too_large_status(bytes_max: usize) -> Status {
    let message = format!("the message is larger than {bytes_max} bytes");
    Status::resource_exhausted(message)
}

/// Runs a call on the threads for scans, including its response. Each message of a stream is
/// produced there after the previous one was read.
async fn run_scan<Out, E>(
    scans: &ScanService,
    scanner: Scanner,
    is_streaming: bool,
    answering: impl Future<Output = Result<Response<Out>, E>> + Send + 'static,
) -> Result<Response<Body>, E>
where
    E: Send + 'static,
    Out: hyper::body::Body<Data = Bytes> + Send + 'static,
    Out::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let whole = async move {
        let response = answering.await?.map(Body::new);
        if is_streaming || response.body().is_end_stream() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        Ok(match body.collect().await {
            Ok(body) => Response::from_parts(parts, Body::new(body)),
            Err(status) => status.into_http(),
        })
    };
    let response = match scans.run(&scanner, audit::with_current_actor(whole)).await {
        Ok(response) => response?,
        Err(error) => return Ok(Status::from(error).into_http()),
    };
    // A response with a status in its headers is complete; clients reject messages after it.
    Ok(if is_streaming && !response.body().is_end_stream() {
        response.map(|body| Body::new(ScanBody::new(scans, &scanner, body)))
    } else {
        response
    })
}

struct ScanBody {
    frames: mpsc::Receiver<Result<Frame<Bytes>, Status>>,
    /// Dropping this stops the production of messages.
    _making: RunningScan<()>,
}

impl ScanBody {
    fn new(scans: &ScanService, scanner: &Scanner, mut body: Body) -> Self {
        let (sender, frames) = mpsc::channel(1);
        let making = scans.start_scan(scanner, async move {
            while let Ok(room) = sender.reserve().await {
                match body.frame().await {
                    Some(frame) => room.send(frame),
                    None => break,
                }
            }
        });
        Self {
            frames,
            _making: making,
        }
    }
}

impl http_body::Body for ScanBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.frames.poll_recv(context)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}
