//! The receivers: one server whose paths are destinations, each of which is down for some hours.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bellwether_backend::clock::{Clock as _, ManualClock};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinSet};

/// Number of destinations.
pub(super) const RECEIVERS: u64 = 20;
/// Length of a cycle. Each destination is down for one hour per cycle.
const CYCLE_HOURS: u64 = 12;
const HOUR_MS: u64 = 3_600_000;

pub(super) struct Outside {
    address: SocketAddr,
    pub(super) received: Arc<AtomicU64>,
    _listening: JoinSet<()>,
}

impl Outside {
    pub(super) async fn start(clock: Arc<ManualClock>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::<AtomicU64>::default();
        let listening = listen(listener, clock, Arc::clone(&received));
        Self {
            address,
            received,
            _listening: JoinSet::from_iter([listening]),
        }
    }

    pub(super) fn url(&self, number: u64) -> String {
        format!("http://{}/{number}", self.address)
    }
}

async fn listen(listener: TcpListener, clock: Arc<ManualClock>, received: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        while connections.try_join_next().is_some() {}
        let (clock, received) = (Arc::clone(&clock), Arc::clone(&received));
        connections.spawn(async move {
            let answer = service_fn(|request| respond(request, &clock, &received));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            // Errors are ignored: a sender may close the connection at any time.
            let _ = connection.await;
        });
    }
}

async fn respond(
    request: Request<Incoming>,
    clock: &ManualClock,
    received: &AtomicU64,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let number: u64 = request.uri().path()[1..].parse().unwrap();
    let read = request.into_body().collect().await;
    let hour = clock.now_ms().unsigned_abs() / HOUR_MS;
    let mut response = Response::new(Empty::new());
    if read.is_err() || (hour + number).is_multiple_of(CYCLE_HOURS) {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    } else {
        received.fetch_add(1, Ordering::Relaxed);
    }
    Ok(response)
}
