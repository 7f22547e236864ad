//! Keeps track of what happens on a connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;

/// What happens on a connection.
#[derive(Debug)]
pub struct Activity {
    opened: Instant,
    last_ms: AtomicU64,
    under_way: AtomicUsize,
    requests_seen: AtomicBool,
}

impl Default for Activity {
    fn default() -> Self {
        Self {
            opened: Instant::now(),
            last_ms: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            requests_seen: AtomicBool::new(false),
        }
    }
}

impl Activity {
    /// Something happened: a part of a body came or went.
    pub fn note(&self) {
        let now_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now_ms, Relaxed);
    }

    /// A request is under way until what is answered here is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests_seen.store(true, Relaxed);
        self.under_way.fetch_add(1, Relaxed);
        self.note();
        UnderWay(Arc::clone(self))
    }

    /// Whether a request is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.load(Relaxed) > 0
    }

    /// Whether there was any request.
    pub(super) fn requests_seen(&self) -> bool {
        self.requests_seen.load(Relaxed)
    }

    /// How long nothing has happened.
    pub(super) fn quiet(&self) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Relaxed));
        self.opened.elapsed().saturating_sub(last)
    }
}

/// A request under way, from its headers until its answer was handed over.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl UnderWay {
    /// Something happened to the request.
    pub(super) fn note(&self) {
        self.0.note();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
        self.0.note();
    }
}
