//! What is due of occurrences: each node ages those that it owns; the one that leads evaluates what is
//! held, and forgets silences, groups and revisions that were over for long.

mod ageing;

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::ageing::Ageing;
use crate::{
    clock::millis,
    error::{Error, log_failure},
    limits::{REVIEW_INTERVAL_MAX, REVIEW_LOOK_INTERVAL, REVIEW_RETRY},
    ops::{
        deciding::Deciding, group, intake::Intake, pending::look::PendingReview, revision,
        silence::lifecycle,
    },
    store::LogPosition,
};

/// Evaluates what is held when that is due, and forgets what was over for long.
#[derive(Debug)]
pub struct Reviewer {
    deciding: Deciding,
    intake: Intake,
    looks: PendingReview,
    ageing: Ageing,
}

impl Reviewer {
    /// Reviews what that store holds; what the service has to say of it goes through the intake.
    pub fn new(deciding: Deciding, intake: Intake) -> Self {
        let looks = PendingReview::new(deciding.clone(), intake.clone());
        let ageing = Ageing::new(&deciding, intake.clone());
        Self {
            deciding,
            intake,
            looks,
            ageing,
        }
    }

    /// Reviews until shutdown.
    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                // What is committed while it reviews is news to it.
                let log = self.deciding.store.engine().log_signal();
                let since_ms = self.deciding.clock.now_ms();
                let latest = if self.evaluate().await {
                    REVIEW_INTERVAL_MAX
                } else {
                    REVIEW_RETRY
                };
                self.sweep().await;
                let now_ms = self.deciding.clock.now_ms();
                if let Err(error) = revision::forget(&self.deciding.store, now_ms).await {
                    log_failure("failed to delete old revisions", &error);
                }
                self.wait(log, since_ms, latest).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Does everything that is due now, also what each node does for what it owns. What cannot be done is
    /// left for the next pass, which is to come soon when this answers false.
    pub async fn pass(&self) -> bool {
        let is_evaluated = self.evaluate().await;
        self.ageing.pass().await && is_evaluated
    }

    /// Reports on silences that begin and end, and re-evaluates what waits.
    async fn evaluate(&self) -> bool {
        let held = self.holds().await;
        if let Err(error) = &held {
            log_failure(
                "failed to report silences or to evaluate held notifications",
                error,
            );
        }
        // A damaged record stays damaged: there is no hurry.
        matches!(held, Ok(()) | Err(Error::Internal(_)))
    }

    /// Each of these is done whatever happened to the others; answers the first fault.
    async fn holds(&self) -> Result<(), Error> {
        let resumed = self.intake.resume(&self.deciding.store).await;
        let said = lifecycle::say(&self.deciding, &self.intake).await;
        let looked = self.looks.pass().await;
        let ended = lifecycle::end_idle(&self.deciding).await;
        resumed.and(said).and(looked).and(ended)
    }

    /// Forgets silences and groups that were over for long; there is no hurry.
    async fn sweep(&self) {
        if let Err(error) = lifecycle::forget(&self.deciding).await {
            log_failure("failed to delete old silences", &error);
        }
        if let Err(error) = group::forget(&self.deciding).await {
            log_failure("failed to delete old groups", &error);
        }
    }

    /// Waits until something is due that was not at that time, also when it is made due meanwhile.
    /// That long at most.
    async fn wait(&self, mut log: watch::Receiver<LogPosition>, since_ms: i64, most: Duration) {
        let clock = &self.deciding.clock;
        let latest_ms = since_ms.saturating_add(millis(most));
        loop {
            let next = self.next_held_ms(since_ms).await.ok().flatten();
            let next_ms = next.unwrap_or(latest_ms).min(latest_ms);
            tokio::select! {
                () = clock.wait_until(next_ms) => return,
                () = self.deciding.store.until_advance() => continue,
                changed = log.changed() => if changed.is_err() {
                    return clock.wait_until(next_ms).await;
                }
            }
            // What was committed may be due earlier; one look finds that for many commits.
            let look_ms = clock.now_ms().saturating_add(millis(REVIEW_LOOK_INTERVAL));
            clock.wait_until(look_ms.min(next_ms)).await;
            // An edit may free what no time ends.
            if self.looks.is_outdated().await.unwrap_or(true) {
                return;
            }
        }
    }

    /// When the first thing is due that was not at that time, in milliseconds since 1970.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn next_due_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let held = self.next_held_ms(since_ms).await?;
        let aged = self.ageing.next_ms(since_ms).await?;
        Ok([held, aged].into_iter().flatten().min())
    }

    async fn next_held_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let waits = self.looks.next_ms(since_ms).await?;
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let said = lifecycle::next_ms(&snapshot, since_ms);
        self.deciding.store.advance();
        Ok([waits, said].into_iter().flatten().min())
    }
}

#[cfg(test)]
mod tests;
