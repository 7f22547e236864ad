//! Connections to a proxy, which forwards requests or tunnels them with `CONNECT`. The guard checks
//! the target either way; if it checks an address and the proxy tunnels, the request to the proxy
//! contains that address, so that a name cannot resolve differently there.

use std::net::IpAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::route::ProxyRoute;
use crate::{
    config::ProxyConfig,
    dial::{DialError, Dialer, describe_io_error},
};

const ANSWER_BYTES_MAX: usize = 8 * 1024;

pub(super) async fn connect_through_proxy(
    dialer: &Dialer,
    through: ProxyRoute<'_>,
    host: &str,
    port: u16,
) -> Result<TcpStream, DialError> {
    let limit = dialer.timeout_left();
    let proxy = through.proxy;
    let connecting = async {
        let target = connect_target(dialer, through, host, port).await?;
        let name = format!("{}:{}", proxy.host, proxy.port);
        let opened = async {
            let stream = TcpStream::connect((proxy.host.as_str(), proxy.port)).await;
            let stream =
                stream.map_err(|error| format!("is unreachable: {}", describe_io_error(&error)))?;
            if through.forwards {
                Ok(stream)
            } else {
                open_tunnel(stream, proxy, &target).await
            }
        };
        let opened = opened.await;
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

/// Returns the target for the proxy: the checked address, or the name if the proxy resolves it.
async fn connect_target(
    dialer: &Dialer,
    through: ProxyRoute<'_>,
    host: &str,
    port: u16,
) -> Result<String, DialError> {
    let is_name = host.parse::<IpAddr>().is_err();
    if through.by_name && is_name {
        return Ok(format!("{host}:{port}"));
    }
    let addresses = dialer.resolve_allowed(host, port).await?;
    // Any checked address will do; if it is unreachable, the proxy reports the reason.
    let first = addresses.first().ok_or_else(|| DialError::Name {
        host: host.into(),
        source: None,
    })?;
    Ok(first.to_string())
}

async fn open_tunnel(
    mut stream: TcpStream,
    proxy: &ProxyConfig,
    target: &str,
) -> Result<TcpStream, String> {
    let broken =
        |error: std::io::Error| format!("closed the connection: {}", describe_io_error(&error));
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n");
    if !proxy.authorization.is_empty() {
        let shown = proxy.authorization.reveal();
        for part in ["proxy-authorization: ", shown, "\r\n"] {
            request.push_str(part);
        }
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(broken)?;
    // Read single bytes, because data after the response head belongs to the target.
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= ANSWER_BYTES_MAX {
            return Err("sent an oversized response".into());
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
            "refused to connect to {target}: `{}`",
            first.trim_end()
        )),
    }
}
