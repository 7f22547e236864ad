//! A fake backend that responds to every gRPC call with UNIMPLEMENTED and records its headers.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::Empty;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{net::TcpListener, task::JoinSet};

/// A backend on a free local port, shut down when dropped.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<(String, HeaderMap)>>>,
    _tasks: JoinSet<()>,
}

impl Upstream {
    /// Starts a backend.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::<Mutex<Vec<_>>>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(listener, Arc::clone(&calls)));
        Self {
            address,
            calls,
            _tasks: tasks,
        }
    }

    /// Returns the address on which the backend listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the value of this header in each call to our services, in order; empty if it was
    /// absent.
    pub fn headers(&self, name: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        let ours = calls
            .iter()
            .filter(|(path, _)| path.starts_with("/bellwether."));
        let text = |headers: &HeaderMap| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        ours.map(|(_, headers)| text(headers)).collect()
    }
}

async fn listen(listener: TcpListener, calls: Arc<Mutex<Vec<(String, HeaderMap)>>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let calls = Arc::clone(&calls);
        let answer = service_fn(move |request: Request<Incoming>| {
            let path = request.uri().path().to_owned();
            calls
                .lock()
                .unwrap()
                .push((path, request.headers().clone()));
            std::future::ready(Ok::<_, Infallible>(unimplemented_call()))
        });
        connections.spawn(async move {
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            // The peer may disconnect at any time.
            drop(
                connection
                    .serve_connection(TokioIo::new(stream), answer)
                    .await,
            );
        });
    }
}

fn unimplemented_call() -> Response<Empty<Bytes>> {
    Response::builder()
        .header("content-type", "application/grpc")
        .header("grpc-status", "12")
        .header("grpc-message", "a stand-in")
        .body(Empty::new())
        .unwrap()
}
