//! Lets hyper dial through the egress guard.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use crate::destination::dial::{DialError, Dialer};

/// Connects to the host and port of an address.
#[derive(Debug, Clone)]
pub(super) struct GuardedConnector {
    dialer: Dialer,
}

impl GuardedConnector {
    pub(super) fn new(dialer: Dialer) -> Self {
        Self { dialer }
    }
}

impl Service<Uri> for GuardedConnector {
    type Response = TokioIo<TcpStream>;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let dialer = self.dialer.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let default_port = if uri.scheme_str() == Some("https") {
                443
            } else {
                80
            };
            let port = uri.port_u16().unwrap_or(default_port);
            let stream = dialer.connect(host, port).await?;
            // Small requests leave at once; where it cannot be set, they leave a little later.
            let _set = stream.set_nodelay(true);
            Ok(TokioIo::new(stream))
        })
    }
}
