//! The health of a destination and the verdict derived from it.

use std::{sync::Arc, time::Duration};

use crate::{
    clock::{Clock, to_millis},
    domain::{
        Health, HealthState, RecordId,
        counter::{Subject, Tally},
        destination::AttemptSummary,
    },
    limits::{BEHIND_FROM, SLOW_FROM},
    statistics::{StatisticsReader, Throughput},
    store::{Direction, EngineError, Index, Range, Store, record::bytes::read_id},
};

/// Maximum number of waiting deliveries that are searched for the oldest one.
const WAITING_SCANNED_MAX: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthVerdict {
    Untried,
    Healthy,
    Slow,
    /// Waiting messages have been delayed for a long time.
    Behind,
    /// The last attempts failed, or many of them.
    Failing,
    Paused,
}

#[derive(Debug, Clone)]
pub struct HealthSummary {
    pub verdict: HealthVerdict,
    pub health: Option<Health>,
    /// Median duration of recent delivered attempts.
    pub p50: Option<Duration>,
    /// 95th percentile of the duration of recent delivered attempts.
    pub p95: Option<Duration>,
    pub waiting: i64,
    /// Dead deliveries that were not sent again, excluding tests.
    pub dead: i64,
    /// Decision time of the oldest waiting delivery, in milliseconds since the epoch.
    pub oldest_ms: Option<i64>,
    /// Estimated time to deliver the waiting messages at the measured rate; `None` if nothing was
    /// delivered in the last hour.
    pub drain: Option<Duration>,
}

impl HealthSummary {
    pub async fn compute(
        store: &Store,
        clock: &Arc<dyn Clock>,
        id: RecordId,
        health: Option<Health>,
    ) -> Result<Self, EngineError> {
        let now = store.current_counts(&[Subject::Destination(id)]).await?;
        let count = |tally| now.first().map_or(0, |now| now.get(tally));
        let waiting = count(Tally::Waiting);
        let (mut oldest_ms, mut drain) = (None, None);
        if waiting > 0 {
            oldest_ms = oldest_waiting_ms(store, id).await?;
            let counting = StatisticsReader::new(store.clone(), Arc::clone(clock));
            let waiting = usize::try_from(waiting).unwrap_or_default();
            let throughput = counting.throughput(id).await?;
            drain = throughput.map(|it| drain_time(it, waiting));
        }
        let tried = health.as_ref().map_or(&[][..], |health| &health.tried);
        let health_summary = Self {
            verdict: HealthVerdict::Untried,
            p50: percentile(tried, 50),
            p95: percentile(tried, 95),
            health: None,
            waiting,
            dead: count(Tally::Dead),
            oldest_ms,
            drain,
        };
        Ok(Self {
            verdict: health_summary.verdict(health.as_ref(), clock.now_ms()),
            health,
            ..health_summary
        })
    }

    fn verdict(&self, health: Option<&Health>, now_ms: i64) -> HealthVerdict {
        // After a resume, the health is unknown until something is sent.
        let known = health.filter(|health| !health.is_resumed());
        let state = known.map(|health| health.state);
        let is_flaky = health.is_some_and(Health::is_flaky);
        let is_behind = self
            .oldest_ms
            .is_some_and(|oldest_ms| now_ms - oldest_ms >= to_millis(BEHIND_FROM));
        match state {
            Some(HealthState::Paused) => HealthVerdict::Paused,
            Some(HealthState::Failing) => HealthVerdict::Failing,
            Some(HealthState::Healthy) if is_flaky => HealthVerdict::Failing,
            _ if is_behind => HealthVerdict::Behind,
            None => HealthVerdict::Untried,
            Some(HealthState::Healthy) if self.p95 >= Some(SLOW_FROM) => HealthVerdict::Slow,
            Some(HealthState::Healthy) => HealthVerdict::Healthy,
        }
    }
}

fn percentile(tried: &[AttemptSummary], share: usize) -> Option<Duration> {
    let delivered = tried.iter().filter(|one| one.is_delivered);
    let mut took: Vec<_> = delivered.map(|one| one.took_ms).collect();
    took.sort_unstable();
    let at = (took.len() * share).div_ceil(100).checked_sub(1)?;
    took.get(at).map(|ms| Duration::from_millis((*ms).into()))
}

fn drain_time(throughput: Throughput, waiting: usize) -> Duration {
    Duration::from_millis(throughput.duration_ms(waiting).unsigned_abs())
}

async fn oldest_waiting_ms(store: &Store, id: RecordId) -> Result<Option<i64>, EngineError> {
    let (index, range) = (Index::DeliveryByDue, Range::with_prefix(&id.to_bytes()));
    let engine = store.engine();
    let waiting = engine.entries(index, range, Direction::Ascending, WAITING_SCANNED_MAX);
    let decided = waiting
        .await?
        .into_iter()
        .filter_map(|(_, key)| read_id(&key, 0));
    let oldest = decided.map(RecordId::time_ms).min();
    Ok(oldest.and_then(|ms| i64::try_from(ms).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_attempts(ends: &str) -> Vec<AttemptSummary> {
        let one = |(at, end): (usize, char)| AttemptSummary {
            took_ms: u32::try_from(at).unwrap() * 10 + 10,
            is_delivered: end == '+',
        };
        ends.chars().enumerate().map(one).collect()
    }

    #[test]
    fn percentiles_cover_only_delivered_attempts() {
        assert_eq!(percentile(&parse_attempts(""), 50), None);
        assert_eq!(percentile(&parse_attempts("--"), 95), None);
        let ms = |ms| Some(Duration::from_millis(ms));
        assert_eq!(percentile(&parse_attempts("+"), 95), ms(10));
        assert_eq!(percentile(&parse_attempts("+-++"), 50), ms(30));
        assert_eq!(percentile(&parse_attempts("++++++++++"), 95), ms(100));
        assert_eq!(percentile(&parse_attempts("++++++++++"), 50), ms(50));
    }

    #[test]
    fn destination_is_flaky_until_consecutive_successes() {
        for (ends, expected) in [
            ("", false),
            ("+-", false),
            ("+-+-+-+-+", true),
            ("----+++++", false),
            ("----++++", true),
            ("++++++++++++++++++++++----+", false),
        ] {
            let mut health = Health::new_unattempted(RecordId::from_parts(1, 1), 0);
            health.tried = parse_attempts(ends);
            assert_eq!(health.is_flaky(), expected, "{ends}");
        }
    }

    #[test]
    fn alternating_receiver_keeps_failing_since_until_stable() {
        let mut health = Health::new_unattempted(RecordId::from_parts(1, 1), 0);
        let mut now_ms = 0;
        let mut end = |health: &mut Health, ends: &str| {
            for end in ends.chars() {
                now_ms += 1_000;
                health.record_attempt(Duration::ZERO, end == '+', now_ms);
            }
        };
        end(&mut health, "++-");
        assert_eq!(health.failing_since_ms, Some(3_000));
        end(&mut health, "----+-+-+-+--+");
        assert_eq!(health.failing_since_ms, Some(3_000));
        end(&mut health, "+++");
        assert_eq!(health.failing_since_ms, Some(3_000));
        end(&mut health, "+");
        assert_eq!(health.failing_since_ms, None);
    }
}
