//! Aging of counters. Minutes are merged into their hour after a day, hours are deleted after a
//! month, and days after 400 days.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    domain::{
        counter::{HOUR_MINUTES, Period, minute_number},
        noise::{NoiseBy, day_number},
    },
    error::Error,
    limits::{COUNTER_HOURS, COUNTER_MINUTES, NOISE_DAYS},
    repeat::repeat_until_shutdown,
    store::{EngineError, Lane, Store, record::counters::StoredCounter},
};

const INTERVAL: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub struct CounterAging {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl CounterAging {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let clock = Arc::clone(&self.clock);
        repeat_until_shutdown(
            self,
            &*clock,
            INTERVAL,
            shutdown,
            "failed to delete old counters",
            |it| Box::pin(it.age_counters()),
        )
        .await;
    }

    pub async fn age_counters(&self) -> Result<(), Error> {
        let now = minute_number(self.clock.now_ms());
        let oldest_minute = now.saturating_sub(COUNTER_MINUTES);
        let oldest_hour = (now / HOUR_MINUTES).saturating_sub(COUNTER_HOURS);
        for from in [Period::Minute(0), Period::Hour(0)] {
            let mut pages = self.store.counters(None, from);
            while let Some(page) = pages.next().await? {
                let is_old = |counter: &StoredCounter| match counter.counter.period {
                    Period::Minute(minute) => minute < oldest_minute,
                    Period::Hour(hour) => hour < oldest_hour,
                    Period::Day(_) | Period::Now => false,
                };
                self.merge_counters(page.into_iter().filter(is_old)).await?;
            }
        }
        let oldest_day = day_number(self.clock.now_ms()).saturating_sub(NOISE_DAYS);
        for by in NoiseBy::ALL {
            let mut pages = self.store.noise(by, 0, oldest_day);
            while let Some(page) = pages.next().await? {
                self.merge_counters(page.into_iter()).await?;
            }
        }
        Ok(())
    }

    async fn merge_counters(
        &self,
        old: impl Iterator<Item = StoredCounter>,
    ) -> Result<(), EngineError> {
        let mut changes = self.store.new_changes();
        for counter in old {
            match counter.counter.period {
                Period::Minute(minute) => changes.merge_into_hour(&counter, minute / HOUR_MINUTES),
                Period::Hour(_) | Period::Day(_) | Period::Now => changes.remove(&counter),
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        self.store.apply(Lane::Bulk, changes).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::ManualClock,
        domain::{
            Severity,
            counter::{Numbers, Subject},
        },
        samples::START_MS,
    };

    async fn read_all(store: &Store) -> Vec<(Period, i64)> {
        let mut found = Vec::new();
        for from in [Period::Minute(0), Period::Hour(0)] {
            let mut pages = store.counters(None, from);
            while let Some(page) = pages.next().await.unwrap() {
                let number = |numbers: &Numbers| numbers.get(Severity::Error);
                found.extend(
                    page.iter()
                        .map(|it| (it.counter.period, number(&it.numbers))),
                );
            }
        }
        found
    }

    #[tokio::test]
    async fn minute_counters_roll_up_to_hours_and_expire() {
        let store = Store::in_memory();
        let clock = Arc::new(ManualClock::starting_at(START_MS));
        let aging = CounterAging::new(store.clone(), Arc::clone(&clock) as _);
        for minute in 0..180 {
            let mut changes = store.new_changes();
            let at_ms = START_MS + minute * 60_000;
            changes.count(Subject::Events, at_ms, Severity::Error, 1);
            store.apply(Lane::Bulk, changes).await.unwrap();
        }
        aging.age_counters().await.unwrap();
        assert_eq!(read_all(&store).await.len(), 180);
        let hour = Duration::from_secs(3600);
        for hours in 1..=30 {
            clock.advance(hour);
            aging.age_counters().await.unwrap();
            let sum: i64 = read_all(&store)
                .await
                .iter()
                .map(|(_, number)| number)
                .sum();
            assert_eq!(sum, 180, "after {hours} h");
        }
        let hours = read_all(&store).await;
        assert!(hours.len() <= 4, "{hours:?}");
        clock.advance(hour * COUNTER_HOURS);
        aging.age_counters().await.unwrap();
        assert_eq!(read_all(&store).await, []);
    }
}
