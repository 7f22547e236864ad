//! Work on a separate thread with a limit of processor time, which ends when its caller leaves.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

thread_local! {
    /// The work of this thread.
    static CURRENT: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// Work of a thread.
struct Work {
    /// Whether no one waits for it any more.
    is_left: Arc<AtomicBool>,
    /// The processor time of the thread at which it has to end.
    until: Duration,
}

/// Forgets the work of a thread when it is dropped.
struct Working;

impl Drop for Working {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|it| *it = None);
    }
}

/// A caller that waits for work, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Caller(Arc<AtomicBool>);

impl Caller {
    /// What tells work that its caller has left.
    pub(crate) fn is_left(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Does work on this thread; returns its result, and whether it had to end before.
pub(crate) fn timed<T>(
    time: Duration,
    is_left: Arc<AtomicBool>,
    work: impl FnOnce() -> T,
) -> (T, bool) {
    let until = thread_time() + time;
    CURRENT.with_borrow_mut(|it| *it = Some(Work { is_left, until }));
    let working = Working;
    let done = work();
    let was_over = is_over();
    drop(working);
    (done, was_over)
}

/// Whether the work of this thread has to end.
pub(super) fn is_over() -> bool {
    CURRENT.with_borrow(|work| {
        let is_over = |it: &Work| it.is_left.load(Ordering::Relaxed) || thread_time() >= it.until;
        work.as_ref().is_some_and(is_over)
    })
}

/// The processor time that this thread has taken; where it is not known, the time that has passed.
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
