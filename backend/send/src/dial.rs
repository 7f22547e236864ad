//! Connecting: the only place that turns a host name into a socket, behind the egress guard.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{net::TcpStream, time::Instant};

use crate::{
    egress::{EgressGuard, Refusal},
    times::DialTimes,
};

/// Maximum number of addresses tried per name.
const ADDRESSES_MAX: usize = 8;

#[async_trait]
pub(crate) trait Resolve: fmt::Debug + Send + Sync + 'static {
    /// Returns all addresses of a name or of a literal address, with the port.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

#[derive(Debug)]
pub(crate) struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// A failure to connect. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Blocked(#[from] Refusal),
    #[error("the host name `{host}` cannot be resolved")]
    Name {
        host: String,
        /// Error of the resolver; `None` if it returned an empty list.
        source: Option<io::Error>,
    },
    #[error("cannot connect to {address}: {}", describe_io_error(source))]
    Connect {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("the proxy `{proxy}` {said}")]
    Proxy { proxy: String, said: String },
    #[error("cannot connect to `{host}` within {limit:?}")]
    Timeout { host: String, limit: Duration },
}

pub(crate) fn describe_io_error(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset".into(),
        io::ErrorKind::HostUnreachable => "host unreachable".into(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".into(),
        kind => kind.to_string(),
    }
}

/// A dialer that connects only to addresses that the guard allows.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    guard: Arc<EgressGuard>,
    resolver: Arc<dyn Resolve>,
    limit: Duration,
}

impl Dialer {
    pub(crate) fn new(
        guard: Arc<EgressGuard>,
        resolver: Arc<dyn Resolve>,
        limit: Duration,
    ) -> Self {
        Self {
            guard,
            resolver,
            limit,
        }
    }

    pub(crate) fn timeout_left(&self) -> Duration {
        self.limit
    }

    pub(crate) fn egress_guard(&self) -> &EgressGuard {
        &self.guard
    }

    /// Resolves the name, checks the addresses, and connects to the first one that accepts.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        Ok(self.dial(host, port).await?.0)
    }

    pub(crate) async fn dial(
        &self,
        host: &str,
        port: u16,
    ) -> Result<(TcpStream, DialTimes), DialError> {
        let begun = Instant::now();
        let deadline = begun + self.limit;
        let timeout = || DialError::Timeout {
            host: host.into(),
            limit: self.limit,
        };
        let addresses = tokio::time::timeout_at(deadline, self.resolve_allowed(host, port))
            .await
            .unwrap_or_else(|_elapsed| Err(timeout()))?;
        let resolve = begun.elapsed();
        let mut last_error = timeout();
        for (index, &address) in addresses.iter().enumerate() {
            // Leave time for the remaining addresses if this one does not respond.
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(addresses.len() - index).unwrap_or(1);
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let dialed = DialTimes {
                        resolve: Some(resolve),
                        connect: begun.elapsed().saturating_sub(resolve),
                    };
                    return Ok((stream, dialed));
                }
                Ok(Err(source)) => last_error = DialError::Connect { address, source },
                Err(_elapsed) => last_error = timeout(),
            }
        }
        Err(last_error)
    }

    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.resolver.resolve(host, port).await
    }

    /// Resolves a name and returns the addresses that the guard allows, at least one.
    pub(crate) async fn resolve_allowed(
        &self,
        host: &str,
        port: u16,
    ) -> Result<Vec<SocketAddr>, DialError> {
        let unresolved = |source| DialError::Name {
            host: host.into(),
            source,
        };
        let mut addresses = match self.resolver.resolve(host, port).await {
            Ok(addresses) if addresses.is_empty() => return Err(unresolved(None)),
            Ok(addresses) => addresses,
            Err(error) => return Err(unresolved(Some(error))),
        };
        addresses.truncate(ADDRESSES_MAX);
        Ok(self.guard.filter(host, addresses)?)
    }
}
