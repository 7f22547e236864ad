//! A proxy in front of a server that adds a network latency without limiting the throughput.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Runtime,
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::own_threads::own_threads;

const PIECE_BYTES: usize = 64 * 1024;
/// Pieces in transit per connection.
const PIECES_MAX: usize = 1_000;

/// A proxy for connections; it stops when it is dropped.
#[derive(Debug)]
pub struct Distance {
    address: SocketAddr,
    // The proxy has its own threads, so that it works while a test blocks.
    runtime: Option<Runtime>,
}

impl Distance {
    /// Starts a proxy for a local port whose round trips take at least `latency`.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub fn start(port: u16, latency: Duration) -> Self {
        let (runtime, listener, address) = own_threads();
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, port, latency));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            runtime: Some(runtime),
        }
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Distance {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A plain drop of the runtime would panic where blocking is not allowed.
            runtime.shutdown_background();
        }
    }
}

async fn carry(client: TcpStream, port: u16, latency: Duration) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    drop(client.set_nodelay(true));
    drop(server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (sent, received) = mpsc::channel(PIECES_MAX);
    // If one direction ends, so does the other. Timers round up to milliseconds, so the whole
    // latency is added to one direction.
    tokio::select! {
        () = read(from_client, sent, latency) => {}
        () = write(received, to_server) => {}
        () = forward(from_server, to_client) => {}
    }
}

/// Reads pieces, and sends each on with the time at which it is to arrive.
async fn read(
    mut from: OwnedReadHalf,
    pieces: mpsc::Sender<(Instant, Vec<u8>)>,
    latency: Duration,
) {
    let mut bytes = vec![0; PIECE_BYTES];
    while let Ok(length @ 1..) = from.read(&mut bytes).await {
        let piece = (Instant::now() + latency, bytes[..length].to_vec());
        if pieces.send(piece).await.is_err() {
            return;
        }
    }
}

async fn write(mut pieces: mpsc::Receiver<(Instant, Vec<u8>)>, mut to: OwnedWriteHalf) {
    while let Some((at, bytes)) = pieces.recv().await {
        sleep_until(at).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    // An error ends the connection, as its regular end does.
    drop(tokio::io::copy(&mut from, &mut to).await);
}
