//! A receiver that implements HTTP/1.1, or HTTP/2 over TLS, byte by byte. Unlike a library, it can
//! go silent on one connection, reject streams, send GOAWAY before a request, and close or reset a
//! connection at any time.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rustls::ServerConfig;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

const HTTP1_OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const REFUSED_STREAM: u32 = 7;
/// `:status: 200` in HPACK's static table.
const OK: [u8; 1] = [0x88];

/// The receiver's reaction to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerAction {
    /// Responds with 200.
    Answers,
    /// Stops reading from the connection, like a firewall that has lost its state.
    FallsSilent,
    /// Refuses the request's stream (HTTP/2 only).
    Refuses,
    /// Sends GOAWAY with the preceding request as the last one processed (HTTP/2 only).
    GoesAway,
    /// Sends GOAWAY with this request as the last one processed, without a response (HTTP/2 only).
    GoesAwayAfter,
    /// Closes the connection without a response.
    Closes,
    /// Responds with 200 and shuts down the sending side of the connection.
    HalfCloses,
    /// Responds with 200 and resets the connection once it is idle.
    Resets,
    /// Responds with 200 one byte at a time, with a pause before each.
    Dribbles(Duration),
}

/// The receiver's reaction to a connection before its first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionAction {
    Serves,
    /// Closes the connection immediately after accepting it.
    Closes,
    /// Resets the connection immediately after accepting it.
    Resets,
    /// Closes the connection during the TLS handshake, after the client's first bytes (TLS only).
    ClosesInHandshake,
    /// Resets the connection during the TLS handshake (TLS only).
    ResetsInHandshake,
    /// Accepts the connection, and does nothing else.
    Hangs,
}

type ConnectionRule = Arc<dyn Fn(usize) -> ConnectionAction + Send + Sync>;

type Rule = Arc<dyn Fn(Request) -> ServerAction + Send + Sync>;

/// A request's position, by which a rule chooses an action.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Number of the connection, starting at 1.
    pub connection: usize,
    /// Number of the request on its connection, starting at 1.
    pub number: usize,
}

/// A receiver on a free port, shut down when dropped.
pub struct Connections {
    address: SocketAddr,
    scheme: &'static str,
    seen: Arc<Mutex<Recorded>>,
    door: Arc<Mutex<ConnectionRule>>,
    _tasks: JoinSet<()>,
}

#[derive(Debug, Default)]
struct Recorded {
    connections: usize,
    /// Request bodies, each with the action taken.
    requests: Vec<(Vec<u8>, ServerAction)>,
    /// Header fields of requests with missing or mismatched ids.
    nameless: Vec<String>,
}

impl std::fmt::Debug for Connections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (address, seen) = (&self.address, &self.seen);
        formatter
            .debug_struct("Connections")
            .field("address", address)
            .field("seen", seen)
            .finish_non_exhaustive()
    }
}

impl Connections {
    /// Starts an HTTP/1.1 receiver that handles each request according to `rule`.
    pub async fn http1(rule: impl Fn(Request) -> ServerAction + Send + Sync + 'static) -> Self {
        Self::start(None, Arc::new(rule)).await
    }

    /// Starts an HTTP/2 receiver that handles each request according to `rule`.
    pub async fn http2(
        mut tls: ServerConfig,
        rule: impl Fn(Request) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        Self::start(Some(acceptor), Arc::new(rule)).await
    }

    async fn start(acceptor: Option<TlsAcceptor>, rule: Rule) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let seen = Arc::default();
        let door: ConnectionRule = Arc::new(|_connection| ConnectionAction::Serves);
        let door = Arc::new(Mutex::new(door));
        let mut tasks = JoinSet::new();
        let of_all = (Arc::clone(&door), rule, Arc::clone(&seen));
        tasks.spawn(listen(listener, acceptor, of_all));
        Self {
            address,
            scheme,
            seen,
            door,
            _tasks: tasks,
        }
    }

    /// Handles each new connection according to `door`, which receives the number of the
    /// connection, starting at 1.
    #[must_use]
    pub fn with_connection_rule(
        self,
        door: impl Fn(usize) -> ConnectionAction + Send + Sync + 'static,
    ) -> Self {
        *self.door.lock().unwrap() = Arc::new(door);
        self
    }

    /// Returns all bodies received, including repeated ones, in order.
    ///
    /// # Panics
    /// Panics if an HTTP/1.1 request did not carry the same id in `webhook-id` and
    /// `idempotency-key`.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        let seen = self.seen.lock().unwrap();
        assert!(seen.nameless.is_empty(), "{:?}", seen.nameless);
        let bodies = seen.requests.iter().map(|(body, _)| body.clone());
        bodies.collect()
    }

    /// Returns the URL of a path on this receiver, with the host name `localhost`.
    pub fn url(&self, path: &str) -> String {
        format!("{}://localhost:{}{path}", self.scheme, self.address.port())
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.seen.lock().unwrap().connections
    }

    /// Returns the number of requests handled with this action.
    pub fn count(&self, deed: ServerAction) -> usize {
        let seen = self.seen.lock().unwrap();
        let done = seen.requests.iter().filter(|(_, done)| *done == deed);
        done.count()
    }

    /// Returns for each body the number of requests that got a response.
    pub fn answered(&self) -> BTreeMap<Vec<u8>, usize> {
        let seen = self.seen.lock().unwrap();
        let mut bodies = BTreeMap::new();
        for (body, deed) in &seen.requests {
            if matches!(
                deed,
                ServerAction::Answers
                    | ServerAction::HalfCloses
                    | ServerAction::Resets
                    | ServerAction::Dribbles(_)
            ) {
                *bodies.entry(body.clone()).or_default() += 1;
            }
        }
        bodies
    }
}

async fn listen(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    (door, rule, seen): (Arc<Mutex<ConnectionRule>>, Rule, Arc<Mutex<Recorded>>),
) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, rule, seen) = (acceptor.clone(), Arc::clone(&rule), Arc::clone(&seen));
        let door = Arc::clone(&door.lock().unwrap());
        connections.spawn(async move {
            let connection = {
                let mut seen = seen.lock().unwrap();
                seen.connections += 1;
                seen.connections
            };
            let Some(stream) = apply_connection_action(stream, door(connection)).await else {
                return;
            };
            let request = Request {
                connection,
                number: 0,
            };
            let mut judge = Judge {
                rule,
                request,
                seen,
            };
            // The peer may disconnect at any time.
            match acceptor {
                None => drop(serve_http1(stream, &mut judge).await),
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        drop(serve_http2(stream, &mut judge).await);
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn apply_connection_action(
    stream: TcpStream,
    welcome: ConnectionAction,
) -> Option<TcpStream> {
    match welcome {
        ConnectionAction::Serves => return Some(stream),
        ConnectionAction::Closes => {}
        ConnectionAction::Resets => reset(&stream),
        ConnectionAction::ClosesInHandshake | ConnectionAction::ResetsInHandshake => {
            // Read all bytes first: closing a socket with unread bytes resets the connection.
            let mut stream = stream;
            let mut hello = vec![0; 16 * 1024];
            let _read = stream.read(&mut hello).await;
            if welcome == ConnectionAction::ResetsInHandshake {
                reset(&stream);
            }
        }
        ConnectionAction::Hangs => std::future::pending().await,
    }
    None
}

/// Makes the connection end with RST when it is dropped.
fn reset(stream: &TcpStream) {
    let _set = stream.set_zero_linger();
}

struct Judge {
    rule: Rule,
    request: Request,
    seen: Arc<Mutex<Recorded>>,
}

impl Judge {
    fn judge(&mut self, body: Vec<u8>) -> ServerAction {
        self.request.number += 1;
        let deed = (self.rule)(self.request);
        self.seen.lock().unwrap().requests.push((body, deed));
        deed
    }
}

async fn serve_http1(stream: TcpStream, judge: &mut Judge) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut ids = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(std::io::Error::other)?;
            }
            for name in ["webhook-id:", "idempotency-key:"] {
                ids.extend(line.strip_prefix(name).map(|id| id.trim().to_owned()));
            }
        }
        if !matches!(&ids[..], [id, same] if id == same && !id.is_empty()) {
            judge.seen.lock().unwrap().nameless.push(format!("{ids:?}"));
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let deed = judge.judge(body);
        match deed {
            ServerAction::Answers | ServerAction::HalfCloses | ServerAction::Resets => {
                stream.write_all(HTTP1_OK).await?;
            }
            ServerAction::Dribbles(pause) => dribble(&mut stream, HTTP1_OK, pause).await?,
            ServerAction::FallsSilent => std::future::pending().await,
            ServerAction::Closes => return Ok(()),
            ServerAction::Refuses | ServerAction::GoesAway | ServerAction::GoesAwayAfter => {
                return Err(std::io::Error::other("HTTP/1.1 cannot do that"));
            }
        }
        if deed == ServerAction::HalfCloses {
            stream.shutdown().await?;
        }
        if deed == ServerAction::Resets {
            reset(stream.get_ref());
            return Ok(());
        }
    }
}

async fn dribble(
    stream: &mut (impl AsyncWrite + Unpin),
    bytes: &[u8],
    pause: Duration,
) -> std::io::Result<()> {
    for byte in bytes {
        tokio::time::sleep(pause).await;
        stream.write_all(&[*byte]).await?;
        stream.flush().await?;
    }
    Ok(())
}

async fn serve_http2(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    judge: &mut Judge,
) -> std::io::Result<()> {
    let mut preface = [0; PREFACE.len()];
    stream.read_exact(&mut preface).await?;
    write(&mut stream, SETTINGS, 0, 0, &[]).await?;
    let mut bodies: HashMap<u32, Vec<u8>> = HashMap::new();
    loop {
        let (kind, flags, id, payload) = read(&mut stream).await?;
        match kind {
            SETTINGS if flags & ACK == 0 => write(&mut stream, SETTINGS, ACK, 0, &[]).await?,
            PING if flags & ACK == 0 => write(&mut stream, PING, ACK, 0, &payload).await?,
            HEADERS => {
                bodies.insert(id, Vec::new());
            }
            DATA => {
                bodies.entry(id).or_default().extend(&payload);
                if let Ok(size @ 1..) = u32::try_from(payload.len()) {
                    for of in [0, id] {
                        write(&mut stream, WINDOW_UPDATE, 0, of, &size.to_be_bytes()).await?;
                    }
                }
            }
            _ => {}
        }
        if !matches!(kind, HEADERS | DATA) || flags & END_STREAM == 0 {
            continue;
        }
        let deed = judge.judge(bodies.remove(&id).unwrap_or_default());
        match deed {
            ServerAction::Answers | ServerAction::HalfCloses => {
                let flags = END_STREAM | END_HEADERS;
                write(&mut stream, HEADERS, flags, id, &OK).await?;
            }
            ServerAction::Dribbles(pause) => {
                let frame = frame(HEADERS, END_STREAM | END_HEADERS, id, &OK)?;
                dribble(&mut stream, &frame, pause).await?;
            }
            // Not possible over TLS, where the response and the end of the connection are sent
            // together.
            ServerAction::Resets => return Err(std::io::Error::other("use `Closes` over TLS")),
            ServerAction::FallsSilent => std::future::pending().await,
            ServerAction::Refuses => {
                write(
                    &mut stream,
                    RST_STREAM,
                    0,
                    id,
                    &REFUSED_STREAM.to_be_bytes(),
                )
                .await?;
            }
            ServerAction::GoesAway | ServerAction::GoesAwayAfter => {
                let last = if deed == ServerAction::GoesAway {
                    id.saturating_sub(2)
                } else {
                    id
                };
                let payload = [last.to_be_bytes(), [0; 4]].concat();
                write(&mut stream, GOAWAY, 0, 0, &payload).await?;
                return stream.shutdown().await;
            }
            ServerAction::Closes => return stream.shutdown().await,
        }
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await?;
    let size = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let id = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
    let mut payload = vec![0; size as usize];
    stream.read_exact(&mut payload).await?;
    Ok((head[3], head[4], id, payload))
}

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    kind: u8,
    flags: u8,
    id: u32,
    payload: &[u8],
) -> std::io::Result<()> {
    stream.write_all(&frame(kind, flags, id, payload)?).await?;
    stream.flush().await
}

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> std::io::Result<Vec<u8>> {
    let size = u32::try_from(payload.len()).map_err(std::io::Error::other)?;
    let mut frame = size.to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(id.to_be_bytes());
    frame.extend(payload);
    Ok(frame)
}
