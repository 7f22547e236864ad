//! Receivers of the demo: an HTTP server whose responses depend on the path.

use std::{io, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, sleep},
};

const SLOW: Duration = Duration::from_secs(3);
const RECOVERS_AFTER: Duration = Duration::from_secs(120);
const CONNECTIONS_MAX: usize = 64;
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) struct Receivers {
    pub(super) url: String,
    _serving: JoinSet<()>,
}

impl Receivers {
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut serving = JoinSet::new();
        serving.spawn(accept_connections(listener));
        Ok(Self {
            url,
            _serving: serving,
        })
    }
}

async fn accept_connections(listener: TcpListener) {
    let begin = Instant::now();
    let mut connections = JoinSet::new();
    loop {
        while connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
        }
        match listener.accept().await {
            // The service treats a broken connection as a failed attempt and retries it.
            Ok((stream, _)) => drop(connections.spawn(async move {
                drop(serve_connection(stream, begin).await);
            })),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

async fn serve_connection(stream: TcpStream, begin: Instant) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut line, mut body_bytes) = (String::new(), 0);
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        loop {
            let mut header = String::new();
            stream.read_line(&mut header).await?;
            let Some((name, value)) = header.split_once(':') else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                body_bytes = value.trim().parse().unwrap_or(0).min(BODY_BYTES_MAX);
            }
        }
        stream.read_exact(&mut vec![0; body_bytes]).await?;
        let (status, reason) = match path.split('/').nth(1) {
            Some("unauthorized") => ("401 Unauthorized", r#"{"error": "token revoked"}"#),
            Some("recovering") if begin.elapsed() < RECOVERS_AFTER => {
                ("503 Service Unavailable", r#"{"error": "maintenance"}"#)
            }
            Some("slow") => {
                sleep(SLOW).await;
                ("201 Created", r#"{"ok": true}"#)
            }
            _ => ("200 OK", r#"{"ok": true}"#),
        };
        let length = reason.len();
        let response = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{reason}"
        );
        stream.write_all(response.as_bytes()).await?;
    }
}
