//! Detection of a growing number of dead letters, and of its end.

use std::collections::{BTreeMap, VecDeque};

use crate::domain::RecordId;

/// Number of deliveries that must die within [`WINDOW_MS`] before it is reported; a single one may
/// be at fault itself.
const OPENING: u32 = 3;
/// Time without dead letters after which the problem is over.
const WINDOW_MS: i64 = 3_600_000;

#[derive(Debug, Default)]
pub(crate) struct DeadLetters(BTreeMap<RecordId, DeathTally>);

#[derive(Debug)]
struct DeathTally {
    name: String,
    /// Times of the newest ones in milliseconds since 1970, at most [`OPENING`] of them.
    newest_ms: VecDeque<i64>,
    /// If reported: the number of dead letters, and the number at which to report again.
    reported: Option<(u32, u32)>,
}

impl DeathTally {
    fn over_ms(&self) -> i64 {
        let last_ms = self.newest_ms.back().copied().unwrap_or(i64::MIN);
        last_ms.saturating_add(WINDOW_MS)
    }
}

impl DeadLetters {
    /// Records a dead letter. Returns the count if it should be reported now: at the third within
    /// an hour, and each time the count has doubled.
    pub(crate) fn note(&mut self, destination: RecordId, name: &str, now_ms: i64) -> Option<u32> {
        let tally = self.tally(destination, name);
        tally.newest_ms.push_back(now_ms);
        if tally.newest_ms.len() > OPENING as usize {
            tally.newest_ms.pop_front();
        }
        if tally.reported.is_none() {
            let first_ms = tally.newest_ms.front().copied().unwrap_or(now_ms);
            let is_full = tally.newest_ms.len() == OPENING as usize;
            if !is_full || now_ms.saturating_sub(first_ms) >= WINDOW_MS {
                return None;
            }
        }
        let (count, next) = tally.reported.get_or_insert((OPENING - 1, OPENING));
        *count = count.saturating_add(1);
        if *count < *next {
            return None;
        }
        *next = count.saturating_mul(2);
        Some(*count)
    }

    /// Continues with an unresolved report from before a restart.
    pub(crate) fn take_up(&mut self, destination: RecordId, name: &str, now_ms: i64) {
        let tally = self.tally(destination, name);
        if tally.reported.is_none() {
            tally.newest_ms.push_back(now_ms);
            tally.reported = Some((0, OPENING));
        }
    }

    /// Removes destinations without recent dead letters. Returns the names of those that had been
    /// reported.
    pub(crate) fn over(&mut self, now_ms: i64) -> Vec<String> {
        let mut over = Vec::new();
        self.0.retain(|_, tally| {
            let is_over = tally.over_ms() <= now_ms;
            if is_over && tally.reported.is_some() {
                over.push(tally.name.clone());
            }
            !is_over
        });
        over
    }

    pub(crate) fn forget(&mut self, destination: RecordId) {
        self.0.remove(&destination);
    }

    /// Returns when the next report is over, in milliseconds since 1970, or the end of time.
    pub(crate) fn next_ms(&self) -> i64 {
        let reported = self.0.values().filter(|tally| tally.reported.is_some());
        reported.map(DeathTally::over_ms).min().unwrap_or(i64::MAX)
    }

    fn tally(&mut self, destination: RecordId, name: &str) -> &mut DeathTally {
        self.0.entry(destination).or_insert_with(|| DeathTally {
            name: name.into(),
            newest_ms: VecDeque::new(),
            reported: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: i64 = 60_000;

    fn id() -> RecordId {
        RecordId::from_parts(1, 1)
    }

    #[test]
    fn growth_is_reported_on_doubling_then_closed() {
        let mut letters = DeadLetters::default();
        let reported: Vec<_> = (0..30)
            .filter_map(|minute| letters.note(id(), "hook", minute * MINUTE_MS))
            .collect();
        assert_eq!(reported, [3, 6, 12, 24]);
        let over_ms = 89 * MINUTE_MS;
        assert_eq!(letters.next_ms(), over_ms);
        assert_eq!(letters.over(over_ms - 1), [""; 0]);
        assert_eq!(letters.over(over_ms), ["hook"]);
        assert_eq!(letters.next_ms(), i64::MAX);
        assert_eq!(letters.note(id(), "hook", over_ms), None, "it begins again");
    }

    #[test]
    fn infrequent_dead_letters_are_not_reported() {
        let mut letters = DeadLetters::default();
        for hours in 0..50 {
            assert_eq!(letters.note(id(), "hook", hours * 31 * MINUTE_MS), None);
        }
        assert_eq!(letters.next_ms(), i64::MAX);
        assert_eq!(letters.over(i64::MAX), [""; 0]);
    }

    #[test]
    fn report_of_a_previous_run_is_closed() {
        let mut letters = DeadLetters::default();
        letters.take_up(id(), "hook", 0);
        assert_eq!(letters.note(id(), "hook", MINUTE_MS), None);
        assert_eq!(letters.over(61 * MINUTE_MS), ["hook"]);
    }
}
