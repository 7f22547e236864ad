//! The connections of a listener, with limits for unauthenticated ones.
//!
//! A connection is unauthenticated until a call on it is authenticated with a key. When
//! unauthenticated connections exceed their limits, per address or in total, the oldest ones are
//! closed. A client with a key therefore has time to authenticate, however many connections others
//! hold.

use std::{
    collections::{BTreeSet, HashMap},
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const CLIENT_SHARE: usize = 4;
const LOG_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    pub connections: usize,
    pub connections_of_address: usize,
    /// Calls in flight in total, including responses that are not yet sent.
    pub calls: usize,
    pub calls_of_address: usize,
    /// Time that an unauthenticated connection may stay open without another request, or without
    /// progress of a request in flight.
    pub quiet: Duration,
}

impl Allowance {
    /// Limits the unauthenticated connections to half of the listener's `connections`, and those
    /// from one address to half of that.
    fn clamp_to(self, connections: usize) -> Self {
        let all = self.connections.min((connections / 2).max(1));
        Self {
            connections: all,
            connections_of_address: self.connections_of_address.min((all / 2).max(1)),
            ..self
        }
    }
}

/// Returns the address that represents all addresses of one holder: for IPv6, its /64 network.
pub fn network_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[derive(Debug)]
pub(super) struct ConnectionQuota {
    connections: usize,
    allowance: Allowance,
    table: Mutex<ConnectionTable>,
}

#[derive(Debug, Default)]
struct ConnectionTable {
    arrived: u64,
    open: usize,
    unauthenticated: HashMap<u64, UnauthenticatedConnection>,
    networks: HashMap<IpAddr, Network>,
    calls: usize,
    clients: HashMap<String, usize>,
    evicted: u64,
    logged: Option<Instant>,
}

#[derive(Debug)]
struct UnauthenticatedConnection {
    network: IpAddr,
    calls: usize,
    eviction: CancellationToken,
}

#[derive(Debug, Default)]
struct Network {
    connections: BTreeSet<u64>,
    calls: usize,
}

#[derive(Debug)]
pub(super) struct RegisteredConnection {
    quota: Arc<ConnectionQuota>,
    number: u64,
    is_known: AtomicBool,
    client: Mutex<Option<String>>,
    eviction: CancellationToken,
}

impl ConnectionQuota {
    pub(super) fn new(connections: usize, allowance: Allowance) -> Arc<Self> {
        Arc::new(Self {
            connections,
            allowance: allowance.clamp_to(connections),
            table: Mutex::default(),
        })
    }

    /// Registers a connection. Returns `None` if the limit is reached and all connections are
    /// authenticated.
    pub(super) fn register(self: &Arc<Self>, peer: IpAddr) -> Option<RegisteredConnection> {
        let mut table = self.lock_table();
        if table.open >= self.connections && !table.evict_from_largest() {
            table.log_evictions();
            return None;
        }
        let (network, eviction) = (network_key(peer), CancellationToken::new());
        let number = table.arrived;
        table.arrived += 1;
        table.open += 1;
        let unauthenticated = UnauthenticatedConnection {
            network,
            calls: 0,
            eviction: eviction.clone(),
        };
        table.unauthenticated.insert(number, unauthenticated);
        let of_network = table.networks.entry(network).or_default();
        of_network.connections.insert(number);
        if of_network.connections.len() > self.allowance.connections_of_address {
            table.evict_oldest_in_network(network, false);
        }
        if table.unauthenticated.len() > self.allowance.connections {
            table.evict_from_largest();
        }
        table.log_evictions();
        drop(table);
        Some(RegisteredConnection {
            quota: Arc::clone(self),
            number,
            is_known: AtomicBool::new(false),
            client: Mutex::new(None),
            eviction,
        })
    }

    /// Evicts an unauthenticated connection when the system is out of descriptors.
    pub(super) fn evict_one(&self) {
        let mut table = self.lock_table();
        table.evict_from_largest();
        table.log_evictions();
    }

    fn lock_table(&self) -> MutexGuard<'_, ConnectionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionTable {
    fn remove(&mut self, number: u64) -> Option<UnauthenticatedConnection> {
        let unauthenticated = self.unauthenticated.remove(&number)?;
        self.calls -= unauthenticated.calls;
        if let Some(network) = self.networks.get_mut(&unauthenticated.network) {
            network.connections.remove(&number);
            network.calls -= unauthenticated.calls;
            if network.connections.is_empty() {
                self.networks.remove(&unauthenticated.network);
            }
        }
        Some(unauthenticated)
    }

    /// Evicts the oldest unauthenticated connection of a network or, if `calling`, the oldest one
    /// with calls in flight.
    fn evict_oldest_in_network(&mut self, network: IpAddr, calling: bool) -> bool {
        let of_network = self.networks.get(&network);
        let number = of_network.and_then(|network| {
            let calls = |number: &u64| {
                self.unauthenticated
                    .get(number)
                    .is_some_and(|it| it.calls > 0)
            };
            let mut oldest = network.connections.iter().copied();
            oldest.find(|number| !calling || calls(number))
        });
        let Some(unauthenticated) = number.and_then(|number| self.remove(number)) else {
            return false;
        };
        unauthenticated.eviction.cancel();
        self.evicted += 1;
        true
    }

    fn evict_from_largest(&mut self) -> bool {
        let sizes = self.networks.iter();
        let most = sizes.max_by_key(|(_, network)| network.connections.len());
        most.map(|(network, _)| *network)
            .is_some_and(|network| self.evict_oldest_in_network(network, false))
    }

    fn evict_from_busiest(&mut self) {
        let most = self
            .networks
            .iter()
            .max_by_key(|(_, network)| network.calls);
        if let Some(network) = most.map(|(network, _)| *network) {
            self.evict_oldest_in_network(network, true);
        }
    }

    /// Logs the number of evicted connections, at most once per interval.
    fn log_evictions(&mut self) {
        let is_due = self
            .logged
            .is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL);
        if self.evicted > 0 && is_due {
            let (closed, unauthenticated) = (self.evicted, self.unauthenticated.len());
            tracing::warn!(
                closed,
                open = self.open,
                unauthenticated,
                "closed unauthenticated connections to make room for others"
            );
            (self.evicted, self.logged) = (0, Some(Instant::now()));
        }
    }
}

impl RegisteredConnection {
    pub(super) fn eviction_token(&self) -> &CancellationToken {
        &self.eviction
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_known.load(Relaxed)
    }

    pub(super) fn allowance(&self) -> Allowance {
        self.quota.allowance
    }

    /// Marks the connection as authenticated, unless this client already has its full share of
    /// connections.
    pub(super) fn mark_authenticated(&self, client: &str) {
        if self.is_authenticated() {
            return;
        }
        let share = (self.quota.connections / CLIENT_SHARE).max(1);
        let mut table = self.quota.lock_table();
        if table.clients.get(client).is_some_and(|open| *open >= share)
            || table.remove(self.number).is_none()
        {
            return;
        }
        *table.clients.entry(client.to_owned()).or_default() += 1;
        let mut named = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        *named = Some(client.to_owned());
        self.is_known.store(true, Relaxed);
    }

    pub(super) fn begin_call(&self) {
        if self.is_authenticated() {
            return;
        }
        let allowance = self.quota.allowance;
        let mut table = self.quota.lock_table();
        let table = &mut *table;
        let Some(unauthenticated) = table.unauthenticated.get_mut(&self.number) else {
            return;
        };
        unauthenticated.calls += 1;
        table.calls += 1;
        let address = unauthenticated.network;
        let network = table.networks.entry(address).or_default();
        network.calls += 1;
        if network.calls > allowance.calls_of_address {
            table.evict_oldest_in_network(address, true);
        }
        if table.calls > allowance.calls {
            table.evict_from_busiest();
        }
        table.log_evictions();
    }

    pub(super) fn end_call(&self) {
        if self.is_authenticated() {
            return;
        }
        let mut table = self.quota.lock_table();
        let table = &mut *table;
        // Authentication removes the entry together with the count of its calls, so there may be
        // nothing to subtract.
        if let Some(unauthenticated) = table.unauthenticated.get_mut(&self.number)
            && let Some(network) = table.networks.get_mut(&unauthenticated.network)
            && unauthenticated.calls > 0
        {
            unauthenticated.calls -= 1;
            network.calls -= 1;
            table.calls -= 1;
        }
    }
}

impl Drop for RegisteredConnection {
    fn drop(&mut self) {
        let mut table = self.quota.lock_table();
        table.open -= 1;
        table.remove(self.number);
        let named = self.client.get_mut();
        let client = named.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(client) = client
            && let Some(open) = table.clients.get_mut(&client)
        {
            *open -= 1;
            if *open == 0 {
                table.clients.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWANCE: Allowance = Allowance {
        connections: 6,
        connections_of_address: 3,
        calls: 8,
        calls_of_address: 4,
        quiet: Duration::from_secs(1),
    };

    fn sample_quota(connections: usize) -> Arc<ConnectionQuota> {
        ConnectionQuota::new(connections, ALLOWANCE)
    }

    fn parse_address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    fn eviction_states(visits: &[RegisteredConnection]) -> Vec<bool> {
        visits
            .iter()
            .map(|visit| visit.eviction_token().is_cancelled())
            .collect()
    }

    #[test]
    fn oldest_unauthenticated_connections_of_an_address_are_evicted() {
        let quota = sample_quota(100);
        let other = quota.register(parse_address(9)).unwrap();
        let arrive = |_| quota.register(parse_address(1)).unwrap();
        let visits: Vec<_> = (0..5).map(arrive).collect();
        assert_eq!(eviction_states(&visits), [true, true, false, false, false]);
        assert!(!other.eviction_token().is_cancelled());
        // Authentication makes room for another unauthenticated client.
        visits[2].mark_authenticated("ada");
        let next = quota.register(parse_address(1)).unwrap();
        assert_eq!(eviction_states(&visits), [true, true, false, false, false]);
        drop((next, visits));
        assert_eq!(quota.lock_table().open, 1);
    }

    #[test]
    fn eviction_starts_with_the_busiest_address() {
        let quota = sample_quota(100);
        let few = quota.register(parse_address(9)).unwrap();
        let mut many = Vec::new();
        for from in 1..=4 {
            many.push(quota.register(parse_address(from)).unwrap());
            many.push(quota.register(parse_address(from)).unwrap());
        }
        assert!(!few.eviction_token().is_cancelled());
        assert_eq!(
            eviction_states(&many).iter().filter(|gone| **gone).count(),
            3
        );
    }

    #[test]
    fn ipv6_network_counts_as_one_address() {
        let quota = sample_quota(100);
        let arrive = |last: u128| {
            let address = Ipv6Addr::from_bits((0x2001_0db8 << 96) + last);
            quota.register(address.into()).unwrap()
        };
        let visits: Vec<_> = (0..5).map(arrive).collect();
        assert_eq!(eviction_states(&visits), [true, true, false, false, false]);
    }

    #[test]
    fn unauthenticated_calls_count_until_finished_or_authenticated() {
        let quota = sample_quota(100);
        let [idle, first, second] =
            [1, 1, 1].map(|from| quota.register(parse_address(from)).unwrap());
        for _ in 0..3 {
            first.begin_call();
        }
        first.end_call();
        second.begin_call();
        second.begin_call();
        assert!(!first.eviction_token().is_cancelled());
        second.begin_call();
        // The oldest connection with calls is closed, not an idle one.
        assert!(first.eviction_token().is_cancelled() && !idle.eviction_token().is_cancelled());
        second.mark_authenticated("ada");
        for _ in 0..100 {
            second.begin_call();
        }
        assert!(!second.eviction_token().is_cancelled());
        second.end_call();
        assert_eq!(quota.lock_table().calls, 0);
    }

    #[test]
    fn client_share_is_limited_and_unauthenticated_connections_are_evicted_first() {
        let quota = sample_quota(8);
        let known = |client: &str| {
            let visit = quota.register(parse_address(1)).unwrap();
            visit.mark_authenticated(client);
            visit
        };
        let ada: Vec<_> = (0..3).map(|_| known("ada")).collect();
        let is_known = ada
            .iter()
            .map(RegisteredConnection::is_authenticated)
            .collect::<Vec<_>>();
        assert_eq!(is_known, [true, true, false]);
        let others: Vec<_> = ["b", "b", "c", "c", "d"].map(known).into();
        assert!(others.iter().all(RegisteredConnection::is_authenticated));
        assert!(!ada[2].eviction_token().is_cancelled());
        let ninth = quota.register(parse_address(2)).unwrap();
        assert!(ada[2].eviction_token().is_cancelled());
        ninth.mark_authenticated("d");
        drop(ada);
        drop(others);
        assert_eq!(quota.lock_table().clients.len(), 1);
    }
}
