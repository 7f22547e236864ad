//! Work on a thread with a CPU time limit, cancelled when its caller disconnects.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

thread_local! {
    static CURRENT: RefCell<Option<TimedJob>> = const { RefCell::new(None) };
}

struct TimedJob {
    /// Whether the caller has disconnected.
    is_left: Arc<AtomicBool>,
    /// CPU time of the thread at which the work must end.
    until: Duration,
}

struct WorkingGuard;

impl Drop for WorkingGuard {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|it| *it = None);
    }
}

#[derive(Debug, Default)]
pub struct CallerConnection(Arc<AtomicBool>);

impl CallerConnection {
    pub fn disconnected_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for CallerConnection {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs work on this thread. Returns its result, and whether it was ended early.
pub fn run_timed<T>(
    time: Duration,
    is_left: Arc<AtomicBool>,
    work: impl FnOnce() -> T,
) -> (T, bool) {
    let until = thread_time() + time;
    CURRENT.with_borrow_mut(|it| *it = Some(TimedJob { is_left, until }));
    let working = WorkingGuard;
    let done = work();
    let was_over = is_caller_gone();
    drop(working);
    (done, was_over)
}

pub(super) fn is_caller_gone() -> bool {
    CURRENT.with_borrow(|work| {
        let is_over =
            |it: &TimedJob| it.is_left.load(Ordering::Relaxed) || thread_time() >= it.until;
        work.as_ref().is_some_and(is_over)
    })
}

/// Returns the CPU time of this thread, or the elapsed time if that is unknown.
fn thread_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or_default()
    }
    #[cfg(not(target_os = "linux"))]
    {
        use std::{sync::LazyLock, time::Instant};
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGUN.elapsed()
    }
}
