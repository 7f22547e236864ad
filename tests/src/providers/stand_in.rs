//! An HTTP server that judges every request by a provider's rules, and misbehaves on demand.

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

/// Bytes of the answer that is far too long.
pub const FLOOD_BYTES: usize = 100 * 1024 * 1024;

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a provider publishes about what it takes.
pub trait Rules: Send + 'static {
    /// Judges a request as the provider would.
    fn judge(&mut self, request: &Received) -> Answer;
}

/// What a provider makes of a request.
#[derive(Debug, Clone)]
pub struct Answer {
    reply: Reply,
    judgement: Judgement,
}

#[derive(Debug, Clone)]
enum Judgement {
    Taken,
    Refused(Vec<String>),
    Aside,
}

impl Answer {
    /// The message was taken.
    pub fn taken(status: u16, body: impl Into<String>) -> Self {
        Self::new(status, body, Judgement::Taken)
    }

    /// The request was refused, for these reasons.
    pub fn refused(status: u16, body: impl Into<String>, faults: Vec<String>) -> Self {
        Self::new(status, body, Judgement::Refused(faults))
    }

    /// The request was in order, and no message was taken.
    pub fn aside(status: u16, body: impl Into<String>) -> Self {
        Self::new(status, body, Judgement::Aside)
    }

    /// Whether the message was taken.
    pub(super) fn is_taken(&self) -> bool {
        matches!(self.judgement, Judgement::Taken)
    }

    /// The same after a while.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.reply.delay = delay;
        self
    }

    fn new(status: u16, body: impl Into<String>, judgement: Judgement) -> Self {
        let mut reply = Reply::status(status);
        reply.body = body.into();
        Self { reply, judgement }
    }
}

/// The header that shows what a body is; empty when it is absent.
pub(super) fn content_type(request: &Received) -> &str {
    let header = request.headers.get("content-type");
    header.map_or("", String::as_str)
}

/// How a test server treats requests instead of judging them.
#[derive(Debug, Clone)]
pub enum Mischief {
    /// Answers so, whatever it gets.
    Answers(Reply),
    /// Never answers.
    Hangs,
    /// Never answers requests for paths that begin so.
    HangsAt(&'static str),
    /// Closes the connection without an answer.
    HangsUp,
    /// Answers 200 with 100 MB.
    Floods,
}

/// A test server on a free port of this machine; it ends when it is dropped.
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
    taken: Mutex<Vec<Received>>,
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
    /// Starts a provider with these rules, over HTTP.
    pub async fn start(rules: impl Rules) -> Self {
        Self::start_with(rules, None).await
    }

    /// Starts a provider with these rules and that certificate, over HTTPS.
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
            taken: Mutex::default(),
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

    /// The address of a path here, by the name of this machine.
    pub fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.address.port())
    }

    /// Misbehaves from now on; none means no more.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn misbehave(&self, mischief: impl Into<Option<Mischief>>) {
        *self.state.mischief.lock().unwrap() = mischief.into();
    }

    /// What it took so far.
    ///
    /// # Panics
    /// When it refused something: with what was wrong.
    pub fn taken(&self) -> Vec<Received> {
        let refused = self.refused();
        assert!(refused.is_empty(), "a provider refused {refused:#?}");
        self.state.taken.lock().unwrap().clone()
    }

    /// What it refused so far, each with what was wrong.
    ///
    /// # Panics
    /// Never, unless another holder has.
    pub fn refused(&self) -> Vec<(Received, Vec<String>)> {
        self.state.refused.lock().unwrap().clone()
    }

    /// Requests so far, those included that met mischief.
    pub fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// Bytes of a flood that the other side accepted.
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
                // Clients that do not accept the certificate disconnect.
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
    let service = service_fn(move |request| answer(request, Arc::clone(&state)));
    let connection = auto::Builder::new(TokioExecutor::new());
    // The other side may hang up whenever it likes.
    drop(
        connection
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

async fn answer(
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
            Judgement::Taken => self.taken.lock().unwrap().push(request),
            Judgement::Refused(faults) => self.refused.lock().unwrap().push((request, faults)),
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
