//! Pooled connections per origin. The connections of an origin that does not respond are dropped
//! together.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use tokio::time::Instant;

use super::{body::OutgoingBody, connector::GuardedConnector};

const ORIGINS_MAX: usize = 1_024;
const IDLE_CONNECTIONS_MAX: usize = 64;
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum age of the connections to an origin; requests in flight on them continue.
const AGE_MAX: Duration = Duration::from_secs(180);
/// Time between two checks whether DNS still returns the addresses of the connections.
const ADDRESS_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Silence on an HTTP/2 connection after which it is pinged, while a request is waiting.
const PING_AFTER: Duration = Duration::from_secs(5);
const PING_TIMEOUT: Duration = Duration::from_secs(5);
const HEAD_BYTES_MAX: u32 = 64 * 1024;
const HEADERS_MAX: usize = 256;

pub(super) type Connector = HttpsConnector<GuardedConnector>;
pub(super) type Connections = Client<Connector, OutgoingBody>;

/// Connections by origin. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Origins {
    connector: Connector,
    pool: Arc<Mutex<OriginPool>>,
    age_max: Duration,
}

#[derive(Debug, Default)]
struct OriginPool {
    by_origin: HashMap<String, Origin>,
    /// Number of uses; the current value is also assigned to new connections as their number.
    count: u64,
}

#[derive(Debug)]
struct Origin {
    number: u64,
    last_use: u64,
    opened: Instant,
    /// Time of the last check of the addresses.
    checked: Instant,
    addresses: HashSet<SocketAddr>,
    connections: Connections,
}

impl Origins {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector,
            pool: Arc::default(),
            age_max: AGE_MAX,
        }
    }

    pub(super) fn with_fresh_connections(&self) -> Self {
        Self::new(self.connector.clone())
    }

    /// Returns the connections to an origin, and their number for [`Self::remove`].
    pub(super) fn connections(&self, origin: &str) -> (u64, Connections) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        pool.count += 1;
        let now = pool.count;
        let is_old = |it: &Origin| it.opened.elapsed() > self.age_max;
        if pool.by_origin.get(origin).is_some_and(is_old) {
            pool.by_origin.remove(origin);
        }
        if let Some(known) = pool.by_origin.get_mut(origin) {
            known.last_use = now;
            return (known.number, known.connections.clone());
        }
        if pool.by_origin.len() >= ORIGINS_MAX {
            let oldest = pool.by_origin.iter().min_by_key(|(_, it)| it.last_use);
            let oldest = oldest.map(|(origin, _)| origin.clone());
            oldest.map(|origin| pool.by_origin.remove(&origin));
        }
        let connections = connections(self.connector.clone());
        let new = Origin {
            number: now,
            last_use: now,
            opened: Instant::now(),
            checked: Instant::now(),
            addresses: HashSet::new(),
            connections: connections.clone(),
        };
        pool.by_origin.insert(origin.to_owned(), new);
        (now, connections)
    }

    pub(super) fn record_address(&self, origin: &str, number: u64, address: SocketAddr) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pool.by_origin.get_mut(origin);
        if let Some(known) = known.filter(|known| known.number == number) {
            known.addresses.insert(address);
        }
    }

    /// Returns the number and the addresses of the connections to an origin if a check is due.
    pub(super) fn addresses_due_for_check(
        &self,
        origin: &str,
    ) -> Option<(u64, HashSet<SocketAddr>)> {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pool.by_origin.get_mut(origin)?;
        if known.addresses.is_empty() || known.checked.elapsed() < ADDRESS_CHECK_INTERVAL {
            return None;
        }
        known.checked = Instant::now();
        Some((known.number, known.addresses.clone()))
    }

    /// Removes the connections with this number from the pool. Requests in flight on them continue.
    pub(super) fn remove(&self, origin: &str, number: u64) {
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pool.by_origin.get(origin);
        if known.is_some_and(|known| known.number == number) {
            pool.by_origin.remove(origin);
        }
    }
}

/// Creates connections that parse leniently, because receivers differ in how well they follow HTTP.
fn connections(connector: Connector) -> Connections {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_TIME_MAX)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .http1_max_buf_size(HEAD_BYTES_MAX as usize)
        .http1_max_headers(HEADERS_MAX)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
        .http1_ignore_invalid_headers_in_responses(true)
        .http2_max_header_list_size(HEAD_BYTES_MAX)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .build(connector)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::EgressConfig,
        dial::{Dialer, SystemResolver},
        egress::EgressGuard,
        http::{self, route::Route},
        tls,
    };

    #[tokio::test]
    async fn connections_above_the_maximum_age_are_replaced() {
        let guard = Arc::new(EgressGuard::new(&EgressConfig::default(), Vec::new()));
        let dialer = Dialer::new(guard, Arc::new(SystemResolver), Duration::from_secs(1));
        let config = tls::client_config(&tls::Trust::new(&[]));
        let mut origins = http::new_origins(config, dialer, Arc::new(Route::default()));
        let number = |origins: &Origins| origins.connections("http://a.example").0;
        assert_eq!(number(&origins), 1);
        assert_eq!(number(&origins), 1);
        origins.age_max = Duration::ZERO;
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(number(&origins), 3);
    }
}
