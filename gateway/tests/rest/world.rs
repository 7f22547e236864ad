//! A gateway on a free port in front of a fake backend, and a client for it.

use std::{net::SocketAddr, sync::Mutex, time::Duration};

use bellwether_gateway::{Config, Gateway, Upstream};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tokio::{net::TcpListener, runtime, task::JoinSet};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use crate::backend::Recorder;

pub(crate) struct World {
    pub(crate) backend: Recorder,
    pub(crate) addr: SocketAddr,
    pub(crate) shutdown: CancellationToken,
    pub(crate) tasks: JoinSet<()>,
    process: Mutex<Option<runtime::Runtime>>,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.kill_backend();
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map(|value| value.to_str().unwrap())
            .unwrap_or_default()
    }

    pub(crate) fn violated(&self) -> Vec<String> {
        let json = self.json();
        let details = json["details"].as_array().cloned().unwrap_or_default();
        let violations = details
            .iter()
            .filter_map(|it| it["fieldViolations"].as_array());
        violations
            .flatten()
            .map(|it| it["field"].as_str().unwrap_or("").to_owned())
            .collect()
    }

    pub(crate) fn message(&self) -> String {
        self.json()["message"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

pub(crate) fn config() -> Config {
    Config {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        drain: Duration::from_secs(5),
        ..Config::default()
    }
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(config()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let backend = Recorder::default();
        let upstream = Upstream::in_process(backend.routes());
        Self::over(config, backend, upstream).await
    }

    /// Starts a gateway that calls its backend over a socket, as if it ran in another process.
    pub(crate) async fn remote(config: Config) -> Self {
        let backend = Recorder::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let addr = listener.local_addr().unwrap();
        let routes = backend.routes();
        let process = runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        process.spawn(async move {
            let listener = TcpListenerStream::new(TcpListener::from_std(listener).unwrap());
            let server = Server::builder().add_routes(routes);
            server.serve_with_incoming(listener).await.unwrap();
        });
        let upstream = Upstream::connect(&format!("http://{addr}")).unwrap();
        let world = Self::over(config, backend, upstream).await;
        *world.process.lock().unwrap() = Some(process);
        world
    }

    pub(crate) fn kill_backend(&self) {
        if let Some(process) = self.process.lock().unwrap().take() {
            process.shutdown_background();
        }
    }

    pub(crate) async fn over(config: Config, backend: Recorder, upstream: Upstream) -> Self {
        let gateway = Gateway::bind(config, upstream).await.unwrap();
        let addr = gateway.addr();
        let shutdown = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(gateway.serve(shutdown.clone()));
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self {
            backend,
            addr,
            shutdown,
            tasks,
            process: Mutex::default(),
            client,
        }
    }

    pub(crate) async fn send(&self, request: http::request::Builder, body: &str) -> Answer {
        let request = request
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .unwrap();
        self.send_request(request).await
    }

    pub(crate) async fn send_request(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.client.request(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> http::request::Builder {
        Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.addr))
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: &str) -> Answer {
        self.send(self.request(method, path), body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.call("POST", path, body).await
    }
}
