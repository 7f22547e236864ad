//! A database session: its settings, prepared statements, and warnings from the database.

use std::{
    collections::HashMap,
    future::poll_fn,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{task::JoinSet, time::timeout};
use tokio_postgres::{AsyncMessage, Client, Error, Statement};

use super::{address::Address, counters::StoreCounters, error, query::Query};
use crate::{
    error::EngineError,
    limits::{STORE_LOCK_TIME_MAX, STORE_OPEN_TIME_MAX, STORE_READ_TIME_MAX, STORE_STANDSTILL_MAX},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Writes; statements are never cancelled.
    Writer,
    Reader,
}

impl Role {
    fn as_str(self) -> &'static str {
        match self {
            Self::Writer => "writer",
            Self::Reader => "reader",
        }
    }
}

pub(super) struct Session {
    pub(super) client: Client,
    schema: String,
    statements: Mutex<HashMap<Query, Statement>>,
    warnings: Arc<AtomicU64>,
    _counted: ConnectionCount,
    _carrier: JoinSet<()>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session {
    pub(super) async fn open(address: &Address, role: Role) -> Result<Self, EngineError> {
        let attempt = async {
            let opened = timeout(STORE_OPEN_TIME_MAX, Self::connect(address, role)).await;
            let late = |_late| EngineError::Unavailable("the database does not respond".into());
            opened
                .map_err(late)?
                .map_err(|error| error::read_error(&error))
        };
        address.gate.run_in_turn(Box::pin(attempt)).await
    }

    async fn connect(address: &Address, role: Role) -> Result<Self, Error> {
        let (client, mut connection) = address.config.connect(address.tls.clone()).await?;
        let warnings = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&warnings);
        let mut carrier = JoinSet::new();
        carrier.spawn(async move {
            // Pending requests fail when the connection ends.
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notice(notice) = message {
                    counted.fetch_add(1, Ordering::AcqRel);
                    let (message, code) = (notice.message(), notice.code().code());
                    tracing::warn!(message, code, "the database warns");
                }
            }
        });
        client.batch_execute(&session_settings_sql(role)).await?;
        Ok(Self {
            client,
            schema: address.schema.clone(),
            statements: Mutex::default(),
            warnings,
            _counted: ConnectionCount::new(&address.counters, role),
            _carrier: carrier,
        })
    }

    pub(super) async fn prepare(&self, query: Query) -> Result<Statement, Error> {
        let known = || {
            self.statements
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some(statement) = known().get(&query) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(&query.text(&self.schema)).await?;
        known().insert(query, statement.clone());
        Ok(statement)
    }

    pub(super) fn warning_count(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }
}

struct ConnectionCount(StoreCounters, &'static str);

impl ConnectionCount {
    fn new(counters: &StoreCounters, role: Role) -> Self {
        counters.record_connect(role.as_str());
        Self(counters.clone(), role.as_str())
    }
}

impl Drop for ConnectionCount {
    fn drop(&mut self) {
        self.0.record_disconnect(self.1);
    }
}

/// Returns the session settings. Every statement must access rows in the order of its array or of
/// an index, since that is the lock order.
fn session_settings_sql(role: Role) -> String {
    let lock_ms = STORE_LOCK_TIME_MAX.as_millis();
    let standstill_ms = STORE_STANDSTILL_MAX.as_millis();
    let statement_ms = match role {
        Role::Writer => 0,
        Role::Reader => STORE_READ_TIME_MAX.as_millis(),
    };
    format!(
        "SET client_min_messages = warning; SET synchronous_commit = on; \
         SET default_transaction_isolation = 'read committed'; \
         SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_hashjoin = off; \
         SET enable_mergejoin = off; SET enable_seqscan = off; SET enable_bitmapscan = off; \
         SET enable_sort = off; SET lock_timeout = {lock_ms}; \
         SET idle_in_transaction_session_timeout = {standstill_ms}; \
         SET statement_timeout = {statement_ms}"
    )
}
