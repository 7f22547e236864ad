//! Finding, counting and spreading occurrences over time.

mod count;
mod filter;
#[cfg(test)]
mod tests;
mod walk;

pub use count::{Bucket, count, frequency};
pub use filter::Filter;
pub(crate) use walk::{Sort, Walk};

use crate::{
    domain::Occurrence,
    error::Error,
    ops::page::Scope,
    store::{Direction, Store, Stored},
};

/// Occurrences read for one page; a page that finds too little by then ends early, and says that
/// there is more.
const SCANNED_MAX: usize = 20_000;
/// Occurrences read to find out how many there are in all.
const TOTAL_SCANNED_MAX: usize = 10_000;
/// Occurrences read at once, and the first time.
const BATCH_MAX: usize = 256;
const BATCH_FIRST: usize = 64;
/// Bytes of occurrences after which a page ends, though more were asked for.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// The order in which lists show occurrences unless told otherwise.
pub(crate) const NEWEST_FIRST: Sort = Sort {
    field: SortField::LastSeen,
    direction: Direction::Descending,
};

/// What to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortField {
    /// The newest time a sender gave.
    #[default]
    LastSeen,
    /// When it was opened.
    StartTime,
    /// How bad it is, then the newest time a sender gave.
    Severity,
}

/// A page of occurrences that is asked for.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Which occurrences.
    pub filter: Filter,
    /// What to sort by.
    pub sort: SortField,
    /// Whether the smallest or oldest comes first.
    pub ascending: bool,
    /// How many; at least one.
    pub limit: usize,
    /// Where to go on; empty for the first page.
    pub cursor: String,
    /// Whether to go towards what precedes the cursor.
    pub backward: bool,
    /// Tells this query from others, so that a cursor of another one is refused.
    pub fingerprint: Vec<u8>,
}

/// A page of occurrences.
#[derive(Debug, Clone)]
pub struct Found {
    /// The occurrences, in order.
    pub occurrences: Vec<Occurrence>,
    /// How many there are in all, when that is cheap to know.
    pub total: Option<usize>,
    /// Whether there may be more in the direction that was asked for.
    pub has_next: bool,
    /// The cursor of the first occurrence.
    pub start_cursor: String,
    /// The cursor of the last occurrence, or of the place where the search ended early.
    pub end_cursor: String,
}

/// Finds a page of occurrences.
///
/// # Errors
/// [`Error::Invalid`] for a cursor that is not of this query, else those of the store.
pub async fn search(store: &Store, request: &SearchRequest) -> Result<Found, Error> {
    let scope = Scope::new("events")
        .with("sort", [[request.sort as u8, u8::from(request.ascending)]])
        .with("query", [&request.fingerprint]);
    let after = scope.last_key(&request.cursor).map_err(|_foreign| {
        Error::invalid("query.pageInput.cursor", "is not a cursor of this query")
    })?;
    let direction = if request.ascending == request.backward {
        Direction::Descending
    } else {
        Direction::Ascending
    };
    let sort = Sort {
        field: request.sort,
        direction,
    };
    let mut walk = Walk::new(store, &request.filter, sort, after.as_deref());
    let mut found = collect(&mut walk, request).await?;
    if request.backward {
        found.places.reverse();
        found.occurrences.reverse();
    }
    let total = if found.ended && request.cursor.is_empty() {
        Some(found.occurrences.len())
    } else {
        total(store, request, sort).await?
    };
    let cursor = |place: Option<&Vec<u8>>| place.map_or_else(String::new, |key| scope.token(key));
    let last = found.stopped_at.as_ref().filter(|_| !request.backward);
    let first = found.stopped_at.as_ref().filter(|_| request.backward);
    Ok(Found {
        start_cursor: cursor(first.or(found.places.first())),
        end_cursor: cursor(last.or(found.places.last())),
        has_next: !found.ended,
        occurrences: found.occurrences,
        total,
    })
}

#[derive(Debug, Default)]
struct Collected {
    occurrences: Vec<Occurrence>,
    places: Vec<Vec<u8>>,
    /// Whether there is nothing more.
    ended: bool,
    /// Where the search gave up early.
    stopped_at: Option<Vec<u8>>,
}

async fn collect(walk: &mut Walk<'_>, request: &SearchRequest) -> Result<Collected, Error> {
    let mut collected = Collected::default();
    let (mut scanned, mut bytes) = (0, 0);
    loop {
        let missing = request.limit + 1 - collected.occurrences.len();
        let affordable = affordable(collected.occurrences.len(), bytes);
        let batch = walk.next(missing.clamp(1, affordable)).await?;
        if batch.is_empty() {
            collected.ended = true;
            return Ok(collected);
        }
        scanned += batch.len();
        let last_place = batch.last().map(|(place, _)| place.clone());
        for (place, Stored { value, .. }) in batch {
            if !request.filter.admits(&value) {
                continue;
            }
            if collected.occurrences.len() == request.limit || bytes >= PAGE_BYTES {
                return Ok(collected);
            }
            bytes += value.weight_bytes();
            collected.places.push(place);
            collected.occurrences.push(value);
        }
        if scanned >= SCANNED_MAX {
            collected.stopped_at = last_place;
            return Ok(collected);
        }
        tokio::task::yield_now().await;
    }
}

/// How many occurrences to read at once, after those that were found, so that large ones do not
/// fill the memory before they are counted.
fn affordable(found: usize, bytes: usize) -> usize {
    match bytes.checked_div(found) {
        Some(each) => (PAGE_BYTES / each.max(1)).clamp(1, BATCH_MAX),
        None => BATCH_FIRST,
    }
}

/// How many there are in all; none when that takes more than [`TOTAL_SCANNED_MAX`] reads.
async fn total(store: &Store, request: &SearchRequest, sort: Sort) -> Result<Option<usize>, Error> {
    let mut walk = Walk::new(store, &request.filter, sort, None);
    if request.filter.is_answered_by(sort.field) {
        let count = walk.count(TOTAL_SCANNED_MAX + 1).await?;
        return Ok((count <= TOTAL_SCANNED_MAX).then_some(count));
    }
    let (mut scanned, mut total) = (0, 0);
    loop {
        let batch = walk.next(BATCH_MAX).await?;
        if batch.is_empty() {
            return Ok(Some(total));
        }
        let admits = |(_, found): &&(_, Stored<Occurrence>)| request.filter.admits(&found.value);
        scanned += batch.len();
        total += batch.iter().filter(admits).count();
        if scanned > TOTAL_SCANNED_MAX {
            return Ok(None);
        }
        tokio::task::yield_now().await;
    }
}
