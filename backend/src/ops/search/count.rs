//! How many occurrences there are, in all and spread over time.

use std::collections::BTreeMap;

use super::{
    Filter, SortField,
    walk::{Sort, Walk},
};
use crate::{
    domain::Severity,
    error::Error,
    store::{Direction, Index, Store, engine::Range, record::bytes::moment_at},
};

/// Occurrences read at once.
const BATCH: usize = 1_000;

/// A span of time, and how many occurrences were last seen in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// First moment, in milliseconds since 1970.
    pub start_ms: i64,
    /// First moment after the span, in milliseconds since 1970.
    pub end_ms: i64,
    /// How many, by severity; severities without any are left out.
    pub by_severity: BTreeMap<Severity, usize>,
}

/// Counts the occurrences that are meant.
///
/// # Errors
/// Those of the store.
pub async fn count(store: &Store, filter: &Filter) -> Result<usize, Error> {
    let mut total = 0;
    if filter.is_answered_by(SortField::LastSeen) && filter.start_ms.is_none() {
        for status in filter.statuses() {
            for severity in filter.severities() {
                let range = Range::under(&[status as u8, severity as u8]);
                total += store
                    .engine()
                    .count(Index::OccurrenceByState, range, usize::MAX)
                    .await?;
            }
        }
        return Ok(total);
    }
    let sort = Sort {
        field: SortField::LastSeen,
        direction: Direction::Ascending,
    };
    let mut walk = Walk::new(store, filter, sort, None);
    loop {
        let batch = walk.next(BATCH).await?;
        if batch.is_empty() {
            return Ok(total);
        }
        total += batch
            .iter()
            .filter(|(_, found)| filter.admits(&found.value))
            .count();
        tokio::task::yield_now().await;
    }
}

/// Spreads the occurrences that are meant over equal spans from `start_ms` to `end_ms`, by the
/// time they were last seen. The last span may be shorter.
///
/// # Errors
/// Those of the store.
pub async fn frequency(
    store: &Store,
    filter: &Filter,
    (start_ms, end_ms): (i64, i64),
    bucket_count: usize,
) -> Result<Vec<Bucket>, Error> {
    let mut buckets = spans(start_ms, end_ms, bucket_count);
    let width_ms = buckets
        .first()
        .map_or(1, |first| first.end_ms - first.start_ms)
        .max(1);
    let filter = Filter {
        start_ms: Some(start_ms),
        end_ms: Some(end_ms),
        ..filter.clone()
    };
    let sort = Sort {
        field: SortField::LastSeen,
        direction: Direction::Ascending,
    };
    let mut walk = Walk::new(store, &filter, sort, None);
    loop {
        let batch = walk.next(BATCH).await?;
        let is_past = batch
            .first()
            .is_none_or(|(place, _)| moment_at(place, 0).is_none_or(|at_ms| at_ms >= end_ms));
        if is_past {
            return Ok(buckets);
        }
        for (_, found) in batch {
            let occurrence = found.value;
            let at = usize::try_from((occurrence.last_seen_ms - start_ms) / width_ms);
            if !filter.admits(&occurrence) || occurrence.last_seen_ms >= end_ms {
                continue;
            }
            if let Some(bucket) = at.ok().and_then(|at| buckets.get_mut(at)) {
                *bucket.by_severity.entry(occurrence.severity).or_default() += 1;
            }
        }
        tokio::task::yield_now().await;
    }
}

fn spans(start_ms: i64, end_ms: i64, count: usize) -> Vec<Bucket> {
    let count_ms = i64::try_from(count.max(1)).unwrap_or(i64::MAX);
    let length_ms = end_ms.saturating_sub(start_ms).max(1);
    let width_ms = (length_ms / count_ms + i64::from(length_ms % count_ms > 0)).max(1);
    let starts = (0..count_ms).map(|at| start_ms.saturating_add(at * width_ms));
    starts
        .take_while(|span_ms| *span_ms < end_ms)
        .map(|span_ms| Bucket {
            start_ms: span_ms,
            end_ms: span_ms.saturating_add(width_ms).min(end_ms),
            by_severity: BTreeMap::new(),
        })
        .collect()
}
