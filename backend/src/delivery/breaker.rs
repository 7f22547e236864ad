//! Leaves a failing destination alone for a while, then tries it with one message.

use std::time::Duration;

use crate::clock::millis;

/// Failures in a row that open a breaker.
const FAILURES_MAX: u32 = 5;
/// How long a breaker stays open at first.
const OPEN_TIME: Duration = Duration::from_secs(10);
/// How long a breaker stays open at most.
const OPEN_TIME_MAX: Duration = Duration::from_secs(300);

/// The breaker of one destination.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Breaker {
    failures: u32,
    open_until_ms: i64,
    probes: u32,
}

impl Breaker {
    /// The breaker of a destination that failed that many times in a row before this process
    /// began; an open one starts with a probe.
    pub(crate) fn after_failures(failures: u32) -> Self {
        Self {
            failures,
            ..Self::default()
        }
    }

    /// How many attempts may start, and from when on, in milliseconds since 1970, with that many
    /// under way.
    pub(crate) fn room(&self, in_flight: usize) -> (usize, i64) {
        match (self.failures >= FAILURES_MAX, in_flight) {
            (false, _) => (usize::MAX, i64::MIN),
            (true, 0) => (1, self.open_until_ms),
            (true, _) => (0, self.open_until_ms),
        }
    }

    /// Moves along with a clock that was set.
    pub(crate) fn shift(&mut self, by_ms: i64) {
        self.open_until_ms = self.open_until_ms.saturating_add(by_ms);
    }

    /// Takes note of an attempt's end.
    pub(crate) fn note(&mut self, delivered: bool, now_ms: i64) {
        if delivered {
            *self = Self::default();
            return;
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures == FAILURES_MAX {
            self.open_until_ms = now_ms.saturating_add(millis(OPEN_TIME));
        } else if self.failures > FAILURES_MAX && now_ms >= self.open_until_ms {
            self.probes = self.probes.saturating_add(1);
            let longer = OPEN_TIME.saturating_mul(2_u32.saturating_pow(self.probes));
            self.open_until_ms = now_ms.saturating_add(millis(longer.min(OPEN_TIME_MAX)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_failures_open_it_and_a_probe_closes_it_or_doubles_the_wait() {
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.note(false, 0);
        }
        assert_eq!(breaker.room(3), (usize::MAX, i64::MIN));
        breaker.note(false, 0);
        assert_eq!(breaker.room(0), (1, 10_000));
        assert_eq!(breaker.room(1), (0, 10_000));
        breaker.note(false, 9_000);
        assert_eq!(breaker.room(0), (1, 10_000), "a late failure is no probe");
        breaker.note(false, 10_000);
        assert_eq!(breaker.room(0), (1, 30_000));
        for _ in 0..40 {
            let (_, until_ms) = breaker.room(0);
            breaker.note(false, until_ms);
        }
        let (_, before_ms) = breaker.room(0);
        breaker.note(false, before_ms);
        assert_eq!(breaker.room(0).1 - before_ms, 300_000);
        breaker.note(true, before_ms);
        assert_eq!(breaker.room(0), (usize::MAX, i64::MIN));
    }
}
