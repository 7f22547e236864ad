//! A receiver that only counts messages.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bellwether_tests::rest::Rest;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

/// A message: its path, its arrival time and its body.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) at: Instant,
    pub(crate) body: Bytes,
}

/// A receiver of messages. A path that begins with `/hang` never responds.
#[derive(Debug)]
pub(crate) struct Sink {
    address: SocketAddr,
    messages: Arc<Mutex<Vec<Message>>>,
    _tasks: JoinSet<()>,
}

impl Sink {
    pub(crate) async fn start() -> Self {
        Self::with_delay(Duration::ZERO).await
    }

    /// Starts a receiver that takes some time for each message.
    pub(crate) async fn with_delay(delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let messages = Arc::<Mutex<Vec<Message>>>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(listener, Arc::clone(&messages), delay));
        Self {
            address,
            messages,
            _tasks: tasks,
        }
    }

    /// Returns the address of a path of this receiver.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the number of messages received.
    pub(crate) fn count(&self) -> usize {
        self.messages.lock().expect("no thread panicked").len()
    }

    /// Returns the messages received since the last call.
    pub(crate) fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().expect("no thread panicked"))
    }

    /// Waits until `count` messages have arrived, or none arrives for some time.
    pub(crate) async fn wait_for(&self, count: usize) {
        let mut last = (self.count(), Instant::now());
        while last.0 < count && last.1.elapsed() < Duration::from_secs(10) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.count() != last.0 {
                last = (self.count(), Instant::now());
            }
        }
    }
}

async fn listen(listener: TcpListener, messages: Arc<Mutex<Vec<Message>>>, delay: Duration) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let messages = Arc::clone(&messages);
        let service = service_fn(move |request| respond(request, Arc::clone(&messages), delay));
        connections.spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            // The client may close the connection at any time.
            drop(
                connection
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn respond(
    request: Request<Incoming>,
    messages: Arc<Mutex<Vec<Message>>>,
    delay: Duration,
) -> Result<Response<Full<Bytes>>, Infallible> {
    if request.uri().path().starts_with("/hang") {
        std::future::pending::<()>().await;
    }
    if let Ok(body) = request.into_body().collect().await {
        let message = Message {
            at: Instant::now(),
            body: body.to_bytes(),
        };
        messages.lock().expect("no thread panicked").push(message);
    }
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    Ok(Response::default())
}

/// Creates a destination and an enabled rule for all events that match a clause.
pub(crate) async fn route(rest: &Rest, name: &str, url: &str, clause: &Value) {
    let trigger = json!({"name": name, "type": {"event": {"query": {"clause": clause}}}});
    rest.post("/v1/notification/triggers", &trigger).await.ok();
    let destination = json!({"name": name, "type": {"webhook": {"url": url}}});
    rest.post("/v1/notification/destinations", &destination)
        .await
        .ok();
    let rule = json!({"name": name, "enabled": true, "triggerNames": [name],
        "destinationNames": [name], "message": "{{event.summary}}"});
    rest.post("/v1/notification/rules", &rule).await.ok();
}
