//! Connecting: the one place that turns a host name into a socket, behind the egress guard.

use std::{fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{net::TcpStream, time::Instant};

use crate::destination::{
    egress::{Guard, Refusal},
    times::Dialed,
};

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Turns names into addresses.
#[async_trait]
pub(crate) trait Resolve: fmt::Debug + Send + Sync + 'static {
    /// All addresses of a name or of a literal address, with the port.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Asks the operating system.
#[derive(Debug)]
pub(crate) struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// Why there is no connection. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The guard does not allow it.
    #[error(transparent)]
    Blocked(#[from] Refusal),
    /// The name leads nowhere.
    #[error("the host name `{host}` cannot be resolved")]
    Name {
        /// The name.
        host: String,
        /// What the resolver said; none when it gave an empty list.
        source: Option<io::Error>,
    },
    /// The other side does not take connections.
    #[error("cannot connect to {address}: {}", reason(source))]
    Connect {
        /// The last address that was tried.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The proxy does not connect.
    #[error("the proxy `{proxy}` {said}")]
    Proxy {
        /// The proxy.
        proxy: String,
        /// What went wrong with it.
        said: String,
    },
    /// Nothing happened in time.
    #[error("cannot connect to `{host}` within {limit:?}")]
    Timeout {
        /// The name.
        host: String,
        /// The time that connecting may take.
        limit: Duration,
    },
}

/// The operating system's word without its error number.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::ConnectionReset => "connection reset".into(),
        io::ErrorKind::HostUnreachable => "host unreachable".into(),
        io::ErrorKind::NetworkUnreachable => "network unreachable".into(),
        kind => kind.to_string(),
    }
}

/// Opens connections to where the guard allows it.
#[derive(Debug, Clone)]
pub(crate) struct Dialer {
    guard: Arc<Guard>,
    resolver: Arc<dyn Resolve>,
    limit: Duration,
}

impl Dialer {
    pub(crate) fn new(guard: Arc<Guard>, resolver: Arc<dyn Resolve>, limit: Duration) -> Self {
        Self {
            guard,
            resolver,
            limit,
        }
    }

    /// The time that connecting may take.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Resolves, checks, and connects to the first checked address that answers.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, DialError> {
        Ok(self.dial(host, port).await?.0)
    }

    /// As [`Self::connect`], with how long that took.
    pub(crate) async fn dial(
        &self,
        host: &str,
        port: u16,
    ) -> Result<(TcpStream, Dialed), DialError> {
        let begun = Instant::now();
        let deadline = begun + self.limit;
        let timeout = || DialError::Timeout {
            host: host.into(),
            limit: self.limit,
        };
        let addresses = tokio::time::timeout_at(deadline, self.addresses(host, port))
            .await
            .unwrap_or_else(|_elapsed| Err(timeout()))?;
        let resolve = begun.elapsed();
        let mut last_error = timeout();
        for (index, &address) in addresses.iter().enumerate() {
            // An address that does not answer leaves time for those after it.
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(addresses.len() - index).unwrap_or(1);
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    let dialed = Dialed {
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

    /// Resolves and checks: the addresses that may be dialled, at least one.
    pub(crate) async fn addresses(
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
