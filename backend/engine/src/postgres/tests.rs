//! Tests of the engine on a real server.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Address, Node, PostgresEngine, migrate};
use crate::{
    Engine,
    change::{ApplyResult, Lane},
    conformance,
    error::EngineError,
    index::Index,
    kind::Kind,
    log::{Delta, LogStep},
    position::LogPosition,
    read::{Direction, IndexEntry, IndexedRecord, Range, Row},
};

#[path = "../../../../tests/src/postgres.rs"]
#[expect(
    dead_code,
    unreachable_pub,
    reason = "journeys use it too, and more of it"
)]
mod server;

mod burst;
mod doubt;
mod gone_back;
mod layout;
mod several;
mod side_tables;
mod tally;
mod together;

/// Creates a schema with empty tables; `None` if no server is installed.
async fn fresh() -> Option<Address> {
    let (url, password, schema) = server::free_schema()?;
    let address = Address::parse(&url, Some(password), &schema).unwrap();
    assert_eq!(migrate(&address).await.unwrap(), None);
    Some(address)
}

async fn open(address: &Address) -> PostgresEngine {
    PostgresEngine::open(address.clone(), None).await.unwrap()
}

/// Several engines on one store, used in turn.
#[derive(Debug)]
struct Spread {
    engines: [PostgresEngine; 3],
    next: AtomicUsize,
}

impl Spread {
    fn over(engines: [PostgresEngine; 3]) -> Self {
        let next = AtomicUsize::new(0);
        Self { engines, next }
    }

    fn next(&self) -> &PostgresEngine {
        &self.engines[self.next.fetch_add(1, Ordering::Relaxed) % 3]
    }
}

#[async_trait]
impl Engine for Spread {
    async fn apply(&self, lane: Lane, set: crate::ChangeSet) -> Result<ApplyResult, EngineError> {
        self.next().apply(lane, set).await
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        self.next().get(kind, keys).await
    }

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        self.next().read_page(kind, range, direction, limit).await
    }

    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<IndexEntry>>, EngineError> {
        self.next()
            .read_ranges(index, ranges, direction, limit)
            .await
    }

    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        self.next().last_with_prefix(index, prefixes).await
    }

    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError> {
        self.next().log_after(after, limit).await
    }

    async fn changes_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        self.next().changes_after(after, bytes_max).await
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        self.next().row_count().await
    }

    async fn log_head(&self) -> Result<LogPosition, EngineError> {
        self.next().log_head().await
    }

    fn log_signal(&self) -> watch::Receiver<LogPosition> {
        self.next().log_signal()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

mod conforms {
    use super::{conformance, fresh, open};

    conformance!(match fresh().await {
        Some(address) => (open(&address).await, ()),
        None => return,
    });
}
