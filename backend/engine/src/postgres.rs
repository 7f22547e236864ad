//! The engine in a PostgreSQL database, which several processes can share.
//!
//! The caller encodes a set of changes (`set`, `cell`) and queues it for the writer of its lane
//! (`writer`). The writer takes all waiting sets, plans them as a few statements over arrays
//! (`plan`, `query`, `layout`) and pipelines BEGIN, the statements and COMMIT (`burst`). The
//! statements check the expectations of each set. A violation aborts the transaction, and one read
//! then finds the conflicting sets (`isolate`). The order of the log is a single row that is locked
//! as late as possible. When the connection breaks, the writer raises the epoch of its row. A
//! commit in doubt is then either in the log already or can no longer be added (`writer`).
//!
//! Reads are single statements over a few shared sessions (`readers`, `session`), and one task
//! follows the log for all (`follower`, `known`). Each process is a node that renews its liveness
//! (`node`). Work is divided by slots: the owner of a slot writes through a separate writer, and
//! each of its commits checks that it still owns the slot (`claims`).

mod address;
mod burst;
mod cell;
mod claims;
mod clock;
mod cluster;
mod counters;
mod error;
mod follower;
mod gate;
mod isolate;
mod layout;
mod log_cache;
mod migration;
mod node;
mod plan;
mod query;
mod reach;
mod readers;
mod requirements;
mod reserve;
mod session;
mod set;
mod status;
mod tally;
mod tls;
mod writer;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio::{sync::watch, task::JoinSet};
use tokio_postgres::{Error, Row as DatabaseRow, types::FromSql};

pub use self::{
    address::{Address, SCHEMA},
    migration::{Layout, clear_tables, migrate},
    node::Node,
    status::{Status, StoreStatus, read_status, running_nodes},
};
use self::{
    log_cache::LogCache,
    node::Lease,
    query::{Query, SqlOrder},
    readers::{ReadSnapshot, Readers},
    reserve::Reserve,
    session::{Role, Session},
    set::EncodedSet,
    writer::{Queue, Writer},
};
use crate::{
    Engine,
    change::{ApplyResult, DiskShare, Lane},
    clock::Clock,
    cluster::Cluster,
    condition::Condition,
    error::{EngineError, RecordName},
    index::Index,
    kind::Kind,
    log::{ChangedRecord, DELTA_STEPS_MAX, Delta, LogStep},
    position::LogPosition,
    read::{Direction, IndexEntry, IndexedRecord, Range, Row},
};

/// Sorts after every key: no key starts with this many bytes of 255.
const BEYOND: [u8; 64] = [u8::MAX; 64];

/// Time for which events from senders are refused after a write found the database full.
const EVENT_PAUSE: Duration = Duration::from_secs(1);
/// Interval at which the log is polled for commits of other nodes.
const FOLLOW_EVERY: Duration = Duration::from_millis(25);

#[derive(Debug)]
pub struct PostgresEngine {
    known: Arc<LogCache>,
    admin: Queue,
    bulk: Queue,
    /// Sets of changes for the slots that this node owns, and for its leadership.
    owner: Queue,
    readers: Arc<Readers>,
    address: Arc<Address>,
    node: Option<Arc<Node>>,
    reserve: Arc<Reserve>,
    /// The epoch of this node's leadership, while it leads.
    leader: Mutex<Option<u64>>,
    _tasks: JoinSet<()>,
}

impl PostgresEngine {
    /// Opens an existing store as a node. Without a node, the engine has no clock and never leads,
    /// and work is not divided.
    ///
    /// # Errors
    ///
    /// Returns [`EngineError::Unavailable`] if the database does not respond, is read-only, or does
    /// not contain the store.
    pub async fn open(address: Address, node: Option<Node>) -> Result<Self, EngineError> {
        let address = Arc::new(address);
        let readers = Arc::new(Readers::new(Arc::clone(&address)));
        let head = read_head(&readers).await?;
        let known = Arc::new(LogCache::covering_up_to(head));
        readers.reserve().await?;
        let following = Session::open(&address, Role::Reader).await?;
        let id = node.as_ref().map(Node::id);
        let writer = || Writer::register(Arc::clone(&address), Arc::clone(&known), id);
        let ((admin, admin_writer), (bulk, bulk_writer)) = (writer().await?, writer().await?);
        let (owner, mut owner_writer) = writer().await?;
        let stuck = [&admin_writer, &bulk_writer, &owner_writer].map(Writer::watch_stuck);
        let node = node.map(Arc::new);
        let follower_missing = watch::Sender::new(false);
        let reserve = Arc::new(Reserve::new(Arc::clone(&address)));
        let mut tasks = JoinSet::new();
        if let Some(node) = &node {
            node.claims().set_writer(owner_writer.id());
            owner_writer = owner_writer.with_lease(Lease::for_node(node));
            tasks.spawn(Arc::clone(node).keep_alive(Arc::clone(&known)));
            let [admin, bulk, owner] = stuck;
            let missing = [admin, bulk, owner, follower_missing.subscribe()];
            tasks.spawn(Arc::clone(&reserve).run(Arc::clone(&readers), missing));
        }
        for writer in [admin_writer, bulk_writer, owner_writer] {
            tasks.spawn(writer.run());
        }
        let follow = follower::follow_log(
            Arc::clone(&address),
            following,
            Arc::clone(&known),
            FOLLOW_EVERY,
            follower_missing,
        );
        tasks.spawn(follow);
        Ok(Self {
            address,
            node,
            reserve,
            leader: Mutex::default(),
            known,
            admin,
            bulk,
            owner,
            readers,
            _tasks: tasks,
        })
    }

    fn lock_leader(&self) -> MutexGuard<'_, Option<u64>> {
        // Every statement leaves the value consistent, so poisoning is harmless.
        self.leader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn read_head(readers: &Readers) -> Result<LogPosition, EngineError> {
    let rows = readers.query_rows(Query::Head, &[]).await?;
    let row = rows.first().ok_or_else(log_lost_error)?;
    let head: Option<i64> = get(row, 0)?;
    Ok(plan::position_from_db(head.ok_or_else(log_lost_error)?))
}

fn log_lost_error() -> EngineError {
    EngineError::Corrupt("the change log is empty".into())
}

fn get<'a, T: FromSql<'a>>(row: &'a DatabaseRow, column: usize) -> Result<T, EngineError> {
    let unread = |error: Error| EngineError::Corrupt(error.to_string());
    row.try_get(column).map_err(unread)
}

fn column_bytes(row: &DatabaseRow, column: usize) -> Result<Vec<u8>, EngineError> {
    Ok(get::<&[u8]>(row, column)?.to_vec())
}

/// Returns the index of the requested element to which a row belongs. The first column contains
/// this index, counted from 1.
fn element_index(row: &DatabaseRow, count: usize) -> Result<usize, EngineError> {
    let number: i64 = get(row, 0)?;
    let at = usize::try_from(number - 1).ok().filter(|at| *at < count);
    at.ok_or_else(|| EngineError::Corrupt("unexpected response from the database".into()))
}

fn record(row: &DatabaseRow, column: usize, kind: Kind, key: &[u8]) -> Result<Row, EngineError> {
    let version: i64 = get(row, column)?;
    let cell: &[u8] = get(row, column + 1)?;
    Ok(Row {
        version: version.unsigned_abs(),
        value: cell::open_cell(kind, key, cell)?,
    })
}

/// Whether a record exists; a counter with only zeros does not.
fn record_exists(kind: Kind, found: &Row) -> bool {
    kind != Kind::Counter || !found.value.is_empty()
}

async fn read_counters(
    readers: &Readers,
    mut range: Range,
    direction: Direction,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
    let mut found = Vec::new();
    while found.len() < limit {
        let query = Query::Page(Kind::Counter, SqlOrder::from(direction));
        let requested = limit - found.len();
        let (start, end, count) = (&*range.start, range_end(&range), to_sql_count(requested));
        let rows = readers.query_rows(query, &[&start, &end, &count]).await?;
        let mut last = None;
        for row in &rows {
            let key = column_bytes(row, 0)?;
            let counter = record(row, 1, Kind::Counter, &key)?;
            last = Some(key.clone());
            if record_exists(Kind::Counter, &counter) {
                found.push((key, counter));
            }
        }
        match (last, direction) {
            (Some(last), Direction::Ascending) if rows.len() == requested => {
                range.exclude_through(&last);
            }
            (Some(last), Direction::Descending) if rows.len() == requested => {
                range.end = Some(last);
            }
            _ => break,
        }
    }
    Ok(found)
}

fn range_bounds(ranges: &[Range]) -> (Vec<&[u8]>, Vec<&[u8]>) {
    ranges.iter().map(|it| (&*it.start, range_end(it))).unzip()
}

fn range_end(range: &Range) -> &[u8] {
    range.end.as_deref().unwrap_or(&BEYOND)
}

fn to_sql_count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn decode_counts(rows: &[DatabaseRow], count: usize) -> Result<Vec<usize>, EngineError> {
    let mut counts = vec![0; count];
    for row in rows {
        let found: i64 = get(row, 1)?;
        counts[element_index(row, count)?] = usize::try_from(found).unwrap_or_default();
    }
    Ok(counts)
}

#[async_trait]
impl Engine for PostgresEngine {
    async fn apply(
        &self,
        lane: Lane,
        set: crate::change::ChangeSet,
    ) -> Result<ApplyResult, EngineError> {
        // The remaining space of a full database is for the service's own work. An event is
        // accepted from time to time, to detect that there is space again.
        let needs_space = set.is_rejected_for_space(lane, DiskShare::Reserve);
        if needs_space && self.address.observed.was_full_within(EVENT_PAUSE) {
            return Err(EngineError::Full("the database has no space left".into()));
        }
        let mut set = EncodedSet::new(set)?;
        let applied = match lane {
            Lane::Admin => self.admin.apply(set).await,
            Lane::Bulk => self.bulk.apply(set).await,
            Lane::Owner => self.owner.apply(set).await,
            Lane::Leader => {
                let epoch = *self.lock_leader();
                let deposed = || EngineError::Unavailable("another node leads".into());
                set.claims
                    .push(claims::leadership_claim(epoch.ok_or_else(deposed)?));
                self.owner.apply(set).await
            }
        };
        if needs_space && applied.is_ok() {
            self.address.observed.record_success();
        }
        applied
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        let mut found = vec![None; keys.len()];
        if keys.is_empty() {
            return Ok(found);
        }
        for row in self.readers.query_rows(Query::Get(kind), &[&keys]).await? {
            let at = element_index(&row, keys.len())?;
            let read = record(&row, 1, kind, &keys[at])?;
            found[at] = record_exists(kind, &read).then_some(read);
        }
        Ok(found)
    }

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        if kind == Kind::Counter {
            return read_counters(&self.readers, range, direction, limit).await;
        }
        let query = Query::Page(kind, SqlOrder::from(direction));
        let (start, end, limit) = (&*range.start, range_end(&range), to_sql_count(limit));
        let rows = self
            .readers
            .query_rows(query, &[&start, &end, &limit])
            .await?;
        let read = |row: &DatabaseRow| {
            let key = column_bytes(row, 0)?;
            let record = record(row, 1, kind, &key)?;
            Ok((key, record))
        };
        rows.iter().map(read).collect()
    }

    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<IndexEntry>>, EngineError> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = vec![Vec::new(); ranges.len()];
        let (starts, ends) = range_bounds(ranges);
        let query = Query::Entries(index, SqlOrder::from(direction));
        let limit = to_sql_count(limit);
        let rows = self
            .readers
            .query_rows(query, &[&starts, &ends, &limit])
            .await?;
        for row in rows {
            let lead = (column_bytes(&row, 1)?, column_bytes(&row, 2)?);
            found[element_index(&row, ranges.len())?].push(lead);
        }
        // Rows can arrive in any order; within a range, they are sorted by key.
        for leads in &mut found {
            match direction {
                Direction::Ascending => leads.sort_unstable(),
                Direction::Descending => leads.sort_unstable_by(|one, other| other.cmp(one)),
            }
        }
        Ok(found)
    }

    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        let mut found = vec![None; prefixes.len()];
        if prefixes.is_empty() {
            return Ok(found);
        }
        let ranges: Vec<_> = prefixes
            .iter()
            .map(|prefix| Range::with_prefix(prefix))
            .collect();
        let (starts, ends) = range_bounds(&ranges);
        let query = Query::Last(index);
        for row in self.readers.query_rows(query, &[&starts, &ends]).await? {
            let (entry, key) = (column_bytes(&row, 1)?, column_bytes(&row, 2)?);
            if get::<Option<i64>>(&row, 3)?.is_none() {
                return Err(EngineError::dangling_entry(index));
            }
            let row_found = record(&row, 3, index.kind(), &key)?;
            found[element_index(&row, prefixes.len())?] = Some(IndexedRecord {
                entry,
                key,
                row: row_found,
            });
        }
        Ok(found)
    }

    async fn count_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        limit: usize,
    ) -> Result<Vec<usize>, EngineError> {
        let (starts, ends) = range_bounds(ranges);
        let (query, limit) = (Query::Count(index), to_sql_count(limit));
        let rows = self
            .readers
            .query_rows(query, &[&starts, &ends, &limit])
            .await?;
        decode_counts(&rows, ranges.len())
    }

    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError> {
        if let Some(steps) = self.known.steps_after(after, limit) {
            return Ok(Some(steps));
        }
        let limit = to_sql_count(limit.saturating_add(1));
        let from = plan::position_to_db(after);
        let rows = self
            .readers
            .query_rows(Query::Log, &[&from, &limit])
            .await?;
        steps_after(after, &rows, limit)
    }

    async fn changes_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        let moment = self.readers.begin_snapshot().await?;
        let delta = read_delta(&moment, after, bytes_max).await?;
        moment.end().await?;
        Ok(delta)
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        let rows = self.readers.query_rows(Query::Rows, &[]).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| get(row, 0))?;
        Ok(count.unsigned_abs())
    }

    fn last_changed(&self, kinds: &[Kind]) -> LogPosition {
        self.known.last_changed(kinds)
    }

    async fn log_head(&self) -> Result<LogPosition, EngineError> {
        read_head(&self.readers).await
    }

    fn log_signal(&self) -> watch::Receiver<LogPosition> {
        self.known.subscribe()
    }

    fn condition(&self) -> Condition {
        let is_unreachable = |it: watch::Receiver<bool>| !*it.borrow();
        if self.watch_reachability().is_some_and(is_unreachable) {
            return Condition::Unreachable;
        }
        self.address.observed.condition().unwrap_or_default()
    }

    fn registry(&self) -> Option<&Registry> {
        Some(self.address.counters.registry())
    }

    fn clock(&self) -> Option<Arc<dyn Clock>> {
        self.node.as_ref().map(|node| node.clock())
    }

    fn cluster(&self) -> &dyn Cluster {
        self
    }

    async fn close(&self) -> Result<(), EngineError> {
        *self.lock_leader() = None;
        if let Some(node) = &self.node {
            node.leave().await;
        }
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// Returns the steps after a position, from rows read from that position on. Returns `None` if the
/// position is not in the log. `limit` is the limit of the query, in rows.
fn steps_after(
    after: LogPosition,
    rows: &[DatabaseRow],
    limit: i64,
) -> Result<Option<Vec<LogStep>>, EngineError> {
    let mut steps = Vec::with_capacity(rows.len());
    for row in rows {
        let position: i64 = get(row, 0)?;
        steps.push(log_cache::decode_step(
            plan::position_from_db(position),
            get(row, 1)?,
        )?);
    }
    let Some(first) = steps.first().map(|step| step.position) else {
        return Ok(None);
    };
    if first == after {
        steps.remove(0);
    } else if first > after.next() {
        return Ok(None);
    }
    steps.truncate(usize::try_from(limit - 1).unwrap_or(usize::MAX));
    Ok(Some(steps))
}

async fn read_delta(
    moment: &ReadSnapshot<'_>,
    after: LogPosition,
    bytes_max: usize,
) -> Result<Option<Delta>, EngineError> {
    let heads = moment.query_rows(Query::Head, &[]).await?;
    let head: Option<i64> = heads.first().map_or(Ok(None), |row| get(row, 0))?;
    let limit = to_sql_count(DELTA_STEPS_MAX + 1);
    let from = plan::position_to_db(after);
    let rows = moment.query_rows(Query::Log, &[&from, &limit]).await?;
    let Some(steps) = steps_after(after, &rows, limit)? else {
        return Ok(None);
    };
    let (named, through) = Delta::changed_records(steps, bytes_max);
    let mut delta = Delta {
        through: through.unwrap_or(after),
        head: plan::position_from_db(head.ok_or_else(log_lost_error)?),
        ..Delta::default()
    };
    let mut by_kind: BTreeMap<u8, Vec<&Vec<u8>>> = BTreeMap::new();
    for (number, key) in &named {
        by_kind.entry(*number).or_default().push(key);
    }
    let mut records: HashMap<RecordName, Row> = HashMap::new();
    for (number, keys) in &by_kind {
        let Some(kind) = Kind::from_number(*number) else {
            continue;
        };
        for row in moment.query_rows(Query::Get(kind), &[keys]).await? {
            let key = keys[element_index(&row, keys.len())?];
            records.insert((kind, key.clone()), record(&row, 1, kind, key)?);
        }
    }
    let mut attempts = read_attempts(moment, by_kind.get(&(Kind::Delivery as u8))).await?;
    for (number, key) in named {
        let Some(kind) = Kind::from_number(number) else {
            continue;
        };
        let of_delivery = match kind {
            Kind::Delivery => attempts.remove(&key).unwrap_or_default(),
            _ => Vec::new(),
        };
        delta.changed.push(ChangedRecord {
            kind,
            row: records.remove(&(kind, key.clone())),
            attempts: of_delivery,
            key,
        });
    }
    if delta.through == delta.head {
        for kind in Delta::UNLOGGED {
            let all = (&[][..] as &[u8], &BEYOND[..], i64::MAX);
            let query = Query::Page(kind, SqlOrder::Ascending);
            for row in moment.query_rows(query, &[&all.0, &all.1, &all.2]).await? {
                let key = column_bytes(&row, 0)?;
                let found = record(&row, 1, kind, &key)?;
                if record_exists(kind, &found) {
                    delta.unlogged.push((kind, key, found));
                }
            }
        }
    }
    Ok(Some(delta))
}

async fn read_attempts(
    moment: &ReadSnapshot<'_>,
    deliveries: Option<&Vec<&Vec<u8>>>,
) -> Result<HashMap<Vec<u8>, Vec<Row>>, EngineError> {
    let deliveries = deliveries.map_or(&[][..], Vec::as_slice);
    let ranges: Vec<_> = deliveries
        .iter()
        .map(|key| Range::with_prefix(key))
        .collect();
    let mut found: BTreeMap<(usize, Vec<u8>), Row> = BTreeMap::new();
    if !ranges.is_empty() {
        let (starts, ends) = range_bounds(&ranges);
        let query = Query::Under(Kind::Attempt);
        for row in moment.query_rows(query, &[&starts, &ends]).await? {
            let key = column_bytes(&row, 1)?;
            let attempt = record(&row, 2, Kind::Attempt, &key)?;
            found.insert((element_index(&row, ranges.len())?, key), attempt);
        }
    }
    let mut attempts: HashMap<Vec<u8>, Vec<Row>> = HashMap::new();
    for ((at, _), row) in found {
        attempts
            .entry(deliveries[at].clone())
            .or_default()
            .push(row);
    }
    Ok(attempts)
}

#[cfg(test)]
mod tests;
