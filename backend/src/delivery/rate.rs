//! A rate limit in attempts per minute, spread over the minute.

use std::collections::VecDeque;

const WINDOW_MS: i64 = 60_000;
/// Length of a counter's slot; keeps the number of counters small.
const SLOT_MS: i64 = 1_000;

/// Time by which attempts that follow each other closely may start early, so that not every attempt
/// wakes the dispatcher.
const AHEAD_US: i64 = 250_000;

#[derive(Debug, Clone, Default)]
pub(crate) struct Rate {
    slots: VecDeque<(i64, u32)>,
    /// Microseconds from one start to the next, according to the last limit.
    interval_us: i64,
    /// Time of the next start if starts are spread evenly, in microseconds since the epoch.
    next_us: i64,
}

impl Rate {
    /// Returns the number of attempts that may start now, and the time of the next ones, in
    /// milliseconds since 1970.
    pub(crate) fn start_allowance(&mut self, per_minute: Option<u32>, now_ms: i64) -> (usize, i64) {
        let Some(limit) = per_minute.filter(|limit| *limit > 0) else {
            self.interval_us = 0;
            return (usize::MAX, i64::MIN);
        };
        self.interval_us = WINDOW_MS * 1_000 / i64::from(limit);
        let spread = self.spread_allowance(now_ms);
        let window = self.window_allowance(limit, now_ms);
        (spread.0.min(window.0), spread.1.max(window.1))
    }

    /// Returns the number of starts due with an even spread, and the time of the next one if none
    /// is due.
    fn spread_allowance(&self, now_ms: i64) -> (usize, i64) {
        let now_us = now_ms.saturating_mul(1_000);
        let is_dense = self.interval_us < AHEAD_US;
        let ahead_us = if is_dense { AHEAD_US } else { 0 };
        let early_us = now_us + ahead_us - self.next_us.max(now_us);
        if early_us < 0 {
            return (0, (self.next_us - ahead_us + 999) / 1_000);
        }
        let due = early_us / self.interval_us.max(1) + 1;
        (usize::try_from(due).unwrap_or(usize::MAX), i64::MIN)
    }

    fn window_allowance(&mut self, limit: u32, now_ms: i64) -> (usize, i64) {
        while self
            .slots
            .front()
            .is_some_and(|(start_ms, _)| expiry_ms(*start_ms) <= now_ms)
        {
            self.slots.pop_front();
        }
        let started: u32 = self.slots.iter().map(|(_, count)| count).sum();
        let next_ms = match self.slots.front() {
            Some(&(start_ms, _)) if started >= limit => expiry_ms(start_ms),
            _ => i64::MIN,
        };
        (limit.saturating_sub(started) as usize, next_ms)
    }

    pub(crate) fn shift_times(&mut self, by_ms: i64) {
        self.next_us = self.next_us.saturating_add(by_ms.saturating_mul(1_000));
        for (start_ms, _) in &mut self.slots {
            *start_ms = start_ms.saturating_add(by_ms);
        }
    }

    pub(crate) fn record_start(&mut self, count: u32, now_ms: i64) {
        let from_us = self.next_us.max(now_ms.saturating_mul(1_000));
        self.next_us = from_us.saturating_add(self.interval_us.saturating_mul(count.into()));
        let slot_ms = now_ms - now_ms.rem_euclid(SLOT_MS);
        match self.slots.back_mut() {
            Some((start_ms, counted)) if *start_ms == slot_ms => *counted += count,
            _ => self.slots.push_back((slot_ms, count)),
        }
        // Without a limit, `window_allowance` never removes expired slots.
        while self
            .slots
            .front()
            .is_some_and(|(start_ms, _)| expiry_ms(*start_ms) <= now_ms)
        {
            self.slots.pop_front();
        }
    }
}

/// Returns the time at which the last attempt of a slot is a minute old.
fn expiry_ms(slot_start_ms: i64) -> i64 {
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
            let (allowance, _) = rate.start_allowance(Some(10), now_ms);
            let count = allowance.min(3);
            rate.record_start(u32::try_from(count).unwrap(), now_ms);
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
        // This attempt was started by the previous owner.
        rate.record_start(2, 500);
        assert_eq!(rate.start_allowance(Some(2), 600), (0, 61_000));
        assert_eq!(rate.start_allowance(Some(2), 61_000), (1, i64::MIN));
        assert_eq!(rate.start_allowance(None, 0), (usize::MAX, i64::MIN));
    }

    #[test]
    fn starts_are_spread_over_the_minute() {
        for (limit, first, gap_ms) in [(2, 1, 30_000), (60, 1, 1_000), (6_000, 26, 10)] {
            let mut rate = Rate::default();
            assert_eq!(
                rate.start_allowance(Some(limit), 0),
                (first, i64::MIN),
                "{limit}"
            );
            rate.record_start(u32::try_from(first).unwrap(), 0);
            assert_eq!(rate.start_allowance(Some(limit), 0), (0, gap_ms), "{limit}");
            assert_eq!(rate.start_allowance(Some(limit), gap_ms).0, 1, "{limit}");
        }
    }
}
