//! Retries of failed deliveries.

use std::time::Duration;

use crate::{
    clock::to_millis,
    config::DeliveryConfig,
    domain::{Delivery, DeliverySettings},
    limits::CUT_OFFS_MAX,
    send::Advice,
};

/// Attempts for a message that the receiver rejected because of its content.
const FEW: u32 = 3;

#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    steps: Vec<Duration>,
    jitter: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AttemptCounts {
    /// Attempts that ended normally.
    pub(crate) made: u32,
    /// Attempts interrupted because the service stopped, which do not say anything about the
    /// receiver.
    pub(crate) cut_off: u32,
}

impl AttemptCounts {
    /// Counts the attempts to which the limit applies. Interrupted and deferred attempts do not
    /// count, nor does the attempt whose content was rejected before the reduced form was sent.
    pub(crate) fn from_delivery(delivery: &Delivery, attempts: u32, cut_off: u32) -> Self {
        let unused = cut_off + delivery.deferrals + u32::from(delivery.is_reduced);
        Self {
            made: attempts.saturating_sub(unused),
            cut_off,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryStep {
    Retry { due_ms: i64 },
    Dead,
}

impl Backoff {
    pub(crate) fn new(config: &DeliveryConfig) -> Self {
        Self {
            steps: config.schedule.clone(),
            jitter: config.jitter,
        }
    }

    /// Returns the policy for pages. It is short, because the next escalation step soon replaces a
    /// page.
    pub(crate) fn for_pages(config: &DeliveryConfig) -> Self {
        Self {
            steps: config.page_schedule.clone(),
            jitter: config.jitter,
        }
    }

    /// Returns the number of attempts for a delivery, not counting interrupted ones.
    fn attempts_max(&self, settings: DeliverySettings) -> u32 {
        let steps = u32::try_from(self.steps.len()).unwrap_or(u32::MAX).max(1);
        settings
            .max_attempts
            .map_or(steps, |wanted| wanted.min(steps))
    }

    pub(crate) fn is_exhausted(&self, tried: AttemptCounts, settings: DeliverySettings) -> bool {
        tried.made >= self.attempts_max(settings) || tried.cut_off >= CUT_OFFS_MAX
    }

    /// Returns the next step after the last attempt of `tried`, which failed. `random` is from 0 to
    /// 1.
    pub(crate) fn next(
        &self,
        tried: AttemptCounts,
        advice: Advice,
        settings: DeliverySettings,
        now_ms: i64,
        random: f64,
    ) -> RetryStep {
        let requested = advice.requested_wait().unwrap_or_default();
        let refused = match advice {
            Advice::Reduce | Advice::GiveUp => true,
            Advice::FewMore => tried.made >= FEW,
            Advice::Limited(_) => {
                let due_ms = now_ms.saturating_add(to_millis(requested));
                return RetryStep::Retry { due_ms };
            }
            Advice::Again | Advice::AgainAfter(_) | Advice::Later | Advice::Fix => false,
        };
        let step = self.steps.get(tried.made as usize);
        let (Some(step), false) = (step, refused || self.is_exhausted(tried, settings)) else {
            return RetryStep::Dead;
        };
        let off = 1.0 + self.jitter * (2.0 * random - 1.0);
        let wait = step.mul_f64(off.max(0.0)).max(requested);
        RetryStep::Retry {
            due_ms: now_ms.saturating_add(to_millis(wait)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_SECONDS: u64 = 24 * 3600;

    fn next(made: u32, advice: Advice, settings: DeliverySettings, random: f64) -> Option<i64> {
        next_retry_ms(AttemptCounts { made, cut_off: 0 }, advice, settings, random)
    }

    fn next_retry_ms(
        tried: AttemptCounts,
        advice: Advice,
        settings: DeliverySettings,
        random: f64,
    ) -> Option<i64> {
        let backoff = Backoff::new(&DeliveryConfig::default());
        match backoff.next(tried, advice, settings, 1_000, random) {
            RetryStep::Retry { due_ms } => Some(due_ms - 1_000),
            RetryStep::Dead => None,
        }
    }

    #[test]
    fn retry_delays_follow_the_schedule() {
        let waits: Vec<_> = (1..=8)
            .map(|attempts| next(attempts, Advice::Again, DeliverySettings::default(), 0.5))
            .collect();
        let seconds = [5, 300, 1800, 7200, 18_000, 36_000, 36_000];
        let expected = seconds.map(|seconds| Some(seconds * 1000));
        assert_eq!(waits[..7], expected);
        assert_eq!(waits[7], None);
    }

    #[test]
    fn failed_pages_are_abandoned_within_five_minutes() {
        let backoff = Backoff::for_pages(&DeliveryConfig::default());
        let settings = DeliverySettings::default();
        let mut waits_ms = Vec::new();
        for made in 1.. {
            let tried = AttemptCounts { made, cut_off: 0 };
            match backoff.next(tried, Advice::Again, settings, 0, 1.0) {
                RetryStep::Retry { due_ms } => waits_ms.push(due_ms),
                RetryStep::Dead => break,
            }
        }
        assert_eq!(waits_ms, [6_000, 12_000, 18_000, 36_000, 72_000, 144_000]);
        assert!(waits_ms.iter().sum::<i64>() < 300_000);
    }

    #[test]
    fn interrupted_attempts_count_only_at_the_limit() {
        let settings = DeliverySettings::default();
        let tried = |made, cut_off| AttemptCounts { made, cut_off };
        let cases = [
            (tried(0, 1), Advice::Again, Some(0)),
            (tried(1, 15), Advice::Again, Some(5_000)),
            (tried(2, 15), Advice::FewMore, Some(300_000)),
            (tried(3, 15), Advice::FewMore, None),
            (tried(7, 15), Advice::Again, Some(36_000_000)),
            (tried(8, 0), Advice::Again, None),
            (tried(0, 16), Advice::Again, None),
        ];
        for (tried, advice, wait_ms) in cases {
            assert_eq!(
                next_retry_ms(tried, advice, settings, 0.5),
                wait_ms,
                "{tried:?}"
            );
        }
    }

    #[test]
    fn jitter_is_plus_or_minus_20_percent() {
        let settings = DeliverySettings::default();
        assert_eq!(next(2, Advice::Again, settings, 0.0), Some(240_000));
        assert_eq!(next(2, Advice::Again, settings, 1.0), Some(360_000));
    }

    #[test]
    fn advice_and_settings_adjust_retry_delay() {
        let default = DeliverySettings::default();
        let two = DeliverySettings {
            max_attempts: Some(2),
            ..default
        };
        let retry_after = |seconds| Advice::AgainAfter(Duration::from_secs(seconds));
        let cases = [
            (1, Advice::GiveUp, default, None),
            (1, Advice::Reduce, default, None),
            (2, Advice::FewMore, default, Some(300_000)),
            (3, Advice::FewMore, default, None),
            (7, Advice::Fix, default, Some(36_000_000)),
            (8, Advice::Fix, default, None),
            (1, Advice::Again, two, Some(5_000)),
            (2, Advice::Again, two, None),
            (1, retry_after(60), default, Some(60_000)),
            (1, retry_after(1), default, Some(5_000)),
            (1, retry_after(30 * DAY_SECONDS), default, Some(86_400_000)),
            (8, Advice::Limited(None), default, Some(0)),
            (
                1,
                Advice::Limited(Some(Duration::from_secs(7))),
                two,
                Some(7_000),
            ),
        ];
        for (attempts, advice, settings, wait_ms) in cases {
            assert_eq!(
                next(attempts, advice, settings, 0.5),
                wait_ms,
                "{attempts} {advice:?}"
            );
        }
    }
}
