//! Whether the database answers. When it stops, calls that wait for it fail immediately instead of after
//! their own time limit.

use std::sync::Arc;

use tokio::sync::watch;

use crate::fault::EngineError;

/// Whether the database has answered lately. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Reach(Arc<watch::Sender<bool>>);

impl Default for Reach {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(true)))
    }
}

impl Reach {
    /// Records whether it answers.
    pub(super) fn set(&self, is_within: bool) {
        self.0
            .send_if_modified(|before| std::mem::replace(before, is_within) != is_within);
    }

    pub(super) fn is_within(&self) -> bool {
        *self.0.borrow()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<bool> {
        self.0.subscribe()
    }

    /// Runs work that waits for the database; none when the database stops answering first.
    pub(super) async fn or_away<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut reach = self.subscribe();
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = reach.wait_for(|is_within| !is_within) => None,
        }
    }
}

/// The error of calls while the database does not answer.
pub(super) fn away() -> EngineError {
    EngineError::Unavailable("the database does not answer".into())
}
