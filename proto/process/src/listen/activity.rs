//! Tracks the activity of a connection.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::connection_quota::RegisteredConnection;

#[derive(Debug)]
pub struct Activity {
    opened: Instant,
    last_ms: AtomicU64,
    in_flight: AtomicUsize,
    requests_seen: AtomicBool,
    may_be_silent: AtomicBool,
    visit: RegisteredConnection,
}

impl Activity {
    pub(super) fn new(visit: RegisteredConnection) -> Self {
        Self {
            opened: Instant::now(),
            last_ms: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            requests_seen: AtomicBool::new(false),
            may_be_silent: AtomicBool::new(false),
            visit,
        }
    }

    /// Marks the connection as authenticated by the key of this client, so that it no longer counts
    /// as unauthenticated.
    pub fn mark_authenticated(&self, client: &str) {
        self.visit.mark_authenticated(client);
    }

    /// Exempts the connection from the idle timeout of unauthenticated connections, since its
    /// stream may be silent.
    pub fn exempt_from_idle_timeout(&self) {
        self.may_be_silent.store(true, Relaxed);
    }

    pub fn record_activity(&self) {
        let now_ms = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now_ms, Relaxed);
    }

    /// Begins a request, which is in flight until the returned guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> InFlightRequest {
        self.requests_seen.store(true, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        self.visit.begin_call();
        self.record_activity();
        InFlightRequest(Arc::clone(self))
    }

    pub(super) fn has_requests_in_flight(&self) -> bool {
        self.in_flight.load(Relaxed) > 0
    }

    pub(super) fn has_seen_requests(&self) -> bool {
        self.requests_seen.load(Relaxed)
    }

    pub(super) fn quota_visit(&self) -> &RegisteredConnection {
        &self.visit
    }

    pub(super) fn idle_limit(&self) -> Option<Duration> {
        let is_bound = !self.visit.is_authenticated() && !self.may_be_silent.load(Relaxed);
        is_bound.then(|| self.visit.allowance().quiet)
    }

    pub(super) fn idle_time(&self) -> Duration {
        let last = Duration::from_millis(self.last_ms.load(Relaxed));
        self.opened.elapsed().saturating_sub(last)
    }
}

#[derive(Debug)]
pub(super) struct InFlightRequest(Arc<Activity>);

impl InFlightRequest {
    pub(super) fn record_activity(&self) {
        self.0.record_activity();
    }
}

impl Drop for InFlightRequest {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
        self.0.visit.end_call();
        self.0.record_activity();
    }
}
