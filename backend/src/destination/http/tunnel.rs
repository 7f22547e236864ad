//! Connections through a proxy, with `CONNECT`. The guard judges the target all the same: the proxy is
//! asked for an address that it let through, so that a name cannot lead elsewhere from there.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    config::ProxyConfig,
    destination::dial::{DialError, Dialer, reason},
};

/// Bytes of what a proxy answers.
const ANSWER_BYTES_MAX: usize = 8 * 1024;

/// Connects to a host by way of the proxy.
pub(super) async fn connect(
    dialer: &Dialer,
    proxy: &ProxyConfig,
    host: &str,
    port: u16,
) -> Result<TcpStream, DialError> {
    let limit = dialer.limit();
    let connecting = async {
        let addresses = dialer.addresses(host, port).await?;
        // What was judged and is not the first is as good; the proxy says why it is not reached.
        let target = addresses.first().copied().ok_or_else(|| DialError::Name {
            host: host.into(),
            source: None,
        })?;
        let name = format!("{}:{}", proxy.host, proxy.port);
        let opened = open(proxy, target).await;
        opened.map_err(|said| DialError::Proxy { proxy: name, said })
    };
    let elapsed = |_| DialError::Timeout {
        host: host.into(),
        limit,
    };
    tokio::time::timeout(limit, connecting)
        .await
        .map_err(elapsed)?
}

async fn open(proxy: &ProxyConfig, target: SocketAddr) -> Result<TcpStream, String> {
    let broken = |error: std::io::Error| format!("cannot be talked to: {}", reason(&error));
    let connected = TcpStream::connect((proxy.host.as_str(), proxy.port)).await;
    let mut stream =
        connected.map_err(|error| format!("cannot be connected to: {}", reason(&error)))?;
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n");
    if !proxy.authorization.is_empty() {
        let shown = proxy.authorization.reveal();
        for part in ["proxy-authorization: ", shown, "\r\n"] {
            request.push_str(part);
        }
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    // Byte by byte: what follows the answer's head belongs to the target.
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= ANSWER_BYTES_MAX {
            return Err("answers more than it should".into());
        }
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) => return Err(broken(error)),
        }
    }
    let first = String::from_utf8_lossy(&head);
    let first = first.lines().next().unwrap_or_default();
    let mut words = first.split(' ');
    let is_http = words.next().is_some_and(|it| it.starts_with("HTTP/1."));
    match words.next() {
        Some(status) if is_http && status.len() == 3 && status.starts_with('2') => Ok(stream),
        _ => Err(format!(
            "does not connect to {target}: `{}`",
            first.trim_end()
        )),
    }
}
