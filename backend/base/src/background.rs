//! Low-priority threads, which yield the CPU to the threads that serve connections and ingest.

use std::{io, panic::resume_unwind, sync::Arc, thread::available_parallelism};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

use crate::limits::{BACKGROUND_READERS_MAX, BACKGROUND_THREADS_MAX};

/// Niceness of these threads. When competing with as many other threads, they get a quarter of the
/// CPU time.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Threads for one kind of work. Clones share them.
#[derive(Debug, Clone)]
pub struct Background(Arc<RuntimeGuard>);

#[derive(Debug)]
struct RuntimeGuard(Option<Runtime>);

impl Drop for RuntimeGuard {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Do not wait: the last task may end on a thread that must not block.
            runtime.shutdown_background();
        }
    }
}

impl Background {
    /// Starts the threads: one for every two CPUs.
    pub fn start(name: &str) -> io::Result<Self> {
        let processors = available_parallelism().map_or(1, Into::into);
        let runtime = Builder::new_multi_thread()
            .worker_threads((processors / 2).clamp(1, BACKGROUND_THREADS_MAX))
            .max_blocking_threads(BACKGROUND_READERS_MAX)
            .thread_name(name)
            .on_thread_start(lower_priority)
            .enable_all()
            .build()?;
        Ok(Self(Arc::new(RuntimeGuard(Some(runtime)))))
    }

    pub fn handle(&self) -> &Handle {
        let runtime = self.0.0.as_ref();
        runtime.expect("it is only removed on drop").handle()
    }

    /// Runs the future on these threads and propagates its panics.
    ///
    /// # Cancel safety
    /// Cancelling ends the work at its next await.
    pub async fn run(self, work: impl Future<Output = ()> + Send + 'static) {
        let task = AbortOnDropHandle::new(self.handle().spawn(work));
        if let Err(error) = task.await
            && let Ok(panic) = error.try_into_panic()
        {
            resume_unwind(panic);
        }
    }
}

/// Lowers the priority of this thread on Linux. Other systems would lower that of the whole
/// process.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "failed to lower the priority of background threads");
    }
}
