//! Threads for rendering, so that templates that take long hold up nothing else.

use std::{sync::Arc, thread};

use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::error::Error;

/// Runs CPU-bound work off the runtime, a few jobs at a time, in the order of the calls. Clones share
/// the places.
#[derive(Debug, Clone)]
pub struct Renderers(Arc<Semaphore>);

impl Default for Renderers {
    /// Half of the processors: the rest accept events and answer.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, Into::into);
        Self(Arc::new(Semaphore::new((processors / 2).max(1))))
    }
}

impl Renderers {
    /// Runs the work when there is a place.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the service stops, [`Error::Internal`] when the work panics.
    ///
    /// # Cancel safety
    /// A dropped call that waits does not start its work; work that started runs to its end and keeps its
    /// place until then.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let stopping = || Error::Unavailable("the service is stopping".into());
        let place = Arc::clone(&self.0).acquire_owned().await;
        let Ok(place) = place else {
            return Err(stopping());
        };
        let ended = spawn_blocking(move || {
            let made = work();
            drop(place);
            made
        });
        ended.await.map_err(|fault| {
            if fault.is_cancelled() {
                stopping()
            } else {
                Error::Internal(Box::new(fault))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "both tasks end in this test")]
    async fn work_waits_for_a_place_and_is_not_started_for_a_dropped_call() {
        let renderers = Renderers(Arc::new(Semaphore::new(1)));
        let (free, wait) = mpsc::channel::<()>();
        let (began, has_begun) = tokio::sync::oneshot::channel();
        let (first, second) = (renderers.clone(), renderers.clone());
        let first = tokio::spawn(async move {
            let work = move || {
                let _unused = began.send(());
                wait.recv().is_ok()
            };
            first.run(work).await
        });
        has_begun.await.unwrap();
        let (left, is_left) = mpsc::channel();
        let second = tokio::spawn(async move { second.run(move || left.send(())).await });
        tokio::task::yield_now().await;
        second.abort();
        assert!(second.await.is_err());
        free.send(()).unwrap();
        assert!(first.await.unwrap().unwrap());
        assert!(renderers.run(|| true).await.unwrap());
        assert!(is_left.recv().is_err(), "the work of a dropped call ran");
    }
}
