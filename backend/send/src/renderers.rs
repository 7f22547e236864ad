//! Threads for rendering, so that slow templates block nothing else.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Instant,
};

use tokio::task::spawn_blocking;

use crate::{
    background::Background,
    error::Error,
    limits::{RENDER_STUCK_AFTER, RENDER_TIME_MAX, RENDERS_WAITING_MAX},
    scan::{self, CallerConnection, FairSlots, run_timed},
    store::{audit, metrics::Metrics},
};

/// The purpose of rendering; each has separate slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenderPurpose {
    /// A preview, or a test of a destination or mapping.
    Preview,
    Delivery,
    /// Events of a webhook.
    Mapping,
}

impl RenderPurpose {
    pub const ALL: [Self; 3] = [Self::Preview, Self::Delivery, Self::Mapping];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preview => "preview",
            Self::Delivery => "delivery",
            Self::Mapping => "mapping",
        }
    }
}

/// A pool that runs CPU-bound work off the runtime, a few jobs per purpose at a time, with fair
/// shares for clients. Clones share the slots.
#[derive(Debug, Clone)]
pub struct Renderers {
    shared: Arc<SharedState>,
    metrics: Metrics,
}

#[derive(Debug)]
struct SharedState {
    slots: [Arc<FairSlots>; 3],
    /// Low-priority threads for previews; `None` to use those of the runtime.
    preview_threads: Option<Background>,
    /// Start times of running jobs, by their number.
    begun: Mutex<(u64, HashMap<u64, Instant>)>,
}

/// A running job; removed when dropped.
struct RunningJob {
    shared: Arc<SharedState>,
    number: u64,
}

impl RunningJob {
    fn new(shared: &Arc<SharedState>) -> Self {
        let mut begun = shared.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.0 += 1;
        let number = begun.0;
        begun.1.insert(number, Instant::now());
        Self {
            shared: Arc::clone(shared),
            number,
        }
    }
}

impl Drop for RunningJob {
    fn drop(&mut self) {
        let begun = self.shared.begun.lock();
        let mut begun = begun.unwrap_or_else(PoisonError::into_inner);
        begun.1.remove(&self.number);
    }
}

impl Default for Renderers {
    fn default() -> Self {
        Self::with_slots(Metrics::default(), default_slots(), None)
    }
}

impl Renderers {
    /// Creates renderers that use half of the processors for each purpose, leaving the rest for
    /// ingestion and requests.
    pub fn new(metrics: Metrics) -> Self {
        let threads = Background::start("preview");
        let threads = threads.inspect_err(|error| {
            tracing::warn!(%error, "failed to start the threads for previews");
        });
        Self::with_slots(metrics, default_slots(), threads.ok())
    }

    fn with_slots(metrics: Metrics, slots: usize, preview_threads: Option<Background>) -> Self {
        let slots = RenderPurpose::ALL.map(|purpose| match purpose {
            RenderPurpose::Preview => {
                FairSlots::new(slots, RENDERS_WAITING_MAX, "previews and tests")
            }
            RenderPurpose::Delivery => FairSlots::new(slots, usize::MAX, "messages"),
            RenderPurpose::Mapping => FairSlots::new(slots, RENDERS_WAITING_MAX, "webhooks"),
        });
        let shared = SharedState {
            slots,
            preview_threads,
            begun: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            metrics,
        }
    }

    /// Runs work for the calling client as soon as it has a slot; see [`Self::run_for_client`].
    pub async fn run<T: Send + 'static>(
        &self,
        purpose: RenderPurpose,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        self.run_for_client(purpose, &current_client().unwrap_or_default(), work)
            .await
    }

    /// Runs work for a client as soon as it has a slot.
    ///
    /// # Errors
    /// Returns [`Error::Exhausted`] if too many jobs are waiting, [`Error::Unavailable`] if the
    /// service is stopping, and [`Error::Internal`] if the work panics.
    ///
    /// # Cancel safety
    /// Waiting work is not started after the future is dropped. Running work keeps its slot until
    /// it ends; its templates stop at their next step.
    pub async fn run_for_client<T: Send + 'static>(
        &self,
        purpose: RenderPurpose,
        client: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let slots = &self.shared.slots[purpose as usize];
        let slot = slots.acquire(&client.into()).await;
        let slot =
            slot.inspect_err(|_busy| self.metrics.record_rendering(purpose.as_str(), "refused"))?;
        let caller = CallerConnection::default();
        let (is_left, shared) = (caller.disconnected_flag(), Arc::clone(&self.shared));
        let work = move || {
            let begun = RunningJob::new(&shared);
            let ended = run_timed(RENDER_TIME_MAX, is_left, work);
            drop((begun, slot));
            ended
        };
        let ended = match (purpose, &self.shared.preview_threads) {
            (RenderPurpose::Preview, Some(threads)) => threads.handle().spawn_blocking(work),
            _ => spawn_blocking(work),
        };
        match ended.await {
            Ok((made, is_late)) => {
                let outcome = if is_late { "late" } else { "done" };
                self.metrics.record_rendering(purpose.as_str(), outcome);
                Ok(made)
            }
            Err(error) if error.is_cancelled() => {
                Err(Error::Unavailable("the service is stopping".into()))
            }
            Err(error) => {
                self.metrics.record_rendering(purpose.as_str(), "panicked");
                Err(Error::Internal(Box::new(error)))
            }
        }
    }

    /// Returns the number of jobs that have been running for so long that they may never end.
    pub fn stuck_count(&self) -> usize {
        let begun = self.shared.begun.lock();
        let begun = begun.unwrap_or_else(PoisonError::into_inner);
        let all = begun.1.values();
        all.filter(|it| it.elapsed() >= RENDER_STUCK_AFTER).count()
    }
}

fn default_slots() -> usize {
    let processors = thread::available_parallelism().map_or(1, Into::into);
    (processors / 2).max(1)
}

/// Returns the client whose call this task serves; `None` for the service's own work.
pub(super) fn current_client() -> Option<Arc<str>> {
    let by = || Some(Arc::from(audit::current_actor()?.client.as_str()));
    scan::current_client().or_else(by)
}
