//! Dials for hyper through the egress guard, and through a proxy if configured.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use http::Uri;
use tokio::time::Instant;
use tower::Service;

use super::{line::Line, route::Route, tunnel};
use crate::{
    dial::{DialError, Dialer},
    times::DialTimes,
};

#[derive(Debug, Clone)]
pub(super) struct GuardedConnector {
    dialer: Dialer,
    route: Arc<Route>,
}

impl GuardedConnector {
    pub(super) fn new(dialer: Dialer, route: Arc<Route>) -> Self {
        Self { dialer, route }
    }
}

impl Service<Uri> for GuardedConnector {
    type Response = Line;
    type Error = DialError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { dialer, route } = self.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let is_https = uri.scheme_str() == Some("https");
            let default_port = if is_https { 443 } else { 80 };
            let port = uri.port_u16().unwrap_or(default_port);
            let through = route.proxy_route(host, port, is_https);
            let (stream, dialed) = match through {
                None => dialer.dial(host, port).await?,
                Some(through) => {
                    let begun = Instant::now();
                    let stream =
                        tunnel::connect_through_proxy(&dialer, through, host, port).await?;
                    let dialed = DialTimes {
                        resolve: None,
                        connect: begun.elapsed(),
                    };
                    (stream, dialed)
                }
            };
            // Best effort: without it, small requests are only slightly delayed.
            let _set = stream.set_nodelay(true);
            Ok(Line::new(
                stream,
                dialed,
                through.is_some_and(|it| it.forwards),
            ))
        })
    }
}
