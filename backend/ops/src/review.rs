//! The review loops. Each node ages the occurrences that it owns. The leader evaluates held
//! notifications, and deletes expired silences, groups and revisions.

mod ageing;

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::ageing::AgeReviewer;
use crate::{
    clock::to_millis,
    decision_context::DecisionContext,
    error::{Error, log_failure},
    group,
    intake::Intake,
    limits::{REVIEW_CHECK_INTERVAL, REVIEW_INTERVAL_MAX, REVIEW_RETRY},
    pending::review::PendingReview,
    revision,
    silence::lifecycle,
    store::LogPosition,
    unanswered,
};

/// Task that evaluates held notifications when they are due, and deletes expired definitions.
#[derive(Debug)]
pub struct Reviewer {
    deciding: DecisionContext,
    intake: Intake,
    pending: PendingReview,
    ageing: AgeReviewer,
}

impl Reviewer {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        let pending = PendingReview::new(deciding.clone(), intake.clone());
        let ageing = AgeReviewer::new(&deciding, intake.clone());
        Self {
            deciding,
            intake,
            pending,
            ageing,
        }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let work = async {
            loop {
                // Subscribe first, so that commits during the review are noticed.
                let log = self.deciding.store.engine().log_signal();
                let since_ms = self.deciding.clock.now_ms();
                let latest = if self.evaluate_pass().await {
                    REVIEW_INTERVAL_MAX
                } else {
                    REVIEW_RETRY
                };
                self.sweep().await;
                let now_ms = self.deciding.clock.now_ms();
                if let Err(error) = revision::delete_unused(&self.deciding.store, now_ms).await {
                    log_failure("failed to delete old revisions", &error);
                }
                self.wait_until_due(log, since_ms, latest).await;
            }
        };
        shutdown.run_until_cancelled(work).await;
    }

    /// Processes all work that is due now, including each node's work for the slots that it owns.
    /// Work that fails is left for the next pass; returns false if that pass should follow soon.
    pub async fn run_once(&self) -> bool {
        let is_evaluated = self.evaluate_pass().await;
        self.ageing.run_once().await && is_evaluated
    }

    async fn evaluate_pass(&self) -> bool {
        let held = self.review_holds().await;
        if let Err(error) = &held {
            log_failure(
                "failed to report silences or evaluate held notifications",
                error,
            );
        }
        // Damaged records stay damaged, so an early retry is pointless.
        matches!(held, Ok(()) | Err(Error::Internal(_)))
    }

    /// Runs all parts of the review, even if one fails. Returns the first error.
    async fn review_holds(&self) -> Result<(), Error> {
        let resumed = self.intake.resume(&self.deciding.store).await;
        let said = lifecycle::report_stages(&self.deciding, &self.intake).await;
        let reviewed = self.pending.run_once().await;
        let ended = lifecycle::end_idle_silences(&self.deciding).await;
        let counted = unanswered::report_unanswered(&self.deciding, &self.intake).await;
        resumed.and(said).and(reviewed).and(ended).and(counted)
    }

    async fn sweep(&self) {
        if let Err(error) = lifecycle::delete_expired(&self.deciding).await {
            log_failure("failed to delete old silences", &error);
        }
        if let Err(error) = group::delete_expired(&self.deciding).await {
            log_failure("failed to delete old groups", &error);
        }
    }

    /// Waits for at most `most` until work becomes due after `since_ms`. Notices work that
    /// concurrent commits make due.
    async fn wait_until_due(
        &self,
        mut log: watch::Receiver<LogPosition>,
        since_ms: i64,
        most: Duration,
    ) {
        let clock = &self.deciding.clock;
        let latest_ms = since_ms.saturating_add(to_millis(most));
        loop {
            let next = self.next_held_ms(since_ms).await.ok().flatten();
            let next_ms = next.unwrap_or(latest_ms).min(latest_ms);
            tokio::select! {
                () = clock.wait_until(next_ms) => return,
                () = self.deciding.store.wait_until_progress_due() => continue,
                changed = log.changed() => if changed.is_err() {
                    return clock.wait_until(next_ms).await;
                }
            }
            // Commits may have made work due earlier. One check serves many commits.
            let review_ms = clock
                .now_ms()
                .saturating_add(to_millis(REVIEW_CHECK_INTERVAL));
            clock.wait_until(review_ms.min(next_ms)).await;
            // Edits may release notifications that have no due time.
            if self.pending.is_outdated().await.unwrap_or(true) {
                return;
            }
        }
    }

    /// Returns the first time after `since_ms` at which work is due, in milliseconds since the
    /// epoch.
    pub(crate) async fn next_due_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let held = self.next_held_ms(since_ms).await?;
        let aged = self.ageing.next_ms(since_ms).await?;
        Ok([held, aged].into_iter().flatten().min())
    }

    async fn next_held_ms(&self, since_ms: i64) -> Result<Option<i64>, Error> {
        let waits = self.pending.next_ms(since_ms).await?;
        let snapshot = self.deciding.ruleset.refresh().await?;
        let said = lifecycle::next_due_ms(&snapshot, since_ms);
        let is_marked = unanswered::has_unreported_changes(&self.deciding.store).await?;
        let counted = is_marked.then(|| self.deciding.clock.now_ms());
        self.deciding.store.record_progress();
        Ok([waits, said, counted].into_iter().flatten().min())
    }
}

#[cfg(test)]
mod tests;
