//! Requests through a proxy: the guard checks the target, and the proxy's response is reported.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

use super::{SenderParts, sending, webhook};
use crate::{
    config::{NoProxy, ProxyConfig},
    domain::{DestinationKind, Outcome},
    sending::receiver::{Receiver, Reply},
};

/// Starts a proxy that records requests. It returns the fixed response `answer`, or else connects
/// or forwards.
async fn proxy(answer: Option<&'static str>) -> (u16, mpsc::Receiver<String>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, heads) = mpsc::channel(16);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut tunnels = JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(byte) = client.read_u8().await else {
                    return;
                };
                head.push(byte);
            }
            let head = String::from_utf8(head).unwrap();
            let target = head.split(' ').nth(1).unwrap().to_owned();
            let _sent = sender.send(head.clone()).await;
            if let Some(answer) = answer {
                let _written = client.write_all(answer.as_bytes()).await;
                continue;
            }
            let authority = target.strip_prefix("http://").unwrap_or(&target);
            let authority = authority.split('/').next().unwrap().to_owned();
            let mut server = TcpStream::connect(authority).await.unwrap();
            if target.starts_with("http://") {
                server.write_all(head.as_bytes()).await.unwrap();
            } else {
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            }
            tunnels.spawn(async move {
                let _ended = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (port, heads, tasks)
}

fn by_way_of(world: &mut SenderParts, port: u16) {
    let address = format!("http://ada:pass%20word@127.0.0.1:{port}");
    world.config.egress.proxy = Some(ProxyConfig::parse(&address).unwrap());
}

#[tokio::test]
async fn http_requests_are_forwarded_by_the_proxy() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let (port, mut heads, _tasks) = proxy(None).await;
    let mut world = sending();
    by_way_of(&mut world, port);
    let url = receiver.url("/hook?x=1").replace("127.0.0.1", "localhost");
    let kind = DestinationKind::Webhook(webhook(url.clone()));
    let report = world.send(&kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    let head = heads.recv().await.unwrap();
    assert!(
        head.starts_with(&format!("PUT {url} HTTP/1.1\r\n")),
        "{head}"
    );
    let host = receiver.addr.port();
    for line in [
        format!("host: localhost:{host}\r\n"),
        "proxy-authorization: Basic YWRhOnBhc3Mgd29yZA==\r\n".into(),
    ] {
        assert!(head.contains(&line), "{line} in {head}");
    }
    let shown = report.transcript.request.unwrap().headers;
    assert!(!shown.contains_key("proxy-authorization"), "{shown:?}");
}

#[tokio::test]
async fn connect_uses_checked_address_unless_proxy_resolves_names() {
    // The target does not speak TLS; only the request to the proxy matters.
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let target = receiver.addr.port();
    for (by_name, host) in [(false, "127.0.0.1"), (true, "localhost")] {
        let (port, mut heads, _tasks) = proxy(None).await;
        let mut world = sending();
        by_way_of(&mut world, port);
        world.config.egress.proxy_by_name = by_name;
        let url = format!("https://localhost:{target}/hook");
        let report = world.send(&DestinationKind::Webhook(webhook(url))).await;
        assert_eq!(report.verdict.outcome, Outcome::Unreachable, "{report:?}");
        let head = heads.recv().await.unwrap();
        let line = format!("CONNECT {host}:{target} HTTP/1.1\r\n");
        let is_v6 = head.starts_with(&format!("CONNECT [::1]:{target} "));
        assert!(head.starts_with(&line) || !by_name && is_v6, "{head}");
        assert!(head.contains("proxy-authorization: Basic "), "{head}");
    }
}

#[tokio::test]
async fn no_proxy_hosts_are_reached_directly() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let (port, mut heads, _tasks) = proxy(None).await;
    let mut world = sending();
    by_way_of(&mut world, port);
    world.config.egress.no_proxy = NoProxy::parse(["127.0.0.0/8"]).unwrap();
    let kind = DestinationKind::Webhook(webhook(receiver.url("/hook")));
    let report = world.send(&kind).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    assert!(heads.try_recv().is_err(), "the proxy was not used");
    assert_eq!(receiver.received_requests()[0].path, "/hook");
}

#[tokio::test]
async fn target_is_guarded_and_proxy_refusal_is_reported() {
    for by_name in [false, true] {
        let (port, mut heads, _tasks) = proxy(Some("HTTP/1.1 407 Who are you\r\n\r\n")).await;
        let mut world = sending();
        by_way_of(&mut world, port);
        world.config.egress.proxy_by_name = by_name;
        let to = |url: &str| DestinationKind::Webhook(webhook(url.into()));
        for url in ["http://10.0.0.1/hook", "https://10.0.0.1/hook"] {
            let blocked = world.send(&to(url)).await;
            assert_eq!(blocked.verdict.outcome, Outcome::Blocked, "{blocked:?}");
        }
        assert!(heads.try_recv().is_err(), "the proxy was not used");
        let refused = world.send(&to("https://127.0.0.1:9/hook")).await;
        assert_eq!(refused.verdict.outcome, Outcome::Unreachable, "{refused:?}");
        let explanation = refused.verdict.explanation;
        assert!(
            explanation.contains("`HTTP/1.1 407 Who are you`"),
            "{explanation}"
        );
    }
}

#[test]
fn proxy_url_must_be_http_without_a_path() {
    let plain = ProxyConfig::parse("http://proxy.example.net").unwrap();
    assert_eq!((plain.host.as_str(), plain.port), ("proxy.example.net", 80));
    assert!(plain.authorization.is_empty());
    let v6 = ProxyConfig::parse("http://[::1]:3128/").unwrap();
    assert_eq!((v6.host.as_str(), v6.port), ("::1", 3128));
    for wrong in [
        "proxy:3128",
        "https://proxy:3128",
        "http://proxy/path",
        "http://proxy?x",
        "",
    ] {
        assert!(ProxyConfig::parse(wrong).is_err(), "{wrong}");
    }
}
