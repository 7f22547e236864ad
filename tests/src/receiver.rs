//! A webhook receiver that records every request, responds as configured, and misbehaves on demand.

use std::{
    collections::{BTreeMap, VecDeque},
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinSet};

use crate::eventually::eventually;

type Body = UnsyncBoxBody<Bytes, &'static str>;

const CHUNK: Bytes = Bytes::from_static(&[b'x'; 64 * 1024]);

/// A request as received.
#[derive(Debug, Clone)]
pub struct Received {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header fields by name.
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
    /// Time of arrival.
    pub at: Instant,
}

impl Received {
    /// Parses the body as JSON.
    ///
    /// # Panics
    /// Panics if the body is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns a header's value, or an empty string if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the id of the delivery.
    ///
    /// # Panics
    /// Panics if the header `webhook-id` is absent.
    pub fn delivery_id(&self) -> &str {
        self.headers
            .get("webhook-id")
            .expect("every delivery carries its id")
    }
}

/// The response to a request.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// Additional header fields.
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    pub delay: Duration,
    pub manner: ResponseManner,
}

/// The manner in which a response arrives, if it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseManner {
    /// The response arrives complete.
    Whole,
    /// The response never starts.
    Hangs,
    /// The connection is closed before the response starts.
    Closes,
    /// The body is replaced by one of 100 MB.
    Huge,
    /// The body is cut off in the middle.
    BreaksOff,
    /// The body starts and never ends.
    Endless,
}

impl Reply {
    /// Creates an empty response with this status.
    pub fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
            delay: Duration::ZERO,
            manner: ResponseManner::Whole,
        }
    }

    /// Creates a response with this status, additional header fields and a body.
    pub fn answer(status: u16, headers: Vec<(&'static str, String)>, body: String) -> Self {
        Self {
            headers,
            body,
            ..Self::status(status)
        }
    }

    /// Creates a response with status 200 and a JSON body.
    pub fn json(body: &Value) -> Self {
        Self {
            body: body.to_string(),
            ..Self::status(200)
        }
    }

    /// Creates a response with status 200 that arrives in this manner.
    pub fn with_manner(manner: ResponseManner) -> Self {
        Self {
            manner,
            ..Self::status(200)
        }
    }
}

/// A receiver on a free local port, shut down when dropped.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _tasks: JoinSet<()>,
}

type Rule = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

struct State {
    received: Vec<Received>,
    replies: VecDeque<Reply>,
    otherwise: Rule,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut state = formatter.debug_struct("State");
        state.field("received", &self.received);
        state.field("replies", &self.replies);
        state.finish_non_exhaustive()
    }
}

impl Receiver {
    /// Starts a receiver that responds with 200.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn start() -> Self {
        Self::with_rule(|_| Reply::status(200)).await
    }

    /// Starts a receiver that responds to each request according to `rule`.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn with_rule(rule: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            received: Vec::new(),
            replies: VecDeque::new(),
            otherwise: Arc::new(rule),
        }));
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            _tasks: tasks,
        }
    }

    /// Returns the address on which the receiver listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path on this receiver.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the default reply.
    pub fn set_default_reply(&self, reply: Reply) {
        self.state.lock().unwrap().otherwise = Arc::new(move |_| reply.clone());
    }

    /// Queues replies for the next requests; later ones get the default reply set with
    /// [`Receiver::set_default_reply`].
    pub fn reply(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.lock().unwrap().replies.extend(replies);
    }

    /// Returns the requests received so far.
    pub fn received(&self) -> Vec<Received> {
        self.state.lock().unwrap().received.clone()
    }

    /// Returns the number of requests received so far.
    pub fn count(&self) -> usize {
        self.state.lock().unwrap().received.len()
    }

    /// Waits until this many requests have arrived.
    ///
    /// # Panics
    /// Panics if fewer or more requests arrive.
    pub async fn wait_for(&self, count: usize) {
        eventually("the messages to arrive", async || {
            (self.count() >= count).then_some(())
        })
        .await;
        assert_eq!(self.count(), count);
    }

    /// Discards the requests received so far.
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
            // The peer may disconnect at any time.
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
) -> Result<Response<Body>, &'static str> {
    let (head, body) = request.into_parts();
    // A request cut off by a disconnect is not recorded.
    let body = body.collect().await.map_err(|_broken| "hung up")?;
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
        at: Instant::now(),
    };
    let (next, rule) = {
        let mut state = state.lock().unwrap();
        state.received.push(received.clone());
        (state.replies.pop_front(), Arc::clone(&state.otherwise))
    };
    let reply = next.unwrap_or_else(|| rule(&received));
    if !reply.delay.is_zero() {
        tokio::time::sleep(reply.delay).await;
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let body = match reply.manner {
        ResponseManner::Whole => {
            let whole = Full::from(reply.body);
            let whole = whole.map_err(|never: Infallible| match never {});
            whole.boxed_unsync()
        }
        ResponseManner::Hangs => std::future::pending().await,
        ResponseManner::Closes => return Err("closed as requested"),
        ResponseManner::Huge => {
            StreamBody::new(stream::iter((0..1_600).map(|_| Ok(Frame::data(CHUNK))))).boxed_unsync()
        }
        ResponseManner::BreaksOff => {
            let start = stream::once(async { Ok(Frame::data("half".into())) });
            let broken = start.chain(stream::once(async {
                // Yield, so that the first part is sent before the error.
                tokio::task::yield_now().await;
                Err("closed as requested")
            }));
            StreamBody::new(broken).boxed_unsync()
        }
        ResponseManner::Endless => {
            let start = stream::once(async { Ok(Frame::data("start".into())) });
            StreamBody::new(start.chain(stream::pending())).boxed_unsync()
        }
    };
    Ok(response.body(body).unwrap())
}
