//! Adaptive concurrency per destination: more attempts while it responds quickly, fewer when it
//! does not.

use std::time::Duration;

use crate::send::{AttemptReport, verdict::FailureCause};

/// Initial number of concurrent attempts to a destination.
const START: usize = 8;
const WIDTH_MAX: usize = 64;
/// Attempts shorter than this mark a destination as fast.
pub(crate) const QUICK: Duration = Duration::from_millis(100);
/// Responses slower than this indicate trouble.
const SLOW: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Concurrency(usize);

impl Default for Concurrency {
    fn default() -> Self {
        Self(START)
    }
}

impl Concurrency {
    pub(crate) fn current_limit(self, most: u32) -> usize {
        self.0.min(most as usize).max(1)
    }

    /// Records the outcome of an attempt. Trouble halves the limit; a quick response raises it by
    /// one if more deliveries are waiting. A rejected message does not change the limit.
    pub(crate) fn record_outcome(&mut self, report: &AttemptReport, waiting: bool) {
        let cause = report.verdict.cause();
        let in_trouble = matches!(
            cause,
            Some(FailureCause::Receiver | FailureCause::Destination)
        );
        if in_trouble || report.duration > SLOW {
            self.0 = (self.0 / 2).max(1);
        } else if waiting && report.duration <= QUICK {
            self.0 = (self.0 + 1).min(WIDTH_MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::Transcript,
        send::{Advice, Verdict},
    };

    fn report_with_duration(verdict: Verdict, millis: u64) -> AttemptReport {
        AttemptReport {
            verdict,
            duration: Duration::from_millis(millis),
            transcript: Transcript::default(),
            times: None,
        }
    }

    #[test]
    fn concurrency_increases_additively_and_halves_on_trouble() {
        let quick = report_with_duration(Verdict::new_delivered("ok"), 5);
        let refused = report_with_duration(Verdict::new_rejected("400", Advice::GiveUp), 5);
        let unwell = report_with_duration(Verdict::new_rejected("503", Advice::Again), 5);
        let slow = report_with_duration(Verdict::new_delivered("ok"), 1_500);
        let middling = report_with_duration(Verdict::new_delivered("ok"), 500);
        let mut width = Concurrency::default();
        assert_eq!((width.current_limit(32), width.current_limit(4)), (8, 4));
        width.record_outcome(&quick, false);
        assert_eq!(width.current_limit(32), 8, "nothing waits");
        for _ in 0..100 {
            width.record_outcome(&quick, true);
        }
        assert_eq!((width.current_limit(32), width.current_limit(4)), (32, 4));
        for (report, then) in [(&middling, 64), (&refused, 64), (&unwell, 32), (&slow, 16)] {
            width.record_outcome(report, true);
            assert_eq!(width.current_limit(64), then.min(64), "{report:?}");
        }
        for _ in 0..10 {
            width.record_outcome(&unwell, true);
        }
        assert_eq!(width.current_limit(32), 1);
    }
}
