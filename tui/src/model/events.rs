//! The occurrences held for the events list: newest first, each once, bounded.

use std::{cmp::Reverse, collections::HashMap};

use crate::{
    client::{EventFilter, Ticket},
    data::{EventRow, Failure},
    limits,
};

/// A row on the heap, so that merging moves pointers and not rows.
type Held = Box<EventRow>;

/// The occurrences of one query, followed live.
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that have nothing to do with each other"
)]
#[derive(Debug, Default)]
pub(crate) struct EventWindow {
    /// Newest first.
    rows: Vec<Held>,
    /// When each row was last seen, by its id: the other half of its place in `rows`.
    seen: HashMap<Box<str>, i64>,
    /// News not yet merged, by id; `None` for a row that left.
    incoming: HashMap<Box<str>, Option<EventRow>>,
    pub(crate) paused: bool,
    /// The text that was typed for `filter`.
    pub(crate) query_text: String,
    pub(crate) filter: EventFilter,
    /// Tells this query's rows from those of the query before.
    pub(crate) generation: Ticket,
    pub(crate) resume_token: String,
    /// Where the next page starts; empty at the end.
    pub(crate) next: String,
    pub(crate) total: Option<i32>,
    pub(crate) loaded: bool,
    /// Whether rows were dropped at the end, so that the next page does not join on.
    pub(crate) cut: bool,
    /// A page under way.
    pub(crate) waiting: Option<Ticket>,
    /// Whether a page was read after the stream began, so that nothing falls between.
    pub(crate) joined: bool,
    pub(crate) failure: Option<Failure>,
    /// Why nothing is streamed, if so.
    pub(crate) stream_failure: Option<Failure>,
}

impl EventWindow {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&EventRow> {
        self.rows.get(index).map(|row| &**row)
    }

    pub(crate) fn position(&self, id: &str) -> Option<usize> {
        let seen = *self.seen.get(id)?;
        self.rows
            .binary_search_by(|row| key(row).cmp(&(Reverse(seen), id)))
            .ok()
    }

    pub(crate) fn find(&self, id: &str) -> Option<&EventRow> {
        self.get(self.position(id)?)
    }

    /// How many rows have news that is not shown yet.
    pub(crate) fn waiting_news(&self) -> usize {
        self.incoming.len()
    }

    /// Forgets the rows, for another query or after a gap.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.seen.clear();
        self.incoming.clear();
        self.next.clear();
        self.total = None;
        self.loaded = false;
        self.joined = false;
        self.cut = false;
        self.failure = None;
    }

    /// Whether no older rows can be read.
    pub(crate) fn is_full(&self) -> bool {
        self.cut || self.rows.len() >= limits::HELD_EVENTS
    }

    /// Takes in rows of the stream; shown at the next [`Self::merge`].
    pub(crate) fn stream(&mut self, rows: Vec<EventRow>, left: Vec<String>) {
        for id in left {
            self.incoming.insert(id.into_boxed_str(), None);
        }
        for row in rows {
            self.incoming.insert(row.id.clone(), Some(row));
        }
        if self.incoming.len() > limits::HELD_EVENTS {
            self.force_merge();
        }
    }

    /// Takes in a page; what the stream told already is newer and stays.
    pub(crate) fn page(&mut self, rows: Vec<EventRow>) {
        for row in rows {
            let newer = self
                .seen
                .get(&row.id)
                .is_some_and(|seen| *seen > row.last_seen_ms);
            if !newer {
                self.incoming.entry(row.id.clone()).or_insert(Some(row));
            }
        }
        self.force_merge();
    }

    /// Shows the news, unless the list is held still. Says whether anything changed.
    pub(crate) fn merge(&mut self) -> bool {
        if self.paused || self.incoming.is_empty() {
            return false;
        }
        self.force_merge();
        true
    }

    /// Costs as much as there is news; of the rows that stay, at most the pointers are moved.
    fn force_merge(&mut self) {
        let incoming = std::mem::take(&mut self.incoming);
        let mut old: Vec<usize> = incoming.keys().filter_map(|id| self.position(id)).collect();
        old.sort_unstable();
        remove(&mut self.rows, &old);
        for id in incoming.keys() {
            self.seen.remove(id);
        }
        let mut fresh: Vec<Held> = incoming.into_values().flatten().map(Box::new).collect();
        fresh.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
        for row in &fresh {
            self.seen.insert(row.id.clone(), row.last_seen_ms);
        }
        insert(&mut self.rows, fresh);
        self.cut |= self.rows.len() > limits::HELD_EVENTS;
        for row in self.rows.drain(limits::HELD_EVENTS.min(self.rows.len())..) {
            self.seen.remove(&row.id);
        }
    }
}

fn key(row: &EventRow) -> (Reverse<i64>, &str) {
    (Reverse(row.last_seen_ms), &row.id)
}

/// Removes the rows at these places, which are in order.
fn remove(rows: &mut Vec<Held>, places: &[usize]) {
    if places.is_empty() {
        return;
    }
    let mut places = places.iter().copied().peekable();
    let mut index = 0..;
    rows.retain(|_| {
        let index = index.next();
        places.next_if(|place| Some(*place) == index).is_none()
    });
}

/// Puts fresh rows, which are in order, between those before and after them.
fn insert(rows: &mut Vec<Held>, fresh: Vec<Held>) {
    let [Some(first), Some(last)] = [fresh.first(), fresh.last()] else {
        return;
    };
    let from = rows.partition_point(|row| key(row) < key(first));
    let to = rows.partition_point(|row| key(row) < key(last));
    let between: Vec<Held> = rows.splice(from..to, []).collect();
    rows.splice(from..from, merge_sorted(between, fresh));
}

fn merge_sorted(old: Vec<Held>, fresh: Vec<Held>) -> Vec<Held> {
    let mut merged = Vec::with_capacity(old.len() + fresh.len());
    let mut fresh = fresh.into_iter().peekable();
    for row in old {
        while let Some(new) = fresh.next_if(|new| key(new) < key(&row)) {
            merged.push(new);
        }
        merged.push(row);
    }
    merged.extend(fresh);
    merged
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(id: u8, last_seen_ms: i64) -> EventRow {
        EventRow {
            id: format!("e:{id}").into(),
            last_seen_ms,
            ..EventRow::default()
        }
    }

    proptest! {
        #[test]
        fn rows_are_newest_first_and_each_is_found(
            batches in prop::collection::vec(prop::collection::vec((0_u8..20, 0_i64..30, any::<bool>()), 0..8), 0..20)
        ) {
            let mut window = EventWindow::default();
            let mut truth: HashMap<String, i64> = HashMap::new();
            for batch in batches {
                for (id, seen, leaves) in batch {
                    let name = format!("e:{id}");
                    if leaves {
                        truth.remove(&name);
                        window.stream(vec![], vec![name]);
                    } else {
                        truth.insert(name, seen);
                        window.stream(vec![row(id, seen)], vec![]);
                    }
                }
                window.merge();
                prop_assert_eq!(window.len(), truth.len());
                prop_assert!(window.rows.windows(2).all(|two| key(&two[0]) < key(&two[1])));
                for (id, seen) in &truth {
                    prop_assert_eq!(window.find(id).map(|row| row.last_seen_ms), Some(*seen));
                }
            }
        }
    }

    #[test]
    fn a_held_list_counts_news_and_shows_them_later() {
        let mut window = EventWindow {
            paused: true,
            ..EventWindow::default()
        };
        window.stream(vec![row(1, 1), row(2, 2), row(1, 3)], vec![]);
        assert!(!window.merge());
        assert_eq!((window.len(), window.waiting_news()), (0, 2));
        window.paused = false;
        assert!(window.merge());
        assert_eq!((window.len(), window.waiting_news()), (2, 0));
    }

    #[test]
    fn only_the_newest_rows_are_held_and_what_was_cut_off_is_known() {
        let many = i64::try_from(limits::HELD_EVENTS).unwrap();
        let named = |number: i64| EventRow {
            id: format!("e{number}:1").into(),
            last_seen_ms: number,
            ..EventRow::default()
        };
        let mut window = EventWindow::default();
        window.page((0..many).map(named).collect());
        assert!(window.is_full() && !window.cut);
        window.stream(vec![named(many)], vec![]);
        window.merge();
        assert_eq!(window.len(), limits::HELD_EVENTS);
        assert_eq!(window.find("e0:1"), None);
        let left = vec![format!("e{many}:1")];
        window.stream(vec![], left);
        window.merge();
        assert!(window.len() < limits::HELD_EVENTS && window.is_full());
    }
}
