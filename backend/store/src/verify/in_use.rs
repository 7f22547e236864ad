//! Verifies a store in use: an apparent error is checked again, and is reported only if the record
//! was the same before and after.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{PAGE, Verifier, key_after, part::Part, record_name, references};
use crate::engine::{Direction, EngineError, Index, Kind, Range};

/// Maximum number of checks of a record that changes meanwhile. A record that changes every time is
/// in use, so its users would notice an error.
const LOOKS: usize = 5;
/// Pause after a page, as a multiple of the time it took to read, so that the service is not slowed
/// down.
const PAUSE_TIMES: u32 = 2;
const PAUSE_MAX: Duration = Duration::from_secs(1);

pub(super) async fn pause_briefly(read: Duration) {
    tokio::time::sleep((read * PAUSE_TIMES).min(PAUSE_MAX)).await;
}

impl Verifier<'_> {
    /// Checks a record with an apparent error again. Returns the errors that remain.
    pub(super) async fn recheck_errors(
        &self,
        kind: Kind,
        key: &[u8],
    ) -> Result<Vec<String>, EngineError> {
        for _ in 0..LOOKS {
            let before = self.read_version(kind, key).await?;
            let Some((version, value)) = before else {
                return Ok(Vec::new());
            };
            let mut errors = Vec::new();
            // A commit can be readable a moment before the head of the log is updated.
            let engine = self.store.engine();
            if let Some(made_at) = engine.position_of_version(version)
                && made_at > engine.log_head().await?
                && engine.log_after(made_at, 1).await?.is_none()
            {
                errors.push(format!(
                    "{} is newer than the change log",
                    record_name(kind, key)
                ));
            }
            match Part::decode(self.store, kind, key, &value) {
                Ok(part) => {
                    for entry in &part.entries {
                        if !self.is_entry_for(entry, key).await? {
                            let index = entry.index;
                            let error = format!(
                                "{} is missing from the index {index:?}",
                                record_name(kind, key)
                            );
                            errors.push(error);
                        }
                    }
                    errors
                        .extend(references::dangling_references(kind, &[part], self.store).await?);
                }
                Err(error) => errors.push(error),
            }
            let now = self.read_version(kind, key).await?;
            if now.is_some_and(|(now, _)| now == version) {
                return Ok(errors);
            }
        }
        Ok(Vec::new())
    }

    /// Reads every entry. Each must lead to a record that has this entry.
    pub(super) async fn check_entries_in_use(&mut self) -> Result<(), EngineError> {
        for index in Index::ALL {
            self.check_entries_of_index(index).await?;
        }
        Ok(())
    }

    async fn check_entries_of_index(&mut self, index: Index) -> Result<(), EngineError> {
        let kind = index.kind();
        let mut range = Range::with_prefix(b"");
        loop {
            let begun = Instant::now();
            let engine = self.store.engine();
            let page = engine.entries(index, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                return Ok(());
            };
            range.start = key_after(last);
            let count = page.len();
            let keys: BTreeSet<_> = page.iter().map(|(_, record)| record.clone()).collect();
            let keys: Vec<_> = keys.into_iter().collect();
            let rows = engine.get(kind, &keys).await?;
            let mut own = BTreeSet::new();
            for (key, row) in keys.into_iter().zip(rows) {
                // Unreadable records were already reported.
                let part = row.map(|row| Part::decode(self.store, kind, &key, &row.value));
                if let Some(Ok(part)) = part {
                    let entries = part.entries.into_iter();
                    let of_index = entries.filter(|entry| entry.index == index);
                    own.extend(of_index.map(|entry| (entry.key, key.clone())));
                }
            }
            for entry in page {
                if !own.contains(&entry) && self.is_stale_entry(index, &entry).await? {
                    let record = record_name(kind, &entry.1);
                    let error = format!(
                        "index {index:?} has an entry that points to {record} but does not match it"
                    );
                    self.findings.add_error(error);
                }
            }
            self.findings.entries += count as u64;
            self.record_progress(count, begun).await;
        }
    }

    /// Whether an entry leads to a missing record, or to a record that does not have the entry.
    async fn is_stale_entry(
        &self,
        index: Index,
        (entry, record): &(Vec<u8>, Vec<u8>),
    ) -> Result<bool, EngineError> {
        let kind = index.kind();
        for _ in 0..LOOKS {
            let before = self.read_version(kind, record).await?;
            let own = match &before {
                None => false,
                Some((_, value)) => match Part::decode(self.store, kind, record, value) {
                    Ok(part) => {
                        let mut own = part.entries.iter();
                        own.any(|own| own.index == index && own.key == *entry)
                    }
                    // Reported as a separate error.
                    Err(_) => true,
                },
            };
            let checked = super::Entry {
                index,
                key: entry.clone(),
            };
            if own || !self.is_entry_for(&checked, record).await? {
                return Ok(false);
            }
            let now = self.read_version(kind, record).await?;
            let version = |found: &Option<(u64, _)>| found.as_ref().map(|(version, _)| *version);
            if version(&before) == version(&now) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn read_version(
        &self,
        kind: Kind,
        key: &[u8],
    ) -> Result<Option<(u64, Vec<u8>)>, EngineError> {
        let rows = self.store.engine().get(kind, &[key.to_vec()]).await?;
        let row = rows.into_iter().next().flatten();
        Ok(row.map(|row| (row.version, row.value)))
    }
}
