//! The occurrences in the list of events: sorted, unique and limited in number.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::{
    client::{EventFilter, Ticket},
    data::{EventOrder, EventRow, Failure, Rank},
    limits,
    model::loaded::Loaded,
};

/// A shared row, so that a merge only moves pointers.
type SharedRow = Arc<EventRow>;

#[derive(Debug)]
struct RowsById(SharedRow);

impl Borrow<str> for RowsById {
    fn borrow(&self) -> &str {
        &self.0.id
    }
}

impl Hash for RowsById {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl PartialEq for RowsById {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for RowsById {}

#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug, Default)]
pub(crate) struct EventWindow {
    rows: Vec<SharedRow>,
    /// Rows by id; the sort key of a row determines its position in `rows`.
    by_id: HashSet<RowsById>,
    /// The last row of the pages read so far; there may be unread rows after it.
    edge: Option<(Rank, Box<str>)>,
    /// News not yet merged, by id; `None` for a row that left.
    incoming: HashMap<Box<str>, Option<EventRow>>,
    pub(crate) paused: bool,
    /// The text of `filter` as typed.
    pub(crate) query_text: String,
    pub(crate) filter: EventFilter,
    /// Distinguishes the rows of this query from the rows of previous queries.
    pub(crate) generation: Ticket,
    pub(crate) resume_token: String,
    pub(crate) next: String,
    /// The number of matches, counted by the service.
    pub(crate) total: Loaded<i32>,
    pub(crate) loaded: bool,
    /// Whether rows were dropped at the end, so that the next page would leave a gap.
    pub(crate) cut: bool,
    pub(crate) waiting: Option<Ticket>,
    /// Whether a page was read after the stream began, so that no change is missed.
    pub(crate) joined: bool,
    pub(crate) failure: Option<Failure>,
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
        let found = self.find(id)?;
        let order = self.sort_order();
        self.rows
            .binary_search_by(|row| compare(order, row, found))
            .ok()
    }

    pub(crate) fn find(&self, id: &str) -> Option<&EventRow> {
        self.by_id.get(id).map(|row| &*row.0)
    }

    pub(crate) fn queued_update_count(&self) -> usize {
        self.incoming.len()
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.by_id.clear();
        self.edge = None;
        self.incoming.clear();
        self.next.clear();
        self.total.clear();
        self.loaded = false;
        self.joined = false;
        self.cut = false;
        self.failure = None;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.cut || self.rows.len() >= limits::HELD_EVENTS
    }

    /// Queues rows of the stream until the next [`Self::merge_updates`].
    pub(crate) fn queue_updates(&mut self, rows: Vec<EventRow>, left: Vec<String>) {
        for id in left {
            self.incoming.insert(id.into_boxed_str(), None);
        }
        for row in rows {
            self.incoming.insert(row.id.clone(), Some(row));
        }
        if self.incoming.len() > limits::HELD_EVENTS {
            self.merge_updates_now();
        }
    }

    /// Adds a page. Rows from the stream are newer and are not replaced.
    pub(crate) fn add_page(&mut self, rows: Vec<EventRow>) {
        let order = self.sort_order();
        if let Some(last) = rows.iter().max_by(|one, other| compare(order, one, other)) {
            let (rank, id) = sort_key(order, last);
            let known = self.edge.as_ref();
            let is_further = known.is_none_or(|(edge, at)| {
                order.compare((rank, id), (*edge, at.as_ref())) == Ordering::Greater
            });
            if is_further {
                self.edge = Some((rank, id.into()));
            }
        }
        for row in rows {
            let held = self.find(&row.id);
            let newer = held.is_some_and(|held| held.last_seen_ms > row.last_seen_ms);
            if !newer {
                self.incoming.entry(row.id.clone()).or_insert(Some(row));
            }
        }
        self.merge_updates_now();
    }

    /// Merges the news, unless the list is paused. Returns whether anything changed.
    pub(crate) fn merge_updates(&mut self) -> bool {
        if self.paused || self.incoming.is_empty() {
            return false;
        }
        self.merge_updates_now();
        true
    }

    /// Merges the news in time proportional to their number; other rows are only moved as pointers.
    fn merge_updates_now(&mut self) {
        let incoming = std::mem::take(&mut self.incoming);
        let mut old: Vec<usize> = incoming.keys().filter_map(|id| self.position(id)).collect();
        old.sort_unstable();
        remove(&mut self.rows, &old);
        for id in incoming.keys() {
            self.by_id.remove(&**id);
        }
        let order = self.sort_order();
        let fresh = incoming.into_values().flatten().map(Arc::new);
        let mut fresh: Vec<SharedRow> = fresh.filter(|row| self.is_loaded_up_to(row)).collect();
        fresh.sort_unstable_by(|one, other| compare(order, one, other));
        self.by_id.extend(fresh.iter().cloned().map(RowsById));
        insert(order, &mut self.rows, fresh);
        self.cut |= self.rows.len() > limits::HELD_EVENTS;
        for row in self.rows.drain(limits::HELD_EVENTS.min(self.rows.len())..) {
            self.by_id.remove(&*row.id);
        }
    }

    /// Whether all rows before this one were read. Otherwise, the row is read later, with its page.
    fn is_loaded_up_to(&self, row: &EventRow) -> bool {
        let order = self.sort_order();
        let edge = self.edge.as_ref().filter(|_| !self.next.is_empty());
        edge.is_none_or(|(edge, at)| {
            order.compare(sort_key(order, row), (*edge, at.as_ref())) != Ordering::Greater
        })
    }

    fn sort_order(&self) -> EventOrder {
        self.filter.order
    }
}

fn sort_key(order: EventOrder, row: &EventRow) -> (Rank, &str) {
    (order.rank(row), &row.id)
}

fn compare(order: EventOrder, one: &EventRow, other: &EventRow) -> Ordering {
    order.compare(sort_key(order, one), sort_key(order, other))
}

fn remove(rows: &mut Vec<SharedRow>, places: &[usize]) {
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

fn insert(order: EventOrder, rows: &mut Vec<SharedRow>, fresh: Vec<SharedRow>) {
    let [Some(first), Some(last)] = [fresh.first(), fresh.last()] else {
        return;
    };
    let from = rows.partition_point(|row| compare(order, row, first) == Ordering::Less);
    let to = rows.partition_point(|row| compare(order, row, last) == Ordering::Less);
    let between: Vec<SharedRow> = rows.splice(from..to, []).collect();
    rows.splice(from..from, merge_sorted(order, between, fresh));
}

fn merge_sorted(order: EventOrder, old: Vec<SharedRow>, fresh: Vec<SharedRow>) -> Vec<SharedRow> {
    let mut merged = Vec::with_capacity(old.len() + fresh.len());
    let mut fresh = fresh.into_iter().peekable();
    for row in old {
        while let Some(new) = fresh.next_if(|new| compare(order, new, &row) == Ordering::Less) {
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
    use crate::data::{EventKey, Severity};

    fn sample_row(id: u8, last_seen_ms: i64) -> EventRow {
        EventRow {
            id: format!("e:{id}").into(),
            last_seen_ms,
            start_ms: last_seen_ms / 3,
            severity: Severity::try_from(i32::try_from(last_seen_ms % 5).unwrap()).unwrap(),
            ..EventRow::default()
        }
    }

    fn order_strategy() -> impl Strategy<Value = EventOrder> {
        let keys = [EventKey::LastSeen, EventKey::Severity, EventKey::Start];
        (prop::sample::select(keys.to_vec()), any::<bool>())
            .prop_map(|(by, ascending)| EventOrder { by, ascending })
    }

    #[test]
    fn rows_beyond_the_last_page_appear_only_with_their_page() {
        let mut window = EventWindow::default();
        window.filter.order.by = EventKey::Severity;
        window.next = "more".to_owned();
        window.add_page(vec![sample_row(1, 4), sample_row(2, 3)]);
        window.queue_updates(vec![sample_row(3, 2), sample_row(4, 9)], vec![]);
        window.merge_updates();
        let ids = |window: &EventWindow| -> Vec<String> {
            let rows = (0..window.len()).filter_map(|at| window.get(at));
            rows.map(|row| row.id.to_string()).collect()
        };
        assert_eq!(ids(&window), ["e:4", "e:1", "e:2"]);
        // A row is removed when it moves behind the rows read so far.
        window.queue_updates(vec![sample_row(1, 5)], vec![]);
        window.merge_updates();
        assert_eq!(ids(&window), ["e:4", "e:2"]);
        window.next.clear();
        window.add_page(vec![sample_row(3, 2), sample_row(1, 5)]);
        assert_eq!(ids(&window), ["e:4", "e:2", "e:3", "e:1"]);
    }

    proptest! {
        #[test]
        fn rows_are_sorted_and_findable(
            order in order_strategy(),
            batches in prop::collection::vec(prop::collection::vec((0_u8..20, 0_i64..30, any::<bool>()), 0..8), 0..20)
        ) {
            let mut window = EventWindow::default();
            window.filter.order = order;
            let mut truth: HashMap<String, i64> = HashMap::new();
            for batch in batches {
                for (id, seen, leaves) in batch {
                    let name = format!("e:{id}");
                    if leaves {
                        truth.remove(&name);
                        window.queue_updates(vec![], vec![name]);
                    } else {
                        truth.insert(name, seen);
                        window.queue_updates(vec![sample_row(id, seen)], vec![]);
                    }
                }
                window.merge_updates();
                prop_assert_eq!(window.len(), truth.len());
                let in_order = |two: &[SharedRow]| compare(order, &two[0], &two[1]) == Ordering::Less;
                prop_assert!(window.rows.windows(2).all(in_order));
                for (id, seen) in &truth {
                    prop_assert_eq!(window.find(id).map(|row| row.last_seen_ms), Some(*seen));
                }
            }
        }
    }

    #[test]
    fn paused_list_counts_updates_and_shows_them_on_resume() {
        let mut window = EventWindow {
            paused: true,
            ..EventWindow::default()
        };
        window.queue_updates(
            vec![sample_row(1, 1), sample_row(2, 2), sample_row(1, 3)],
            vec![],
        );
        assert!(!window.merge_updates());
        assert_eq!((window.len(), window.queued_update_count()), (0, 2));
        window.paused = false;
        assert!(window.merge_updates());
        assert_eq!((window.len(), window.queued_update_count()), (2, 0));
    }

    #[test]
    fn window_retains_the_newest_rows_and_reports_when_full() {
        let many = i64::try_from(limits::HELD_EVENTS).unwrap();
        let named = |number: i64| EventRow {
            id: format!("e{number}:1").into(),
            last_seen_ms: number,
            ..EventRow::default()
        };
        let mut window = EventWindow::default();
        window.add_page((0..many).map(named).collect());
        assert!(window.is_full() && !window.cut);
        window.queue_updates(vec![named(many)], vec![]);
        window.merge_updates();
        assert_eq!(window.len(), limits::HELD_EVENTS);
        assert_eq!(window.find("e0:1"), None);
        let left = vec![format!("e{many}:1")];
        window.queue_updates(vec![], left);
        window.merge_updates();
        assert!(window.len() < limits::HELD_EVENTS && window.is_full());
    }
}
