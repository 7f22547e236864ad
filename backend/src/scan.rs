//! Work that costs much, on separate threads: so many concurrently, a fair share for each client,
//! in short turns, and ended when its caller is gone.
//!
//! What a call may cost is up to its caller: a query of 500 clauses, over every stored event. On the
//! threads that serve connections and ingest it would hold up both.

mod places;
#[cfg(test)]
mod tests;

use std::{
    cell::Cell,
    future::pending,
    io,
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::available_parallelism,
    time::Instant,
};

use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::{block_in_place, yield_now},
};
use tokio_util::task::AbortOnDropHandle;

use bellwether_backend_model::effort;

pub use self::places::Place;
use self::places::Places;
use crate::{
    error::Error,
    limits::{
        SCAN_READERS_MAX, SCAN_STEPS_RUNNING_MAX, SCAN_THREADS_MAX, SCAN_TURN, SCANS_RUNNING_MAX,
        SCANS_WAITING_MAX,
    },
};

/// How far these threads give way: with as many others that want the processor, they have a quarter of it.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

tokio::task_local! {
    /// The scan that this task does. It belongs to the task and not to the arguments of everything
    /// that looks at many records, so that none can forget to give way.
    static CURRENT: Scan;
}

/// What a task knows of the scan that it does.
#[derive(Clone)]
struct Scan {
    client: Arc<str>,
    /// Where its steps find places; none for a scan that has one from beginning to end.
    steps: Option<Arc<Places>>,
    /// Whether nothing is changed, so that it may end anywhere.
    reads: bool,
    is_over: Arc<AtomicBool>,
    /// When its turn began.
    begun: Cell<Instant>,
}

/// The threads for scans, and the places on them.
#[derive(Debug, Clone)]
pub struct Scans {
    threads: Arc<Threads>,
    calls: Arc<Places>,
    steps: Arc<Places>,
}

/// The client for which something is scanned, and whether that changes nothing.
#[derive(Debug, Clone)]
pub struct Scanner {
    /// The client that has the share.
    pub client: Arc<str>,
    /// Whether nothing is changed.
    pub reads: bool,
}

#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // The last scan may end on a thread that must not wait.
            runtime.shutdown_background();
        }
    }
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
    /// Starts the threads: half as many as there are processors, and they give way to all others.
    ///
    /// # Errors
    /// When there are none to be had.
    pub fn start() -> io::Result<Self> {
        effort::run_by(&OfTask);
        let processors = available_parallelism().map_or(1, Into::into);
        let runtime = Builder::new_multi_thread()
            .worker_threads((processors / 2).clamp(1, SCAN_THREADS_MAX))
            .max_blocking_threads(SCAN_READERS_MAX)
            .thread_name("scan")
            .on_thread_start(give_way)
            .enable_all()
            .build()?;
        Ok(Self {
            threads: Arc::new(Threads(Some(runtime))),
            calls: Places::new(SCANS_RUNNING_MAX, SCANS_WAITING_MAX),
            steps: Places::new(SCAN_STEPS_RUNNING_MAX, usize::MAX),
        })
    }

    /// Does some work from beginning to end, as soon as its client has a place.
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
        let place = self.calls.take(&scanner.client).await?;
        let work = async {
            let done = work.await;
            // It is kept until the work has ended, also where its caller is gone.
            drop(place);
            done
        };
        self.spawn(scanner, None, work).done().await
    }

    /// Begins some work that takes a place for each of its steps, by [`step`].
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
        steps: Option<Arc<Places>>,
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
        let task = self.handle().spawn(CURRENT.scope(scan, work));
        Running {
            task: AbortOnDropHandle::new(task),
            is_over,
        }
    }

    fn handle(&self) -> &Handle {
        let runtime = self.threads.0.as_ref();
        runtime.expect("it is taken when it is dropped").handle()
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

/// A place for one step of work that was begun by [`Scans::begin`], until it is dropped; none where none
/// is needed.
pub async fn step() -> Option<Place> {
    let wanted = CURRENT.try_with(|scan| Some((scan.steps.clone()?, Arc::clone(&scan.client))));
    let (places, client) = wanted.ok().flatten()?;
    // As many wait as there are streams, which are bounded.
    places.take(&client).await.ok()
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
struct OfTask;

impl effort::Host for OfTask {
    /// Also when [`turn`] will not return.
    fn is_over(&self) -> bool {
        let over = CURRENT.try_with(|scan| scan.reads && scan.is_over.load(Ordering::Relaxed));
        over.unwrap_or(false)
    }

    /// Meanwhile other tasks continue on another thread.
    fn apart(&self, work: &mut (dyn FnMut() + Send)) {
        match CURRENT.try_with(|_scan| ()) {
            Ok(()) => block_in_place(work),
            Err(_none) => work(),
        }
    }
}

/// Has this thread give way to others. Elsewhere than on Linux that is reported of a whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "scans run at the priority of everything else");
    }
}
