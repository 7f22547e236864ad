//! Walking occurrences in an order, over the streams of an index that make it up.
//!
//! The index by state has one stream for each status and severity, each sorted by the time last
//! seen. Merging the few that a filter means gives a page without a look at all the others.

use std::collections::VecDeque;

use crate::{
    domain::Occurrence,
    ops::search::{Filter, SortField},
    store::{
        Direction, EngineError, Index, Store, Stored,
        engine::Range,
        record::bytes::{Key, moment_at},
    },
};

/// Entries of a stream read the first time; doubled each time up to [`READ_MAX`].
const READ_FIRST: usize = 32;
const READ_MAX: usize = 1_024;

/// An order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sort {
    pub(crate) field: SortField,
    pub(crate) direction: Direction,
}

/// Walks occurrences in an order.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    store: &'a Store,
    index: Index,
    direction: Direction,
    streams: Vec<Stream>,
}

/// The place of an occurrence in the order, and its key.
pub(crate) type OrderPosition = (Vec<u8>, Vec<u8>);

#[derive(Debug)]
struct Stream {
    /// What its places start with.
    head: Vec<u8>,
    /// How many bytes of an entry's key come before what its place ends with.
    skipped: usize,
    /// What is still to be read; none at the end.
    range: Option<Range>,
    read: usize,
    waiting: VecDeque<OrderPosition>,
}

impl<'a> Walk<'a> {
    /// Walks what the filter may mean, beginning after a place.
    pub(crate) fn new(store: &'a Store, filter: &Filter, sort: Sort, after: Option<&[u8]>) -> Self {
        Self::up_to(store, filter, sort, after, None)
    }

    /// As [`Walk::new`], leaving out what lies after a moment, in milliseconds since 1970.
    pub(super) fn up_to(
        store: &'a Store,
        filter: &Filter,
        sort: Sort,
        after: Option<&[u8]>,
        newest_ms: Option<i64>,
    ) -> Self {
        let mut streams = Vec::new();
        let bound = newest_ms
            .and_then(|newest_ms| newest_ms.checked_add(1))
            .map(|end_ms| Key::new().moment(end_ms).build());
        if sort.field == SortField::StartTime {
            let end = filter
                .end_ms
                .map(|end_ms| Key::new().moment(end_ms).build());
            let end = match (end, bound) {
                (Some(end), Some(bound)) => Some(end.min(bound)),
                (end, bound) => end.or(bound),
            };
            let range = Range {
                start: Vec::new(),
                end,
            };
            streams.extend(Stream::new(Vec::new(), &[], range, sort.direction, after));
        } else {
            for (status, severity) in pairs(filter) {
                let head = match sort.field {
                    SortField::Severity => vec![severity],
                    SortField::LastSeen | SortField::StartTime => Vec::new(),
                };
                let start = filter
                    .start_ms
                    .map(|start_ms| Key::new().moment(start_ms).build());
                let range = Range {
                    start: start.unwrap_or_default(),
                    end: bound.clone(),
                };
                streams.extend(Stream::new(
                    head,
                    &[status, severity],
                    range,
                    sort.direction,
                    after,
                ));
            }
        }
        let index = match sort.field {
            SortField::StartTime => Index::OccurrenceByStart,
            SortField::LastSeen | SortField::Severity => Index::OccurrenceByState,
        };
        Self {
            store,
            index,
            direction: sort.direction,
            streams,
        }
    }

    /// The newest moment of an order, in milliseconds since 1970; none when there is nothing.
    pub(super) async fn newest_ms(
        store: &Store,
        filter: &Filter,
        field: SortField,
    ) -> Result<Option<i64>, EngineError> {
        let (index, prefixes) = match field {
            SortField::StartTime => (Index::OccurrenceByStart, vec![Vec::new()]),
            SortField::LastSeen | SortField::Severity => {
                let prefix = |(status, severity)| vec![status, severity];
                (
                    Index::OccurrenceByState,
                    pairs(filter).map(prefix).collect(),
                )
            }
        };
        let last = store.engine().last_under(index, &prefixes).await?;
        let moments = prefixes
            .iter()
            .zip(last)
            .filter_map(|(prefix, last)| moment_at(&last?.0, prefix.len()));
        Ok(moments.max())
    }

    /// The next occurrences with their places; fewer than `count` only when some are gone, none
    /// only at the end.
    pub(crate) async fn next(
        &mut self,
        count: usize,
    ) -> Result<Vec<(Vec<u8>, Stored<Occurrence>)>, EngineError> {
        loop {
            let (places, keys): (Vec<_>, Vec<_>) =
                self.next_places(count).await?.into_iter().unzip();
            if places.is_empty() {
                return Ok(Vec::new());
            }
            let records = self.store.get_many(keys).await?;
            let found = places.into_iter().zip(records);
            let found: Vec<_> = found
                .filter_map(|(place, found)| Some((place, found?)))
                .collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
    }

    /// How many places there are in all, at most `limit`.
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

    /// The next places; none only at the end.
    pub(crate) async fn next_places(
        &mut self,
        count: usize,
    ) -> Result<Vec<OrderPosition>, EngineError> {
        let mut places = Vec::with_capacity(count);
        while places.len() < count {
            for stream in &mut self.streams {
                stream.fill(self.store, self.index, self.direction).await?;
            }
            let fronts = self
                .streams
                .iter_mut()
                .filter(|stream| !stream.waiting.is_empty());
            let nearest = match self.direction {
                Direction::Ascending => fronts.min_by(|one, other| one.front().cmp(&other.front())),
                Direction::Descending => {
                    fronts.max_by(|one, other| one.front().cmp(&other.front()))
                }
            };
            match nearest.and_then(|stream| stream.waiting.pop_front()) {
                Some(place) => places.push(place),
                None => break,
            }
        }
        Ok(places)
    }
}

fn pairs(filter: &Filter) -> impl Iterator<Item = (u8, u8)> {
    let severities = filter.severities();
    filter.statuses().into_iter().flat_map(move |status| {
        severities
            .clone()
            .into_iter()
            .map(move |severity| (status as u8, severity as u8))
    })
}

impl Stream {
    /// A stream of entries that start with `prefix`, cut to a range of what follows and to what
    /// comes after a place; none when nothing is left.
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
                None => Range::under(prefix).end,
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

    fn front(&self) -> Option<&OrderPosition> {
        self.waiting.front()
    }

    async fn fill(
        &mut self,
        store: &Store,
        index: Index,
        direction: Direction,
    ) -> Result<(), EngineError> {
        let (true, Some(range)) = (self.waiting.is_empty(), self.range.as_mut()) else {
            return Ok(());
        };
        let entries = store
            .engine()
            .entries(index, range.clone(), direction, self.read)
            .await?;
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
        Ok(())
    }
}
