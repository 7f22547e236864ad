//! A rate limit in attempts per minute.

use std::collections::VecDeque;

const WINDOW_MS: i64 = 60_000;
/// Length of a counter's slot; keeps the number of counters small.
const SLOT_MS: i64 = 1_000;

/// The attempts started in the last minute.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rate {
    /// Start and count of each slot.
    slots: VecDeque<(i64, u32)>,
}

impl Rate {
    /// Returns how many attempts may start now, and when the next ones may, in milliseconds since
    /// 1970.
    pub(crate) fn allowance(&mut self, per_minute: Option<u32>, now_ms: i64) -> (usize, i64) {
        let Some(limit) = per_minute.filter(|limit| *limit > 0) else {
            return (usize::MAX, i64::MIN);
        };
        while self
            .slots
            .front()
            .is_some_and(|(start_ms, _)| over_at(*start_ms) <= now_ms)
        {
            self.slots.pop_front();
        }
        let started: u32 = self.slots.iter().map(|(_, count)| count).sum();
        let next_ms = match self.slots.front() {
            Some(&(start_ms, _)) if started >= limit => over_at(start_ms),
            _ => i64::MIN,
        };
        (limit.saturating_sub(started) as usize, next_ms)
    }

    /// Adjusts its times to a clock step.
    pub(crate) fn shift(&mut self, by_ms: i64) {
        for (start_ms, _) in &mut self.slots {
            *start_ms = start_ms.saturating_add(by_ms);
        }
    }

    /// Records attempts started now.
    pub(crate) fn note(&mut self, count: u32, now_ms: i64) {
        let slot_ms = now_ms - now_ms.rem_euclid(SLOT_MS);
        match self.slots.back_mut() {
            Some((start_ms, counted)) if *start_ms == slot_ms => *counted += count,
            _ => self.slots.push_back((slot_ms, count)),
        }
        // Without a limit nothing else trims the slots.
        while self
            .slots
            .front()
            .is_some_and(|(start_ms, _)| over_at(*start_ms) <= now_ms)
        {
            self.slots.pop_front();
        }
    }
}

/// Returns when the last attempt of a slot is a minute old.
fn over_at(slot_start_ms: i64) -> i64 {
    slot_start_ms + SLOT_MS + WINDOW_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_minute_exceeds_the_limit() {
        let mut rate = Rate::default();
        let mut starts = Vec::new();
        let mut now_ms = 0;
        while now_ms < 300_000 {
            let (allowance, _) = rate.allowance(Some(10), now_ms);
            let count = allowance.min(3);
            rate.note(u32::try_from(count).unwrap(), now_ms);
            starts.extend(vec![now_ms; count]);
            now_ms += 700;
        }
        let most = starts
            .iter()
            .map(|from| {
                starts
                    .iter()
                    .filter(|at| (*from..*from + 60_000).contains(*at))
                    .count()
            })
            .max();
        assert_eq!(most, Some(10));
        assert!(starts.len() >= 40, "{}", starts.len());
    }

    #[test]
    fn full_window_returns_when_capacity_frees_up() {
        let mut rate = Rate::default();
        rate.note(2, 500);
        assert_eq!(rate.allowance(Some(2), 600), (0, 61_000));
        assert_eq!(rate.allowance(Some(2), 61_000), (2, i64::MIN));
        assert_eq!(rate.allowance(None, 0), (usize::MAX, i64::MIN));
    }
}
