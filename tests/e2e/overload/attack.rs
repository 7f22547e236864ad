//! Hostile clients at the byte level.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Time for which a write may block before the service counts as not reading.
const BLOCKED: Duration = Duration::from_secs(3);

/// Returns the first number by default, and the second with `BELLWETHER_TEST_HOSTILE`.
pub(crate) fn hostile_times(short: usize, long: usize) -> usize {
    match std::env::var_os("BELLWETHER_TEST_HOSTILE") {
        Some(_) => long,
        None => short,
    }
}

pub(crate) fn post_head(path: &str, header: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: a\r\n{header}\r\n\r\n").into_bytes()
}

/// Opens connections, sends the same data on each, and keeps them open. Connections closed by the
/// service are not reopened.
pub(crate) async fn hold_open(address: &str, sent: &[u8], count: usize) -> Vec<TcpStream> {
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        // A full backlog harms only the attacker.
        let Ok(Ok(mut stream)) = timeout(BLOCKED, TcpStream::connect(address)).await else {
            break;
        };
        drop(timeout(BLOCKED, stream.write_all(sent)).await);
        held.push(stream);
    }
    held
}

/// Sends a beginning, then the same piece repeatedly. Returns the number of pieces sent before the
/// service closed the connection.
pub(crate) async fn send_until_refused(
    address: &str,
    beginning: &[u8],
    piece: &[u8],
    most: usize,
) -> usize {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(beginning).await.unwrap();
    for sent in 0..most {
        match timeout(BLOCKED, stream.write_all(piece)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return sent,
        }
    }
    most
}

pub(crate) struct Http2(TcpStream);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:method GET`, `:scheme http`, `:path /`, `:authority a`.
const HEADER_BLOCK: [u8; 6] = [0x82, 0x86, 0x84, 0x41, 1, b'a'];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [length[1], length[2], length[3], kind, flags];
    [&head[..], &stream.to_be_bytes(), payload].concat()
}

impl Http2 {
    pub(crate) async fn connect(address: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let hello = [&preface[..], &frame(SETTINGS, 0, 0, &[])].concat();
        stream.write_all(&hello).await.unwrap();
        Self(stream)
    }

    /// Connects with a flow-control window of zero, so that the service cannot send a body.
    pub(crate) async fn without_window(address: &str) -> Self {
        const INITIAL_WINDOW_SIZE: [u8; 6] = [0, 4, 0, 0, 0, 0];
        let mut client = Self::connect(address).await;
        let settings = frame(SETTINGS, 0, 0, &INITIAL_WINDOW_SIZE);
        client.0.write_all(&settings).await.unwrap();
        client
    }

    /// Makes calls with these headers and this body, each on a separate stream. Returns the number
    /// of accepted calls.
    pub(crate) async fn ask(
        &mut self,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
        ends: bool,
        count: usize,
    ) -> usize {
        let mut block = Vec::new();
        for (name, value) in headers {
            block.push(0x10);
            for text in [name, value] {
                let length = u8::try_from(text.len()).unwrap();
                assert!(length < 127, "a length of one byte");
                block.push(length);
                block.extend_from_slice(text.as_bytes());
            }
        }
        let end = |ends| if ends { END_STREAM } else { 0 };
        let mut answers = vec![0; 64 * 1024];
        for at in 0..u32::try_from(count).unwrap() {
            let stream = 2 * at + 1;
            let flags = END_HEADERS | end(ends && body.is_none());
            let mut call = frame(HEADERS, flags, stream, &block);
            if let Some(body) = body {
                call.extend(frame(DATA, end(ends), stream, body));
            }
            match timeout(BLOCKED, self.0.write_all(&call)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return usize::try_from(at).unwrap(),
            }
            while self.0.try_read(&mut answers).is_ok_and(|count| count > 0) {}
        }
        count
    }

    /// Sends headers that never end; returns the number of frames sent until the peer closed the
    /// connection.
    pub(crate) async fn continuations(&mut self, most: usize) -> usize {
        let begin = frame(HEADERS, END_STREAM, 1, &HEADER_BLOCK);
        self.0.write_all(&begin).await.unwrap();
        // A literal header that is not indexed, with a name and value of one letter.
        let more = [0x10, 1, b'x', 1, b'y'].repeat(3_000);
        let more = frame(CONTINUATION, 0, 1, &more);
        for sent in 0..most {
            match timeout(BLOCKED, self.0.write_all(&more)).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return sent,
            }
        }
        most
    }

    pub(crate) async fn rapid_reset(&mut self, most: usize) {
        const CANCEL: [u8; 4] = [0, 0, 0, 8];
        let mut answers = vec![0; 64 * 1024];
        for at in 0..u32::try_from(most).unwrap() {
            let stream = 2 * at + 1;
            let ask = frame(HEADERS, END_STREAM | END_HEADERS, stream, &HEADER_BLOCK);
            let back = frame(RST_STREAM, 0, stream, &CANCEL);
            let both = [ask, back].concat();
            let sent = self.0.write_all(&both);
            match timeout(BLOCKED, sent).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
            // Responses are discarded, so that the peer is not blocked by them.
            while self.0.try_read(&mut answers).is_ok_and(|count| count > 0) {}
        }
        drop(timeout(Duration::from_millis(100), self.0.read(&mut answers)).await);
    }
}
