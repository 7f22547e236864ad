//! The commit loop: read, decide, apply, and decide again after a conflict.

use std::time::Duration;

use crate::{
    error::Error,
    store::{Changes, EngineError, Lane, LogPosition, Store},
};

/// Maximum number of attempts to commit a change despite conflicts.
pub const TRIES_MAX: usize = 64;
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// The pauses between attempts after conflicts: no pause before the second attempt, then doubling.
#[derive(Debug, Default)]
pub struct ConflictPauses(Duration);

impl ConflictPauses {
    pub fn is_first_attempt(&self) -> bool {
        self.0.is_zero()
    }

    /// Waits a random part of the pause before the next attempt, so that conflicting tasks do not
    /// retry in lockstep.
    pub async fn wait_before_retry(&mut self) {
        if !self.is_first_attempt() {
            tokio::time::sleep(self.0.mul_f64(rand::random_range(0.5..1.0))).await;
        }
        self.0 = (2 * self.0).clamp(PAUSE_MIN, PAUSE_MAX);
    }
}

/// Applies the changes that `decide` returns. Returns its result with the position of the commit in
/// the change log, or `None` if there was no change.
///
/// # Errors
/// Returns any error of `decide` and of the store, and [`Error::Aborted`] if every attempt
/// conflicts.
///
/// # Cancel safety
/// The changes may still be committed if the future is dropped.
pub async fn commit<T, F>(
    store: &Store,
    lane: Lane,
    decide: impl Fn() -> F,
) -> Result<(T, Option<LogPosition>), Error>
where
    F: Future<Output = Result<(Changes, T), Error>>,
{
    let mut pauses = ConflictPauses::default();
    for _ in 0..TRIES_MAX {
        let steady = store.lock_clock_shared().await;
        let (changes, answer) = decide().await?;
        if changes.is_empty() {
            store.record_progress();
            return Ok((answer, None));
        }
        let applied = store.apply(lane, changes).await;
        drop(steady);
        match applied {
            Ok(applied) => return Ok((answer, Some(applied.position))),
            Err(EngineError::Conflict(_)) => pauses.wait_before_retry().await,
            Err(error) => return Err(error.into()),
        }
    }
    Err(EngineError::conflict().into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{domain::Trigger, samples};

    /// Touches a trigger that `others` concurrent commits touch first. Returns whether the commit
    /// succeeds.
    async fn is_committed(others: usize) -> bool {
        let store = Store::in_memory();
        let mut changes = store.new_changes();
        changes.insert(&samples::trigger("disk"));
        store.apply(Lane::Admin, changes).await.unwrap();
        let left = AtomicUsize::new(others);
        let decide = async || {
            let stored = store.get::<Trigger>("disk".into()).await?.unwrap();
            let touch = || {
                let mut changes = store.new_changes();
                changes.touch_record(&stored);
                changes
            };
            let is_contested = |it: usize| it.checked_sub(1);
            let contested = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_contested);
            if contested.is_ok() {
                store.apply(Lane::Admin, touch()).await?;
            }
            Ok((touch(), ()))
        };
        match commit(&store, Lane::Admin, decide).await {
            Ok(_) => true,
            Err(Error::Aborted(_)) => false,
            Err(other) => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn change_commits_after_repeated_conflicts() {
        for (others, expected) in [(0, true), (1, true), (40, true), (TRIES_MAX, false)] {
            assert_eq!(is_committed(others).await, expected, "{others}");
        }
    }
}
