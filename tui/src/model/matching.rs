//! How many events a filter would leave, asked while it is typed.

use crate::{client::Ticket, data::Failure, limits};

/// How many events a filter would leave that is being typed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matching {
    /// When that is asked.
    pub(crate) due_ms: Option<i64>,
    pub(crate) waiting: Option<Ticket>,
    /// What the service said; no number where finding out would take long.
    pub(crate) found: Option<Result<Option<i32>, String>>,
}

impl Matching {
    /// Nothing is known of what was typed just now.
    pub(crate) fn after_typing(now_ms: i64) -> Self {
        Self {
            due_ms: Some(now_ms.saturating_add(limits::COUNT_PAUSE_MS)),
            ..Self::default()
        }
    }

    /// Takes an answer; whether it was waited for.
    pub(crate) fn heard(&mut self, ticket: Ticket, found: Result<Option<i32>, Failure>) -> bool {
        let is_waited_for = self.waiting.take_if(|it| *it == ticket).is_some();
        if is_waited_for {
            self.found = Some(found.map_err(|failure| failure.message));
        }
        is_waited_for
    }
}
