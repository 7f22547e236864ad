//! Whether the database answers: who waits for it is told when it does not, instead of at the end of
//! some time limit of its own.

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
    /// Takes down whether it answers.
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

    /// Does something that waits for the database; none when that does not answer meanwhile.
    pub(super) async fn or_away<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut reach = self.subscribe();
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = reach.wait_for(|is_within| !is_within) => None,
        }
    }
}

/// What is answered while it does not.
pub(super) fn away() -> EngineError {
    EngineError::Unavailable("the database does not answer".into())
}
