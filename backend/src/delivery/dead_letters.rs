//! Detects when dead letters begin and cease to accumulate. A severe dead letter is reported
//! immediately.

use std::collections::{BTreeMap, VecDeque};

use crate::{
    delivery::breaker::is_severe_delivery,
    domain::{RecordId, Severity},
};

/// Number of deliveries that must die within [`WINDOW_MS`] before they are reported. A single
/// delivery may itself be faulty.
const OPENING: u32 = 3;
/// Time without dead letters after which the problem is over.
const WINDOW_MS: i64 = 3_600_000;

#[derive(Debug, Default)]
pub(crate) struct DeadLetters(BTreeMap<RecordId, DeadLetterTally>);

#[derive(Debug)]
struct DeadLetterTally {
    name: String,
    /// Times of the newest dead letters in milliseconds since 1970, at most [`OPENING`] of them.
    newest_ms: VecDeque<i64>,
    /// The dead letters since the last problem ended.
    sum: Option<DeadLetterSum>,
    /// Count at which to report again; `None` before the first report.
    next: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadLetterSum {
    pub(crate) count: u32,
    pub(crate) most_severe: Severity,
    pub(crate) first_ms: i64,
    pub(crate) last_ms: i64,
}

impl DeadLetterTally {
    fn end_ms(&self) -> i64 {
        let last_ms = self.newest_ms.back().copied().unwrap_or(i64::MIN);
        last_ms.saturating_add(WINDOW_MS)
    }
}

impl DeadLetters {
    /// Records a dead letter. Returns a summary if it should be reported now: at the first severe
    /// dead letter or the third within an hour, and each time the count has doubled or a more
    /// severe one is added.
    pub(crate) fn record(
        &mut self,
        destination: RecordId,
        name: &str,
        severity: Severity,
        now_ms: i64,
    ) -> Option<DeadLetterSum> {
        let tally = self.tally_mut(destination, name);
        tally.newest_ms.push_back(now_ms);
        if tally.newest_ms.len() > OPENING as usize {
            tally.newest_ms.pop_front();
        }
        let sum = tally.sum.get_or_insert(DeadLetterSum {
            count: 0,
            most_severe: severity,
            first_ms: now_ms,
            last_ms: now_ms,
        });
        let is_worse = severity > sum.most_severe || sum.count == 0;
        sum.count = sum.count.saturating_add(1);
        sum.most_severe = sum.most_severe.max(severity);
        sum.last_ms = now_ms;
        let is_due = if let Some(next) = tally.next {
            sum.count >= next
        } else {
            let first_ms = tally.newest_ms.front().copied().unwrap_or(now_ms);
            let is_full = tally.newest_ms.len() == OPENING as usize;
            is_full && now_ms.saturating_sub(first_ms) < WINDOW_MS
        };
        let is_urgent = is_worse && is_severe_delivery(severity);
        if !is_due && !is_urgent {
            return None;
        }
        tally.next = Some(sum.count.saturating_mul(2).max(OPENING));
        Some(*sum)
    }

    pub(crate) fn resume(&mut self, destination: RecordId, name: &str, now_ms: i64) {
        let tally = self.tally_mut(destination, name);
        if tally.next.is_none() {
            tally.newest_ms.push_back(now_ms);
            tally.next = Some(OPENING);
        }
    }

    /// Removes destinations without recent dead letters. Returns the names of those that were
    /// reported.
    pub(crate) fn remove_stopped(&mut self, now_ms: i64) -> Vec<String> {
        let mut over = Vec::new();
        self.0.retain(|_, tally| {
            let is_over = tally.end_ms() <= now_ms;
            if is_over && tally.next.is_some() {
                over.push(tally.name.clone());
            }
            !is_over
        });
        over
    }

    pub(crate) fn forget_destination(&mut self, destination: RecordId) {
        self.0.remove(&destination);
    }

    /// Returns the time at which the next reported problem is over, in milliseconds since 1970, or
    /// `i64::MAX` if none is reported.
    pub(crate) fn next_due_ms(&self) -> i64 {
        let reported = self.0.values().filter(|tally| tally.next.is_some());
        reported
            .map(DeadLetterTally::end_ms)
            .min()
            .unwrap_or(i64::MAX)
    }

    fn tally_mut(&mut self, destination: RecordId, name: &str) -> &mut DeadLetterTally {
        self.0
            .entry(destination)
            .or_insert_with(|| DeadLetterTally {
                name: name.into(),
                newest_ms: VecDeque::new(),
                sum: None,
                next: None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: i64 = 60_000;
    const MILD: Severity = Severity::Warning;

    fn destination_id() -> RecordId {
        RecordId::from_parts(1, 1)
    }

    #[test]
    fn dead_letter_growth_is_reported_when_doubled_and_then_closed() {
        let mut letters = DeadLetters::default();
        let reported: Vec<_> = (0..30)
            .filter_map(|minute| letters.record(destination_id(), "hook", MILD, minute * MINUTE_MS))
            .map(|sum| sum.count)
            .collect();
        assert_eq!(reported, [3, 6, 12, 24]);
        let over_ms = 89 * MINUTE_MS;
        assert_eq!(letters.next_due_ms(), over_ms);
        assert_eq!(letters.remove_stopped(over_ms - 1), [""; 0]);
        assert_eq!(letters.remove_stopped(over_ms), ["hook"]);
        assert_eq!(letters.next_due_ms(), i64::MAX);
        assert_eq!(
            letters.record(destination_id(), "hook", MILD, over_ms),
            None,
            "it starts again"
        );
    }

    #[test]
    fn infrequent_dead_letters_are_not_reported() {
        let mut letters = DeadLetters::default();
        for hours in 0..50 {
            let died = letters.record(destination_id(), "hook", MILD, hours * 31 * MINUTE_MS);
            assert_eq!(died, None);
        }
        assert_eq!(letters.next_due_ms(), i64::MAX);
        assert_eq!(letters.remove_stopped(i64::MAX), [""; 0]);
    }

    #[test]
    fn report_of_a_previous_run_is_closed() {
        let mut letters = DeadLetters::default();
        letters.resume(destination_id(), "hook", 0);
        assert_eq!(
            letters.record(destination_id(), "hook", MILD, MINUTE_MS),
            None
        );
        assert_eq!(letters.remove_stopped(61 * MINUTE_MS), ["hook"]);
    }
    #[test]
    fn severe_dead_letter_is_reported_immediately_with_the_total() {
        let mut letters = DeadLetters::default();
        let mut record = |severity, minute| {
            let sum = letters.record(destination_id(), "hook", severity, minute * MINUTE_MS);
            sum.map(|sum| (sum.count, sum.most_severe, sum.first_ms, sum.last_ms))
        };
        assert_eq!(record(Severity::Info, 1), None);
        let error = (2, Severity::Error, MINUTE_MS, 2 * MINUTE_MS);
        assert_eq!(record(Severity::Error, 2), Some(error));
        assert_eq!(
            record(Severity::Error, 3),
            None,
            "one event for all, not one each"
        );
        let doubled = (4, Severity::Error, MINUTE_MS, 4 * MINUTE_MS);
        assert_eq!(record(Severity::Error, 4), Some(doubled));
        let worse = (5, Severity::Critical, MINUTE_MS, 5 * MINUTE_MS);
        assert_eq!(record(Severity::Critical, 5), Some(worse));
        assert_eq!(record(Severity::Critical, 6), None);
    }
}
