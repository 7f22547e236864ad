//! Finding, counting and spreading occurrences over time.

mod count;
mod cursor;
mod filter;
mod group;
mod page;
#[cfg(test)]
mod tests;
mod walk;

pub use count::{Bucket, count, frequency};
pub use filter::Filter;
pub use group::{Group, Groups, group};
pub(crate) use page::changed;
pub(crate) use walk::{Sort, Walk};

use self::{
    cursor::{Cursor, Position},
    page::{Filled, Filling},
};
use crate::{
    clock::Clock,
    domain::{Occurrence, SortField},
    error::Error,
    limits::PAGE_TIME_MAX,
    ops::page::Scope,
    store::{Direction, Store},
};

/// Occurrences read to find out how many there are in all.
const TOTAL_SCANNED_MAX: usize = 10_000;
/// Occurrences read at a time, and the first time.
const BATCH_MAX: usize = 256;
const BATCH_FIRST: usize = 64;
/// Bytes of occurrences after which a page ends, though more were asked for.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// The order in which lists show occurrences by default.
pub(crate) const NEWEST_FIRST: Sort = Sort {
    field: SortField::LastSeen,
    direction: Direction::Descending,
};

/// A page of occurrences that is asked for.
#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    /// Which occurrences.
    pub filter: Filter,
    /// What to sort by; what is alike in it follows by start, then by id, which never change.
    pub sort: SortField,
    /// Whether the smallest or oldest comes first.
    pub ascending: bool,
    /// How many; at least one.
    pub limit: usize,
    /// Where to continue; empty for the first page.
    pub cursor: String,
    /// Whether to go towards what precedes the cursor.
    pub backward: bool,
    /// Tells this query from others, so that a cursor of another one is refused.
    pub fingerprint: Vec<u8>,
}

/// A page of occurrences.
#[derive(Debug, Clone)]
pub struct SearchPage {
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

/// Finds a page of occurrences. It is filled as long as [`PAGE_TIME_MAX`] allows.
///
/// A walk from page to page, each beginning at the end of the one before, ends, and shows every
/// occurrence that is meant all the time at least once, whatever is written meanwhile; none stands
/// twice on a page. What moved in the order meanwhile is shown at the end.
///
/// # Errors
/// [`Error::Invalid`] for a cursor that is not of this query, else those of the store.
pub async fn search(
    store: &Store,
    clock: &dyn Clock,
    request: &SearchRequest,
) -> Result<SearchPage, Error> {
    let end = clock.passed() + PAGE_TIME_MAX;
    let scope = Scope::new("events in order, then by start and id")
        .with("sort", [[request.sort as u8, u8::from(request.ascending)]])
        .with("query", [&request.fingerprint]);
    let foreign = || Error::invalid("query.pageInput.cursor", "is not a cursor of this query");
    let cursor = scope
        .last_key(&request.cursor)
        .map_err(|_foreign| foreign())?;
    let cursor = match cursor {
        Some(bytes) => Cursor::decode(&bytes).ok_or_else(foreign)?,
        None => begin(store, request).await?,
    };
    let direction = if request.ascending == request.backward {
        Direction::Descending
    } else {
        Direction::Ascending
    };
    let sort = Sort {
        field: request.sort,
        direction,
    };
    let (begun, newest_ms) = (cursor.begun, cursor.newest_ms);
    let mut page = Filling::new(store, request, (clock, end));
    let filled = if request.backward {
        // What moved comes after everything else, so that all of the order precedes it.
        let place = match &cursor.at {
            Position::InOrder(place) => &place[..],
            Position::Moved { .. } | Position::Everything(_) => &[],
        };
        let after = Some(place).filter(|place| !place.is_empty());
        let walk = Walk::narrow(store, &request.filter, sort, after, None).await?;
        page.walk(walk, Position::InOrder).await?
    } else {
        page.forward(sort, cursor).await?
    };
    let (mut positions, mut occurrences): (Vec<_>, Vec<_>) = page.found.into_iter().unzip();
    if request.backward {
        positions.reverse();
        occurrences.reverse();
    }
    let ended = filled == Filled::ToTheEnd;
    let total = if ended && request.cursor.is_empty() {
        Some(occurrences.len())
    } else {
        total(store, request, sort).await?
    };
    let (first, last) = match filled {
        Filled::Until(position) if request.backward => (Some(position), positions.pop()),
        Filled::Until(position) => (positions.first().cloned(), Some(position)),
        _ => (positions.first().cloned(), positions.pop()),
    };
    let cursor = |at: Option<Position>| {
        at.map_or_else(String::new, |at| {
            let cursor = Cursor {
                begun,
                newest_ms,
                at,
            };
            scope.token(&cursor.encode())
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

/// Where a walk that begins now stands.
async fn begin(store: &Store, request: &SearchRequest) -> Result<Cursor, Error> {
    // The log before the order: what moves in between counts as moved.
    let begun = store.engine().log_head().await?;
    let newest_ms = Walk::newest_ms(store, &request.filter, request.sort).await?;
    Ok(Cursor {
        begun,
        newest_ms: newest_ms.unwrap_or(i64::MIN),
        at: Position::InOrder(Vec::new()),
    })
}

/// How many there are in all; none when that takes more than [`TOTAL_SCANNED_MAX`] reads.
async fn total(store: &Store, request: &SearchRequest, sort: Sort) -> Result<Option<usize>, Error> {
    let mut walk = Walk::narrow(store, &request.filter, sort, None, None).await?;
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
        scanned += batch.len();
        total += request.filter.meant(batch).await.len();
        if scanned > TOTAL_SCANNED_MAX {
            return Ok(None);
        }
        tokio::task::yield_now().await;
    }
}
