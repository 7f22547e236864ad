//! The HTTP client of all senders: guarded, bounded, without redirects, with honest endings.

mod connector;
pub(crate) mod fault;
mod retry_after;
#[cfg(test)]
mod tests;
mod tunnel;

use std::{
    io::Write as _,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;

use crate::{
    config::ProxyConfig,
    destination::{
        dial::Dialer,
        egress::Refusal,
        http::connector::GuardedConnector,
        tls::{self, Identity},
        transcript::{EXPLANATION_BYTES_MAX, Masker},
        verdict::{Advice, Verdict},
    },
};

pub(crate) use retry_after::retry_after;

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// Bytes of an answer's headers.
const ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Connections that are kept for the next message to the same host.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long a connection is kept for the next message.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);

/// Bodies below it are never compressed: it would save nothing.
const COMPRESSED_BYTES_MIN: usize = 1024;

/// Clients that show a certificate and are kept with their connections.
const IDENTITIES_MAX: usize = 64;

type Connections = Client<HttpsConnector<GuardedConnector>, Full<Bytes>>;

/// Sends requests. Clones share the connections.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    dialer: Dialer,
    roots: Arc<RootCertStore>,
    proxy: Option<ProxyConfig>,
    client: Connections,
    /// Those that show a certificate, the one used last at the end: a connection is good for one.
    identified: Arc<Mutex<Vec<(Identity, Connections)>>>,
}

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether a large body is sent compressed.
    pub(crate) compress: bool,
    /// The certificate that is shown, if any.
    pub(crate) identity: Option<Identity>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// At most the first 64 kB.
    pub(crate) body: Bytes,
    /// How the body ended.
    pub(crate) end: BodyEnd,
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// By itself.
    Whole,
    /// It went on beyond what is read.
    Cut,
    /// It broke off, or took too long.
    Broken,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendFailure {
    /// Nothing was sent: the guard does not allow it.
    #[error(transparent)]
    Blocked(#[from] Refusal),
    /// Nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    NoAnswer(Duration),
    /// It was sent, and its end is not known.
    #[error("{0}")]
    Unknown(String),
}

impl HttpClient {
    /// A client that dials and trusts as it is told.
    pub(crate) fn new(
        dialer: Dialer,
        roots: Arc<RootCertStore>,
        proxy: Option<ProxyConfig>,
    ) -> Self {
        let config = tls::client_config(Arc::clone(&roots));
        Self {
            client: connections(config, dialer.clone(), proxy.clone()),
            identified: Arc::default(),
            dialer,
            roots,
            proxy,
        }
    }

    /// The connections on which that certificate is shown.
    fn shown(&self, identity: Identity) -> Result<Connections, SendFailure> {
        let mut identified = self
            .identified
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = identified.iter().position(|(known, _)| *known == identity);
        let client = if let Some(at) = known {
            identified.remove(at).1
        } else {
            let config = tls::client_config_of(Arc::clone(&self.roots), &identity);
            let config = config.map_err(|_bad| {
                SendFailure::Unreachable("the certificate of `auth.mtls` cannot be used".into())
            })?;
            connections(config, self.dialer.clone(), self.proxy.clone())
        };
        if identified.len() >= IDENTITIES_MAX {
            identified.remove(0);
        }
        identified.push((identity, client.clone()));
        Ok(client)
    }

    /// Sends a request and reads the answer, both within that time.
    ///
    /// # Cancel safety
    /// A dropped call may have sent the request.
    pub(crate) async fn send(
        &self,
        request: HttpRequest,
        timeout: Duration,
    ) -> Result<Answer, SendFailure> {
        let deadline = Instant::now() + timeout;
        let url = self.dialer.guard().check_url(&request.url)?;
        let mut head = Request::builder()
            .method(request.method)
            .uri(&url[..url::Position::AfterQuery]);
        let mut body = request.body;
        let packed = (request.compress && body.len() >= COMPRESSED_BYTES_MIN).then(|| gzip(&body));
        let is_packed = packed.is_some();
        if let Some(packed) = packed {
            body = packed;
        }
        if let Some(headers) = head.headers_mut() {
            *headers = request.headers;
            headers
                .entry(header::USER_AGENT)
                .or_insert(HeaderValue::from_static(USER_AGENT));
            if is_packed {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
        }
        let client = match request.identity {
            Some(identity) => self.shown(identity)?,
            None => self.client.clone(),
        };
        let request = head.body(Full::new(body)).map_err(|error| {
            SendFailure::Unreachable(format!("the request cannot be made: {error}"))
        })?;
        let answer = tokio::time::timeout_at(deadline, client.request(request)).await;
        let (head, body) = answer
            .map_err(|_elapsed| SendFailure::NoAnswer(timeout))?
            .map_err(|error| fault::classify(&error))?
            .into_parts();
        let (body, end) = read_start(body, deadline).await;
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
            end,
        })
    }
}

/// Connections that are kept for later requests.
fn connections(tls: ClientConfig, dialer: Dialer, proxy: Option<ProxyConfig>) -> Connections {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(GuardedConnector::new(dialer, proxy));
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIME_MAX)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .http1_max_buf_size(ANSWER_HEAD_BYTES_MAX)
        .build(connector)
}

/// What receivers see of who sends.
pub(crate) const USER_AGENT: &str = concat!("Bellwether/", env!("CARGO_PKG_VERSION"));

/// A body as `content-encoding: gzip` has it.
fn gzip(body: &[u8]) -> Bytes {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let written = packed.write_all(body).and_then(|()| packed.finish());
    written.expect("memory takes all that is written").into()
}

/// Reads until the end, the limit, the deadline or a fault.
async fn read_start(mut body: Incoming, deadline: Instant) -> (Bytes, BodyEnd) {
    let mut read = BytesMut::new();
    loop {
        match tokio::time::timeout_at(deadline, body.frame()).await {
            Ok(None) => return (read.freeze(), BodyEnd::Whole),
            Ok(Some(Ok(frame))) => {
                let Some(data) = frame.data_ref() else {
                    continue;
                };
                let left = ANSWER_BYTES_MAX - read.len();
                read.extend_from_slice(&data[..data.len().min(left)]);
                if data.len() > left {
                    return (read.freeze(), BodyEnd::Cut);
                }
            }
            Ok(Some(Err(_))) | Err(_) => return (read.freeze(), BodyEnd::Broken),
        }
    }
}

impl SendFailure {
    /// The verdict on an attempt that ended so.
    pub(crate) fn verdict(&self, masker: &Masker) -> Verdict {
        let explanation = masker.mask(&self.to_string(), EXPLANATION_BYTES_MAX);
        match self {
            Self::Blocked(_) => Verdict::blocked(explanation),
            Self::Unreachable(_) | Self::NoAnswer(_) => Verdict::unreachable(explanation),
            Self::Unknown(_) => Verdict::unknown(explanation),
        }
    }
}

impl Answer {
    /// The verdict by the HTTP status alone.
    pub(crate) fn verdict(&self, masker: &Masker, now_ms: i64) -> Verdict {
        let status = self.status;
        if status.is_success() {
            return Verdict::delivered(format!("the receiver answered {status}"));
        }
        let said = self.first_line();
        let explanation = if status.is_redirection() {
            let to = self.headers.get(header::LOCATION);
            let to = to
                .and_then(|to| to.to_str().ok())
                .unwrap_or("another address");
            format!("the receiver answered {status} and points to {to}; redirects are not followed")
        } else if said.is_empty() {
            format!("the receiver answered {status}")
        } else {
            format!("the receiver answered {status}: {said}")
        };
        let advice = self.advice(now_ms);
        let wish = match advice {
            Advice::AgainAfter(wait) => format!(" (it asks to wait {} s)", wait.as_secs()),
            _ => String::new(),
        };
        let left_bytes = EXPLANATION_BYTES_MAX.saturating_sub(wish.len());
        let explanation = masker.mask(&explanation, left_bytes);
        Verdict::rejected(explanation + &wish, advice)
    }

    /// What to do when this answer means a failure.
    pub(crate) fn advice(&self, now_ms: i64) -> Advice {
        match self.status.as_u16() {
            410 => Advice::Pause,
            408 | 425 | 429 => self.again(now_ms),
            400 | 413 | 415 | 422 => Advice::GiveUp,
            300..=399 | 401..=405 | 407 => Advice::Mend,
            400..=499 => Advice::FewMore,
            _ => self.again(now_ms),
        }
    }

    /// Another try, when the receiver says.
    pub(crate) fn again(&self, now_ms: i64) -> Advice {
        retry_after(&self.headers, now_ms).map_or(Advice::Again, Advice::AgainAfter)
    }

    /// The first line of the body, for people.
    fn first_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.unwrap_or_default().into()
    }
}
