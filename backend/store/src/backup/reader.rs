//! Reads a store for a backup while it is in use: first page by page, then the changes from the
//! change log, and finally the remaining records at one point in time.

use futures_util::future::BoxFuture;
use std::collections::BTreeMap;

use prost::Message;
use sha2::{Digest, Sha256};

use super::{
    BackupError,
    step::{BackupEnd, BackupRecord, Step},
};
use crate::{
    engine::{Delta, Direction, EngineError, Kind, LogPosition, Range, Row},
    limits::{BACKUP_LOG_STEPS, BACKUP_PAGE_RECORDS_MAX, BACKUP_STEP_BYTES},
    record::Store,
};

/// Returns the kinds that are read page by page. Attempts are read with their delivery; kinds that
/// are not logged are read at the end.
fn backed_up_kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| kind.is_logged())
}

/// A reader of a store for a backup. Its only state is the position, which every step contains, so
/// that an interrupted backup can be continued later or elsewhere.
#[derive(Debug)]
pub struct Reader {
    store: Store,
    place: ReadPosition,
    /// Number of records on the next page, adjusted to the intended size of a step.
    page_records: usize,
}

#[derive(Clone, PartialEq, Message)]
struct ReadPosition {
    #[prost(bytes = "vec", tag = "1")]
    identity: Vec<u8>,
    /// Index of the current kind. An index beyond the last kind means that all were read.
    #[prost(uint32, tag = "2")]
    walked: u32,
    #[prost(bytes = "vec", optional, tag = "3")]
    after: Option<Vec<u8>>,
    /// Key of the last record of the kind at the time when its reading began. Records created later
    /// are in the log.
    #[prost(bytes = "vec", optional, tag = "4")]
    bound: Option<Vec<u8>>,
    /// Position in the change log up to which changes were read.
    #[prost(uint64, tag = "5")]
    cursor: u64,
    #[prost(bool, tag = "6")]
    is_over: bool,
    #[prost(bytes = "vec", tag = "7")]
    proof: Vec<u8>,
}

impl Reader {
    /// Creates a reader, at the beginning or at the position of a step.
    ///
    /// # Errors
    /// Returns [`BackupError::Foreign`] for a position in another store,
    /// [`BackupError::Overtaken`] if the change log was trimmed past that position, or any error of
    /// the store.
    pub fn start(store: Store, place: Option<&[u8]>) -> BoxFuture<'_, Result<Self, BackupError>> {
        Box::pin(async move {
            let identity = store_identity(&store).await?;
            let place = match place {
                None => ReadPosition {
                    identity,
                    cursor: store.engine().log_head().await?.to_number(),
                    ..ReadPosition::default()
                },
                Some(bytes) => {
                    let mut place =
                        ReadPosition::decode(bytes).map_err(|_error| BackupError::Foreign)?;
                    if place.identity != identity {
                        return Err(BackupError::Foreign);
                    }
                    let cursor = LogPosition::from_number(place.cursor);
                    if store.engine().log_after(cursor, 1).await?.is_none() {
                        return Err(BackupError::Overtaken);
                    }
                    // A complete but unfinished backup continues with later changes.
                    place.is_over = false;
                    place
                }
            };
            Ok(Self {
                store,
                place,
                page_records: BACKUP_PAGE_RECORDS_MAX / 10,
            })
        })
    }

    /// Reads the next step; `None` after the last one.
    ///
    /// # Errors
    /// Returns [`BackupError::Overtaken`] if the store changes faster than it is read, or any error
    /// of the store.
    pub async fn next(&mut self) -> Result<Option<Step>, BackupError> {
        loop {
            if self.place.is_over {
                return Ok(None);
            }
            let walked = usize::try_from(self.place.walked).unwrap_or(usize::MAX);
            let Some(kind) = backed_up_kinds().nth(walked) else {
                return self.read_changes().await.map(Some);
            };
            let head = self.store.engine().log_head().await?;
            if head.steps_since(self.cursor()) >= BACKUP_LOG_STEPS {
                return self.read_changes().await.map(Some);
            }
            if let Some(records) = self.read_page(kind).await? {
                return Ok(Some(self.build_step(records, None)));
            }
            self.place.walked += 1;
            (self.place.after, self.place.bound) = (None, None);
        }
    }

    /// Whether all pages were read, and only later changes remain.
    pub fn is_catching_up(&self) -> bool {
        self.is_walk_complete()
    }

    /// Returns the number of records, entries and log steps of the store, for progress.
    pub async fn row_count(&self) -> Result<u64, BackupError> {
        Ok(self.store.engine().row_count().await?)
    }

    fn build_step(&mut self, records: Vec<BackupRecord>, end: Option<BackupEnd>) -> Step {
        let mut step = Step {
            records,
            end,
            ..Step::default()
        };
        step.prove(&self.place.proof, self.store.sealer());
        self.place.proof.clone_from(&step.proof);
        step.place = self.place.encode_to_vec();
        step
    }

    async fn read_page(&mut self, kind: Kind) -> Result<Option<Vec<BackupRecord>>, BackupError> {
        let engine = self.store.engine();
        if self.place.bound.is_none() {
            let last = engine.read_page(kind, Range::with_prefix(&[]), Direction::Descending, 1);
            let Some((last, _)) = last.await?.pop() else {
                return Ok(None);
            };
            self.place.bound = Some(last);
        }
        let start = self.place.after.as_deref().map_or_else(Vec::new, key_after);
        let end = self.place.bound.as_deref().map(key_after);
        let range = Range { start, end };
        let page = engine
            .read_page(kind, range, Direction::Ascending, self.page_records)
            .await?;
        let (Some((first, _)), Some((last, _))) = (page.first(), page.last()) else {
            return Ok(None);
        };
        let mut attempts = match kind {
            Kind::Delivery => self.read_attempts(first, last).await?,
            _ => BTreeMap::new(),
        };
        self.place.after = Some(last.clone());
        let records = page.into_iter().map(|(key, row)| BackupRecord {
            kind,
            value: Some(row.value),
            attempts: attempts.remove(&key).unwrap_or_default(),
            key,
        });
        let records: Vec<_> = records.collect();
        let bytes: usize = records.iter().map(BackupRecord::bytes).sum();
        let meant = records.len() * BACKUP_STEP_BYTES / bytes.max(1);
        self.page_records = meant.clamp(1, BACKUP_PAGE_RECORDS_MAX);
        Ok(Some(records))
    }

    /// Reads the attempts of a range of deliveries, by delivery. Attempts can be newer than the
    /// deliveries read before; such deliveries are in the log and are read again.
    async fn read_attempts(
        &self,
        first: &[u8],
        last: &[u8],
    ) -> Result<BTreeMap<Vec<u8>, Vec<Vec<u8>>>, EngineError> {
        let range = Range {
            start: first.into(),
            end: Range::with_prefix(last).end,
        };
        let engine = self.store.engine();
        let found = engine.read_page(Kind::Attempt, range, Direction::Ascending, usize::MAX);
        let mut attempts: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
        for (key, row) in found.await? {
            let delivery = key.get(..last.len()).unwrap_or_default().to_vec();
            attempts.entry(delivery).or_default().push(row.value);
        }
        Ok(attempts)
    }

    async fn read_changes(&mut self) -> Result<Step, BackupError> {
        let engine = self.store.engine();
        let delta = engine.changes_after(self.cursor(), BACKUP_STEP_BYTES);
        let delta = delta.await?.ok_or(BackupError::Overtaken)?;
        let Delta {
            through,
            head,
            changed,
            unlogged,
        } = delta;
        let records = changed
            .into_iter()
            .filter(|found| self.is_before_position(found.kind, &found.key))
            .map(|found| BackupRecord {
                kind: found.kind,
                key: found.key,
                value: found.row.map(|row| row.value),
                attempts: found.attempts.into_iter().map(|row| row.value).collect(),
            });
        let mut records: Vec<_> = records.collect();
        self.place.cursor = through.to_number();
        let is_last = through == head && self.is_walk_complete();
        let end = is_last.then(|| {
            let to_record = |(kind, key, row): (Kind, Vec<u8>, Row)| BackupRecord {
                kind,
                key,
                value: Some(row.value),
                attempts: Vec::new(),
            };
            records.extend(unlogged.into_iter().map(to_record));
            self.place.is_over = true;
            BackupEnd {
                identity: self.place.identity.clone(),
                place: head,
                time: jiff::Timestamp::now()
                    .strftime("%Y-%m-%dT%H:%M:%SZ")
                    .to_string(),
            }
        });
        Ok(self.build_step(records, end))
    }

    fn cursor(&self) -> LogPosition {
        LogPosition::from_number(self.place.cursor)
    }

    fn is_walk_complete(&self) -> bool {
        usize::try_from(self.place.walked).is_ok_and(|walked| walked >= backed_up_kinds().count())
    }

    /// Whether a record is before the current position. Reading page by page misses later changes
    /// to such a record.
    fn is_before_position(&self, kind: Kind, key: &[u8]) -> bool {
        let walked = usize::try_from(self.place.walked).unwrap_or(usize::MAX);
        match backed_up_kinds().position(|other| other == kind) {
            Some(at) if at == walked => {
                let is_ahead = self.place.after.as_deref().is_none_or(|last| key > last)
                    && self.place.bound.as_deref().is_none_or(|last| key <= last);
                !is_ahead
            }
            Some(at) => at < walked,
            None => false,
        }
    }
}

/// Returns the identity of the store: a hash of its facts, one of which is a text sealed with a
/// unique nonce.
async fn store_identity(store: &Store) -> Result<Vec<u8>, EngineError> {
    let range = Range::with_prefix(&[]);
    let facts = store
        .engine()
        .read_page(Kind::Meta, range, Direction::Ascending, usize::MAX);
    let mut hash = Sha256::new();
    for (key, row) in facts.await? {
        for part in [key, row.value] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    Ok(hash.finalize()[..IDENTITY_BYTES].to_vec())
}

const IDENTITY_BYTES: usize = 16;

fn key_after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_backed_up_exactly_once() {
        for kind in Kind::ALL {
            let is_walked = backed_up_kinds().any(|it| it == kind);
            let is_copied_at_the_end = Delta::UNLOGGED.contains(&kind);
            let comes_with_its_delivery = kind == Kind::Attempt;
            let ways = [is_walked, is_copied_at_the_end, comes_with_its_delivery];
            assert_eq!(ways.into_iter().filter(|way| *way).count(), 1, "{kind:?}");
        }
    }
}
