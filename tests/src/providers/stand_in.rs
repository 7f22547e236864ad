//! An HTTP server that validates requests by a provider's rules and misbehaves on demand.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::receiver::{Received, Reply};

/// Size of the oversized response, in bytes.
pub const FLOOD_BYTES: usize = 100 * 1024 * 1024;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The documented rules of a provider's API.
pub trait Rules: Send + 'static {
    /// Validates a request as the provider would.
    fn judge(&mut self, request: &Received) -> Answer;
}

/// A provider's response to a request and its verdict.
#[derive(Debug, Clone)]
pub struct Answer {
    reply: Reply,
    judgement: Judgement,
}

#[derive(Debug, Clone)]
enum Judgement {
    Accepted,
    Refused(Vec<String>),
    Aside,
}

impl Answer {
    /// Accepts the message.
    pub fn accepted(status: u16, body: impl Into<String>) -> Self {
        Self::new(status, body, Judgement::Accepted)
    }

    /// Rejects the request for these reasons.
    pub fn refused(status: u16, body: impl Into<String>, violations: Vec<String>) -> Self {
        Self::new(status, body, Judgement::Refused(violations))
    }

    /// Accepts a valid request that carries no message.
    pub fn without_message(status: u16, body: impl Into<String>) -> Self {
        Self::new(status, body, Judgement::Aside)
    }

    pub(super) fn is_accepted(&self) -> bool {
        matches!(self.judgement, Judgement::Accepted)
    }

    /// Delays the response.
    #[must_use]
    pub fn delayed_by(mut self, delay: Duration) -> Self {
        self.reply.delay = delay;
        self
    }

    fn new(status: u16, body: impl Into<String>, judgement: Judgement) -> Self {
        let mut reply = Reply::status(status);
        reply.body = body.into();
        Self { reply, judgement }
    }
}

/// Returns the `content-type` header, or an empty string if it is absent.
pub(super) fn content_type(request: &Received) -> &str {
    let header = request.headers.get("content-type");
    header.map_or("", String::as_str)
}

/// A misbehaviour of a test server, instead of validating requests.
#[derive(Debug, Clone)]
pub enum Mischief {
    /// Sends the same response to every request.
    Answers(Reply),
    /// Never responds.
    Hangs,
    /// Never responds to requests whose path has this prefix.
    HangsAt(&'static str),
    /// Closes the connection without a response.
    HangsUp,
    /// Responds with 200 and a body of 100 MB.
    Floods,
}

/// A test server on a free local port, shut down when dropped.
#[derive(Debug)]
pub struct StandIn {
    address: SocketAddr,
    scheme: &'static str,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    rules: Mutex<Box<dyn Rules>>,
    mischief: Mutex<Option<Mischief>>,
    accepted: Mutex<Vec<Received>>,
    refused: Mutex<Vec<(Received, Vec<String>)>>,
    requests: AtomicUsize,
    flooded_bytes: Arc<AtomicUsize>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let refused = &self.refused;
        formatter
            .debug_struct("State")
            .field("refused", refused)
            .finish_non_exhaustive()
    }
}

impl StandIn {
    /// Starts a provider with these rules over HTTP.
    pub async fn start(rules: impl Rules) -> Self {
        Self::start_with(rules, None).await
    }

    /// Starts a provider with these rules and this certificate over HTTPS.
    pub async fn start_tls(rules: impl Rules, tls: ServerConfig) -> Self {
        Self::start_with(rules, Some(tls)).await
    }

    async fn start_with(rules: impl Rules, tls: Option<ServerConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let state = Arc::new(State {
            rules: Mutex::new(Box::new(rules)),
            mischief: Mutex::default(),
            accepted: Mutex::default(),
            refused: Mutex::default(),
            requests: AtomicUsize::new(0),
            flooded_bytes: Arc::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(listen(listener, tls, Arc::clone(&state)));
        Self {
            address,
            scheme,
            state,
            _tasks: tasks,
        }
    }

    /// Returns the URL of a path on this server, with the host name `localhost`.
    pub fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.address.port())
    }

    /// Sets the server's misbehaviour from now on; `None` restores normal behaviour.
    pub fn misbehave(&self, mischief: impl Into<Option<Mischief>>) {
        *self.state.mischief.lock().unwrap() = mischief.into();
    }

    /// Returns the requests accepted so far.
    ///
    /// # Panics
    /// Panics with the faults if any request was rejected.
    pub fn accepted(&self) -> Vec<Received> {
        let refused = self.refused();
        assert!(refused.is_empty(), "a provider rejected {refused:#?}");
        self.state.accepted.lock().unwrap().clone()
    }

    /// Returns the requests rejected so far, each with its faults.
    pub fn refused(&self) -> Vec<(Received, Vec<String>)> {
        self.state.refused.lock().unwrap().clone()
    }

    /// Returns the number of requests so far, including those affected by mischief.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of bytes of an oversized body that the client accepted.
    pub fn flooded_bytes(&self) -> usize {
        self.state.flooded_bytes.load(Ordering::SeqCst)
    }
}

async fn listen(listener: TcpListener, tls: Option<ServerConfig>, state: Arc<State>) {
    let tls = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        connections.spawn(async move {
            match tls {
                None => serve(stream, state).await,
                // Clients that reject the certificate disconnect.
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => serve(stream, state).await,
                    Err(_refused) => {}
                },
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, state: Arc<State>) {
    let service = service_fn(move |request| respond(request, Arc::clone(&state)));
    let connection = auto::Builder::new(TokioExecutor::new());
    // The peer may disconnect at any time.
    drop(
        connection
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn respond(
    request: Request<Incoming>,
    state: Arc<State>,
) -> Result<Response<Body>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?;
    let headers = head.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.to_string(), value)
    });
    let path = head
        .uri
        .path_and_query()
        .map_or("", http::uri::PathAndQuery::as_str);
    let request = Received {
        method: head.method.to_string(),
        path: path.into(),
        headers: headers.collect(),
        body: body.to_bytes(),
        at: std::time::Instant::now(),
    };
    state.requests.fetch_add(1, Ordering::SeqCst);
    let mischief = state.mischief.lock().unwrap().clone();
    let reply = match mischief {
        Some(Mischief::HangsAt(path)) if request.path.starts_with(path) => {
            std::future::pending().await
        }
        None | Some(Mischief::HangsAt(_)) => state.judge(request),
        Some(Mischief::Answers(reply)) => reply,
        Some(Mischief::Hangs) => std::future::pending().await,
        Some(Mischief::HangsUp) => return Err(std::io::Error::other("told to hang up")),
        Some(Mischief::Floods) => return Ok(flood(&state.flooded_bytes)),
    };
    tokio::time::sleep(reply.delay).await;
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    Ok(response
        .body(Full::from(reply.body).boxed_unsync())
        .unwrap())
}

impl State {
    fn judge(&self, request: Received) -> Reply {
        let answer = self.rules.lock().unwrap().judge(&request);
        match answer.judgement {
            Judgement::Accepted => self.accepted.lock().unwrap().push(request),
            Judgement::Refused(violations) => {
                self.refused.lock().unwrap().push((request, violations));
            }
            Judgement::Aside => {}
        }
        answer.reply
    }
}

fn flood(flooded_bytes: &Arc<AtomicUsize>) -> Response<Body> {
    const CHUNK: Bytes = Bytes::from_static(&[b'x'; 64 * 1024]);
    let flooded_bytes = Arc::clone(flooded_bytes);
    let chunks = (0..FLOOD_BYTES / CHUNK.len()).map(move |_| {
        flooded_bytes.fetch_add(CHUNK.len(), Ordering::SeqCst);
        Ok(Frame::data(CHUNK))
    });
    Response::new(StreamBody::new(stream::iter(chunks)).boxed_unsync())
}
