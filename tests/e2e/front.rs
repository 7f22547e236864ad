//! Checks of a listener before authentication: allowed host names, and clients behind a proxy.

use bellwether_tests::{process::run, world::World};

use crate::samples;

const TRIGGERS: &str = "/v1/notification/triggers";

#[tokio::test(flavor = "multi_thread")]
async fn request_for_an_unknown_host_is_rejected_by_both_listeners() {
    let world = World::with_settings("hosts = [\"ops.example.net\"]");
    for part in ["rest", "grpc"] {
        let address = world.service().address(part);
        let address = address
            .strip_prefix("http://")
            .unwrap_or(address)
            .to_owned();
        for (host, expected) in [
            ("evil.example", "421"),
            (
                "ops.example.net",
                if part == "rest" { "200" } else { "415" },
            ),
            (&*address, if part == "rest" { "200" } else { "415" }),
        ] {
            let answer = raw(
                &address,
                &format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
            )
            .await;
            let status = answer.split(' ').nth(1).unwrap_or_default();
            let is_other = expected == "421";
            assert_eq!(status == "421", is_other, "{part} {host}: {answer}");
        }
    }
    // The console and the command still connect, because they use an IP address.
    let listed = run(world.command(&["client", "list"]));
    assert!(listed.status.success(), "{listed:?}");
}

async fn raw(address: &str, request: &str) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn client_address_is_accepted_only_from_trusted_proxies() {
    for (settings, expected) in [
        ("trusted_proxies = [\"127.0.0.0/8\"]", "192.0.2.7"),
        ("", "127.0.0.1"),
    ] {
        let world = World::with_settings(settings);
        let address = world.service().address("rest");
        let address = address
            .strip_prefix("http://")
            .unwrap_or(address)
            .to_owned();
        let key = world.admin_key();
        let body = samples::trigger("disk", "disk").to_string();
        let answer = raw(
            &address,
            &format!(
                "POST {TRIGGERS} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             authorization: Bearer {key}\r\nx-forwarded-for: 198.51.100.1, 192.0.2.7\r\n\
             content-length: {}\r\n\r\n{body}",
                body.len()
            ),
        )
        .await;
        assert!(answer.starts_with("HTTP/1.1 20"), "{answer}");
        let log = world.rest().get("/v1/audit").await.ok();
        assert!(log.to_string().contains(expected), "{log}");
    }
}
