//! The pace at which a receiver that limits its rate accepts messages. It is learned from refusals:
//! one message at a time until one is accepted, then at the interval that worked.

use std::time::Duration;

use crate::clock::to_millis;

/// Delay after a refusal that states no delay; doubled after each further refusal.
const WAIT: Duration = Duration::from_secs(1);
/// Maximum delay after a refusal that states no delay.
const WAIT_MAX: Duration = Duration::from_secs(15);
/// Number of messages accepted at an interval before half the interval is tried.
const TRIAL_AFTER: u32 = 8;
/// Maximum number of messages between two trials; each failed trial doubles it.
const TRIAL_AFTER_MAX: u32 = 128;
/// Longest interval for which a single requested delay is sufficient evidence. A longer delay may
/// be the time until a quota is renewed.
const INTERVAL_MAX: Duration = Duration::from_secs(10);
/// Longest interval, in milliseconds. Providers that document a limit accept at least one message
/// per minute.
const INTERVAL_MS_MAX: i64 = 60_000;
/// Maximum number of consecutive refusals, 15 s apart, that indicate a rate limit. More indicate an
/// outage.
const REFUSALS_MAX: u32 = 7;
const INTERVAL_MS_MIN: i64 = 20;
/// Time without a refusal after which a limit is forgotten; also the longest time between two
/// messages of one burst.
const FORGET_AFTER: Duration = Duration::from_secs(600);

/// The pace of one destination. Times are in milliseconds since the epoch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    limit: Option<Limit>,
    run: Run,
}

/// Messages accepted since the last refusal.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    count: u32,
    start_ms: i64,
    last_ms: i64,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Time from one start to the next. 0 means as soon as the previous message is accepted.
    interval_ms: i64,
    /// The interval before the current refusals.
    worked_ms: i64,
    next_ms: i64,
    /// Refusals since the last accepted message.
    refusals: u32,
    refused_ms: i64,
    /// Messages accepted before the current refusals.
    before: Run,
    /// Consecutive times that only one message was accepted between refusals.
    short_runs: u32,
    accepted: u32,
    trial_after: u32,
    is_trial: bool,
}

impl Pace {
    /// Returns the number of attempts that may start with `in_flight` in progress, and the earliest
    /// time.
    pub(crate) fn start_allowance(&self, in_flight: usize) -> (usize, i64) {
        match &self.limit {
            None => (usize::MAX, i64::MIN),
            Some(limit) if limit.is_one_at_a_time() && in_flight > 0 => (0, limit.next_ms),
            Some(limit) => (1, limit.next_ms),
        }
    }

    pub(crate) fn has_limit(&self) -> bool {
        self.limit.is_some()
    }

    pub(crate) fn is_rate_limited(&self) -> bool {
        self.limit.is_some_and(|limit| limit.refusals > 0)
    }

    pub(crate) fn shift_times(&mut self, by_ms: i64) {
        let mut times = vec![&mut self.run.start_ms, &mut self.run.last_ms];
        if let Some(limit) = &mut self.limit {
            times.extend([
                &mut limit.next_ms,
                &mut limit.refused_ms,
                &mut limit.before.start_ms,
                &mut limit.before.last_ms,
            ]);
        }
        for time in times {
            *time = time.saturating_add(by_ms);
        }
    }

    pub(crate) fn record_start(&mut self, now_ms: i64) {
        if let Some(limit) = &mut self.limit {
            limit.next_ms = limit.next_ms.max(now_ms.saturating_add(limit.interval_ms));
        }
    }

    pub(crate) fn record_acceptance(&mut self, start_ms: i64) {
        let forget_ms = to_millis(FORGET_AFTER);
        if let Some(limit) = &mut self.limit {
            if limit.refusals > 0 && start_ms <= limit.refused_ms {
                // Part of the burst that was refused.
                limit.before.add(start_ms);
                return;
            }
            if start_ms.saturating_sub(limit.refused_ms) > forget_ms {
                *self = Self::default();
            } else {
                limit.record_acceptance(start_ms);
                if limit.accepted >= limit.trial_after {
                    limit.accepted = 0;
                    limit.interval_ms /= 2;
                    limit.is_trial = true;
                    if limit.interval_ms < INTERVAL_MS_MIN {
                        self.limit = None;
                    }
                }
            }
        }
        if start_ms.saturating_sub(self.run.last_ms) > forget_ms {
            self.run = Run::default();
        }
        self.run.add(start_ms);
    }

    /// Records that the receiver refused the attempt that started at this time, and the delay that
    /// it requested.
    pub(crate) fn record_refusal(&mut self, start_ms: i64, wait: Option<Duration>, now_ms: i64) {
        let requested_ms = wait.map(|wait| now_ms.saturating_add(to_millis(wait)));
        let limit = self.limit.get_or_insert(Limit {
            interval_ms: 0,
            worked_ms: 0,
            next_ms: i64::MIN,
            refusals: 0,
            refused_ms: i64::MIN,
            before: Run::default(),
            short_runs: 0,
            accepted: 0,
            trial_after: TRIAL_AFTER,
            is_trial: false,
        });
        if start_ms <= limit.refused_ms {
            // Part of a burst whose first refusal was recorded.
            limit.next_ms = limit.next_ms.max(requested_ms.unwrap_or(i64::MIN));
            return;
        }
        let run = std::mem::take(&mut self.run);
        if limit.refusals == 0 {
            limit.before = run;
            limit.worked_ms = limit.interval_ms;
        }
        if limit.is_trial {
            limit.interval_ms *= 2;
            limit.trial_after = (limit.trial_after * 2).min(TRIAL_AFTER_MAX);
        } else if limit.refusals > 0 || run.count == 0 {
            limit.interval_ms *= 2;
        } else if wait.is_none() {
            limit.interval_ms += limit.interval_ms / 4;
        }
        limit.interval_ms = limit.interval_ms.min(INTERVAL_MS_MAX);
        limit.refusals = limit.refusals.saturating_add(1);
        limit.is_trial = false;
        limit.accepted = 0;
        limit.refused_ms = now_ms;
        let doublings = limit.refusals.saturating_sub(1).min(8);
        let wait = WAIT.saturating_mul(1 << doublings).min(WAIT_MAX);
        limit.next_ms = requested_ms.unwrap_or_else(|| now_ms.saturating_add(to_millis(wait)));
    }
}

impl Limit {
    /// Whether one message must end before the next one starts.
    fn is_one_at_a_time(&self) -> bool {
        self.interval_ms == 0 || self.refusals > 0
    }

    fn record_acceptance(&mut self, start_ms: i64) {
        if self.refusals > 0 {
            // A receiver that accepted a burst, or no message yet, may accept the next ones as
            // fast.
            if self.refusals > REFUSALS_MAX {
                // An outage does not indicate a rate limit.
                self.interval_ms = self.worked_ms;
            } else if self.before.count == 1 {
                self.short_runs += 1;
                // Slightly longer, because messages do not arrive as regularly as they start.
                let worked_ms = start_ms.saturating_sub(self.before.start_ms);
                let worked_ms = worked_ms.saturating_add(worked_ms / 20);
                if worked_ms <= to_millis(INTERVAL_MAX) || self.short_runs > 1 {
                    self.interval_ms = self.interval_ms.max(worked_ms.min(INTERVAL_MS_MAX));
                }
            } else if self.before.count > 1 {
                self.short_runs = 0;
            }
            self.refusals = 0;
            self.next_ms = start_ms.saturating_add(self.interval_ms);
        }
        self.accepted += 1;
        if self.is_trial && self.accepted > 2 {
            self.is_trial = false;
            self.trial_after = TRIAL_AFTER;
        }
    }
}

impl Run {
    fn add(&mut self, start_ms: i64) {
        if self.count == 0 {
            self.start_ms = start_ms;
        }
        self.start_ms = self.start_ms.min(start_ms);
        self.last_ms = self.last_ms.max(start_ms);
        self.count = self.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A receiver's rate limit: at most `count` messages in each window.
    #[derive(Clone, Copy)]
    struct Window {
        count: usize,
        length_ms: i64,
    }

    #[derive(Clone, Copy, PartialEq, Debug)]
    enum DelayFormat {
        Nothing,
        Seconds,
    }

    /// Sends messages through a pace, eight at a time. Returns the milliseconds until the last one
    /// is accepted, and the highest number of refusals of one message.
    fn simulate_sends(messages: usize, windows: &[Window], stated: DelayFormat) -> (i64, u32) {
        let mut pace = Pace::default();
        let mut waiting: VecDeque<(usize, u32)> = (0..messages).map(|it| (it, 0)).collect();
        let mut accepted: Vec<i64> = Vec::new();
        let (mut now_ms, mut most) = (1_000, 0);
        while !waiting.is_empty() {
            let (allowed, from_ms) = pace.start_allowance(0);
            now_ms = from_ms.max(now_ms);
            let batch: Vec<_> = (0..allowed.min(8))
                .map_while(|_| waiting.pop_front())
                .collect();
            let start_ms = now_ms;
            for _ in &batch {
                pace.record_start(start_ms);
            }
            for (message, refusals) in batch {
                now_ms += 3;
                let unblocked_ms = windows.iter().map(|window| {
                    let nth = accepted.len().checked_sub(window.count);
                    nth.map_or(i64::MIN, |nth| accepted[nth] + window.length_ms)
                });
                let unblocked_ms = unblocked_ms.max().unwrap_or(i64::MIN);
                if unblocked_ms <= now_ms {
                    accepted.push(now_ms);
                    pace.record_acceptance(start_ms);
                    continue;
                }
                let seconds = u64::try_from(unblocked_ms - now_ms)
                    .unwrap()
                    .div_ceil(1_000);
                let wait = (stated == DelayFormat::Seconds).then(|| Duration::from_secs(seconds));
                pace.record_refusal(start_ms, wait, now_ms);
                most = most.max(refusals + 1);
                waiting.push_back((message, refusals + 1));
                waiting.make_contiguous().sort_unstable();
            }
        }
        (now_ms - 1_000, most)
    }

    #[test]
    fn thirty_messages_reach_a_limited_receiver_before_the_deadline() {
        let window = |count, length_ms| Window { count, length_ms };
        let a_second = vec![window(1, 1_000)];
        let telegram = vec![window(1, 1_000), window(20, 60_000)];
        let discord = vec![window(5, 2_000)];
        let slack = vec![window(4, 4_000)];
        let matrix = vec![window(10, 50_000)];
        let cases = [
            (&a_second, DelayFormat::Seconds, 35_000),
            (&a_second, DelayFormat::Nothing, 36_000),
            (&telegram, DelayFormat::Seconds, 72_000),
            (&discord, DelayFormat::Seconds, 12_000),
            (&slack, DelayFormat::Seconds, 34_000),
            (&matrix, DelayFormat::Seconds, 120_000),
        ];
        for (windows, stated, at_most_ms) in cases {
            let (took_ms, refusals) = simulate_sends(30, windows, stated);
            let limit = windows[0];
            let of = format!("{} in {} ms, {stated:?}", limit.count, limit.length_ms);
            assert!(took_ms <= at_most_ms, "{of}: {took_ms} ms");
            assert!(refusals <= 2, "{of}: {refusals} refusals");
        }
    }

    #[test]
    fn waits_without_retry_after_double_up_to_fifteen_seconds() {
        let mut pace = Pace::default();
        let mut now_ms = 0;
        let mut waits = Vec::new();
        for _ in 0..7 {
            pace.record_refusal(now_ms, None, now_ms + 1);
            let (allowed, next_ms) = pace.start_allowance(0);
            assert_eq!(allowed, 1);
            assert_eq!(pace.start_allowance(1).0, 0, "one at a time");
            waits.push(next_ms - now_ms - 1);
            now_ms = next_ms;
        }
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
        assert!(pace.is_rate_limited());
        pace.record_acceptance(now_ms);
        assert!(!pace.is_rate_limited() && pace.has_limit());
    }

    #[test]
    fn limit_is_forgotten_when_the_receiver_accepts_more() {
        let mut pace = Pace::default();
        pace.record_refusal(0, Some(Duration::from_secs(1)), 1);
        let mut count = 0;
        while pace.has_limit() && count < 1_000 {
            let (_, now_ms) = pace.start_allowance(0);
            pace.record_start(now_ms);
            pace.record_acceptance(now_ms);
            count += 1;
        }
        assert!(count < 100, "{count}");
        pace.record_refusal(0, Some(Duration::from_secs(1)), 1);
        pace.record_acceptance(1_001);
        pace.record_acceptance(700_000);
        assert!(!pace.has_limit());
    }

    #[test]
    fn outage_does_not_change_the_send_interval() {
        for (stated, refusals) in [(None, 100), (Some(Duration::from_secs(15)), 10_000)] {
            let mut pace = Pace::default();
            let second = Some(Duration::from_secs(1));
            pace.record_acceptance(0);
            pace.record_refusal(10, second, 10);
            pace.record_acceptance(1_010);
            let mut now_ms = pace.start_allowance(0).1;
            let interval_ms = now_ms - 1_010;
            assert!((1_000..1_200).contains(&interval_ms), "{interval_ms}");
            for _ in 0..refusals {
                pace.record_start(now_ms);
                pace.record_refusal(now_ms, stated, now_ms);
                let (_, next_ms) = pace.start_allowance(0);
                assert!((now_ms..=now_ms + 15_000).contains(&next_ms));
                now_ms = next_ms;
            }
            pace.record_start(now_ms);
            pace.record_acceptance(now_ms);
            assert_eq!(
                pace.start_allowance(0).1,
                now_ms + interval_ms,
                "{stated:?}"
            );
        }
    }

    #[test]
    fn single_long_retry_after_does_not_set_the_interval() {
        let minute = Some(Duration::from_secs(60));
        let mut pace = Pace::default();
        pace.record_refusal(0, minute, 0);
        assert_eq!(pace.start_allowance(0), (1, 60_000));
        pace.record_acceptance(60_000);
        assert_eq!(
            pace.start_allowance(0),
            (1, 60_000),
            "one message is allowed"
        );
        pace.record_refusal(60_001, minute, 60_001);
        pace.record_acceptance(120_001);
        assert_eq!(pace.start_allowance(0), (1, 120_001));
        pace.record_refusal(120_002, minute, 120_002);
        pace.record_acceptance(180_002);
        assert!(pace.start_allowance(0).1 > 240_000, "one a minute");
    }
}
