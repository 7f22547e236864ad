//! Outages of the service and their effect on heartbeat alarms.

use std::time::Duration;

use super::{ClockSteps, WatchTime};
use crate::{
    clock::to_millis,
    domain::{
        Expectation,
        heartbeat::{OUTAGES_MAX, Outage},
    },
    limits::SERVICE_TIME_INTERVAL,
};

impl WatchTime {
    /// Computes the service time after a process start or a change of leader from the stored state.
    ///
    /// The time since the service time was stored counts as an outage. If the previous process
    /// stored nothing, part of that time is still added, because frequent restarts must not stop
    /// the service time.
    pub(super) fn after_start(stored: Option<Expectation>, wall_ms: i64, passed: Duration) -> Self {
        let last_ms = stored.as_ref().and_then(|it| it.last_ms);
        let down_ms = last_ms.map_or(i64::MAX, |it| wall_ms.saturating_sub(it).max(0));
        let (now_ms, outages) =
            stored.map_or_else(Default::default, |it| (it.beat_service_ms, it.outages));
        let mut time = Self {
            now_ms,
            at: passed,
            stored_ms: None,
            outages,
            steps: ClockSteps::starting_at(wall_ms),
        };
        if time.resumed_ms() == now_ms && !time.outages.is_empty() {
            let counted_ms = down_ms.min(to_millis(SERVICE_TIME_INTERVAL));
            time.now_ms = now_ms.saturating_add(counted_ms);
        }
        time.record_outage(down_ms);
        time
    }

    pub(super) fn record_outage(&mut self, down_ms: i64) {
        match self.outages.last_mut() {
            Some(last) if last.service_ms == self.now_ms => {
                last.down_ms = last.down_ms.saturating_add(down_ms);
            }
            _ => {
                let too_many = (self.outages.len() + 1).saturating_sub(OUTAGES_MAX);
                self.outages.drain(..too_many);
                self.outages.push(Outage {
                    service_ms: self.now_ms,
                    down_ms,
                });
            }
        }
        self.stored_ms = None;
    }

    pub(super) fn resumed_ms(&self) -> i64 {
        self.outages.last().map_or(0, |it| it.service_ms)
    }

    /// Returns whether senders have had time to beat since the last outage. They get as much time
    /// as the outage lasted. During a wait of `length_ms`, they get at most the grace in total, so
    /// that repeated outages cannot postpone an alarm forever.
    pub(super) fn has_outage_grace_passed(&self, grace_ms: i64, length_ms: i64) -> bool {
        let (mut since_ms, mut left_ms, mut until_ms) = (i64::MIN, 0, i64::MIN);
        for outage in &self.outages {
            if outage.service_ms.saturating_sub(since_ms) >= length_ms {
                (since_ms, left_ms) = (outage.service_ms, grace_ms);
            }
            let more_ms = outage.down_ms.min(left_ms);
            left_ms -= more_ms;
            until_ms = outage.service_ms.saturating_add(more_ms);
        }
        self.now_ms >= until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{beats::new_expectation, domain::heartbeat::SERVICE};

    const SECOND_MS: i64 = 1_000;

    /// Service time and outages in seconds, and whether senders have had time to beat.
    type OutageCase = (i64, &'static [(i64, i64)], bool);

    fn watch_time(now_s: i64, outages: &[(i64, i64)]) -> WatchTime {
        let outages = outages.iter().map(|(service_s, down_s)| Outage {
            service_ms: service_s * SECOND_MS,
            down_ms: down_s.saturating_mul(SECOND_MS),
        });
        WatchTime {
            now_ms: now_s * SECOND_MS,
            at: Duration::ZERO,
            stored_ms: None,
            outages: outages.collect(),
            steps: ClockSteps::starting_at(0),
        }
    }

    #[test]
    fn outages_extend_a_wait_by_at_most_the_grace() {
        // A heartbeat with 10 s of grace that is late after 70 s.
        let cases: [OutageCase; 11] = [
            (5, &[], true),
            (104, &[(100, 5)], false),
            (105, &[(100, 5)], true),
            (109, &[(100, 3_600)], false),
            (110, &[(100, 3_600)], true),
            (109, &[(100, i64::MAX)], false),
            // The second outage gets the remainder of the grace.
            (123, &[(100, 6), (120, 6)], false),
            (124, &[(100, 6), (120, 6)], true),
            (120, &[(100, 10), (120, 10)], true),
            // The next wait gets the full grace.
            (170, &[(100, 10), (170, 10)], false),
            (180, &[(100, 10), (120, 10), (170, 10), (175, 10)], true),
        ];
        for (now_s, outages, expected) in cases {
            let is_settled =
                watch_time(now_s, outages).has_outage_grace_passed(10 * SECOND_MS, 70 * SECOND_MS);
            assert_eq!(is_settled, expected, "{now_s} {outages:?}");
        }
    }

    #[test]
    fn service_time_advances_across_short_runs() {
        let mut stored = None;
        let mut wall_ms = 0;
        for life in 0..100 {
            wall_ms += 2 * SECOND_MS;
            let time = WatchTime::after_start(stored, wall_ms, Duration::ZERO);
            assert!(time.outages.len() <= OUTAGES_MAX);
            assert_eq!(time.now_ms, life * 2 * SECOND_MS);
            stored = Some(Expectation {
                last_ms: Some(wall_ms),
                outages: time.outages,
                ..new_expectation(SERVICE, SERVICE, Vec::new(), time.now_ms)
            });
        }
    }
}
