//! Counts of occurrences, in total and over time.

use std::collections::BTreeMap;

use super::{
    Filter, SortField,
    walk::{IndexWalk, SortOrder},
};
use crate::{
    domain::Severity,
    error::Error,
    store::{Direction, Index, Store, engine::Range, record::bytes::read_time_ms},
};

const BATCH: usize = 1_000;

/// A time range, and the number of occurrences last seen in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    /// Start, inclusive, in milliseconds since the epoch.
    pub start_ms: i64,
    /// End, exclusive, in milliseconds since the epoch.
    pub end_ms: i64,
    /// Count by severity; severities without occurrences are omitted.
    pub by_severity: BTreeMap<Severity, usize>,
}

pub async fn count_matches(store: &Store, filter: &Filter) -> Result<usize, Error> {
    let mut total = 0;
    if filter.is_covered_by_index(SortField::LastSeen) && filter.start_ms.is_none() {
        for status in filter.statuses() {
            for severity in filter.severities() {
                let range = Range::with_prefix(&[status as u8, severity as u8]);
                total += store
                    .engine()
                    .count(Index::OccurrenceByState, range, usize::MAX)
                    .await?;
            }
        }
        return Ok(total);
    }
    let sort = SortOrder {
        field: SortField::LastSeen,
        direction: Direction::Ascending,
    };
    let mut walk = IndexWalk::new(store, filter, sort, None);
    loop {
        let batch = walk.next(BATCH).await?;
        if batch.is_empty() {
            return Ok(total);
        }
        total += filter.retain_matching(batch).await.len();
        tokio::task::yield_now().await;
    }
}

/// Counts the matching occurrences in `bucket_count` equal ranges from `start_ms` to `end_ms`, by
/// the time they were last seen. The ranges are equal to within a millisecond.
///
/// # Errors
/// Returns [`Error::Invalid`] if the time range has fewer milliseconds than buckets, or an error if
/// the store fails.
pub async fn count_by_bucket(
    store: &Store,
    filter: &Filter,
    (start_ms, end_ms): (i64, i64),
    bucket_count: usize,
) -> Result<Vec<Bucket>, Error> {
    let mut buckets = split_span(start_ms, end_ms, bucket_count).ok_or_else(|| {
        let length_ms = end_ms.saturating_sub(start_ms);
        Error::invalid(
            "bucketCount",
            format!(
                "is {bucket_count}, but the time range is only {length_ms} ms; request fewer buckets"
            ),
        )
    })?;
    let filter = Filter {
        start_ms: Some(start_ms),
        end_ms: Some(end_ms),
        ..filter.clone()
    };
    let sort = SortOrder {
        field: SortField::LastSeen,
        direction: Direction::Ascending,
    };
    let mut walk = IndexWalk::new(store, &filter, sort, None);
    loop {
        let batch = walk.next(BATCH).await?;
        let is_past = batch
            .first()
            .is_none_or(|(place, _)| read_time_ms(place, 0).is_none_or(|at_ms| at_ms >= end_ms));
        if is_past {
            return Ok(buckets);
        }
        for occurrence in filter.retain_matching(batch).await {
            let last_seen_ms = occurrence.last_seen_ms;
            if last_seen_ms >= end_ms {
                continue;
            }
            let at = buckets.partition_point(|bucket| bucket.end_ms <= last_seen_ms);
            if let Some(bucket) = buckets.get_mut(at) {
                *bucket.by_severity.entry(occurrence.severity).or_default() += 1;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// Returns `count` adjacent ranges; `None` if the time range is too short.
fn split_span(start_ms: i64, end_ms: i64, count: usize) -> Option<Vec<Bucket>> {
    let count = i128::try_from(count).ok()?;
    let length_ms = i128::from(end_ms) - i128::from(start_ms);
    if length_ms < count {
        return None;
    }
    let bound_ms = |at: i128| {
        let passed_ms = length_ms * at / count;
        i64::try_from(i128::from(start_ms) + passed_ms).unwrap_or(end_ms)
    };
    let spans = (0..count).map(|at| Bucket {
        start_ms: bound_ms(at),
        end_ms: bound_ms(at + 1),
        by_severity: BTreeMap::new(),
    });
    Some(spans.collect())
}
