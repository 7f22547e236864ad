//! Tracks the activity of a connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::connection_quota::Visit;

/// The activity of a connection.
#[derive(Debug)]
pub struct Activity {
    opened: Instant,
    last_ms: AtomicU64,
    under_way: AtomicUsize,
    requests_seen: AtomicBool,
    may_be_silent: AtomicBool,
    visit: Visit,
}

impl Activity {
    pub(super) fn new(visit: Visit) -> Self {
        Self {
            opened: Instant::now(),
            last_ms: AtomicU64::new(0),
            under_way: AtomicUsize::new(0),
            requests_seen: AtomicBool::new(false),
            may_be_silent: AtomicBool::new(false),
            visit,
        }
    }

    /// Marks the connection as authenticated by the key of this client, so that it no longer counts
    /// as unauthenticated.
    pub fn known(&self, client: &str) {
        self.visit.known(client);
    }

    /// Exempts the connection from the idle timeout of unauthenticated ones, since its stream may
    /// be silent.
    pub fn may_be_silent(&self) {
        self.may_be_silent.store(true, Relaxed);
    }

    /// Records that a part of a body was sent or received.
    pub fn note(&self) {
        let now_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now_ms, Relaxed);
    }

    /// Begins a request, which is in flight until the returned guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests_seen.store(true, Relaxed);
        self.under_way.fetch_add(1, Relaxed);
        self.visit.call_began();
        self.note();
        UnderWay(Arc::clone(self))
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.under_way.load(Relaxed) > 0
    }

    pub(super) fn requests_seen(&self) -> bool {
        self.requests_seen.load(Relaxed)
    }

    pub(super) fn visit(&self) -> &Visit {
        &self.visit
    }

    pub(super) fn unauthenticated_silence(&self) -> Option<Duration> {
        let is_bound = !self.visit.is_known() && !self.may_be_silent.load(Relaxed);
        is_bound.then(|| self.visit.allowance().quiet)
    }

    pub(super) fn quiet(&self) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Relaxed));
        self.opened.elapsed().saturating_sub(last)
    }
}

#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl UnderWay {
    pub(super) fn note(&self) {
        self.0.note();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
        self.0.visit.call_ended();
        self.0.note();
    }
}
