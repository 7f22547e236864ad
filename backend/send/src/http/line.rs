//! A connection that records whether it has received a response.

use std::{
    io::{self, IoSlice},
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection},
    rt::TokioIo,
};
use tokio::net::TcpStream;

use crate::times::DialTimes;

/// Whether a connection has received a response. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(super) struct ResponseFlag(Arc<AtomicBool>);

impl ResponseFlag {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PeerAddress(pub(super) SocketAddr);

/// A connection below TLS.
#[derive(Debug)]
pub(super) struct Line {
    stream: TokioIo<TcpStream>,
    answered: ResponseFlag,
    dialed: DialTimes,
    /// Whether the connection leads to a proxy that forwards requests.
    is_forwarded: bool,
}

impl Line {
    pub(super) fn new(stream: TcpStream, dialed: DialTimes, is_forwarded: bool) -> Self {
        Self {
            stream: TokioIo::new(stream),
            answered: ResponseFlag::default(),
            dialed,
            is_forwarded,
        }
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        let connected = Connected::new().proxy(self.is_forwarded);
        let connected = connected.extra(self.answered.clone()).extra(self.dialed);
        match self.stream.inner().peer_addr() {
            Ok(address) => connected.extra(PeerAddress(address)),
            Err(_closed) => connected,
        }
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}
