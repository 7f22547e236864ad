//! The connections that are kept for each origin. Those of one that does not answer are let go of together.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};

use super::{body::Outgoing, connector::GuardedConnector};

/// Origins whose connections are kept.
const ORIGINS_MAX: usize = 1_024;
/// Connections that are kept for the next message to the same origin.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long a connection is kept for the next message.
const IDLE_TIME_MAX: Duration = Duration::from_secs(30);
/// How long an HTTP/2 connection may be silent before it is pinged, while a request waits on it.
const PING_AFTER: Duration = Duration::from_secs(5);
/// How long an HTTP/2 ping may stay unanswered.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a response's headers.
const HEAD_BYTES_MAX: u32 = 64 * 1024;
/// Header fields of a response.
const HEADERS_MAX: usize = 256;

pub(super) type Connector = HttpsConnector<GuardedConnector>;
pub(super) type Connections = Client<Connector, Outgoing>;

/// Connections by origin. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Origins {
    connector: Connector,
    kept: Arc<Mutex<OriginPool>>,
}

#[derive(Debug, Default)]
struct OriginPool {
    by_origin: HashMap<String, Origin>,
    /// Counts uses, and numbers what is opened.
    count: u64,
}

#[derive(Debug)]
struct Origin {
    number: u64,
    last_use: u64,
    connections: Connections,
}

impl Origins {
    pub(super) fn new(connector: Connector) -> Self {
        Self {
            connector,
            kept: Arc::default(),
        }
    }

    /// The same without the connections that there are.
    pub(super) fn fresh(&self) -> Self {
        Self::new(self.connector.clone())
    }

    /// The connections to an origin, and their number, by which they are let go of.
    pub(super) fn connections(&self, origin: &str) -> (u64, Connections) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.count += 1;
        let now = kept.count;
        if let Some(known) = kept.by_origin.get_mut(origin) {
            known.last_use = now;
            return (known.number, known.connections.clone());
        }
        if kept.by_origin.len() >= ORIGINS_MAX {
            let oldest = kept.by_origin.iter().min_by_key(|(_, it)| it.last_use);
            let oldest = oldest.map(|(origin, _)| origin.clone());
            oldest.map(|origin| kept.by_origin.remove(&origin));
        }
        let connections = connections(self.connector.clone());
        let new = Origin {
            number: now,
            last_use: now,
            connections: connections.clone(),
        };
        kept.by_origin.insert(origin.to_owned(), new);
        (now, connections)
    }

    /// Uses the connections of that number for no further request. What is under way on them
    /// continues.
    pub(super) fn let_go(&self, origin: &str, number: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept.by_origin.get(origin);
        if known.is_some_and(|known| known.number == number) {
            kept.by_origin.remove(origin);
        }
    }
}

/// Receivers differ in how well they keep to HTTP: what is clear is read.
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
