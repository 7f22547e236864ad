//! Events changed together, and the undo of the change.

use crate::{
    client::{Call, StatusChange, events},
    limits, text,
    theme::Token,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BulkUndo {
    groups: Vec<(StatusChange, Vec<String>)>,
    /// Whether the events were closed. If so, an undo reopens them.
    was_closed: bool,
    updates: i64,
}

impl BulkUndo {
    pub(super) fn new(
        groups: Vec<(StatusChange, Vec<String>)>,
        was_closed: bool,
        updates: i64,
    ) -> Self {
        Self {
            groups,
            was_closed,
            updates,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn count(&self) -> i64 {
        let count = self.groups.iter().map(|(_, ids)| ids.len()).sum::<usize>();
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// Returns the question before an undo; empty if the undo sends no messages.
    pub(crate) fn question_lines(&self) -> Vec<(Token, String)> {
        let count = count_text(self.count(), "event");
        let words = match (self.was_closed, self.updates) {
            (true, _) => format!("Reopens {count}; rules may notify again."),
            (false, 0) => return Vec::new(),
            (false, updates) => {
                let updates = count_text(updates, "update");
                format!("Reverts {count}; sends about {updates}.")
            }
        };
        let sent = "Sent messages cannot be recalled.".to_owned();
        vec![(Token::Warning, words), (Token::Dim, sent)]
    }

    /// Returns the calls of the undo. They send updates only if the change did.
    pub(crate) fn undo_calls(&self) -> Vec<Call> {
        let is_quiet = self.updates == 0;
        let parts = self.groups.iter().flat_map(|(change, ids)| {
            let parts = ids.chunks(limits::BULK_UNDO_STEP);
            parts.map(move |ids| (change, ids))
        });
        let call = |(change, ids): (&StatusChange, &[String])| match change {
            StatusChange::Acknowledged(_) if is_quiet => {
                events::set_status_without_updates(ids, change)
            }
            change => events::set_status(ids, change),
        };
        parts.map(call).collect()
    }
}

fn count_text(count: i64, word: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {word}{plural}", text::group_digits(count))
}
