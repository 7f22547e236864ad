//! The rows recently under the cursor of a live list, so that a key acts on the row that the
//! operator saw.

use std::collections::VecDeque;

use crate::limits;

/// The rows recently under the cursor, and the pause after a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowAnchor {
    /// The rows under the cursor and since when, the newest last.
    shown: VecDeque<(String, i64)>,
    /// End of the pause after a key.
    until_ms: Option<i64>,
    /// Whether the cursor then returns to the first row.
    pub(crate) returns: bool,
}

impl RowAnchor {
    /// Of a cursor that was just moved: what it is on now is what was meant.
    pub(crate) fn restart(&mut self, returns: bool) {
        self.shown.clear();
        self.returns = returns;
    }

    pub(crate) fn show(&mut self, id: Option<&str>, now_ms: i64) {
        let Some(id) = id else { return };
        if self.shown.back().is_none_or(|(last, _)| last != id) {
            self.shown.push_back((id.to_owned(), now_ms));
        }
        // Keep one row older than the time that counts as seen: it was shown until the next one.
        let is_old = |it: Option<&(String, i64)>| {
            it.is_some_and(|(_, since)| now_ms - since >= limits::SEEN_MS)
        };
        while is_old(self.shown.get(1)) {
            self.shown.pop_front();
        }
    }

    /// Returns the last row that was shown long enough to be seen, or else the oldest one recorded.
    pub(crate) fn seen(&self, now_ms: i64) -> Option<&str> {
        let mut shown = self.shown.iter().rev();
        let seen = shown.find(|(_, since)| now_ms - since >= limits::SEEN_MS);
        let (id, _) = seen.or(self.shown.front())?;
        Some(id)
    }

    pub(crate) fn hold(&mut self, now_ms: i64) {
        self.until_ms = Some(now_ms.saturating_add(limits::STILL_MS));
    }

    /// Whether the list is paused; clears the pause once it is over.
    pub(crate) fn is_held(&mut self, now_ms: i64) -> bool {
        self.until_ms.take_if(|until| *until <= now_ms);
        self.until_ms.is_some()
    }

    /// Returns when the cursor returns to the first row.
    pub(crate) fn wake_at_ms(&self) -> Option<i64> {
        self.until_ms.filter(|_| self.returns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_applies_to_the_row_shown_long_enough() {
        let mut anchor = RowAnchor::default();
        assert_eq!(anchor.seen(0), None);
        anchor.show(Some("a"), 0);
        assert_eq!(anchor.seen(10), Some("a"));
        anchor.show(Some("b"), 1_000);
        assert_eq!(anchor.seen(1_399), Some("a"));
        assert_eq!(anchor.seen(1_400), Some("b"));
        // Of a stream that no one can read, the row that was there when the eye was.
        for (at, id) in [(2_000, "c"), (2_100, "d"), (2_200, "e"), (2_300, "f")] {
            anchor.show(Some(id), at);
        }
        assert_eq!(anchor.seen(2_350), Some("b"));
        assert_eq!(anchor.seen(2_500), Some("d"));
    }

    #[test]
    fn anchor_holds_after_a_key_and_keeps_few_rows() {
        let mut anchor = RowAnchor::default();
        anchor.hold(1_000);
        assert!(anchor.is_held(3_999));
        assert!(!anchor.is_held(4_000));
        for at in 0..100_000 {
            anchor.show(Some(&at.to_string()), at);
        }
        assert!(anchor.shown.len() <= 402, "{}", anchor.shown.len());
    }
}
