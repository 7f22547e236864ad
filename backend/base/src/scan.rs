//! Expensive work on separate threads, with limited concurrency, a fair share for each client and
//! short time slices. It is cancelled when its caller has disconnected.
//!
//! The caller determines the cost of a call, for example with a query of 500 clauses over every
//! stored event. On the threads that serve connections and ingest, such a call would delay both.

mod fair_slots;
#[cfg(test)]
mod tests;
mod timed;

use std::{
    cell::Cell,
    future::pending,
    io,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use tokio::task::{block_in_place, yield_now};
use tokio_util::task::AbortOnDropHandle;

use bellwether_backend_model::effort;

pub use self::fair_slots::Slot;
pub use self::{
    fair_slots::FairSlots,
    timed::{CallerConnection, run_timed},
};
use crate::{
    background::Background,
    error::Error,
    limits::{SCAN_STEPS_RUNNING_MAX, SCAN_TURN, SCANS_RUNNING_MAX, SCANS_WAITING_MAX},
};

tokio::task_local! {
    /// The scan that this task performs. It is task-local rather than an argument, so that all code
    /// that scans records yields.
    static CURRENT: Scan;
}

#[derive(Clone)]
struct Scan {
    client: Arc<str>,
    /// The slots for the scan's steps; `None` for a scan that keeps one slot throughout.
    steps: Option<Arc<FairSlots>>,
    /// Whether the scan is read-only and may therefore end at any point.
    reads: bool,
    is_over: Arc<AtomicBool>,
    begun: Cell<Instant>,
}

#[derive(Debug, Clone)]
pub struct ScanService {
    threads: Background,
    calls: Arc<FairSlots>,
    steps: Arc<FairSlots>,
}

#[derive(Debug, Clone)]
pub struct Scanner {
    /// The client whose share is used.
    pub client: Arc<str>,
    pub reads: bool,
}

/// A running scan, cancelled on drop.
#[derive(Debug)]
pub struct RunningScan<T> {
    task: AbortOnDropHandle<T>,
    is_over: Arc<AtomicBool>,
}

impl<T> Drop for RunningScan<T> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl ScanService {
    pub fn start() -> io::Result<Self> {
        effort::set_host(&TaskEffort);
        Ok(Self {
            threads: Background::start("scan")?,
            calls: FairSlots::new(SCANS_RUNNING_MAX, SCANS_WAITING_MAX, "searches"),
            steps: FairSlots::new(SCAN_STEPS_RUNNING_MAX, usize::MAX, "searches"),
        })
    }

    /// Runs work from beginning to end, as soon as its client has a slot.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Exhausted`] if too many calls already wait for a slot.
    ///
    /// # Cancel safety
    /// Cancelling ends the work at its next await. Read-only work may also end in the middle of an
    /// event.
    pub async fn run<T: Send + 'static>(
        &self,
        scanner: &Scanner,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let slot = self.calls.acquire(&scanner.client).await?;
        let work = async {
            let done = work.await;
            // Held until the work has ended, even if its caller has disconnected.
            drop(slot);
            done
        };
        self.spawn(scanner, None, work).finish().await
    }

    /// Starts work that acquires a slot for each of its steps with [`wait_for_step`].
    pub fn start_scan<T: Send + 'static>(
        &self,
        scanner: &Scanner,
        work: impl Future<Output = T> + Send + 'static,
    ) -> RunningScan<T> {
        self.spawn(scanner, Some(Arc::clone(&self.steps)), work)
    }

    fn spawn<T: Send + 'static>(
        &self,
        scanner: &Scanner,
        steps: Option<Arc<FairSlots>>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> RunningScan<T> {
        let is_over = Arc::new(AtomicBool::new(false));
        let scan = Scan {
            client: Arc::clone(&scanner.client),
            steps,
            reads: scanner.reads,
            is_over: Arc::clone(&is_over),
            begun: Cell::new(Instant::now()),
        };
        let task = self.threads.handle().spawn(CURRENT.scope(scan, work));
        RunningScan {
            task: AbortOnDropHandle::new(task),
            is_over,
        }
    }
}

impl<T> RunningScan<T> {
    async fn finish(mut self) -> Result<T, Error> {
        match (&mut self.task).await {
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_cancelled) => Err(Error::Unavailable("the service is stopping".into())),
            },
        }
    }
}

/// Yields if this task's time slice is over. If no caller waits for the task any more, does not
/// return, so that partial results are never used.
pub async fn yield_if_needed() {
    let is_due = CURRENT.try_with(|scan| {
        let is_over = scan.is_over.load(Ordering::Relaxed);
        (is_over, is_over || scan.begun.get().elapsed() >= SCAN_TURN)
    });
    match is_due {
        Ok((true, _)) => pending().await,
        Ok((_, true)) => {
            yield_now().await;
            // This cannot fail, because the task is the same as above.
            let _ = CURRENT.try_with(|scan| scan.begun.set(Instant::now()));
        }
        Ok((_, false)) | Err(_) => {}
    }
}

/// Waits for a slot for one step of work that was started by [`ScanService::start_scan`], or
/// returns `None` if no slot is required. The slot is released on drop.
pub async fn wait_for_step() -> Option<Slot> {
    let wanted = CURRENT.try_with(|scan| Some((scan.steps.clone()?, Arc::clone(&scan.client))));
    let (slots, client) = wanted.ok().flatten()?;
    // The number of waiting steps is bounded by the number of streams.
    slots.acquire(&client).await.ok()
}

pub fn current_client() -> Option<Arc<str>> {
    CURRENT.try_with(|scan| Arc::clone(&scan.client)).ok()
}

pub fn with_current_scan<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let scan = CURRENT.try_with(Clone::clone);
    async {
        match scan {
            Ok(scan) => CURRENT.scope(scan, work).await,
            Err(_none) => work.await,
        }
    }
}

#[derive(Debug)]
pub struct TaskEffort;

impl effort::ComputeHost for TaskEffort {
    /// Also returns true if [`yield_if_needed`] would not return.
    fn is_caller_gone(&self) -> bool {
        let over = CURRENT.try_with(|scan| scan.reads && scan.is_over.load(Ordering::Relaxed));
        over.unwrap_or(false) || timed::is_caller_gone()
    }

    /// Blocks this thread; other tasks continue on another one.
    fn run_offloaded(&self, work: &mut (dyn FnMut() + Send)) {
        match CURRENT.try_with(|_scan| ()) {
            Ok(()) => block_in_place(work),
            Err(_none) => work(),
        }
    }
}
