//! Walks occurrences in an order, by merging the streams of an index.
//!
//! The indexes by state and by severity have one stream per status and severity, sorted by
//! last-seen or start time. Merging the few streams that a filter selects yields a page without
//! reading the others.

use std::collections::VecDeque;

use crate::{
    domain::Occurrence,
    limits::SCAN_BATCH_BYTES,
    search::{Filter, SortField},
    store::{
        Direction, EngineError, Index, Store, Stored,
        engine::{IndexEntry, Range},
        record::bytes::{Key, read_time_ms},
    },
};

/// Entries of a stream in the first read; doubled each time up to [`READ_MAX`].
const READ_FIRST: usize = 32;
const READ_MAX: usize = 1_024;
const BATCH_FIRST: usize = 64;
const BATCH_MAX: usize = 256;
const SORTED_MAX: usize = 20_000;
/// Offset of the tie-breaker in an entry by state: after status, severity and last-seen time.
const TIE_AT: usize = 10;

#[derive(Debug, Clone, Copy)]
pub(crate) struct SortOrder {
    pub(crate) field: SortField,
    pub(crate) direction: Direction,
}

#[derive(Debug)]
pub(crate) struct IndexWalk<'a> {
    store: &'a Store,
    index: Index,
    direction: Direction,
    streams: Vec<Stream>,
    /// Number of occurrences to read at a time, based on the size of earlier ones.
    batch: usize,
}

/// The position of an occurrence in the order, and its key.
pub(crate) type OrderPosition = (Vec<u8>, Vec<u8>);

#[derive(Debug)]
struct Stream {
    head: Vec<u8>,
    /// Number of bytes at the start of an entry's key that are not part of its position.
    skipped: usize,
    range: Option<Range>,
    read: usize,
    waiting: VecDeque<OrderPosition>,
}

impl<'a> IndexWalk<'a> {
    /// Walks the occurrences that the filter may match, starting after a position.
    pub(crate) fn new(
        store: &'a Store,
        filter: &Filter,
        sort: SortOrder,
        after: Option<&[u8]>,
    ) -> Self {
        Self::up_to(store, filter, sort, after, None)
    }

    /// Like [`IndexWalk::new`], without entries after a time, in milliseconds since the epoch.
    pub(super) fn up_to(
        store: &'a Store,
        filter: &Filter,
        sort: SortOrder,
        after: Option<&[u8]>,
        newest_ms: Option<i64>,
    ) -> Self {
        let bound_ms = newest_ms.and_then(|newest_ms| newest_ms.checked_add(1));
        // Streams are sorted by last-seen time if that is the sort field, otherwise by start time.
        let (start_ms, end_ms) = match sort.field {
            SortField::LastSeen => (filter.start_ms, bound_ms),
            SortField::StartTime | SortField::Severity => {
                let ends = filter.end_ms.into_iter().chain(bound_ms);
                (None, ends.min())
            }
        };
        let moment = |at_ms| Key::new().time_ms(at_ms).build();
        let range = Range {
            start: start_ms.map(moment).unwrap_or_default(),
            end: end_ms.map(moment),
        };
        let (index, prefixes) = index_streams(filter, sort.field);
        let streams = prefixes.iter().filter_map(|prefix| {
            let head = match (sort.field, prefix.last()) {
                (SortField::Severity, Some(severity)) => vec![*severity],
                _ => Vec::new(),
            };
            Stream::new(head, prefix, range.clone(), sort.direction, after)
        });
        Self {
            store,
            index,
            direction: sort.direction,
            streams: streams.collect(),
            batch: BATCH_FIRST,
        }
    }

    /// Like [`IndexWalk::up_to`]. A walk in severity order cannot be limited to occurrences seen
    /// since a time. If there are few of those, they are sorted in memory and no others are read.
    pub(super) async fn narrow(
        store: &'a Store,
        filter: &Filter,
        sort: SortOrder,
        after: Option<&[u8]>,
        newest_ms: Option<i64>,
    ) -> Result<Self, EngineError> {
        let mut walk = Self::up_to(store, filter, sort, after, newest_ms);
        let (SortField::Severity, Some(start_ms)) = (sort.field, filter.start_ms) else {
            return Ok(walk);
        };
        let since = Key::new().time_ms(start_ms).build();
        let (index, prefixes) = index_streams(filter, SortField::LastSeen);
        let mut places: Vec<OrderPosition> = Vec::new();
        for prefix in prefixes {
            let range = Range {
                start: [&prefix[..], &since].concat(),
                end: Range::with_prefix(&prefix).end,
            };
            let left = SORTED_MAX + 1 - places.len();
            let engine = store.engine();
            let found = engine.entries(index, range, Direction::Ascending, left);
            let place = |(key, record): (Vec<u8>, Vec<u8>)| {
                let place = [&prefix[1..], key.get(TIE_AT..)?].concat();
                Some((place, record))
            };
            places.extend(found.await?.into_iter().filter_map(place));
            if places.len() > SORTED_MAX {
                return Ok(walk);
            }
        }
        places.retain(|(place, _)| {
            let is_new = read_time_ms(place, 1) > newest_ms.or(Some(i64::MAX));
            let is_past = after.is_some_and(|after| match sort.direction {
                Direction::Ascending => place[..] <= *after,
                Direction::Descending => place[..] >= *after,
            });
            !is_new && !is_past
        });
        places.sort_unstable();
        if sort.direction == Direction::Descending {
            places.reverse();
        }
        walk.streams = vec![Stream {
            head: Vec::new(),
            skipped: 0,
            range: None,
            read: READ_FIRST,
            waiting: places.into(),
        }];
        Ok(walk)
    }

    /// Returns the newest time in an order, in milliseconds since the epoch; `None` if it is empty.
    pub(super) async fn newest_ms(
        store: &Store,
        filter: &Filter,
        field: SortField,
    ) -> Result<Option<i64>, EngineError> {
        let (index, prefixes) = index_streams(filter, field);
        let ranges: Vec<_> = prefixes
            .iter()
            .map(|prefix| Range::with_prefix(prefix))
            .collect();
        let engine = store.engine();
        let last = engine.read_ranges(index, &ranges, Direction::Descending, 1);
        let moments = prefixes
            .iter()
            .zip(last.await?)
            .filter_map(|(prefix, last)| read_time_ms(&last.first()?.0, prefix.len()));
        Ok(moments.max())
    }

    /// Returns the next occurrences with their positions: at most `count`, and fewer if they are
    /// large. Empty only at the end.
    pub(crate) async fn next(
        &mut self,
        count: usize,
    ) -> Result<Vec<(Vec<u8>, Stored<Occurrence>)>, EngineError> {
        loop {
            let (places, keys): (Vec<_>, Vec<_>) = self
                .next_positions(count.min(self.batch))
                .await?
                .into_iter()
                .unzip();
            if places.is_empty() {
                return Ok(Vec::new());
            }
            let records = self.store.get_many::<Occurrence>(keys).await?;
            let found = places.into_iter().zip(records);
            let found: Vec<_> = found
                .filter_map(|(place, found)| Some((place, found?)))
                .collect();
            if !found.is_empty() {
                let weights = found.iter().map(|(_, it)| it.value.estimated_bytes());
                let each = weights.sum::<usize>() / found.len();
                self.batch = (SCAN_BATCH_BYTES / each.max(1)).clamp(1, BATCH_MAX);
                return Ok(found);
            }
        }
    }

    pub(crate) async fn count(&self, limit: usize) -> Result<usize, EngineError> {
        let ranges = self
            .streams
            .iter()
            .filter_map(|stream| stream.range.clone());
        let mut count = 0;
        for range in ranges {
            let engine = self.store.engine();
            count += engine.count(self.index, range, limit - count).await?;
        }
        Ok(count)
    }

    /// Buffers positions in every stream that has not ended. Streams with the same read size are
    /// read together.
    async fn fill(&mut self) -> Result<(), EngineError> {
        while let Some(first) = self.streams.iter().find(|it| it.next_range().is_some()) {
            let read = first.read;
            let is_alike = |it: &&mut Stream| it.read == read && it.next_range().is_some();
            let streams = self.streams.iter_mut().filter(is_alike);
            let streams: Vec<_> = streams.collect();
            let ranges: Vec<_> = streams
                .iter()
                .filter_map(|it| it.next_range().cloned())
                .collect();
            let engine = self.store.engine();
            let found = engine.read_ranges(self.index, &ranges, self.direction, read);
            for (stream, entries) in streams.into_iter().zip(found.await?) {
                stream.buffer_entries(entries, self.direction);
            }
        }
        Ok(())
    }

    /// Returns the next positions; empty only at the end.
    pub(crate) async fn next_positions(
        &mut self,
        count: usize,
    ) -> Result<Vec<OrderPosition>, EngineError> {
        let mut places = Vec::with_capacity(count);
        while places.len() < count {
            self.fill().await?;
            let fronts = self
                .streams
                .iter_mut()
                .filter(|stream| !stream.waiting.is_empty());
            let nearest = match self.direction {
                Direction::Ascending => fronts.min_by(|one, other| one.peek().cmp(&other.peek())),
                Direction::Descending => fronts.max_by(|one, other| one.peek().cmp(&other.peek())),
            };
            match nearest.and_then(|stream| stream.waiting.pop_front()) {
                Some(place) => places.push(place),
                None => break,
            }
        }
        Ok(places)
    }
}

fn index_streams(filter: &Filter, field: SortField) -> (Index, Vec<Vec<u8>>) {
    let index = match field {
        SortField::LastSeen => Index::OccurrenceByState,
        SortField::Severity => Index::OccurrenceBySeverity,
        SortField::StartTime => return (Index::OccurrenceByStart, vec![Vec::new()]),
    };
    let severities = filter.severities();
    let statuses = filter.statuses().into_iter();
    let prefixes = statuses.flat_map(|status| {
        let severities = severities.iter();
        severities.map(move |severity| vec![status as u8, *severity as u8])
    });
    (index, prefixes.collect())
}

impl Stream {
    /// Creates a stream of entries with a prefix, limited to a range after the prefix and to
    /// entries after a position. `None` if no entries remain.
    fn new(
        head: Vec<u8>,
        prefix: &[u8],
        range: Range,
        direction: Direction,
        after: Option<&[u8]>,
    ) -> Option<Self> {
        let mut range = Range {
            start: [prefix, &range.start].concat(),
            end: match range.end {
                Some(end) => Some([prefix, &end].concat()),
                None => Range::with_prefix(prefix).end,
            },
        };
        if let Some(after) = after {
            match (after.strip_prefix(&head[..]), direction) {
                (Some(rest), Direction::Ascending) => {
                    range.start = range.start.max([prefix, rest, &[0]].concat());
                }
                (Some(rest), Direction::Descending) => {
                    let end = [prefix, rest].concat();
                    range.end = Some(range.end.map_or(end.clone(), |other| other.min(end)));
                }
                (None, Direction::Ascending) if *head < *after => return None,
                (None, Direction::Descending) if *head > *after => return None,
                (None, _) => {}
            }
        }
        Some(Self {
            head,
            skipped: prefix.len(),
            range: Some(range),
            read: READ_FIRST,
            waiting: VecDeque::new(),
        })
    }

    fn peek(&self) -> Option<&OrderPosition> {
        self.waiting.front()
    }

    /// Returns the range to read next; `None` while positions are buffered, and at the end.
    fn next_range(&self) -> Option<&Range> {
        self.range.as_ref().filter(|_| self.waiting.is_empty())
    }

    fn buffer_entries(&mut self, entries: Vec<IndexEntry>, direction: Direction) {
        let Some(range) = &mut self.range else { return };
        let is_end = entries.len() < self.read;
        match (entries.last(), direction) {
            (Some((key, _)), Direction::Ascending) => {
                range.start = [&key[..], &[0]].concat();
            }
            (Some((key, _)), Direction::Descending) => range.end = Some(key.clone()),
            (None, _) => {}
        }
        if is_end {
            self.range = None;
        }
        self.read = (2 * self.read).min(READ_MAX);
        let place = |(key, record): (Vec<u8>, Vec<u8>)| {
            ([&self.head[..], &key[self.skipped..]].concat(), record)
        };
        self.waiting = entries.into_iter().map(place).collect();
    }
}
