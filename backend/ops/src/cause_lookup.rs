//! Reads the inhibition sources and groups that decisions require.

pub mod group;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    decide::{CauseKey, CauseQuery, Causes},
    domain::{Occurrence, RecordId},
    error::Error,
    limits::{INHIBITION_SOURCES_READ, SETTLE_ROUNDS_MAX},
    store::{Direction, EngineError, Index, Store, engine::Range, record::bytes::Key},
};

/// Factor by which more sources are read as long as none of those read holds the notification.
const MORE_SOURCES: usize = 4;
/// Number of decisions after which the expected inhibitions are learned again.
const FORGET_AFTER: u32 = 64;

/// Repeats a decision until all required causes have been read, and returns the last result.
pub async fn decide_with_causes<T, F>(
    store: &Store,
    causes: &Causes,
    decide: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        let decided = decide().await?;
        if load_missing(store, causes).await? {
            return Ok(decided);
        }
    }
}

/// The inhibitions required by recent decisions. They are read in advance for the next decision,
/// which most likely requires the same ones and then need not be repeated.
#[derive(Debug, Default)]
pub struct RecentInhibitions(Mutex<ExpectedSources>);

#[derive(Debug, Default)]
struct ExpectedSources {
    /// `None` if no decision has checked a target.
    inhibitions: Option<BTreeSet<RecordId>>,
    decisions: u32,
}

impl RecentInhibitions {
    fn lock(&self) -> MutexGuard<'_, ExpectedSources> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the causes of a new decision, with the inhibitions that it is likely to require.
    pub async fn causes(&self, store: &Store) -> Result<Causes, EngineError> {
        let causes = Causes::default();
        let expected = self.lock().inhibitions.clone();
        if let Some(inhibitions) = expected {
            causes.request_in_advance(inhibitions);
            load_missing(store, &causes).await?;
        }
        Ok(causes)
    }

    /// Records the inhibitions that a decision required. The record is reset periodically to drop
    /// those no longer required.
    pub fn record_required(&self, causes: &Causes) {
        let known = causes.known_inhibitions();
        let mut inner = self.lock();
        inner.decisions = (inner.decisions + 1) % FORGET_AFTER;
        inner.inhibitions = known.filter(|_| inner.decisions > 0);
    }
}

/// Reads the data that a decision lacked. Returns whether the data was complete; otherwise the
/// decision must be repeated.
///
/// # Errors
/// Returns an error if the store fails, and [`EngineError::Corrupt`] if the decision is still
/// incomplete after [`SETTLE_ROUNDS_MAX`] rounds, so that only this decision fails, as with damaged
/// data.
pub async fn load_missing(store: &Store, causes: &Causes) -> Result<bool, EngineError> {
    let wanted = causes.start_round();
    let is_settled = wanted == CauseQuery::default();
    if !is_settled && causes.rounds() > SETTLE_ROUNDS_MAX {
        return Err(EngineError::Corrupt(format!(
            "a decision depends on too many records: gave up after {SETTLE_ROUNDS_MAX} rounds"
        )));
    }
    for ask in wanted.groups {
        causes.set_group(ask, group::read_group(store, ask).await?);
    }
    let under = |prefixes: Vec<Vec<u8>>| prefixes.iter().map(|it| Range::with_prefix(it)).collect();
    let prefixes = wanted.inhibitions.iter().map(|it| it.to_bytes().into());
    let mut prefixes: Vec<Vec<u8>> = prefixes.collect();
    if wanted.any {
        prefixes.push(Vec::new());
    }
    let mut first = read_entries(store, under(prefixes), 1).await?;
    if wanted.any {
        let any = first.pop();
        causes.set_has_any(any.is_some_and(|it| !it.is_empty()));
    }
    for (inhibition, first) in wanted.inhibitions.into_iter().zip(first) {
        causes.set_has_sources(inhibition, !first.is_empty());
    }
    let mut keys: BTreeMap<usize, Vec<CauseKey>> = BTreeMap::new();
    for key in wanted.keys {
        let limit = INHIBITION_SOURCES_READ.max(causes.cached_count(&key) * MORE_SOURCES);
        keys.entry(limit).or_default().push(key);
    }
    for (limit, keys) in keys {
        let prefixes = keys.iter();
        let prefixes = prefixes
            .map(|(inhibition, values)| Key::new().id(*inhibition).remainder(values).build());
        let found = read_entries(store, under(prefixes.collect()), limit).await?;
        for (key, found) in keys.into_iter().zip(found) {
            let has_more = found.len() >= limit;
            let records = found.into_iter().map(|(_, record)| record).collect();
            let found = store.get_many::<Occurrence>(records).await?;
            let found = found.into_iter().flatten().map(|it| it.value).collect();
            causes.add_sources(key, found, has_more);
        }
    }
    Ok(is_settled)
}

async fn read_entries(
    store: &Store,
    ranges: Vec<Range>,
    limit: usize,
) -> Result<Vec<Vec<(Vec<u8>, Vec<u8>)>>, EngineError> {
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let (index, ascending) = (Index::OccurrenceByCause, Direction::Ascending);
    let engine = store.engine();
    engine.read_ranges(index, &ranges, ascending, limit).await
}

#[cfg(test)]
mod tests;
