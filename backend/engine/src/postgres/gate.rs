//! A limit on connection attempts of this process. Once the database refuses an attempt, all
//! callers share one attempt per pause. Otherwise waiting calls would use up the last connections
//! of the database only to be refused.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// The pause after a refusal; doubled after each further refusal, up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// Longest wait for a turn. Waiting callers take turns evenly.
const WAIT_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<Pacing>);

#[derive(Debug, Default)]
struct Pacing {
    /// Time between two attempts; `None` while the database accepts connections.
    pause: Option<Duration>,
    next: Option<Instant>,
}

impl Pacing {
    /// Returns the time of the next attempt; `None` if the attempt may be made immediately.
    fn next(&mut self, now: Instant) -> Option<Instant> {
        let pause = self.pause?;
        let turn = self.next.unwrap_or(now).clamp(now, now + WAIT_MAX);
        self.next = Some(turn + pause);
        Some(turn)
    }

    fn record(&mut self, is_open: bool) {
        self.pause = match self.pause {
            _ if is_open => None,
            None => Some(PAUSE),
            Some(pause) => Some((pause * 2).min(PAUSE_MAX)),
        };
    }
}

impl Gate {
    pub(super) async fn run_in_turn<T, E>(
        &self,
        attempt: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let turn = self.lock_pacing().next(Instant::now());
        if let Some(turn) = turn {
            sleep_until(turn).await;
        }
        let opened = attempt.await;
        self.lock_pacing().record(opened.is_ok());
        opened
    }

    fn lock_pacing(&self) -> MutexGuard<'_, Pacing> {
        // Every statement leaves the state consistent, so poisoning is harmless.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BinaryHeap;

    use super::*;

    #[test]
    fn retries_of_refused_callers_are_rate_limited() {
        const CALLERS: usize = 11;
        let (mut turns, begin, mut attempts) = (Pacing::default(), Instant::now(), 0);
        // Each caller retries as soon as it was refused.
        let mut due: BinaryHeap<_> = vec![std::cmp::Reverse(begin); CALLERS].into();
        while let Some(std::cmp::Reverse(now)) = due.pop()
            && now < begin + Duration::from_secs(10)
        {
            attempts += 1;
            turns.record(false);
            due.push(std::cmp::Reverse(turns.next(now).unwrap_or(now)));
        }
        assert!((30..=130).contains(&attempts), "{attempts} in 10 s");
        turns.record(true);
        assert_eq!(turns.next(begin), None);
    }

    #[tokio::test]
    async fn callers_wait_for_their_turn_only_after_a_refusal() {
        let gate = Gate::default();
        let begin = Instant::now();
        assert_eq!(gate.run_in_turn(async { Err::<(), ()>(()) }).await, Err(()));
        for pauses in [0, 1] {
            // The first attempt after a refusal is immediate, the second comes after a pause.
            assert_eq!(gate.run_in_turn(async { Err::<(), ()>(()) }).await, Err(()));
            assert!(begin.elapsed() >= PAUSE * pauses);
        }
        assert_eq!(gate.run_in_turn(async { Ok::<(), ()>(()) }).await, Ok(()));
        assert_eq!(gate.lock_pacing().pause, None);
    }
}
