//! An engine on top of another engine that merges the reads for which concurrent tasks wait, so
//! that the number of statements does not depend on the number of tasks.

use std::{
    fmt::Debug,
    future::poll_fn,
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
};

use async_trait::async_trait;
use futures_util::future::{join_all, join4};
use tokio::{
    sync::{oneshot, watch},
    task::unconstrained,
};

use crate::{
    Engine,
    change::{ApplyResult, ChangeSet, Lane},
    cluster::Cluster,
    condition::{Condition, FreeSpace},
    error::EngineError,
    index::Index,
    kind::Kind,
    log::{Delta, LogStep},
    position::LogPosition,
    read::{Direction, IndexEntry, IndexedRecord, Range, Row},
};

/// Number of items at which a merged read is full.
const ITEMS_MAX: usize = 1_000;

/// An engine for the tasks of one future; see [`MergingEngine::run`].
#[derive(Debug)]
pub struct MergingEngine {
    base: Arc<dyn Engine>,
    records: Queue<Kind>,
    entries: Queue<(Index, Direction)>,
    lasts: Queue<Index>,
    counts: Queue<RangeCount>,
}

impl MergingEngine {
    pub fn new(base: Arc<dyn Engine>) -> Self {
        Self {
            base,
            records: Queue::default(),
            entries: Queue::default(),
            lasts: Queue::default(),
            counts: Queue::default(),
        }
    }

    /// Runs a future that reads from this engine. Reads are queued until the future cannot make
    /// progress without one of them, and then merged into one per kind or index.
    ///
    /// # Cancel safety
    ///
    /// This method is as cancel safe as the future.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> T {
        // Without Tokio's budget, every task can queue its next read before the future yields.
        let mut work = pin!(unconstrained(work));
        let mut reading: Option<Pin<Box<dyn Future<Output = ()> + Send + '_>>> = None;
        let run = poll_fn(|context| {
            loop {
                if let Poll::Ready(done) = work.as_mut().poll(context) {
                    return Poll::Ready(done);
                }
                if reading.is_none() && self.is_idle() {
                    return Poll::Pending;
                }
                let reads = reading.get_or_insert_with(|| Box::pin(self.read_queued()));
                if reads.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                reading = None;
            }
        });
        run.await
    }

    fn is_idle(&self) -> bool {
        self.records.lock_requests().is_empty()
            && self.entries.lock_requests().is_empty()
            && self.lasts.lock_requests().is_empty()
            && self.counts.lock_requests().is_empty()
    }

    async fn read_queued(&self) {
        let base = &*self.base;
        let records = self.records.read_queued(base);
        let entries = self.entries.read_queued(base);
        let lasts = self.lasts.read_queued(base);
        join4(records, entries, lasts, self.counts.read_queued(base)).await;
    }
}

/// The subject of reads that can be merged.
#[async_trait]
trait Subject: Debug + Copy + PartialEq + Send {
    type Item: Debug + Clone + Send;
    type Output: Debug + Send;

    /// Returns the class of an item; only reads of the same class are merged.
    fn merge_class(_item: &Self::Item) -> usize {
        0
    }

    async fn read(
        self,
        base: &dyn Engine,
        items: &[Self::Item],
    ) -> Result<Vec<Self::Output>, EngineError>;
}

#[async_trait]
impl Subject for Kind {
    type Item = Vec<u8>;
    type Output = Option<Row>;

    async fn read(
        self,
        base: &dyn Engine,
        keys: &[Vec<u8>],
    ) -> Result<Vec<Option<Row>>, EngineError> {
        base.get(self, keys).await
    }
}

#[async_trait]
impl Subject for (Index, Direction) {
    /// A range, and the limit of its entries.
    type Item = (Range, usize);
    type Output = Vec<IndexEntry>;

    /// The largest limit applies to all ranges, so the limits must be similar.
    fn merge_class((_, limit): &(Range, usize)) -> usize {
        limit.next_power_of_two()
    }

    async fn read(
        self,
        base: &dyn Engine,
        items: &[(Range, usize)],
    ) -> Result<Vec<Vec<IndexEntry>>, EngineError> {
        let (index, direction) = self;
        let ranges: Vec<_> = items.iter().map(|(range, _)| range.clone()).collect();
        let limit = items.iter().map(|(_, limit)| *limit).max().unwrap_or(0);
        let mut found = base.read_ranges(index, &ranges, direction, limit).await?;
        for (entries, (_, limit)) in found.iter_mut().zip(items) {
            entries.truncate(*limit);
        }
        Ok(found)
    }
}

#[async_trait]
impl Subject for Index {
    type Item = Vec<u8>;
    type Output = Option<IndexedRecord>;

    async fn read(
        self,
        base: &dyn Engine,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        base.last_with_prefix(self, prefixes).await
    }
}

/// The entries of an index, counted up to a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RangeCount(Index, usize);

#[async_trait]
impl Subject for RangeCount {
    type Item = Range;
    type Output = usize;

    async fn read(self, base: &dyn Engine, ranges: &[Range]) -> Result<Vec<usize>, EngineError> {
        base.count_ranges(self.0, ranges, self.1).await
    }
}

/// Reads that have not begun.
#[derive(Debug)]
struct Queue<S: Subject>(Mutex<Vec<Request<S>>>);

#[derive(Debug)]
struct Request<S: Subject> {
    subject: S,
    items: Vec<S::Item>,
    response: oneshot::Sender<Result<Vec<S::Output>, EngineError>>,
}

/// Reads of one subject.
struct MergedReads<S: Subject> {
    subject: S,
    class: usize,
    items: Vec<S::Item>,
    requests: Vec<Request<S>>,
}

impl<S: Subject> Default for Queue<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Subject> Queue<S> {
    fn lock_requests(&self) -> MutexGuard<'_, Vec<Request<S>>> {
        // The queue is consistent between any two statements, so poisoning is harmless.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, subject: S, items: Vec<S::Item>) -> Result<Vec<S::Output>, EngineError> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        let (response, responded) = oneshot::channel();
        self.lock_requests().push(Request {
            subject,
            items,
            response,
        });
        let cancelled = |_| EngineError::Unavailable("the read was cancelled".into());
        responded.await.map_err(cancelled)?
    }

    async fn read_queued(&self, base: &dyn Engine) {
        let mut all: Vec<MergedReads<S>> = Vec::new();
        for request in std::mem::take(&mut *self.lock_requests()) {
            let class = request.items.first().map_or(0, S::merge_class);
            let is_open = |it: &&mut MergedReads<S>| {
                it.subject == request.subject && it.class == class && it.items.len() < ITEMS_MAX
            };
            match all.iter_mut().find(is_open) {
                Some(open) => {
                    open.items.extend_from_slice(&request.items);
                    open.requests.push(request);
                }
                None => all.push(MergedReads {
                    subject: request.subject,
                    class,
                    items: request.items.clone(),
                    requests: vec![request],
                }),
            }
        }
        join_all(all.into_iter().map(|merged| merged.read(base))).await;
    }
}

impl<S: Subject> MergedReads<S> {
    /// Performs the reads and responds to each request. If a record is damaged, each request is
    /// read separately, so that only the requests for this record fail.
    async fn read(self, base: &dyn Engine) {
        let is_shared = self.requests.len() > 1;
        let found = self.subject.read(base, &self.items).await;
        let mut found = found.map(IntoIterator::into_iter);
        for Request {
            items, response, ..
        } in self.requests
        {
            let found = match &mut found {
                Ok(found) => Ok(found.take(items.len()).collect()),
                Err(EngineError::Corrupt(_)) if is_shared => self.subject.read(base, &items).await,
                Err(error) => Err(error.copy_for_caller()),
            };
            // The task may have ended since.
            drop(response.send(found));
        }
    }
}

#[async_trait]
impl Engine for MergingEngine {
    async fn apply(&self, lane: Lane, set: ChangeSet) -> Result<ApplyResult, EngineError> {
        self.base.apply(lane, set).await
    }

    async fn get(&self, kind: Kind, keys: &[Vec<u8>]) -> Result<Vec<Option<Row>>, EngineError> {
        self.records.read(kind, keys.to_vec()).await
    }

    async fn read_page(
        &self,
        kind: Kind,
        range: Range,
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Row)>, EngineError> {
        self.base.read_page(kind, range, direction, limit).await
    }

    async fn read_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        direction: Direction,
        limit: usize,
    ) -> Result<Vec<Vec<IndexEntry>>, EngineError> {
        let items = ranges.iter().map(|range| (range.clone(), limit)).collect();
        self.entries.read((index, direction), items).await
    }

    async fn last_with_prefix(
        &self,
        index: Index,
        prefixes: &[Vec<u8>],
    ) -> Result<Vec<Option<IndexedRecord>>, EngineError> {
        self.lasts.read(index, prefixes.to_vec()).await
    }

    async fn count_ranges(
        &self,
        index: Index,
        ranges: &[Range],
        limit: usize,
    ) -> Result<Vec<usize>, EngineError> {
        self.counts
            .read(RangeCount(index, limit), ranges.to_vec())
            .await
    }

    async fn log_after(
        &self,
        after: LogPosition,
        limit: usize,
    ) -> Result<Option<Vec<LogStep>>, EngineError> {
        self.base.log_after(after, limit).await
    }

    async fn changes_after(
        &self,
        after: LogPosition,
        bytes_max: usize,
    ) -> Result<Option<Delta>, EngineError> {
        self.base.changes_after(after, bytes_max).await
    }

    async fn row_count(&self) -> Result<u64, EngineError> {
        self.base.row_count().await
    }

    fn last_changed(&self, kinds: &[Kind]) -> LogPosition {
        self.base.last_changed(kinds)
    }

    async fn log_head(&self) -> Result<LogPosition, EngineError> {
        self.base.log_head().await
    }

    fn log_signal(&self) -> watch::Receiver<LogPosition> {
        self.base.log_signal()
    }

    fn free_space(&self) -> Option<FreeSpace> {
        self.base.free_space()
    }

    fn condition(&self) -> Condition {
        self.base.condition()
    }

    fn cluster(&self) -> &dyn Cluster {
        self.base.cluster()
    }

    fn position_of_version(&self, version: u64) -> Option<LogPosition> {
        self.base.position_of_version(version)
    }

    fn is_shared(&self) -> bool {
        self.base.is_shared()
    }
}
