//! Threads that give way to those that serve connections and ingest: their work takes the processor where
//! these leave it.

use std::{io, panic::resume_unwind, sync::Arc, thread::available_parallelism};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio_util::task::AbortOnDropHandle;

use crate::limits::{BACKGROUND_READERS_MAX, BACKGROUND_THREADS_MAX};

/// How far these threads give way: with as many others that want the processor, they have a quarter of it.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

/// Threads for one kind of work. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Background(Arc<Threads>);

#[derive(Debug)]
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // The last work may end on a thread that must not wait.
            runtime.shutdown_background();
        }
    }
}

impl Background {
    /// Starts the threads: one for every two processors.
    ///
    /// # Errors
    /// When there are none to be had.
    pub(crate) fn start(name: &str) -> io::Result<Self> {
        let processors = available_parallelism().map_or(1, Into::into);
        let runtime = Builder::new_multi_thread()
            .worker_threads((processors / 2).clamp(1, BACKGROUND_THREADS_MAX))
            .max_blocking_threads(BACKGROUND_READERS_MAX)
            .thread_name(name)
            .on_thread_start(give_way)
            .enable_all()
            .build()?;
        Ok(Self(Arc::new(Threads(Some(runtime)))))
    }

    /// Where tasks of these threads are spawned.
    pub(crate) fn handle(&self) -> &Handle {
        let runtime = self.0.0.as_ref();
        runtime.expect("it is taken when it is dropped").handle()
    }

    /// Does some work there. A panic of it continues here.
    ///
    /// # Cancel safety
    /// The work ends where it next waits.
    pub(crate) async fn run(self, work: impl Future<Output = ()> + Send + 'static) {
        let task = AbortOnDropHandle::new(self.handle().spawn(work));
        if let Err(error) = task.await
            && let Ok(panic) = error.try_into_panic()
        {
            resume_unwind(panic);
        }
    }
}

/// Has this thread give way to others. Elsewhere than on Linux that is reported of a whole process.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "background threads run at the priority of everything else");
    }
}
