//! Requests by way of a proxy: the guard judges the target, and the proxy's answer is told.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
};

use super::{World, webhook};
use crate::{
    config::ProxyConfig,
    destination::receiver::{Receiver, Reply},
    domain::{DestinationKind, Outcome},
};

/// A proxy that tells what it is asked for and connects, unless it is to answer something else.
async fn proxy(answer: Option<&'static str>) -> (u16, mpsc::Receiver<String>, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, told) = mpsc::channel(16);
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
            let _told = tell.send(head).await;
            if let Some(answer) = answer {
                let _written = client.write_all(answer.as_bytes()).await;
                continue;
            }
            let mut server = TcpStream::connect(target).await.unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            tunnels.spawn(async move {
                let _ended = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    (port, told, tasks)
}

fn by_way_of(world: &mut World, port: u16) {
    let address = format!("http://ada:pass%20word@127.0.0.1:{port}");
    world.config.egress.proxy = Some(ProxyConfig::parse(&address).unwrap());
}

#[tokio::test]
async fn requests_go_through_the_proxy_to_the_judged_address() {
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let (port, mut told, _tasks) = proxy(None).await;
    let mut world = World::new();
    by_way_of(&mut world, port);
    let url = receiver.url("/hook").replace("127.0.0.1", "localhost");
    let target = receiver.url("").replace("http://", "");
    let report = world.send(&DestinationKind::Webhook(webhook(url))).await;
    assert_eq!(report.verdict.outcome, Outcome::Delivered, "{report:?}");
    assert_eq!(receiver.received()[0].path, "/hook");
    let head = told.recv().await.unwrap();
    assert!(
        head.starts_with(&format!("CONNECT {target} HTTP/1.1\r\n")),
        "{head}"
    );
    assert!(
        head.contains("proxy-authorization: Basic YWRhOnBhc3Mgd29yZA==\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn the_guard_judges_the_target_and_a_proxy_that_refuses_is_named() {
    let (port, mut told, _tasks) = proxy(Some("HTTP/1.1 407 Who are you\r\n\r\n")).await;
    let mut world = World::new();
    by_way_of(&mut world, port);
    let to = |url: &str| DestinationKind::Webhook(webhook(url.into()));
    let blocked = world.send(&to("http://10.0.0.1/hook")).await;
    assert_eq!(blocked.verdict.outcome, Outcome::Blocked, "{blocked:?}");
    assert!(told.try_recv().is_err(), "the proxy was not asked");
    let refused = world.send(&to("http://127.0.0.1:9/hook")).await;
    assert_eq!(refused.verdict.outcome, Outcome::Unreachable, "{refused:?}");
    let explanation = refused.verdict.explanation;
    assert!(
        explanation.contains("`HTTP/1.1 407 Who are you`"),
        "{explanation}"
    );
}

#[test]
fn a_proxy_is_an_http_address_without_a_path() {
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
