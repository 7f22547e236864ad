//! Background work: parts that are started and stopped together.

use std::{fmt, pin::Pin, sync::Arc};

use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use crate::{limits::DRAIN_TIME_MAX, store::Engine};

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;
type StartTask = Box<dyn FnOnce(CancellationToken) -> Task + Send + Sync>;

#[derive(Default)]
pub(super) struct TaskSet(Vec<(&'static str, StartTask)>);

impl TaskSet {
    /// Adds a part. Its name is inserted into the message "the service stopped because its …
    /// ended".
    pub(super) fn add<F>(
        &mut self,
        name: &'static str,
        run: impl FnOnce(CancellationToken) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        self.0
            .push((name, Box::new(move |stop| Box::pin(run(stop)))));
    }

    pub(super) fn start(self, stop: &CancellationToken) -> StartedWork {
        let mut parts = JoinSet::new();
        for (name, start) in self.0 {
            let task = start(stop.clone());
            parts.spawn(async move {
                // A panic ends the part too, and is reported under the part's name.
                let ended = JoinSet::from_iter([task]).join_next().await;
                (name, matches!(ended, Some(Err(_))))
            });
        }
        StartedWork { parts }
    }
}

/// Runs the leader's work while this process is the leader, until shutdown or until a part of the
/// work ends unexpectedly.
pub(super) async fn run_while_leading(
    engine: Arc<dyn Engine>,
    work: impl Fn() -> TaskSet,
    stop: CancellationToken,
) {
    while stop
        .run_until_cancelled(engine.cluster().wait_for_leadership())
        .await
        .is_some()
    {
        let stopping = CancellationToken::new();
        let mut started = work().start(&stopping);
        let has_failed = tokio::select! {
            () = stop.cancelled() => false,
            () = engine.cluster().wait_until_deposed() => false,
            _part = started.failed_task() => true,
        };
        stopping.cancel();
        started.stop().await;
        if has_failed {
            return;
        }
    }
}

impl fmt::Debug for TaskSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

#[derive(Debug)]
pub(super) struct StartedWork {
    parts: JoinSet<(&'static str, bool)>,
}

impl StartedWork {
    pub(super) async fn failed_task(&mut self) -> &'static str {
        match self.parts.join_next().await {
            Some(Ok((name, panicked))) => {
                tracing::error!(part = name, panicked, "a service task ended");
                name
            }
            Some(Err(_)) => "work",
            None => std::future::pending().await,
        }
    }

    /// Waits for the parts to stop, and aborts those that take too long.
    pub(super) async fn stop(mut self) {
        let stopped = async { while self.parts.join_next().await.is_some() {} };
        if time::timeout(2 * DRAIN_TIME_MAX, stopped).await.is_err() {
            tracing::warn!("service tasks did not stop in time and were aborted");
        }
    }
}
