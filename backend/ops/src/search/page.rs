//! Fills one page of a walk: first in the requested order, then with occurrences that moved during
//! the walk.

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use super::{
    BATCH_FIRST, BATCH_MAX, PAGE_BYTES, SearchRequest, SortField,
    cursor::{Cursor, Position},
    walk::{IndexWalk, SortOrder},
};
use crate::{
    clock::Clock,
    domain::{Occurrence, RecordId},
    error::Error,
    limits::WALK_LOG_NAMES_MAX,
    scan,
    store::{Direction, Kind, LogPosition, Store},
};

const LOG_STEPS: usize = 256;

pub(super) struct PageFiller<'a> {
    store: &'a Store,
    request: &'a SearchRequest,
    /// The clock, and the deadline for filling the page.
    end: (&'a dyn Clock, Duration),
    /// The occurrences found, each with the position after it.
    pub(super) found: Vec<(Position, Occurrence)>,
    seen: HashSet<RecordId>,
    bytes: usize,
    scanned: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum FillOutcome {
    ToTheEnd,
    Full,
    /// The deadline passed. There may be more occurrences after this position.
    Until(Position),
}

impl<'a> PageFiller<'a> {
    pub(super) fn new(
        store: &'a Store,
        request: &'a SearchRequest,
        end: (&'a dyn Clock, Duration),
    ) -> Self {
        Self {
            store,
            request,
            end,
            found: Vec::new(),
            seen: HashSet::new(),
            bytes: 0,
            scanned: 0,
        }
    }

    pub(super) async fn fill_forward(
        &mut self,
        sort: SortOrder,
        cursor: Cursor,
    ) -> Result<FillOutcome, Error> {
        let (store, filter) = (self.store, &self.request.filter);
        let mut at = cursor.at;
        loop {
            let filled = match &at {
                Position::InOrder(place) => {
                    let after = Some(&place[..]).filter(|place| !place.is_empty());
                    let newest_ms = Some(cursor.newest_ms);
                    let walk = IndexWalk::narrow(store, filter, sort, after, newest_ms).await?;
                    self.fill_from_walk(walk, Position::InOrder).await?
                }
                Position::Everything(place) => {
                    let after = Some(&place[..]).filter(|place| !place.is_empty());
                    self.fill_from_walk(
                        IndexWalk::new(store, filter, BY_START, after),
                        Position::Everything,
                    )
                    .await?
                }
                Position::Moved {
                    from,
                    through,
                    after,
                } => match changed_occurrences(store, *from, *through).await? {
                    None => {
                        at = Position::Everything(Vec::new());
                        continue;
                    }
                    Some(names) => {
                        let reached = names.reached;
                        match self.fill_moved(names, (*from, *through), after).await? {
                            FillOutcome::ToTheEnd if reached < *through => {
                                at = Position::Moved {
                                    from: reached,
                                    through: *through,
                                    after: Vec::new(),
                                };
                                continue;
                            }
                            filled => filled,
                        }
                    }
                },
            };
            // Start times never change.
            let may_have_moved =
                matches!(at, Position::InOrder(_)) && sort.field != SortField::StartTime;
            if filled != FillOutcome::ToTheEnd || !may_have_moved {
                return Ok(filled);
            }
            let through = store.engine().log_head().await?;
            if through == cursor.begun {
                return Ok(filled);
            }
            at = Position::Moved {
                from: cursor.begun,
                through,
                after: Vec::new(),
            };
        }
    }

    pub(super) async fn fill_from_walk(
        &mut self,
        mut walk: IndexWalk<'_>,
        position: impl Fn(Vec<u8>) -> Position,
    ) -> Result<FillOutcome, Error> {
        loop {
            let batch = walk.next(self.batch_size()).await?;
            let Some((last, _)) = batch.last() else {
                return Ok(FillOutcome::ToTheEnd);
            };
            let last = position(last.clone());
            for (place, found) in batch {
                if !self.add_match(|| position(place), found.value) {
                    return Ok(FillOutcome::Full);
                }
                scan::yield_if_needed().await;
            }
            if self.is_time_up() {
                return Ok(FillOutcome::Until(last));
            }
            tokio::task::yield_now().await;
        }
    }

    async fn fill_moved(
        &mut self,
        names: Names,
        (from, through): (LogPosition, LogPosition),
        after: &[u8],
    ) -> Result<FillOutcome, Error> {
        let position = |after| Position::Moved {
            from,
            through,
            after,
        };
        let mut keys = names.keys.into_iter().filter(|key| key[..] > *after);
        loop {
            let requested: Vec<_> = keys.by_ref().take(self.batch_size()).collect();
            let Some(last) = requested.last().cloned() else {
                return Ok(FillOutcome::ToTheEnd);
            };
            let found = self.store.get_many::<Occurrence>(requested.clone()).await?;
            for (key, found) in requested.into_iter().zip(found) {
                let Some(found) = found else { continue };
                if !self.add_match(|| position(key), found.value) {
                    return Ok(FillOutcome::Full);
                }
                scan::yield_if_needed().await;
            }
            if self.is_time_up() {
                return Ok(FillOutcome::Until(position(last)));
            }
            tokio::task::yield_now().await;
        }
    }

    /// Adds an occurrence if it matches and is not on the page. Returns false if the page is full.
    fn add_match(&mut self, position: impl FnOnce() -> Position, occurrence: Occurrence) -> bool {
        self.scanned += 1;
        if !self.request.filter.matches(&occurrence) || self.seen.contains(&occurrence.key) {
            return true;
        }
        if self.found.len() == self.request.limit || self.bytes >= PAGE_BYTES {
            return false;
        }
        self.bytes += occurrence.estimated_bytes();
        self.seen.insert(occurrence.key);
        self.found.push((position(), occurrence));
        true
    }

    fn is_time_up(&self) -> bool {
        let (clock, end) = self.end;
        clock.elapsed() >= end
    }

    /// Returns the number of occurrences to read at a time, limited so that large ones do not
    /// exhaust memory before their size is known.
    fn batch_size(&self) -> usize {
        let missing = self.request.limit + 1 - self.found.len();
        let affordable = match self.bytes.checked_div(self.found.len()) {
            Some(each) => (PAGE_BYTES / each.max(1)).clamp(1, BATCH_MAX),
            None => BATCH_FIRST,
        };
        // If many did not match, many more must be read to find the missing ones.
        let passed_over = self.scanned.saturating_sub(self.found.len());
        (missing + passed_over).clamp(1, affordable)
    }
}

/// An order in which changes never move an occurrence.
const BY_START: SortOrder = SortOrder {
    field: SortField::StartTime,
    direction: Direction::Ascending,
};

/// Occurrences named in a range of the change log.
pub(crate) struct Names {
    pub(crate) keys: BTreeSet<Vec<u8>>,
    pub(crate) reached: LogPosition,
}

/// Returns the occurrences named in the log after `from` up to `through`, or fewer if there are too
/// many. `None` if the log no longer contains them.
pub(crate) async fn changed_occurrences(
    store: &Store,
    from: LogPosition,
    through: LogPosition,
) -> Result<Option<Names>, Error> {
    let mut names = Names {
        keys: BTreeSet::new(),
        reached: from,
    };
    while names.reached < through && names.keys.len() < WALK_LOG_NAMES_MAX {
        let steps = store.engine().log_after(names.reached, LOG_STEPS).await?;
        let Some(steps) = steps else { return Ok(None) };
        if steps.is_empty() {
            names.reached = through;
        }
        for step in steps
            .into_iter()
            .take_while(|step| step.position <= through)
        {
            names.reached = step.position;
            let changed = step.changed.into_iter();
            let keys = changed.filter_map(|(kind, key)| (kind == Kind::Occurrence).then_some(key));
            names.keys.extend(keys);
        }
    }
    Ok(Some(names))
}
