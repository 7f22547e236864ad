//! Hostile clients without a key, over TLS. Other clients are still served, and the memory limit is
//! kept.

use std::time::{Duration, Instant};

use bellwether_tests::{engine::Engine, process};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::Secured;

const MANY: usize = 300;
/// Number of requests by the regular client, and the limit of their 99th percentile.
const HONEST: usize = 100;
const HONEST_P99_MAX: Duration = Duration::from_secs(1);
const MEMORY_MAX_MIB: u64 = 512;

/// The beginning of a handshake that announces a long message.
const HELLO: &[u8] = &[0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0x3f, 0xfc];
/// An HTTP/2 client with a flow-control window of zero.
const NO_WINDOW: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0";

#[tokio::test(flavor = "multi_thread")]
async fn unauthenticated_tls_clients_do_not_block_authenticated_ones() {
    if Engine::only_in_a_folder() {
        return;
    }
    let secured = Secured::start("");
    let mut plain = Vec::new();
    let mut agreed = Vec::new();
    for part in ["rest", "grpc"] {
        let address = secured.address(part);
        for at in 0..MANY {
            let Ok(mut stream) = TcpStream::connect(address).await else {
                break;
            };
            // A third of the connections sends the beginning of a handshake, a third no data, and a
            // third data other than TLS.
            let begun = [HELLO, b"", b"GET / HTTP/1.1\r\n\r\n"][at % 3];
            drop(stream.write_all(begun).await);
            plain.push(stream);
        }
        for at in 0..MANY / 3 {
            let protocol = ["h2", "http/1.1"][at % 2];
            let connected = secured.authority.connect(address, &[protocol], None).await;
            let Ok(mut stream) = connected else { continue };
            let head = b"POST /v1/data-receiver/events HTTP/1.1\r\nhost: a\r\ncontent-length: 4000000\r\n\r\n[";
            let begun = if at % 2 == 0 { NO_WINDOW } else { &head[..] };
            drop(stream.write_all(begun).await);
            agreed.push(stream);
        }
    }
    assert!(
        agreed.len() >= MANY / 3,
        "{} handshakes succeeded",
        agreed.len()
    );

    let key = secured.world.admin_key();
    let request = format!(
        "GET /v1/notification/rules HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         authorization: Bearer {key}\r\n\r\n"
    );
    let mut took = Vec::with_capacity(HONEST);
    for _ in 0..HONEST {
        let start = Instant::now();
        let answer = secured.request("rest", request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        took.push(start.elapsed());
    }
    took.sort();
    let p99 = took[HONEST - 2];
    let status = format!("/proc/{}/status", secured.world.service().id());
    let status = std::fs::read_to_string(status).unwrap();
    let peak = status.lines().find_map(|line| {
        let kib = line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?;
        kib.parse::<u64>().ok()
    });
    let peak = peak.expect("the kernel reports it") / 1024;
    assert!(
        p99 < HONEST_P99_MAX && peak < MEMORY_MAX_MIB,
        "{p99:?}, {peak} MiB"
    );

    // The attacked store is intact.
    let mut secured = secured;
    secured.world.kill();
    let checked = process::run(secured.world.command(&["check"]));
    assert!(checked.status.success(), "{checked:?}");
    drop((plain, agreed));
}
