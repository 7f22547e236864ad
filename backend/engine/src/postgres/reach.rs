//! Reachability of the database. When the database becomes unreachable, waiting calls fail
//! immediately instead of after their own timeout.

use std::sync::Arc;

use tokio::sync::watch;

use crate::error::EngineError;

/// Whether the database has responded recently. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Reachability(Arc<watch::Sender<bool>>);

impl Default for Reachability {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(true)))
    }
}

impl Reachability {
    pub(super) fn set_reachable(&self, is_within: bool) {
        self.0
            .send_if_modified(|before| std::mem::replace(before, is_within) != is_within);
    }

    pub(super) fn is_reachable(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }

    /// Waits for the database to complete `work`; returns `None` if it becomes unreachable first.
    pub(super) async fn run_or_unreachable<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut reach = self.subscribe();
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = reach.wait_for(|is_within| !is_within) => None,
        }
    }
}

pub(super) fn unreachable_error() -> EngineError {
    EngineError::Unavailable("the database does not respond".into())
}
