//! A circuit breaker that pauses a failing destination, then probes it with one message at a time.

use std::time::Duration;

use crate::{
    clock::to_millis,
    domain::{RecordId, Severity},
    send::{Verdict, verdict::FailureCause},
};

const FAILURES_MAX: u32 = 5;
const OPEN_TIME: Duration = Duration::from_secs(10);
const OPEN_TIME_MAX: Duration = Duration::from_secs(300);
/// Maximum time between two attempts to a failing destination while a severe message waits.
const SEVERE_PROBE_TIME: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Breaker {
    failures: u32,
    open_until_ms: i64,
    failed_ms: i64,
    probes: u32,
    /// The last failure: its message, and whether the destination is misconfigured rather than
    /// temporarily failing.
    last: Option<(RecordId, bool)>,
}

/// The choice of message for probing an open breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probe {
    /// The last message that failed. The probe uses another message if possible, because its
    /// outcome is more informative.
    pub(crate) not: Option<RecordId>,
    /// Whether to probe with the newest message, so that a misconfigured destination does not use
    /// up the attempts of older ones.
    pub(crate) is_young: bool,
}

/// Whether a message is probed at short intervals.
pub(crate) fn is_severe_delivery(severity: Severity) -> bool {
    severity >= Severity::Error
}

impl Breaker {
    /// Creates the breaker of a destination, with its consecutive failures before this process
    /// started. An open breaker starts with a probe.
    pub(crate) fn with_failures(failures: u32) -> Self {
        Self {
            failures,
            ..Self::default()
        }
    }

    /// Returns the number of attempts that may start, and the time from which they may start, in
    /// milliseconds since 1970.
    pub(crate) fn start_allowance(&self, in_flight: usize) -> (usize, i64) {
        match (self.is_open(), in_flight) {
            (false, _) => (usize::MAX, i64::MIN),
            (true, 0) => (1, self.open_until_ms),
            (true, _) => (0, self.open_until_ms),
        }
    }

    /// Returns the time of the next probe with a severe message, in milliseconds since 1970; `None`
    /// unless the destination is failing.
    pub(crate) fn severe_probe_ms(&self) -> Option<i64> {
        let at_ms = self.failed_ms.saturating_add(to_millis(SEVERE_PROBE_TIME));
        let at_ms = if self.is_open() {
            at_ms.min(self.open_until_ms)
        } else {
            at_ms
        };
        self.is_failing().then_some(at_ms)
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Returns the choice of message for the next probe; `None` unless the breaker is open.
    pub(crate) fn probe(&self) -> Option<Probe> {
        self.is_open().then(|| Probe {
            not: self.last.map(|(message, _)| message),
            is_young: self.last.is_some_and(|(_, is_wrong)| is_wrong),
        })
    }

    fn is_open(&self) -> bool {
        self.failures >= FAILURES_MAX
    }

    /// Adjusts the stored times to a clock step.
    pub(crate) fn shift_times(&mut self, by_ms: i64) {
        self.open_until_ms = self.open_until_ms.saturating_add(by_ms);
        self.failed_ms = self.failed_ms.saturating_add(by_ms);
    }

    /// Records the outcome of an attempt. Rejecting a message for its content shows that the
    /// receiver is healthy. A rate limit shows nothing about the receiver, nor does a rejection
    /// after which the reduced form is sent.
    pub(crate) fn record_outcome(&mut self, message: RecordId, verdict: &Verdict, now_ms: i64) {
        if verdict.advice.is_inconclusive() {
            return;
        }
        let Some(cause @ (FailureCause::Receiver | FailureCause::Destination)) = verdict.cause()
        else {
            *self = Self::default();
            return;
        };
        self.last = Some((message, cause == FailureCause::Destination));
        self.failures = self.failures.saturating_add(1);
        self.failed_ms = now_ms;
        if self.failures == FAILURES_MAX {
            self.open_until_ms = now_ms.saturating_add(to_millis(OPEN_TIME));
        } else if self.failures > FAILURES_MAX && now_ms >= self.open_until_ms {
            self.probes = self.probes.saturating_add(1);
            let longer = OPEN_TIME.saturating_mul(2_u32.saturating_pow(self.probes));
            self.open_until_ms = now_ms.saturating_add(to_millis(longer.min(OPEN_TIME_MAX)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::Advice;

    fn destination_id(number: u64) -> RecordId {
        RecordId::from_parts(number, 1)
    }

    fn rejected_verdict(advice: Advice) -> Verdict {
        Verdict::new_rejected("no", advice)
    }

    #[test]
    fn five_failures_open_the_breaker_until_a_probe_succeeds() {
        let unwell = rejected_verdict(Advice::Again);
        let mut breaker = Breaker::default();
        for _ in 0..4 {
            breaker.record_outcome(destination_id(1), &unwell, 0);
        }
        assert_eq!(breaker.start_allowance(3), (usize::MAX, i64::MIN));
        assert_eq!(breaker.probe(), None);
        breaker.record_outcome(destination_id(1), &unwell, 0);
        assert_eq!(breaker.start_allowance(0), (1, 10_000));
        assert_eq!(breaker.start_allowance(1), (0, 10_000));
        breaker.record_outcome(destination_id(1), &unwell, 9_000);
        assert_eq!(
            breaker.start_allowance(0),
            (1, 10_000),
            "late failures do not count as probes"
        );
        breaker.record_outcome(destination_id(1), &unwell, 10_000);
        assert_eq!(breaker.start_allowance(0), (1, 30_000));
        for _ in 0..40 {
            let (_, until_ms) = breaker.start_allowance(0);
            breaker.record_outcome(destination_id(1), &unwell, until_ms);
        }
        let (_, before_ms) = breaker.start_allowance(0);
        breaker.record_outcome(destination_id(1), &unwell, before_ms);
        assert_eq!(breaker.start_allowance(0).1 - before_ms, 300_000);
        breaker.record_outcome(destination_id(1), &Verdict::new_delivered("ok"), before_ms);
        assert_eq!(breaker.start_allowance(0), (usize::MAX, i64::MIN));
    }

    #[test]
    fn rejected_messages_do_not_open_the_breaker() {
        let mut breaker = Breaker::default();
        for advice in [Advice::GiveUp, Advice::FewMore]
            .into_iter()
            .cycle()
            .take(20)
        {
            breaker.record_outcome(destination_id(1), &rejected_verdict(advice), 0);
        }
        assert_eq!(breaker.start_allowance(3), (usize::MAX, i64::MIN));
    }

    #[test]
    fn probe_uses_another_message_and_a_recent_one_if_misconfigured() {
        for (advice, is_young) in [(Advice::Again, false), (Advice::Fix, true)] {
            let mut breaker = Breaker::default();
            for number in 1..=5 {
                breaker.record_outcome(destination_id(number), &rejected_verdict(advice), 0);
            }
            let not = Some(destination_id(5));
            assert_eq!(breaker.probe(), Some(Probe { not, is_young }));
        }
    }
    #[test]
    fn rate_limit_neither_opens_nor_closes_the_breaker() {
        let mut breaker = Breaker::default();
        for _ in 0..20 {
            breaker.record_outcome(
                destination_id(1),
                &rejected_verdict(Advice::Limited(None)),
                0,
            );
        }
        assert_eq!(breaker.start_allowance(3), (usize::MAX, i64::MIN));
        breaker.record_outcome(destination_id(1), &rejected_verdict(Advice::Again), 0);
        breaker.record_outcome(
            destination_id(1),
            &rejected_verdict(Advice::Limited(None)),
            0,
        );
        assert!(breaker.is_failing());
    }

    #[test]
    fn severe_message_is_probed_every_fifteen_seconds() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.severe_probe_ms(), None);
        let mut now_ms = 0;
        for _ in 0..100 {
            breaker.record_outcome(destination_id(1), &rejected_verdict(Advice::Again), now_ms);
            let next_ms = breaker.severe_probe_ms().unwrap();
            assert!((1..=15_000).contains(&(next_ms - now_ms)), "{next_ms}");
            now_ms = next_ms;
        }
        breaker.record_outcome(destination_id(1), &Verdict::new_delivered("ok"), now_ms);
        assert_eq!(breaker.severe_probe_ms(), None);
    }
}
