//! Lets hyper dial through the egress guard, by way of a proxy where there is one.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::Service;

use super::tunnel;
use crate::{
    config::ProxyConfig,
    destination::dial::{DialError, Dialer},
};

/// Connects to the host and port of an address.
#[derive(Debug, Clone)]
pub(super) struct GuardedConnector {
    dialer: Dialer,
    proxy: Option<Arc<ProxyConfig>>,
}

impl GuardedConnector {
    pub(super) fn new(dialer: Dialer, proxy: Option<ProxyConfig>) -> Self {
        let proxy = proxy.map(Arc::new);
        Self { dialer, proxy }
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
        let Self { dialer, proxy } = self.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let default_port = if uri.scheme_str() == Some("https") {
                443
            } else {
                80
            };
            let port = uri.port_u16().unwrap_or(default_port);
            let stream = match &proxy {
                None => dialer.connect(host, port).await?,
                Some(proxy) => tunnel::connect(&dialer, proxy, host, port).await?,
            };
            // Small requests leave at once; where it cannot be set, they leave a little later.
            let _set = stream.set_nodelay(true);
            Ok(TokioIo::new(stream))
        })
    }
}
