//! Unfinished sign-ins by an unauthenticated client while the provider is slow.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bellwether_tests::{
    eventually::eventually,
    receiver::{Receiver, Reply},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
};

use super::{Browser, Method, PAGE, World, json, settings};

/// Starts a sign-in from this local address, and returns the status line of the response.
async fn begins_from(address: &str, gateway: SocketAddr) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind(format!("{address}:0").parse().unwrap())
        .unwrap();
    let mut stream = socket.connect(gateway).await.unwrap();
    let request = "GET /sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap().to_owned()
}

async fn begun_state(browser: &mut Browser) -> String {
    let address = format!("{PAGE}/sign-in");
    let begun = browser.step(Method::GET, &address, "", "none").await;
    let next = url::Url::parse(&begun.next.unwrap()).unwrap();
    let mut pairs = next.query_pairs().filter(|(name, _)| name == "state");
    pairs.next().unwrap().1.into_owned()
}

/// Starts a provider that serves its discovery document and delays every other response by an hour.
async fn slow_provider() -> (Receiver, String) {
    let issuer = Arc::new(OnceLock::<String>::new());
    let own = Arc::clone(&issuer);
    let provider = Receiver::with_rule(move |request| {
        if !request.path.starts_with("/.well-known/") {
            let mut never = Reply::status(200);
            never.delay = Duration::from_secs(3_600);
            return never;
        }
        let issuer = own.get().unwrap();
        let endpoint = |name: &str| format!("{issuer}/{name}");
        Reply::json(&json!({
            "issuer": issuer, "jwks_uri": endpoint("jwks"),
            "authorization_endpoint": endpoint("auth"), "token_endpoint": endpoint("token"),
        }))
    })
    .await;
    let address = format!("http://{}", provider.address());
    issuer.set(address.clone()).unwrap();
    (provider, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn junk_sign_ins_from_one_address_do_not_block_others() {
    let (provider, issuer) = slow_provider().await;
    let page = format!("page = {PAGE:?}\n");
    let world = World::with_settings(&(settings(&issuer) + &page));
    let requests = || {
        let all = provider.received();
        all.iter().filter(|it| it.path == "/token").count()
    };

    // An unknown state is rejected without a request to the provider.
    for _ in 0..20 {
        let mut attacker = Browser::new(&world);
        let host = attacker.gateway.trim_start_matches("http://").to_owned();
        let name = "bellwether-sign-in".to_owned();
        let junk = "x.v.%2F".to_owned();
        attacker.cookies.insert((host, name), junk);
        let address = format!("{PAGE}/signed-in?state=x&code=c");
        let answer = attacker.arrives(&address).await;
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(
            answer.body.contains("was not started by this service"),
            "{}",
            answer.body
        );
        assert!(!answer.signs_in());
    }
    assert_eq!(requests(), 0);

    // One address can use at most a quarter of the pending sign-ins.
    let mut begun = Vec::new();
    for _ in 0..20 {
        let mut attacker = Browser::new(&world);
        let state = begun_state(&mut attacker).await;
        begun.push((attacker, format!("{PAGE}/signed-in?state={state}&code=c")));
    }
    let mut arriving = tokio::task::JoinSet::new();
    for (mut attacker, address) in begun {
        arriving.spawn(async move { attacker.arrives(&address).await.status });
    }
    for _ in 0..16 {
        assert_eq!(arriving.join_next().await.unwrap().unwrap(), 503);
    }
    eventually("a request to the provider", async || {
        (requests() == 4).then_some(())
    })
    .await;
    let gateway = world.service().address("rest").parse().unwrap();
    let line = begins_from("127.0.0.2", gateway).await;
    assert!(line.contains("303"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn provider_error_is_shown_escaped() {
    let (_provider, issuer) = slow_provider().await;
    let page = format!("page = {PAGE:?}\n");
    let world = World::with_settings(&(settings(&issuer) + &page));
    let mut browser = Browser::new(&world);
    let state = begun_state(&mut browser).await;
    let error = "%1B%5D52%3Bc%3BeA%3D%3D%07%C2%9B31m%E2%80%AE%3Cscript%3E";
    let address = format!("{PAGE}/signed-in?state={state}&error={error}");
    let answer = browser.arrives(&address).await;
    assert_eq!(answer.status, 401);
    let hidden = answer
        .body
        .chars()
        .find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(hidden, None, "{:?}", answer.body);
    assert!(answer.body.contains("u{1b}"), "{}", answer.body);
    assert!(!answer.body.contains("<script"), "{}", answer.body);
}
