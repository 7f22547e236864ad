//! Tests of the HTTP client with real sockets.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use http::{HeaderMap, Method};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use super::{BodyEnd, HttpClient, HttpRequest, HttpResponse, SendFailure, route::Route};
use crate::{
    config::EgressConfig,
    dial::{Dialer, Resolve, SystemResolver},
    domain::Outcome,
    egress::EgressGuard,
    sending::receiver::{Receiver, Reply},
    tls,
    transcript::Masker,
    verdict::{Advice, Verdict},
};

const TIMEOUT: Duration = Duration::from_secs(10);

fn client(allow: &str) -> HttpClient {
    client_with(allow, Arc::new(SystemResolver))
}

fn client_with(allow: &str, resolver: Arc<dyn Resolve>) -> HttpClient {
    let config = EgressConfig {
        allow: allow
            .split_whitespace()
            .map(|text| text.parse().unwrap())
            .collect(),
        allow_names: Vec::new(),
        ..EgressConfig::default()
    };
    let guard = Arc::new(EgressGuard::new(&config, Vec::new()));
    let dialer = Dialer::new(guard, resolver, Duration::from_secs(1));
    HttpClient::new(dialer, tls::Trust::new(&[]), Route::default())
}

async fn post(
    client: &HttpClient,
    url: &str,
    timeout: Duration,
) -> Result<HttpResponse, SendFailure> {
    let request = HttpRequest {
        method: Method::POST,
        url: url.into(),
        headers: HeaderMap::new(),
        body: "hello".into(),
        compress: false,
        identity: None,
    };
    client.send(request, timeout).await
}

async fn verdict_on(reply: Reply) -> Verdict {
    // Only a missing or endless response may exceed the timeout, even on a busy machine.
    let timeout = match reply {
        Reply::Hang => Duration::from_millis(300),
        Reply::Endless => Duration::from_secs(2),
        _ => TIMEOUT,
    };
    let receiver = Receiver::start(move |_| reply.clone()).await;
    match post(&client("127.0.0.0/8"), &receiver.url("/"), timeout).await {
        Ok(answer) => answer.verdict(&Masker::default(), 0),
        Err(failure) => failure.verdict(&Masker::default()),
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of endings")]
async fn every_outcome_maps_to_its_verdict() {
    use Outcome::{Delivered, Rejected, Unknown};
    let header = |name, value: &str| vec![(name, value.to_owned())];
    let cases = [
        (Reply::status(200), Delivered, "200 OK", Advice::Again),
        (Reply::status(204), Delivered, "204", Advice::Again),
        (
            Reply::Answer(400, Vec::new(), "\n no such hook\nmore".into()),
            Rejected,
            "400 Bad Request: no such hook",
            Advice::Reduce,
        ),
        (Reply::status(401), Rejected, "401", Advice::Fix),
        (Reply::status(402), Rejected, "402", Advice::Fix),
        (Reply::status(403), Rejected, "403", Advice::Fix),
        (
            Reply::Answer(403, header("retry-after", "0.5"), String::new()),
            Rejected,
            "403 Forbidden (retry after 0.5 s)",
            Advice::Limited(Some(Duration::from_millis(500))),
        ),
        (Reply::status(404), Rejected, "404", Advice::Fix),
        (Reply::status(405), Rejected, "405", Advice::Fix),
        (Reply::status(407), Rejected, "407", Advice::Fix),
        (Reply::status(421), Rejected, "421", Advice::Again),
        (
            Reply::Answer(
                429,
                Vec::new(),
                r#"{"parameters":{"retry_after":35}}"#.into(),
            ),
            Rejected,
            "(retry after 35 s)",
            Advice::Limited(Some(Duration::from_secs(35))),
        ),
        (Reply::status(409), Rejected, "409", Advice::FewMore),
        (Reply::status(413), Rejected, "413", Advice::Reduce),
        (Reply::status(415), Rejected, "415", Advice::Reduce),
        (Reply::status(422), Rejected, "422", Advice::Reduce),
        (Reply::status(408), Rejected, "408", Advice::Again),
        (Reply::status(410), Rejected, "410", Advice::Fix),
        (
            Reply::Answer(429, header("retry-after", "7"), String::new()),
            Rejected,
            "429 Too Many Requests (retry after 7 s)",
            Advice::Limited(Some(Duration::from_secs(7))),
        ),
        (Reply::status(429), Rejected, "429", Advice::Limited(None)),
        (Reply::status(500), Rejected, "500", Advice::Again),
        (
            Reply::Answer(500, header("retry-after", "3"), String::new()),
            Rejected,
            "(retry after 3 s)",
            Advice::AgainAfter(Duration::from_secs(3)),
        ),
        (Reply::status(503), Rejected, "503", Advice::Again),
        (
            Reply::Answer(503, header("retry-after", "60"), String::new()),
            Rejected,
            "503",
            Advice::Limited(Some(Duration::from_secs(60))),
        ),
        (
            Reply::Answer(302, header("location", "http://elsewhere/"), String::new()),
            Rejected,
            "with a redirect to http://elsewhere/; redirects are not followed",
            Advice::Fix,
        ),
        (
            Reply::Hang,
            Unknown,
            "no response within 300ms",
            Advice::Again,
        ),
        (
            Reply::Close,
            Unknown,
            "closed without a response",
            Advice::Again,
        ),
        (Reply::Huge, Delivered, "200", Advice::Again),
        (Reply::HalfWay, Delivered, "200", Advice::Again),
        (Reply::Endless, Delivered, "200", Advice::Again),
    ];
    for (reply, outcome, text, advice) in cases {
        let verdict = verdict_on(reply.clone()).await;
        assert_eq!(verdict.outcome, outcome, "{reply:?}: {verdict:?}");
        assert!(verdict.explanation.contains(text), "{reply:?}: {verdict:?}");
        assert_eq!(verdict.advice, advice, "{reply:?}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let target = Receiver::start(|_| Reply::status(200)).await;
    let to = target.url("/");
    let receiver =
        Receiver::start(move |_| Reply::Answer(307, vec![("location", to.clone())], String::new()))
            .await;
    let answer = post(&client("127.0.0.0/8"), &receiver.url("/"), TIMEOUT)
        .await
        .unwrap();
    assert_eq!(answer.status, 307);
    assert_eq!(target.count(), 0);
}

#[tokio::test]
async fn response_body_is_limited_to_64_kib() {
    let receiver = Receiver::start(|_| Reply::Huge).await;
    let answer = post(&client("127.0.0.0/8"), &receiver.url("/"), TIMEOUT)
        .await
        .unwrap();
    assert_eq!((answer.body.len(), answer.end), (64 * 1024, BodyEnd::Cut));
}

#[tokio::test]
async fn connections_are_reused() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let dials = Arc::new(Counted::default());
    let client = client_with("127.0.0.0/8", Arc::clone(&dials) as Arc<dyn Resolve>);
    for _ in 0..10 {
        post(&client, &receiver.url("/"), TIMEOUT).await.unwrap();
    }
    assert_eq!(receiver.count(), 10);
    assert_eq!(dials.0.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn connection_failures_are_unreachable() {
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let cases = [
        (format!("http://{closed}/"), "connection refused"),
        ("http://name.invalid/".into(), "cannot be resolved"),
        (
            format!("https://{}/", receiver.addr),
            "secure connection failed",
        ),
    ];
    for (url, text) in cases {
        let failure = post(&client("127.0.0.0/8"), &url, TIMEOUT)
            .await
            .unwrap_err();
        assert!(
            matches!(failure, SendFailure::Unreachable(_)),
            "{url}: {failure:?}"
        );
        assert!(failure.to_string().contains(text), "{url}: {failure}");
    }
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn non_http_response_has_unknown_outcome() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(async move {
        let (mut stream, _peer) = listener.accept().await.unwrap();
        stream
            .read_buf(&mut Vec::with_capacity(1024))
            .await
            .unwrap();
        stream
            .write_all(b"220 mail.example.com ESMTP\r\n")
            .await
            .unwrap();
    });
    let failure = post(&client("127.0.0.0/8"), &url, TIMEOUT)
        .await
        .unwrap_err();
    assert!(matches!(failure, SendFailure::Unknown(_)), "{failure:?}");
}

/// Sends the same raw response to every request.
async fn raw(answer: Vec<u8>) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let mut server = JoinSet::new();
    server.spawn(async move {
        while let Ok((mut stream, _peer)) = listener.accept().await {
            let mut request = Vec::with_capacity(1024);
            stream.read_buf(&mut request).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        }
    });
    (url, server)
}

#[tokio::test]
async fn responses_with_unusual_headers_are_accepted() {
    let many: Vec<_> = (0..200).map(|n| format!("x-header-{n}: {n}\r\n")).collect();
    let many = many.concat();
    let cookies = "set-cookie: a=\"b,c\"; path=/; \u{e9}\r\nset-cookie: b=[1]{2}; HttpOnly\r\n";
    let cases: [(&str, &str); 8] = [
        ("plain", ""),
        ("folded", "x-folded: one\r\n two\r\n\tthree\r\n"),
        ("many", &many),
        ("cookies", cookies),
        ("a name with a blank", "x bad: v\r\n"),
        ("a name with odd letters", "x@y[z]: v\r\n\u{fc}: v\r\n"),
        ("a blank before the colon", "x-blank : v\r\n"),
        ("no colon", "whatever\r\n"),
    ];
    for (what, headers) in cases {
        let answer = format!("HTTP/1.1 200 OK\r\n{headers}content-length: 2\r\n\r\nok");
        let (url, _server) = raw(answer.into_bytes()).await;
        let answer = post(&client("127.0.0.0/8"), &url, TIMEOUT).await;
        let answer = answer.unwrap_or_else(|failure| panic!("{what}: {failure}"));
        assert_eq!(
            (answer.status.as_u16(), &answer.body[..]),
            (200, &b"ok"[..]),
            "{what}"
        );
    }
}

#[tokio::test]
async fn guard_checks_resolved_addresses() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let port = receiver.addr.port();
    let failure = post(&client(""), &format!("http://localhost:{port}/"), TIMEOUT).await;
    assert!(
        matches!(failure, Err(SendFailure::Blocked(_))),
        "{failure:?}"
    );
    let failure = post(&client(""), &receiver.url("/"), TIMEOUT).await;
    assert!(
        matches!(failure, Err(SendFailure::Blocked(_))),
        "{failure:?}"
    );
    let client = client_with("", Arc::new(Turning));
    let failure = post(&client, &format!("http://rebind.example:{port}/"), TIMEOUT).await;
    assert!(
        matches!(failure, Err(SendFailure::Blocked(_))),
        "{failure:?}"
    );
    assert_eq!(receiver.count(), 0);
}

/// Counts lookups: one per connection.
#[derive(Debug, Default)]
struct Counted(std::sync::atomic::AtomicUsize);

#[async_trait]
impl Resolve for Counted {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        SystemResolver.resolve(host, port).await
    }
}

/// Always resolves to an internal address.
#[derive(Debug)]
struct Turning;

#[async_trait]
impl Resolve for Turning {
    async fn resolve(&self, _host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))])
    }
}

/// Resolves every name to the current address.
#[derive(Debug)]
struct Moving(std::sync::Mutex<SocketAddr>);

#[async_trait]
impl Resolve for Moving {
    async fn resolve(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![*self.0.lock().unwrap()])
    }
}

#[tokio::test]
async fn connection_is_closed_when_dns_no_longer_returns_its_address() {
    let old = Receiver::start(|_| Reply::status(200)).await;
    let new = Receiver::start(|_| Reply::status(200)).await;
    let moving = Arc::new(Moving(std::sync::Mutex::new(old.addr)));
    let client = client_with("127.0.0.0/8", Arc::clone(&moving) as _);
    let url = format!("http://moving.example:{}/", old.addr.port());
    post(&client, &url, TIMEOUT).await.unwrap();
    *moving.0.lock().unwrap() = new.addr;
    // Longer than the time between two checks.
    tokio::time::sleep(Duration::from_millis(2_100)).await;
    post(&client, &url, TIMEOUT).await.unwrap();
    assert_eq!((old.count(), new.count()), (1, 1));
}
