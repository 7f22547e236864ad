//! The HTTP client of all senders: guarded, bounded, and without redirects.

mod body;
mod connector;
pub(crate) mod error;
mod line;
mod origins;
mod retry_after;
pub(crate) mod route;
#[cfg(test)]
mod tests;
mod tunnel;

use std::{
    io::Write as _,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use rustls::ClientConfig;
use tokio::time::Instant;
use tower::Service as _;
use url::{Position, Url};

use crate::{
    dial::Dialer,
    egress::Refusal,
    http::{
        body::{OutgoingBody, SentFlag},
        connector::GuardedConnector,
        error::RequestFailure,
        line::{PeerAddress, ResponseFlag},
        origins::{Connections, Origins},
        route::Route,
    },
    times::ExchangeTimes,
    tls::{self, Identity, Trust},
    transcript::{EXPLANATION_BYTES_MAX, Masker},
    verdict::{Advice, Verdict},
};

pub(crate) use retry_after::retry_after_from_headers;
use retry_after::retry_after_in_body;

const ANSWER_BYTES_MAX: usize = 64 * 1024;
const COMPRESSED_BYTES_MIN: usize = 1024;
/// Number of bytes of a body that are searched for the start of a web page.
const PAGE_START_BYTES: usize = 1024;

const IDENTITIES_MAX: usize = 64;

/// Maximum number of resends per attempt of a request that a receiver did not process.
const RESENDS_MAX: u32 = 8;
/// Pause before the second resend; doubled each time.
const RESEND_PAUSE: Duration = Duration::from_millis(50);

/// An HTTP client. Clones share the connections.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    dialer: Dialer,
    trust: Trust,
    route: Arc<Route>,
    origins: Origins,
    /// Clients that present a certificate, most recently used last. Connections are not shared
    /// between certificates.
    identified: Arc<Mutex<Vec<(Identity, Origins)>>>,
}

#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) compress: bool,
    pub(crate) identity: Option<Identity>,
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// At most the first 64 kB.
    pub(crate) body: Bytes,
    pub(crate) end: BodyEnd,
    pub(crate) times: ExchangeTimes,
    /// The remote address; `None` if a proxy forwards the request.
    pub(crate) address: Option<SocketAddr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Whole,
    /// Longer than the limit.
    Cut,
    /// Aborted or timed out.
    Broken,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SendFailure {
    /// Nothing was sent: the guard refused it.
    #[error(transparent)]
    Blocked(#[from] Refusal),
    /// Nothing was sent.
    #[error("{0}")]
    Unreachable(String),
    /// The request was sent, but no response arrived in time.
    #[error("no response within {0:?}; the request was sent")]
    NoAnswer(Duration),
    /// The timeout elapsed before the request was sent.
    #[error("the request was not sent within {0:?}")]
    NotSent(Duration),
    /// The request was sent, and its outcome is unknown.
    #[error("{0}")]
    Unknown(String),
    #[error("the request was rendered but not sent")]
    OnlyRendered,
}

impl HttpClient {
    pub(crate) fn new(dialer: Dialer, trust: Trust, route: Route) -> Self {
        let route = Arc::new(route);
        let config = tls::client_config(&trust);
        Self {
            origins: new_origins(config, dialer.clone(), Arc::clone(&route)),
            identified: Arc::default(),
            dialer,
            trust,
            route,
        }
    }

    /// Whether a connection to the server of a URL, or to its proxy, can be opened.
    pub(crate) async fn can_connect(&self, url: &Url) -> bool {
        let Ok(uri) = url.as_str().parse() else {
            return false;
        };
        let mut connector = GuardedConnector::new(self.dialer.clone(), Arc::clone(&self.route));
        let connecting = connector.call(uri);
        connecting.await.is_ok()
    }

    pub(crate) fn with_fresh_connections(&self) -> Self {
        Self {
            origins: self.origins.with_fresh_connections(),
            identified: Arc::default(),
            ..self.clone()
        }
    }

    fn origins_for_identity(&self, identity: Identity) -> Result<Origins, SendFailure> {
        let mut identified = self
            .identified
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let known = identified.iter().position(|(known, _)| *known == identity);
        let origins = if let Some(at) = known {
            identified.remove(at).1
        } else {
            let config = tls::client_config_with_identity(&self.trust, &identity);
            let config = config.map_err(|_bad| {
                SendFailure::Unreachable("the certificate in `auth.mtls` is unusable".into())
            })?;
            new_origins(config, self.dialer.clone(), Arc::clone(&self.route))
        };
        if identified.len() >= IDENTITIES_MAX {
            identified.remove(0);
        }
        identified.push((identity, origins.clone()));
        Ok(origins)
    }

    /// Checks a URL without resolving its host name.
    pub(crate) fn check(&self, url: &str) -> Result<Url, Refusal> {
        self.dialer.egress_guard().check_url(url)
    }

    /// Sends a request and reads the response within the timeout.
    ///
    /// Connections to an origin that did not respond are not reused. A request is resent over
    /// another connection if the receiver did not process it, or if it has an `idempotency-key` and
    /// its reused connection was closed without a response.
    ///
    /// # Cancel safety
    /// The request may have been sent when the future is dropped.
    pub(crate) async fn send(
        &self,
        request: HttpRequest,
        timeout: Duration,
    ) -> Result<HttpResponse, SendFailure> {
        let deadline = Instant::now() + timeout;
        let url = self.check(&request.url)?;
        let origin = url.origin().ascii_serialization();
        let origins = match request.identity.clone() {
            Some(identity) => self.origins_for_identity(identity)?,
            None => self.origins.clone(),
        };
        let is_repeatable = request.headers.contains_key("idempotency-key");
        let authorization = self.route.authorization(&url);
        let request = build_request(request, &url, authorization)?;
        self.drop_moved_connections(&origins, &origin, &url).await;
        let (mut unprocessed, mut was_stale) = (0, false);
        loop {
            let (number, connections) = origins.connections(&origin);
            let sent = send_once(&connections, &request, deadline, timeout).await;
            if let Ok(HttpResponse {
                address: Some(address),
                ..
            }) = &sent
            {
                origins.record_address(&origin, number, *address);
            }
            let lost = match sent {
                Ok(answer) if answer.status != StatusCode::MISDIRECTED_REQUEST => {
                    return Ok(answer);
                }
                Ok(answer) if unprocessed > 0 => return Ok(answer),
                Ok(_other_connection_wanted) => RequestFailure::Unprocessed,
                Err(lost) => lost,
            };
            if !matches!(lost, RequestFailure::Refused(_)) {
                origins.remove(&origin, number);
            }
            match lost {
                RequestFailure::Unprocessed if unprocessed < RESENDS_MAX => {
                    let pause = match unprocessed {
                        0 => Duration::ZERO,
                        again => RESEND_PAUSE.saturating_mul(1 << (again - 1)),
                    };
                    unprocessed += 1;
                    tokio::time::sleep_until(deadline.min(Instant::now() + pause)).await;
                }
                RequestFailure::Unprocessed => {
                    let times = unprocessed + 1;
                    let said = format!("the receiver refused the stream {times} times");
                    return Err(SendFailure::Unreachable(said));
                }
                RequestFailure::Stale(_) if is_repeatable && !was_stale => was_stale = true,
                RequestFailure::Stale(failure)
                | RequestFailure::Refused(failure)
                | RequestFailure::Broken(failure) => {
                    return Err(failure);
                }
            }
        }
    }
}

const ADDRESS_CHECK_TIMEOUT: Duration = Duration::from_secs(1);

impl HttpClient {
    /// Removes the connections to an origin from the pool if DNS no longer returns their addresses.
    async fn drop_moved_connections(&self, origins: &Origins, origin: &str, url: &Url) {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return;
        };
        let host = host.trim_matches(['[', ']']);
        let is_direct = self
            .route
            .proxy_route(host, port, url.scheme() == "https")
            .is_none();
        let Some((number, used)) = origins
            .addresses_due_for_check(origin)
            .filter(|_| is_direct)
        else {
            return;
        };
        let found = self.dialer.resolve(host, port);
        // Without a response, the connections are kept.
        if let Ok(Ok(found)) = tokio::time::timeout(ADDRESS_CHECK_TIMEOUT, found).await
            && !found.is_empty()
            && used.iter().any(|address| !found.contains(address))
        {
            origins.remove(origin, number);
        }
    }
}

fn build_request(
    request: HttpRequest,
    url: &Url,
    proxy_authorization: Option<HeaderValue>,
) -> Result<Request<Bytes>, SendFailure> {
    let mut head = Request::builder()
        .method(request.method)
        .uri(&url[..Position::AfterQuery]);
    let mut body = request.body;
    let packed = (request.compress && body.len() >= COMPRESSED_BYTES_MIN).then(|| compress(&body));
    let is_packed = packed.is_some();
    if let Some(packed) = packed {
        body = packed;
    }
    if let Some(headers) = head.headers_mut() {
        *headers = request.headers;
        headers
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(USER_AGENT));
        headers.extend(proxy_authorization.map(|it| (header::PROXY_AUTHORIZATION, it)));
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    head.body(body)
        .map_err(|error| SendFailure::Unreachable(format!("failed to build the request: {error}")))
}

async fn send_once(
    connections: &Connections,
    request: &Request<Bytes>,
    deadline: Instant,
    timeout: Duration,
) -> Result<HttpResponse, RequestFailure> {
    let body = OutgoingBody::new(request.body().clone());
    let sent = body.sent_flag();
    let mut outgoing = request.clone().map(|_bytes| body);
    let connection = capture_connection(&mut outgoing);
    let begun = Instant::now();
    let mut connecting = connection.clone();
    let mut answer = pin!(tokio::time::timeout_at(
        deadline,
        connections.request(outgoing)
    ));
    let connected = async { drop(connecting.wait_for_connection_metadata().await) };
    let (answer, connected) = tokio::select! {
        biased;
        answer = &mut answer => (answer, None),
        () = connected => {
            let connected = begun.elapsed();
            (answer.await, Some(connected))
        }
    };
    let answer = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => {
            return Err(error::classify(
                &error,
                connection_progress(&connection, &sent),
            ));
        }
        Err(_elapsed) => {
            let is_sent = connection_progress(&connection, &sent).is_sent;
            let failure = if is_sent {
                SendFailure::NoAnswer(timeout)
            } else {
                SendFailure::NotSent(timeout)
            };
            return Err(RequestFailure::Broken(failure));
        }
    };
    let mut times = ExchangeTimes {
        first_byte: begun.elapsed(),
        ..ExchangeTimes::default()
    };
    let is_tls = request.uri().scheme_str() == Some("https");
    let address = answer.extensions().get::<PeerAddress>().map(|peer| peer.0);
    if let Some(answered) = answer.extensions().get::<ResponseFlag>() {
        if !answered.is_set() {
            let dialed = answer.extensions().get().copied();
            times.record_connection(dialed.unwrap_or_default(), connected.filter(|_| is_tls));
        }
        answered.set();
    }
    let (head, body) = answer.into_parts();
    let (body, end) = read_limited_body(body, deadline).await;
    times.total = begun.elapsed();
    Ok(HttpResponse {
        status: head.status,
        headers: head.headers,
        body,
        end,
        times,
        address,
    })
}

#[derive(Debug, Clone, Copy)]
struct ConnectionProgress {
    /// Whether the request was handed to a connection completely.
    is_sent: bool,
    /// Whether the connection had received a response before.
    is_reused: bool,
}

fn connection_progress(connection: &CaptureConnection, sent: &SentFlag) -> ConnectionProgress {
    let connection = connection.connection_metadata();
    let mut extras = http::Extensions::new();
    if let Some(connection) = &*connection {
        connection.get_extras(&mut extras);
    }
    ConnectionProgress {
        is_sent: connection.is_some() && sent.is_fully_sent(),
        is_reused: extras.get().is_some_and(ResponseFlag::is_set),
    }
}

fn new_origins(tls: ClientConfig, dialer: Dialer, route: Arc<Route>) -> Origins {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(GuardedConnector::new(dialer, route));
    Origins::new(connector)
}

pub(crate) const USER_AGENT: &str = concat!("Bellwether/", env!("CARGO_PKG_VERSION"));

fn compress(body: &[u8]) -> Bytes {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let written = packed.write_all(body).and_then(|()| packed.finish());
    written.expect("writing to memory does not fail").into()
}

/// Reads the body until its end, the limit, the deadline or an error.
async fn read_limited_body(mut body: Incoming, deadline: Instant) -> (Bytes, BodyEnd) {
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
    pub(crate) fn verdict(&self, masker: &Masker) -> Verdict {
        let explanation = masker.mask(&self.to_string(), EXPLANATION_BYTES_MAX);
        match self {
            Self::Blocked(_) => Verdict::new_blocked(explanation),
            Self::Unreachable(_) | Self::NotSent(_) => Verdict::new_unreachable(explanation),
            Self::NoAnswer(_) | Self::Unknown(_) => Verdict::new_unknown(explanation),
            // Nothing is known that would prevent the delivery.
            Self::OnlyRendered => Verdict::new_delivered(explanation),
        }
    }
}

impl HttpResponse {
    pub(crate) fn verdict(&self, masker: &Masker, now_ms: i64) -> Verdict {
        let status = self.status;
        if status.is_success() {
            return Verdict::new_delivered(format!("the receiver returned {status}"));
        }
        let said = self.first_line();
        let explanation = if status.is_redirection() {
            let to = self.headers.get(header::LOCATION);
            let to = to
                .and_then(|to| to.to_str().ok())
                .unwrap_or("another address");
            format!(
                "the receiver returned {status} with a redirect to {to}; redirects are not followed"
            )
        } else if said.is_empty() {
            format!("the receiver returned {status}")
        } else {
            format!("the receiver returned {status}: {said}")
        };
        let advice = self.advice(now_ms);
        let wish = match advice {
            Advice::AgainAfter(wait) | Advice::Limited(Some(wait)) => {
                format!(" (retry after {} s)", wait.as_secs_f64())
            }
            _ => String::new(),
        };
        let left_bytes = EXPLANATION_BYTES_MAX.saturating_sub(wish.len());
        let explanation = masker.mask(&explanation, left_bytes);
        Verdict::new_rejected(explanation + &wish, advice)
    }

    pub(crate) fn advice(&self, now_ms: i64) -> Advice {
        let requested = self.requested_wait(now_ms);
        let again = requested.map_or(Advice::Again, Advice::AgainAfter);
        match (self.status.as_u16(), requested) {
            (403 | 413 | 503, Some(_)) | (429, _) => Advice::Limited(requested),
            (408 | 421 | 425, _) => again,
            (400 | 413 | 415 | 422, _) => Advice::Reduce,
            (300..=399 | 401..=405 | 407 | 410, _) => Advice::Fix,
            (400..=499, _) => Advice::FewMore,
            _ => again,
        }
    }

    /// Returns the advice to retry, after the time that the receiver requests.
    pub(crate) fn retry_advice(&self, now_ms: i64) -> Advice {
        let requested = self.requested_wait(now_ms);
        requested.map_or(Advice::Again, Advice::AgainAfter)
    }

    /// Returns the advice to retry at the time that the receiver requests, without counting the
    /// attempt.
    pub(crate) fn rate_limit_advice(&self, now_ms: i64) -> Advice {
        Advice::Limited(self.requested_wait(now_ms))
    }

    fn requested_wait(&self, now_ms: i64) -> Option<Duration> {
        let is_limit = matches!(self.status.as_u16(), 429 | 503) || self.status.is_success();
        let in_body = || is_limit.then(|| retry_after_in_body(&self.body)).flatten();
        retry_after_from_headers(&self.headers, now_ms).or_else(in_body)
    }

    pub(crate) fn is_web_page(&self) -> bool {
        let content_type = self.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.map_or(&[][..], HeaderValue::as_bytes);
        let start = &self.body[..self.body.len().min(PAGE_START_BYTES)];
        let start = String::from_utf8_lossy(start).to_ascii_lowercase();
        let start = start.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        let is_html = content_type.to_ascii_lowercase().starts_with(b"text/html");
        let is_markup = is_html && start.starts_with('<');
        is_markup || start.starts_with("<!doctype html") || start.starts_with("<html")
    }

    fn first_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.unwrap_or_default().into()
    }
}
