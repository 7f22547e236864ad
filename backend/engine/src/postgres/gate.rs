//! How often one process tries to connect: once the database refuses, one attempt after a pause, for all
//! that want a connection together. Else the calls that wait would take its last connections only to be
//! refused.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

/// The pause after a refusal; after each further one it is twice as long,
const PAUSE: Duration = Duration::from_millis(20);
/// up to this.
const PAUSE_MAX: Duration = Duration::from_millis(250);
/// The longest wait for a turn: each of many that wait tries about as often.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Lets attempts to connect pass.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<Turns>);

#[derive(Debug, Default)]
struct Turns {
    /// Between two attempts; none while the database gives connections.
    pause: Option<Duration>,
    next: Option<Instant>,
}

impl Gate {
    /// Tries to connect, when it is its turn.
    pub(super) async fn pass<T, E>(
        &self,
        attempt: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if let Some(turn) = self.turn() {
            sleep_until(turn).await;
        }
        let opened = attempt.await;
        let mut turns = self.turns();
        turns.pause = match turns.pause {
            _ if opened.is_ok() => None,
            None => Some(PAUSE),
            Some(pause) => Some((pause * 2).min(PAUSE_MAX)),
        };
        opened
    }

    fn turn(&self) -> Option<Instant> {
        let mut turns = self.turns();
        let pause = turns.pause?;
        let now = Instant::now();
        let turn = turns.next.unwrap_or(now).clamp(now, now + WAIT_MAX);
        turns.next = Some(turn + pause);
        Some(turn)
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        // It is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures_util::future::join_all;
    use tokio::time::Instant;

    use super::Gate;

    #[tokio::test(start_paused = true)]
    async fn many_that_are_refused_try_a_few_times_a_second_and_none_waits_once_one_was_let_in() {
        let (gate, tried) = (Gate::default(), AtomicUsize::new(0));
        let begin = Instant::now();
        let refused = async || {
            while begin.elapsed() < Duration::from_secs(10) {
                let attempt = async {
                    tried.fetch_add(1, Ordering::Relaxed);
                    Err::<(), ()>(())
                };
                assert!(gate.pass(attempt).await.is_err());
            }
        };
        join_all((0..11).map(|_| refused())).await;
        let tried = tried.into_inner();
        assert!((30..=130).contains(&tried), "{tried} attempts in 10 s");
        gate.pass(async { Ok::<(), ()>(()) }).await.unwrap();
        let let_in = Instant::now();
        for _ in 0..50 {
            gate.pass(async { Ok::<(), ()>(()) }).await.unwrap();
        }
        assert_eq!(let_in.elapsed(), Duration::ZERO);
    }
}
