//! Work that costs much, on separate threads: so many concurrently, a fair share for each client,
//! in short turns, and ended when its caller is gone.
//!
//! What a call may cost is up to its caller: a query of 500 clauses, over every stored event. On the
//! threads that serve connections and ingest it would hold up both.

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
pub(crate) use self::{
    fair_slots::FairSlots,
    timed::{Caller, timed},
};
use crate::{
    background::Background,
    error::Error,
    limits::{SCAN_STEPS_RUNNING_MAX, SCAN_TURN, SCANS_RUNNING_MAX, SCANS_WAITING_MAX},
};

tokio::task_local! {
    /// The scan that this task does. It belongs to the task and not to the arguments of everything
    /// that looks at many records, so that none can forget to give way.
    static CURRENT: Scan;
}

/// What a task knows of the scan that it does.
#[derive(Clone)]
struct Scan {
    client: Arc<str>,
    /// Where its steps find slots; none for a scan that has one from beginning to end.
    steps: Option<Arc<FairSlots>>,
    /// Whether nothing is changed, so that it may end anywhere.
    reads: bool,
    is_over: Arc<AtomicBool>,
    /// When its turn began.
    begun: Cell<Instant>,
}

/// The threads for scans, and the slots on them.
#[derive(Debug, Clone)]
pub struct Scans {
    threads: Background,
    calls: Arc<FairSlots>,
    steps: Arc<FairSlots>,
}

/// The client for which something is scanned, and whether that changes nothing.
#[derive(Debug, Clone)]
pub struct Scanner {
    /// The client that has the share.
    pub client: Arc<str>,
    /// Whether nothing is changed.
    pub reads: bool,
}

/// Ends a scan when it is dropped.
#[derive(Debug)]
pub struct Running<T> {
    task: AbortOnDropHandle<T>,
    is_over: Arc<AtomicBool>,
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Scans {
    /// Starts the threads.
    ///
    /// # Errors
    /// When there are none to be had.
    pub fn start() -> io::Result<Self> {
        effort::run_by(&OfTask);
        Ok(Self {
            threads: Background::start("scan")?,
            calls: FairSlots::new(SCANS_RUNNING_MAX, SCANS_WAITING_MAX, "searches"),
            steps: FairSlots::new(SCAN_STEPS_RUNNING_MAX, usize::MAX, "searches"),
        })
    }

    /// Does some work from beginning to end, as soon as its client has a slot.
    ///
    /// # Errors
    /// [`Error::Exhausted`] when too many wait for one.
    ///
    /// # Cancel safety
    /// The work ends where it next waits, one that changes nothing also amid an event.
    pub async fn run<T: Send + 'static>(
        &self,
        scanner: &Scanner,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Error> {
        let slot = self.calls.take(&scanner.client).await?;
        let work = async {
            let done = work.await;
            // It is kept until the work has ended, also where its caller is gone.
            drop(slot);
            done
        };
        self.spawn(scanner, None, work).done().await
    }

    /// Begins some work that takes a slot for each of its steps, by [`step`].
    pub fn begin<T: Send + 'static>(
        &self,
        scanner: &Scanner,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Running<T> {
        self.spawn(scanner, Some(Arc::clone(&self.steps)), work)
    }

    fn spawn<T: Send + 'static>(
        &self,
        scanner: &Scanner,
        steps: Option<Arc<FairSlots>>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Running<T> {
        let is_over = Arc::new(AtomicBool::new(false));
        let scan = Scan {
            client: Arc::clone(&scanner.client),
            steps,
            reads: scanner.reads,
            is_over: Arc::clone(&is_over),
            begun: Cell::new(Instant::now()),
        };
        let task = self.threads.handle().spawn(CURRENT.scope(scan, work));
        Running {
            task: AbortOnDropHandle::new(task),
            is_over,
        }
    }
}

impl<T> Running<T> {
    /// Waits for its end.
    async fn done(mut self) -> Result<T, Error> {
        match (&mut self.task).await {
            Ok(done) => Ok(done),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_cancelled) => Err(Error::Unavailable("the service is stopping".into())),
            },
        }
    }
}

/// Gives others their turn when that of this task is over. A task that no one waits for any more
/// does not return from here, so that what it found amid its end is never used.
pub async fn turn() {
    let is_due = CURRENT.try_with(|scan| {
        let is_over = scan.is_over.load(Ordering::Relaxed);
        (is_over, is_over || scan.begun.get().elapsed() >= SCAN_TURN)
    });
    match is_due {
        Ok((true, _)) => pending().await,
        Ok((_, true)) => {
            yield_now().await;
            // It cannot be missing: the task is the same.
            let _ = CURRENT.try_with(|scan| scan.begun.set(Instant::now()));
        }
        Ok((_, false)) | Err(_) => {}
    }
}

/// A slot for one step of work that was begun by [`Scans::begin`], until it is dropped; none where none
/// is needed.
pub async fn step() -> Option<Slot> {
    let wanted = CURRENT.try_with(|scan| Some((scan.steps.clone()?, Arc::clone(&scan.client))));
    let (slots, client) = wanted.ok().flatten()?;
    // As many wait as there are streams, which are bounded.
    slots.take(&client).await.ok()
}

/// The client of this task's scan.
pub(crate) fn client() -> Option<Arc<str>> {
    CURRENT.try_with(|scan| Arc::clone(&scan.client)).ok()
}

/// Work for the scan of this task that another task does.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let scan = CURRENT.try_with(Clone::clone);
    async {
        match scan {
            Ok(scan) => CURRENT.scope(scan, work).await,
            Err(_none) => work.await,
        }
    }
}

/// What the scan of a task means to the computations that it consists of.
pub(crate) struct OfTask;

impl effort::Host for OfTask {
    /// Also when [`turn`] will not return.
    fn is_over(&self) -> bool {
        let over = CURRENT.try_with(|scan| scan.reads && scan.is_over.load(Ordering::Relaxed));
        over.unwrap_or(false) || timed::is_over()
    }

    /// Meanwhile other tasks continue on another thread.
    fn apart(&self, work: &mut (dyn FnMut() + Send)) {
        match CURRENT.try_with(|_scan| ()) {
            Ok(()) => block_in_place(work),
            Err(_none) => work(),
        }
    }
}
