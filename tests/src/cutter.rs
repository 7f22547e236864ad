//! A proxy in front of a database that forwards bytes in small pieces, so that a connection can be
//! cut or blocked in the middle of a statement, a commit or a response.

use std::{
    hash::{BuildHasher, RandomState},
    net::SocketAddr,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    runtime::Runtime,
    sync::watch,
    task::JoinSet,
};

use crate::own_threads::own_threads;

/// The treatment of forwarded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// All data is forwarded.
    Arrives,
    /// Each connection is cut after a random number of bytes.
    IsCut {
        /// The maximum number of bytes.
        within_bytes: usize,
    },
    /// No data is forwarded, and no connection is closed.
    Stands,
    /// On each connection, forwarding stops before this word when the client first sends it.
    StandsBefore(&'static str),
}

impl Treatment {
    /// Returns the number of bytes to forward before blocking; `None` if no data is blocked.
    fn held_from(self, bytes: &[u8], is_of_client: bool) -> Option<usize> {
        match self {
            Self::Stands => Some(0),
            Self::StandsBefore(word) if is_of_client => {
                let mut windows = bytes.windows(word.len());
                windows.position(|window| window == word.as_bytes())
            }
            _ => None,
        }
    }
}

const PIECE_BYTES_MAX: usize = 700;

/// A proxy for connections; it stops when it is dropped.
#[derive(Debug)]
pub struct Cutter {
    address: SocketAddr,
    fate: watch::Sender<Treatment>,
    // The proxy has its own threads, so that it works while a test blocks.
    runtime: Option<Runtime>,
}

impl Cutter {
    /// Starts a proxy for a local port.
    ///
    /// # Panics
    /// Panics if there is no free port.
    pub fn start(port: u16) -> Self {
        let (runtime, listener, address) = own_threads();
        let (fate, seen) = watch::channel(Treatment::Arrives);
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, port, seen.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            fate,
            runtime: Some(runtime),
        }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Changes the treatment, also of existing connections.
    pub fn set(&self, fate: Treatment) {
        self.fate.send_replace(fate);
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A plain drop of the runtime would panic where blocking is not allowed.
            runtime.shutdown_background();
        }
    }
}

async fn carry(client: TcpStream, port: u16, fate: watch::Receiver<Treatment>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
        return;
    };
    // Small pieces must be sent immediately.
    drop(client.set_nodelay(true));
    drop(server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    // If one direction ends, so does the other.
    tokio::select! {
        () = pass(from_client, to_server, true, fate.clone()) => {}
        () = pass(from_server, to_client, false, fate) => {}
    }
}

/// Forwards one direction until either side ends, or the connection is cut.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    is_of_client: bool,
    mut fate: watch::Receiver<Treatment>,
) {
    let mut bytes = [0; PIECE_BYTES_MAX];
    let mut left = None;
    loop {
        let Ok(length @ 1..) = from.read(&mut bytes).await else {
            return;
        };
        let mut sent = 0;
        while sent < length {
            let moves = fate
                .wait_for(|fate| fate.held_from(&bytes[sent..length], is_of_client) != Some(0))
                .await;
            let Ok(now) = moves.map(|fate| *fate) else {
                return;
            };
            left = match now {
                Treatment::IsCut { within_bytes } => {
                    left.or_else(|| Some(random_below(within_bytes)))
                }
                _ => None,
            };
            let until = now
                .held_from(&bytes[sent..length], is_of_client)
                .unwrap_or(length - sent);
            let mut piece = 1 + random_below(until);
            if let Some(left) = &mut left {
                piece = piece.min(*left);
                *left -= piece;
            }
            if to.write_all(&bytes[sent..sent + piece]).await.is_err() {
                return;
            }
            sent += piece;
            if left == Some(0) {
                return;
            }
            // Yield between two pieces, so that a connection can be interrupted in the middle.
            tokio::task::yield_now().await;
        }
    }
}

fn random_below(end: usize) -> usize {
    let end = u64::try_from(end).unwrap();
    usize::try_from(RandomState::new().hash_one(0) % end).unwrap()
}
