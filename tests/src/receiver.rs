//! Who receives webhooks: records every request and answers as it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};

/// One request as it came in.
#[derive(Debug, Clone)]
pub struct Received {
    /// The method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Bytes,
}

impl Received {
    /// The body as JSON.
    ///
    /// # Panics
    /// When it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The id of the delivery that it belongs to.
    ///
    /// # Panics
    /// When there is none.
    pub fn delivery_id(&self) -> &str {
        self.headers
            .get("webhook-id")
            .expect("every delivery carries its id")
    }
}

/// How a request is answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
    /// How long to wait first.
    pub delay: Duration,
}

impl Reply {
    /// An empty answer with that status.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
            delay: Duration::ZERO,
        }
    }
}

/// A receiver on a free port of this machine; it ends when it is dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    received: Vec<Received>,
    replies: VecDeque<Reply>,
    otherwise: Reply,
}

impl Receiver {
    /// Starts a receiver that answers 200.
    ///
    /// # Panics
    /// When there is no free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            received: Vec::new(),
            replies: VecDeque::new(),
            otherwise: Reply::status(200),
        }));
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            _tasks: tasks,
        }
    }

    /// The address of a path here.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers so whatever is not told otherwise.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn otherwise(&self, reply: Reply) {
        self.state.lock().unwrap().otherwise = reply;
    }

    /// Answers the next requests so, in order; those after them as [`Receiver::otherwise`] says.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.lock().unwrap().replies.extend(replies);
    }

    /// What has come in so far.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn received(&self) -> Vec<Received> {
        self.state.lock().unwrap().received.clone()
    }

    /// Forgets what has come in so far.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn forget(&self) {
        self.state.lock().unwrap().received.clear();
    }
}

async fn listen(listener: TcpListener, state: Arc<Mutex<State>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let answer = service_fn(move |request| answer(request, Arc::clone(&state)));
        connections.spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            // The other side may hang up whenever it likes.
            drop(
                connection
                    .serve_connection(TokioIo::new(stream), answer)
                    .await,
            );
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: Request<Incoming>,
    state: Arc<Mutex<State>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Ok(Response::default());
    };
    let headers = head.headers.iter().map(|(name, value)| {
        (
            name.to_string(),
            String::from_utf8_lossy(value.as_bytes()).into_owned(),
        )
    });
    let received = Received {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        headers: headers.collect(),
        body: body.to_bytes(),
    };
    let reply = {
        let mut state = state.lock().unwrap();
        state.received.push(received);
        let next = state.replies.pop_front();
        next.unwrap_or_else(|| state.otherwise.clone())
    };
    tokio::time::sleep(reply.delay).await;
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::from(reply.body)).unwrap())
}
