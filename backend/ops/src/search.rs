//! Search for occurrences: pages, counts, groups, and frequency over time.

mod count;
mod cursor;
mod filter;
mod group;
mod page;
#[cfg(test)]
mod tests;
mod walk;

pub use count::{Bucket, count_by_bucket, count_matches};
pub use filter::Filter;
pub use group::{Group, Groups, group_occurrences};
pub(crate) use page::changed_occurrences;
pub(crate) use walk::{IndexWalk, SortOrder};

use self::{
    cursor::{Cursor, Position},
    page::{FillOutcome, PageFiller},
};
use crate::{
    clock::Clock,
    domain::{Occurrence, SortField},
    error::Error,
    limits::PAGE_TIME_MAX,
    page::TokenScope,
    store::{Direction, Store},
};

const TOTAL_SCANNED_MAX: usize = 10_000;
/// Occurrences read at a time, and in the first read.
const BATCH_MAX: usize = 256;
const BATCH_FIRST: usize = 64;
/// Bytes of occurrences after which a page ends, even if more were requested.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

pub(crate) const NEWEST_FIRST: SortOrder = SortOrder {
    field: SortField::LastSeen,
    direction: Direction::Descending,
};

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    pub filter: Filter,
    /// The sort field; ties are ordered by start and id, which never change.
    pub sort: SortField,
    pub ascending: bool,
    pub limit: usize,
    /// Cursor to continue from; empty for the first page.
    pub cursor: String,
    pub backward: bool,
    /// Identifies the query, so that cursors of other queries are refused.
    pub fingerprint: Vec<u8>,
}

#[derive(Debug, Clone)]
pub struct SearchPage {
    pub occurrences: Vec<Occurrence>,
    /// Total number of occurrences, if it is cheap to determine.
    pub total: Option<usize>,
    /// Whether there may be more in the requested direction.
    pub has_next: bool,
    pub start_cursor: String,
    /// Cursor of the last occurrence, or of the position where the search stopped early.
    pub end_cursor: String,
}

/// Finds a page of occurrences. Filling it takes at most [`PAGE_TIME_MAX`].
///
/// Paging forward terminates and returns every occurrence that matches throughout at least once,
/// regardless of concurrent writes. A page contains no duplicates. Occurrences that moved in the
/// order during the walk are returned at the end.
///
/// # Errors
/// Returns [`Error::Invalid`] if the cursor does not belong to this query, or an error if the store
/// fails.
pub async fn search_occurrences(
    store: &Store,
    clock: &dyn Clock,
    request: &SearchRequest,
) -> Result<SearchPage, Error> {
    let end = clock.elapsed() + PAGE_TIME_MAX;
    let scope = TokenScope::new("events in order, then by start and id")
        .with_field("sort", [[request.sort as u8, u8::from(request.ascending)]])
        .with_field("query", [&request.fingerprint]);
    let foreign = || Error::invalid("query.pageInput.cursor", "is not a cursor of this query");
    let cursor = scope
        .last_key(&request.cursor)
        .map_err(|_foreign| foreign())?;
    let cursor = match cursor {
        Some(bytes) => Cursor::decode(&bytes).ok_or_else(foreign)?,
        None => start_cursor(store, request).await?,
    };
    let direction = if request.ascending == request.backward {
        Direction::Descending
    } else {
        Direction::Ascending
    };
    let sort = SortOrder {
        field: request.sort,
        direction,
    };
    let (begun, newest_ms) = (cursor.begun, cursor.newest_ms);
    let mut page = PageFiller::new(store, request, (clock, end));
    let filled = if request.backward {
        // Moved occurrences come last, after the whole order.
        let place = match &cursor.at {
            Position::InOrder(place) => &place[..],
            Position::Moved { .. } | Position::Everything(_) => &[],
        };
        let after = Some(place).filter(|place| !place.is_empty());
        let walk = IndexWalk::narrow(store, &request.filter, sort, after, None).await?;
        page.fill_from_walk(walk, Position::InOrder).await?
    } else {
        page.fill_forward(sort, cursor).await?
    };
    let (mut positions, mut occurrences): (Vec<_>, Vec<_>) = page.found.into_iter().unzip();
    if request.backward {
        positions.reverse();
        occurrences.reverse();
    }
    let ended = filled == FillOutcome::ToTheEnd;
    let total = if ended && request.cursor.is_empty() {
        Some(occurrences.len())
    } else {
        count_total(store, request, sort).await?
    };
    let (first, last) = match filled {
        FillOutcome::Until(position) if request.backward => (Some(position), positions.pop()),
        FillOutcome::Until(position) => (positions.first().cloned(), Some(position)),
        _ => (positions.first().cloned(), positions.pop()),
    };
    let cursor = |at: Option<Position>| {
        at.map_or_else(String::new, |at| {
            let cursor = Cursor {
                begun,
                newest_ms,
                at,
            };
            scope.encode_token(&cursor.encode())
        })
    };
    Ok(SearchPage {
        start_cursor: cursor(first),
        end_cursor: cursor(last),
        has_next: !ended,
        occurrences,
        total,
    })
}

async fn start_cursor(store: &Store, request: &SearchRequest) -> Result<Cursor, Error> {
    // Read the log position first, so that occurrences that move during the read count as moved.
    let begun = store.engine().log_head().await?;
    let newest_ms = IndexWalk::newest_ms(store, &request.filter, request.sort).await?;
    Ok(Cursor {
        begun,
        newest_ms: newest_ms.unwrap_or(i64::MIN),
        at: Position::InOrder(Vec::new()),
    })
}

/// Returns the total. `None` if counting requires more than [`TOTAL_SCANNED_MAX`] reads.
async fn count_total(
    store: &Store,
    request: &SearchRequest,
    sort: SortOrder,
) -> Result<Option<usize>, Error> {
    let mut walk = IndexWalk::narrow(store, &request.filter, sort, None, None).await?;
    if request.filter.is_covered_by_index(sort.field) {
        let count = walk.count(TOTAL_SCANNED_MAX + 1).await?;
        return Ok((count <= TOTAL_SCANNED_MAX).then_some(count));
    }
    let (mut scanned, mut total) = (0, 0);
    loop {
        let batch = walk.next(BATCH_MAX).await?;
        if batch.is_empty() {
            return Ok(Some(total));
        }
        scanned += batch.len();
        total += request.filter.retain_matching(batch).await.len();
        if scanned > TOTAL_SCANNED_MAX {
            return Ok(None);
        }
        tokio::task::yield_now().await;
    }
}
