//! The cursor of a changing list: the selection is an id, never a position.

use std::collections::BTreeSet;

use super::{field::TextField, filter_history::HistoryPosition, matching::Matching, sort::Sort};
use crate::limits;

pub(crate) trait Rows {
    fn len(&self) -> usize;
    fn id(&self, index: usize) -> &str;
    fn row_index(&self, index: usize) -> usize {
        index
    }
    fn position(&self, id: &str) -> Option<usize> {
        (0..self.len()).find(|index| self.id(*index) == id)
    }
}

impl Rows for Vec<&str> {
    fn len(&self) -> usize {
        Vec::len(self)
    }

    fn id(&self, index: usize) -> &str {
        self[index]
    }
}

impl Rows for super::events::EventWindow {
    fn len(&self) -> usize {
        self.len()
    }

    fn id(&self, index: usize) -> &str {
        self.get(index).map_or("", |row| &row.id)
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.position(id)
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) selected: Option<String>,
    /// Id of a row that is selected when it appears, unless the cursor moves before that.
    pub(crate) wanted: Option<String>,
    /// Last known position of the selection, used if the row disappears.
    pub(crate) index: usize,
    pub(crate) count: usize,
    pub(crate) top: usize,
    pub(crate) marks: BTreeSet<String>,
    /// Whether to read the list to its end, with the cursor on the last row.
    pub(crate) to_end: bool,
    pub(crate) filter: String,
    /// The filter that the list was opened with, such as by a link.
    pub(crate) given: String,
    /// The sort order, if it is not the service's order.
    pub(crate) sort: Option<Sort>,
    pub(crate) view: Option<String>,
    /// Whether the first row stays selected as new rows arrive.
    pub(crate) follows: bool,
    /// Time at which the selected row was replaced by another one without a key press.
    pub(crate) replaced_ms: Option<i64>,
    /// Number of rows added above the cursor since it left the first row.
    pub(crate) came: usize,
    pub(crate) typing: Option<TextField>,
    pub(crate) matching: Matching,
    pub(crate) recalled: Option<HistoryPosition>,
}

impl List {
    /// Finds the selected row again after the rows or the height have changed.
    pub(crate) fn restore_selection(&mut self, rows: &dyn Rows, height: usize, now_ms: i64) {
        let count = rows.len();
        let had_rows = std::mem::replace(&mut self.count, count) > 0;
        let selected = self.selected.clone().filter(|_| had_rows);
        if self.follows && self.wanted.is_none() {
            (self.index, self.selected) = (0, None);
        }
        if count == 0 {
            // The selection does not change, since the row may be in the next response.
            self.top = 0;
            return;
        }
        let wanted = self.wanted.take_if(|id| rows.position(id).is_some());
        let is_awaited = wanted.is_some();
        self.selected = wanted.or(self.selected.take());
        let found = self.selected_position(rows);
        let before = self.index;
        self.index = found.unwrap_or_else(|| self.index.min(count - 1));
        // Counts the rows added above the cursor, until the cursor has passed them.
        self.came = match self.index {
            0 => 0,
            index => (self.came + index.saturating_sub(before)).min(index),
        };
        if found.is_none() {
            self.selected = Some(rows.id(self.index).to_owned());
        }
        if selected.is_some() && self.selected != selected && !is_awaited {
            self.replaced_ms = Some(now_ms);
        }
        self.scroll(count, height);
    }

    /// Whether the selected row was shown too briefly to be read before a key press.
    pub(crate) fn is_unread(&self, now_ms: i64) -> bool {
        let since = self.replaced_ms.map(|since| now_ms.saturating_sub(since));
        since.is_some_and(|shown_ms| shown_ms < limits::SEEN_MS)
    }

    fn scroll(&mut self, count: usize, height: usize) {
        let height = height.max(1);
        self.top = self.top.min(self.index).min(count.saturating_sub(height));
        if self.index >= self.top + height {
            self.top = self.index + 1 - height;
        }
    }

    pub(crate) fn select(&mut self, rows: &dyn Rows, height: usize, index: usize) {
        if rows.len() == 0 {
            return;
        }
        self.wanted = None;
        self.replaced_ms = None;
        self.index = index.min(rows.len() - 1);
        self.came = self.came.min(self.index);
        self.selected = Some(rows.id(self.index).to_owned());
        self.scroll(rows.len(), height);
    }

    pub(crate) fn selected_id(&self, rows: &dyn Rows) -> Option<String> {
        self.selected_position(rows)?;
        self.selected.clone()
    }

    fn selected_position(&self, rows: &dyn Rows) -> Option<usize> {
        let id = self.selected.as_deref()?;
        if self.index < rows.len() && rows.id(self.index) == id {
            return Some(self.index);
        }
        rows.position(id)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn expected_row_is_not_selected_if_the_cursor_has_moved() {
        let mut list = List {
            wanted: Some("new".to_owned()),
            ..List::default()
        };
        list.restore_selection(&vec!["a", "b"], 5, 0);
        list.select(&vec!["a", "b"], 5, 1);
        list.restore_selection(&vec!["a", "b", "new"], 5, 0);
        assert_eq!(list.selected.as_deref(), Some("b"));

        list.wanted = Some("newer".to_owned());
        list.restore_selection(&vec!["a", "b", "new", "newer"], 5, 0);
        assert_eq!(list.selected.as_deref(), Some("newer"));
    }

    #[test]
    fn new_rows_move_the_selected_row_down_unless_followed() {
        let mut list = List::default();
        list.restore_selection(&vec!["b", "a"], 5, 0);
        list.restore_selection(&vec!["d", "c", "b", "a"], 5, 0);
        assert_eq!((list.index, list.came), (2, 2));
        assert_eq!(list.selected.as_deref(), Some("b"));
        list.select(&vec!["d", "c", "b", "a"], 5, 0);
        assert_eq!(list.came, 0);

        list.follows = true;
        list.restore_selection(&vec!["e", "d", "c", "b", "a"], 5, 0);
        assert_eq!((list.index, list.selected.as_deref()), (0, Some("e")));
    }

    #[test]
    fn row_replacing_the_selected_one_is_unread_at_first() {
        let mut list = List::default();
        list.restore_selection(&vec!["b", "a"], 5, 0);
        assert!(!list.is_unread(0));
        // The selected row left.
        list.restore_selection(&vec!["a"], 5, 1_000);
        assert_eq!(list.selected.as_deref(), Some("a"));
        let read_ms = 1_000 + limits::SEEN_MS;
        assert!(list.is_unread(1_000) && list.is_unread(read_ms - 1));
        assert!(!list.is_unread(read_ms));
        // A row counts as read if a key selected it.
        list.select(&vec!["a"], 5, 0);
        assert!(!list.is_unread(1_000));
    }

    proptest! {
        #[test]
        fn selected_row_stays_selected_while_present(
            changes in prop::collection::vec(prop::collection::btree_set(0_u8..30, 0..30), 1..20),
            start in 0_usize..30,
            height in 1_usize..12,
        ) {
            let mut list = List::default();
            let mut first = true;
            for rows in changes {
                let names: Vec<String> = rows.iter().map(|id| format!("r{id}")).collect();
                let rows: Vec<&str> = names.iter().map(String::as_str).collect();
                let before = list.selected.clone();
                list.restore_selection(&rows, height, 0);
                if let Some(before) = before.filter(|id| rows.contains(&id.as_str())) {
                    prop_assert_eq!(list.selected.as_deref(), Some(before.as_str()));
                }
                if !rows.is_empty() {
                    prop_assert!(list.top <= list.index && list.index < list.top + height);
                    prop_assert_eq!(Some(rows[list.index]), list.selected.as_deref());
                }
                if first {
                    list.select(&rows, height, start);
                    first = false;
                }
            }
        }
    }
}
