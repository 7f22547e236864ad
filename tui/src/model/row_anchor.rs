//! The rows recently under the cursor of a live list, so that a key acts on the row that the
//! operator saw.

use std::collections::VecDeque;

use crate::limits;

#[derive(Clone, Debug, Default)]
pub(crate) struct RowAnchor {
    /// The rows under the cursor, each with the time since which it was there; newest last.
    shown: VecDeque<(String, i64)>,
    until_ms: Option<i64>,
    /// Whether the cursor returns to the first row after the pause.
    pub(crate) returns: bool,
}

impl RowAnchor {
    /// Resets the anchor after a cursor movement: the row now under the cursor is the intended one.
    pub(crate) fn restart(&mut self, returns: bool) {
        self.shown.clear();
        self.returns = returns;
    }

    pub(crate) fn show(&mut self, id: Option<&str>, now_ms: i64) {
        let Some(id) = id else { return };
        if self.shown.back().is_none_or(|(last, _)| last != id) {
            self.shown.push_back((id.to_owned(), now_ms));
        }
        // Keep one row older than the minimum display time: it was shown until the next one
        // appeared.
        let is_old = |it: Option<&(String, i64)>| {
            it.is_some_and(|(_, since)| now_ms - since >= limits::SEEN_MS)
        };
        while is_old(self.shown.get(1)) {
            self.shown.pop_front();
        }
    }

    /// Returns the last row that was displayed long enough to be seen, or else the oldest one
    /// recorded.
    pub(crate) fn last_seen(&self, now_ms: i64) -> Option<&str> {
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
        assert_eq!(anchor.last_seen(0), None);
        anchor.show(Some("a"), 0);
        assert_eq!(anchor.last_seen(10), Some("a"));
        anchor.show(Some("b"), 1_000);
        assert_eq!(anchor.last_seen(1_399), Some("a"));
        assert_eq!(anchor.last_seen(1_400), Some("b"));
        // In a stream too fast to read, the row displayed at the minimum time before the key press
        // is used.
        for (at, id) in [(2_000, "c"), (2_100, "d"), (2_200, "e"), (2_300, "f")] {
            anchor.show(Some(id), at);
        }
        assert_eq!(anchor.last_seen(2_350), Some("b"));
        assert_eq!(anchor.last_seen(2_500), Some("d"));
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
