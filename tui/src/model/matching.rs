//! The number of events that a filter matches, requested while it is typed.

use crate::{client::Ticket, data::Failure, limits};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matching {
    pub(crate) due_ms: Option<i64>,
    pub(crate) waiting: Option<Ticket>,
    /// The number that the service returned; `None` in it if counting would take long.
    pub(crate) found: Option<Result<Option<i32>, String>>,
}

impl Matching {
    pub(crate) fn after_typing(now_ms: i64) -> Self {
        Self {
            due_ms: Some(now_ms.saturating_add(limits::COUNT_PAUSE_MS)),
            ..Self::default()
        }
    }

    pub(crate) fn record(&mut self, ticket: Ticket, found: Result<Option<i32>, Failure>) -> bool {
        let is_waited_for = self.waiting.take_if(|it| *it == ticket).is_some();
        if is_waited_for {
            self.found = Some(found.map_err(|failure| failure.message));
        }
        is_waited_for
    }
}
