//! Keeps track of what happens on a connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::connection_quota::Visit;

/// What happens on a connection.
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

    /// A call was authenticated with the key of that client: from now on the connection is not
    /// counted among those that have shown none.
    pub fn known(&self, client: &str) {
        self.visit.known(client);
    }

    /// A call was accepted, without a key, that follows something that may never change.
    pub fn may_be_silent(&self) {
        self.may_be_silent.store(true, Relaxed);
    }

    /// Something happened: a part of a body came or went.
    pub fn note(&self) {
        let now_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now_ms, Relaxed);
    }

    /// A request is under way until what is answered here is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests_seen.store(true, Relaxed);
        self.under_way.fetch_add(1, Relaxed);
        self.visit.call_began();
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

    /// The connection, among those of its listener.
    pub(super) fn visit(&self) -> &Visit {
        &self.visit
    }

    /// How long a request under way may be silent, of a client that has shown no key.
    pub(super) fn unauthenticated_silence(&self) -> Option<Duration> {
        let is_bound = !self.visit.is_known() && !self.may_be_silent.load(Relaxed);
        is_bound.then(|| self.visit.allowance().quiet)
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
        self.0.visit.call_ended();
        self.0.note();
    }
}
