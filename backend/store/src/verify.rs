//! Verifies a store: every record is readable, records and index entries correspond, and there are
//! no dangling references.

mod audit_log;
mod counters;
mod in_use;
mod log;
mod part;
mod references;
mod tally;

use futures_util::future::BoxFuture;
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use part::Part;
use tally::EntryTally;

use crate::{
    domain::{
        RecordId,
        counter::{Counter, Numbers},
    },
    engine::{Direction, EngineError, Entry, Index, Kind, LogPosition, Range, Row},
    record::Store,
};

const PAGE: usize = 500;
/// Maximum number of described errors; further errors are only counted.
const ERRORS_DESCRIBED_MAX: usize = 100;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Findings {
    pub records: BTreeMap<&'static str, u64>,
    pub entries: u64,
    pub log_steps: u64,
    pub errors: u64,
    /// Descriptions of the first hundred errors, one sentence each.
    pub descriptions: Vec<String>,
    /// Whether the whole store was read. An unreadable part counts as an error, and ends the
    /// verification.
    pub is_complete: bool,
}

impl Findings {
    pub fn add_error(&mut self, error: impl Into<String>) {
        self.errors += 1;
        if self.descriptions.len() < ERRORS_DESCRIBED_MAX {
            self.descriptions.push(error.into());
        }
    }
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// Verifies every record, every index entry and the change log of a store that must not change
/// during the call. `progress` is called every few hundred records.
pub fn verify<'a>(
    store: &'a Store,
    progress: &'a (dyn Fn(Progress) + Sync),
) -> BoxFuture<'a, Findings> {
    Box::pin(Verifier::new(store, progress, false).run())
}

/// Verifies a store like [`verify`] while it is in use, in short reads with pauses. Only errors in
/// records and entries that did not change during the check are reported. Later changes are not
/// read again.
pub fn verify_running_store<'a>(
    store: &'a Store,
    progress: &'a (dyn Fn(Progress) + Sync),
) -> BoxFuture<'a, Findings> {
    Box::pin(Verifier::new(store, progress, true).run())
}

struct Verifier<'a> {
    store: &'a Store,
    progress: &'a (dyn Fn(Progress) + Sync),
    is_in_use: bool,
    total: u64,
    done: u64,
    head: LogPosition,
    findings: Findings,
    /// Entries that the records require, by index number.
    expected: BTreeMap<u8, EntryTally>,
    counted: BTreeMap<Counter, Numbers>,
}

impl<'a> Verifier<'a> {
    fn new(store: &'a Store, progress: &'a (dyn Fn(Progress) + Sync), is_in_use: bool) -> Self {
        Self {
            store,
            progress,
            is_in_use,
            total: 0,
            done: 0,
            head: LogPosition::START,
            findings: Findings::default(),
            expected: BTreeMap::new(),
            counted: BTreeMap::new(),
        }
    }

    async fn run(mut self) -> Findings {
        match self.check_all().await {
            Ok(is_complete) => self.findings.is_complete = is_complete,
            Err(error) => self
                .findings
                .add_error(format!("{error}; records after it were not read")),
        }
        self.findings
    }
}

impl Verifier<'_> {
    async fn check_all(&mut self) -> Result<bool, EngineError> {
        self.total = self.store.engine().row_count().await?;
        self.head = self.store.engine().log_head().await?;
        let mut is_readable = true;
        for kind in Kind::ALL {
            match self.check_kind(kind).await {
                Err(EngineError::Corrupt(why)) => {
                    is_readable = false;
                    let word = kind.as_str();
                    self.findings
                        .add_error(format!("{why}; no further {word} records were read"));
                }
                other => other?,
            }
        }
        if !is_readable {
            let rest = "the audit log, the indexes and the change log were not verified, because \
                        some records cannot be read";
            self.findings.add_error(rest);
            return Ok(false);
        }
        self.check_audit_log().await?;
        if self.is_in_use {
            self.check_entries_in_use().await?;
        } else {
            self.check_entries().await?;
        }
        self.check_log().await?;
        Ok(true)
    }

    async fn check_kind(&mut self, kind: Kind) -> Result<(), EngineError> {
        match kind {
            Kind::Counter => self.check_counters().await,
            Kind::Meta => self.check_facts().await,
            _ => self.check_records(kind).await,
        }
    }

    async fn check_entries(&mut self) -> Result<(), EngineError> {
        let wrong = self.check_indexes().await?;
        if !wrong.is_empty() {
            for kind in Kind::ALL {
                self.report_missing(kind, &wrong).await?;
            }
        }
        Ok(())
    }

    /// Adds to the progress, and pauses if the store is in use.
    async fn record_progress(&mut self, count: usize, begun: Instant) {
        self.done += count as u64;
        (self.progress)(Progress {
            done: self.done,
            total: self.total,
        });
        if self.is_in_use {
            in_use::pause_briefly(begun.elapsed()).await;
        }
    }

    /// Reads the facts, which have no type; only the engine's checksums verify them.
    async fn check_facts(&mut self) -> Result<(), EngineError> {
        let (begun, range) = (Instant::now(), Range::with_prefix(b""));
        let engine = self.store.engine();
        let page = engine.read_page(Kind::Meta, range, Direction::Ascending, usize::MAX);
        let count = page.await?.len();
        self.record_progress(count, begun).await;
        Ok(())
    }

    /// Reads the records of a kind. Each must decode, belong to its key, have its entries, and have
    /// no dangling references.
    async fn check_records(&mut self, kind: Kind) -> Result<(), EngineError> {
        let mut range = Range::with_prefix(b"");
        loop {
            let begun = Instant::now();
            let engine = self.store.engine();
            let page = engine.read_page(kind, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range.start = key_after(last);
            let count = page.len();
            let head = self.store.engine().log_head().await?;
            *self.findings.records.entry(kind.as_str()).or_default() += count as u64;
            let (parts, mut errors) = self.read_parts(kind, page, head);
            self.count(&parts);
            let dangling = references::dangling_references(kind, &parts, self.store).await?;
            if self.is_in_use {
                errors.extend(
                    self.missing_entry_errors(kind, owned_entries(&parts))
                        .await?,
                );
                let mut suspects: BTreeSet<_> = errors.into_iter().map(|(key, _)| key).collect();
                if !dangling.is_empty() {
                    suspects.extend(parts.into_iter().map(|part| part.key));
                }
                for key in suspects {
                    for error in self.recheck_errors(kind, &key).await? {
                        self.findings.add_error(error);
                    }
                }
            } else {
                for (key, entry) in owned_entries(&parts) {
                    let tally = self.expected.entry(entry.index as u8).or_default();
                    tally.add(&entry.key, key);
                }
                let errors = errors.into_iter().map(|(_, error)| error);
                for error in errors.chain(dangling) {
                    self.findings.add_error(error);
                }
            }
            self.record_progress(count, begun).await;
        }
    }

    /// Decodes a page of records that was read at a position of the change log. Also returns the
    /// errors with their keys.
    fn read_parts(
        &self,
        kind: Kind,
        page: Vec<(Vec<u8>, Row)>,
        head: LogPosition,
    ) -> (Vec<Part>, Vec<(Vec<u8>, String)>) {
        let (mut parts, mut errors) = (Vec::new(), Vec::new());
        for (key, row) in page {
            let made_at = self.store.engine().position_of_version(row.version);
            if made_at.is_some_and(|it| it > head) {
                let error = format!("{} is newer than the change log", record_name(kind, &key));
                errors.push((key.clone(), error));
            }
            match Part::decode(self.store, kind, &key, &row.value) {
                Ok(part) => parts.push(part),
                Err(error) => errors.push((key, error)),
            }
        }
        (parts, errors)
    }

    async fn report_missing(
        &mut self,
        kind: Kind,
        wrong: &BTreeSet<u8>,
    ) -> Result<(), EngineError> {
        let mut range = Range::with_prefix(b"");
        loop {
            let engine = self.store.engine();
            let page = engine.read_page(kind, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range.start = key_after(last);
            // Unreadable records have already been reported.
            let parts = page
                .iter()
                .filter_map(|(key, row)| Part::decode(self.store, kind, key, &row.value).ok());
            let parts: Vec<_> = parts.collect();
            let owned =
                owned_entries(&parts).filter(|(_, entry)| wrong.contains(&(entry.index as u8)));
            for (_, error) in self.missing_entry_errors(kind, owned).await? {
                self.findings.add_error(error);
            }
        }
    }

    /// Checks that the required entries, given with the records' keys, exist. Returns the errors
    /// with their keys.
    async fn missing_entry_errors<'p>(
        &self,
        kind: Kind,
        owned: impl Iterator<Item = (&'p [u8], &'p Entry)>,
    ) -> Result<Vec<(Vec<u8>, String)>, EngineError> {
        let mut errors = Vec::new();
        let mut by_index: BTreeMap<u8, Vec<(&[u8], &Entry)>> = BTreeMap::new();
        for (key, entry) in owned {
            let of_index = by_index.entry(entry.index as u8).or_default();
            of_index.push((key, entry));
        }
        for owned in by_index.into_values() {
            let Some(index) = owned.first().map(|(_, entry)| entry.index) else {
                continue;
            };
            let ranges: Vec<_> = owned.iter().map(|(_, entry)| exact_range(entry)).collect();
            let engine = self.store.engine();
            let found = engine.read_ranges(index, &ranges, Direction::Ascending, 1);
            for ((record, _), found) in owned.iter().zip(found.await?) {
                if found.first().is_none_or(|(_, target)| target != record) {
                    let error = format!(
                        "{} is missing from the index {index:?}",
                        record_name(kind, record)
                    );
                    errors.push((record.to_vec(), error));
                }
            }
        }
        Ok(errors)
    }

    async fn is_entry_for(&self, entry: &Entry, record: &[u8]) -> Result<bool, EngineError> {
        let engine = self.store.engine();
        let found = engine.entries(entry.index, exact_range(entry), Direction::Ascending, 1);
        Ok(found
            .await?
            .first()
            .is_some_and(|(_, found)| found == record))
    }

    async fn check_indexes(&mut self) -> Result<BTreeSet<u8>, EngineError> {
        let mut wrong = BTreeSet::new();
        for index in Index::ALL {
            let mut range = Range::with_prefix(b"");
            let mut found = EntryTally::default();
            loop {
                let begun = Instant::now();
                let engine = self.store.engine();
                let page = engine.entries(index, range.clone(), Direction::Ascending, PAGE);
                let page = page.await?;
                let Some((last, _)) = page.last() else {
                    break;
                };
                range.start = key_after(last);
                for (key, target) in &page {
                    found.add(key, target);
                }
                self.record_progress(page.len(), begun).await;
            }
            self.findings.entries += found.count;
            let expected = self.expected.get(&(index as u8)).copied();
            let expected = expected.unwrap_or_default();
            if found != expected {
                wrong.insert(index as u8);
            }
            if found.count != expected.count {
                let (count, expected) = (found.count, expected.count);
                let error = format!(
                    "the index {index:?} has {count} entries, but its records require {expected}"
                );
                self.findings.add_error(error);
            }
        }
        Ok(wrong)
    }
}

fn owned_entries(parts: &[Part]) -> impl Iterator<Item = (&[u8], &Entry)> {
    let owned = parts.iter().map(|part| (&*part.key, &part.entries));
    owned.flat_map(|(key, entries)| entries.iter().map(move |entry| (key, entry)))
}

fn exact_range(entry: &Entry) -> Range {
    Range {
        end: Some(key_after(&entry.key)),
        start: entry.key.clone(),
    }
}

fn key_after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

fn record_name(kind: Kind, key: &[u8]) -> String {
    let word = kind.as_str();
    let id = |bytes: &[u8]| Some(RecordId::from_bytes(bytes.try_into().ok()?));
    let by_id = match kind {
        Kind::Occurrence | Kind::Delivery | Kind::Health | Kind::Budget | Kind::OwnEvent => {
            id(key).map(|id| format!("{word} {id}"))
        }
        Kind::Attempt => key.split_at_checked(16).and_then(|(delivery, number)| {
            let number = u32::from_be_bytes(number.try_into().ok()?);
            Some(format!("{word} {number} of delivery {}", id(delivery)?))
        }),
        _ => None,
    };
    let by_name = || match std::str::from_utf8(key) {
        Ok(name) => format!("{word} `{}`", name.escape_debug()),
        Err(_) => format!("{word} {}", key.escape_ascii()),
    };
    by_id.unwrap_or_else(by_name)
}

#[cfg(test)]
mod tests;
