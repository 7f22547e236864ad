//! The transport below the calls; records when data was last received.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::watch::Receiver,
    time::{self, Instant},
};
use tonic::codegen::{Service, http::Uri};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::carrier::Carrier;
use crate::limits;

#[derive(Clone, Debug)]
pub(super) struct LastReceiveTime(Arc<Mutex<Instant>>);

impl LastReceiveTime {
    pub(super) fn now() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    pub(super) fn time(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_now(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

pub(super) struct MonitoredConnector {
    http: HttpConnector,
    last_received: LastReceiveTime,
}

impl MonitoredConnector {
    pub(super) fn new(last_received: LastReceiveTime) -> Self {
        let mut http = HttpConnector::new();
        // The endpoint handles the scheme and TLS.
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(limits::CONNECT));
        // TCP keepalive detects a lost network without waking this process.
        http.set_keepalive(Some(limits::PROBE));
        http.set_keepalive_interval(Some(limits::PROBE));
        http.set_keepalive_retries(Some(limits::PROBES));
        Self {
            http,
            last_received,
        }
    }
}

type ConnectFuture<E> = Pin<Box<dyn Future<Output = Result<TokioIo<MonitoredStream>, E>> + Send>>;

impl Service<Uri> for MonitoredConnector {
    type Response = TokioIo<MonitoredStream>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = ConnectFuture<Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.http.poll_ready(context)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connecting = self.http.call(address);
        let last_received = self.last_received.clone();
        Box::pin(async move {
            let stream = connecting.await?.into_inner();
            last_received.record_now();
            Ok(TokioIo::new(MonitoredStream {
                stream,
                last_received,
            }))
        })
    }
}

#[derive(Debug)]
pub(super) struct MonitoredStream {
    stream: TcpStream,
    last_received: LastReceiveTime,
}

impl AsyncRead for MonitoredStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if into.filled().len() > before {
            self.last_received.record_now();
        }
        read
    }
}

impl AsyncWrite for MonitoredStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

pub(super) fn is_user_active(attended: &mut Receiver<Instant>) -> bool {
    attended.borrow_and_update().elapsed() < limits::ATTENDED
}

/// Waits until the service has been silent for too long, while keys are pressed. After a shorter
/// silence, pings the service. Without key presses, the stream of events suffices to detect that
/// the service is gone.
pub(super) async fn wait_for_silence(
    carrier: Carrier,
    last_received: LastReceiveTime,
    mut attended: Receiver<Instant>,
) {
    let mut health = HealthClient::new(carrier);
    loop {
        if !is_user_active(&mut attended) {
            if attended.changed().await.is_err() {
                // The console has ended, so this task ends.
                std::future::pending::<()>().await;
            }
            continue;
        }
        let quiet = last_received.time().elapsed();
        if quiet < limits::PING {
            time::sleep(limits::PING.saturating_sub(quiet)).await;
            continue;
        }
        let pinged_at = Instant::now();
        // Any response proves that the service is alive, even "unknown method".
        let check = health.check(HealthCheckRequest::default());
        drop(time::timeout(limits::PING_TIMEOUT, check).await);
        if last_received.time() < pinged_at {
            return;
        }
    }
}
