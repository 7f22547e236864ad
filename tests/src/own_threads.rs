//! A port and a separate thread, for proxies that must work while a test blocks.

use std::net::{SocketAddr, TcpListener};

use tokio::runtime::{Builder, Runtime};

/// Returns a runtime, a listener on a free local port, and its address.
///
/// # Panics
/// Panics if there is no free port.
pub(crate) fn own_threads() -> (Runtime, TcpListener, SocketAddr) {
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (runtime, listener, address)
}
