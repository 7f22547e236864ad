//! Statistics of the service, in columns of time.

mod aging;

use std::sync::Arc;

use bellwether_proto::v1::{
    DeliveryStatistics, GetStatisticsResponse, NamedStatistics, SeverityStatistics,
};

pub use self::aging::CounterAging;
use crate::{
    clock::Clock,
    decide::Snapshot,
    domain::{
        RecordId, Severity,
        counter::{HOUR_MINUTES, MINUTE_MS, Numbers, Period, Subject, Tally, minute_number},
    },
    error::Error,
    limits::{STATISTICS_COLUMNS_MAX, STATISTICS_SPAN_MAX, STATISTICS_SUBJECTS_MAX},
    store::{EngineError, Store},
    wire::{
        time::{duration_from_ms, timestamp},
        to_i32,
    },
};

/// Number of columns in the last hour over which a rate is measured if there are deliveries in
/// them.
const RECENT_COLUMNS: usize = 10;
const DAY_MINUTES: u32 = 24 * HOUR_MINUTES;
const STEPS: [u32; 5] = [1, 5, 15, HOUR_MINUTES, 6 * HOUR_MINUTES];

/// Columns of time, oldest first; the last one is still in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeColumns {
    /// First minute, counted from the epoch.
    start: u32,
    step: u32,
    count: usize,
}

impl TimeColumns {
    /// Returns columns that cover a number of minutes. They are as short as the maximum number of
    /// columns allows.
    fn for_span(now_ms: i64, minutes: u32) -> Self {
        let fits = |step: &u32| minutes.div_ceil(*step) <= STATISTICS_COLUMNS_MAX;
        let step = STEPS.into_iter().find(fits);
        let step = step.unwrap_or(6 * HOUR_MINUTES);
        let count = minutes.div_ceil(step);
        let newest = minute_number(now_ms) / step;
        Self {
            start: (newest + 1).saturating_sub(count) * step,
            step,
            count: count as usize,
        }
    }

    fn start_ms(&self) -> i64 {
        i64::from(self.start) * MINUTE_MS
    }

    fn step_ms(&self) -> i64 {
        i64::from(self.step) * MINUTE_MS
    }

    fn column_index(&self, minute: u32) -> Option<usize> {
        let at = minute.checked_sub(self.start)? / self.step;
        Some(at as usize).filter(|at| *at < self.count)
    }

    async fn read(&self, store: &Store, subject: Subject) -> Result<Vec<Numbers>, EngineError> {
        let mut columns = vec![Numbers::default(); self.count];
        let from = [
            Period::Hour(self.start / HOUR_MINUTES),
            Period::Minute(self.start),
        ];
        for from in from {
            let mut pages = store.counters(Some(subject), from);
            while let Some(page) = pages.next().await? {
                for found in page {
                    let minute = match found.counter.period {
                        Period::Hour(hour) => hour.saturating_mul(HOUR_MINUTES),
                        Period::Minute(minute) => minute,
                        Period::Day(_) | Period::Now => continue,
                    };
                    if let Some(at) = self.column_index(minute) {
                        columns[at].add_all(&found.numbers);
                    }
                }
            }
        }
        Ok(columns)
    }
}

#[derive(Debug, Clone, Default)]
pub struct DeliveryCounts {
    pub now: Numbers,
    /// Counts of past events, by column.
    pub happened: Vec<Numbers>,
}

impl DeliveryCounts {
    pub fn tally_total(&self, tally: Tally) -> i64 {
        self.happened.iter().map(|column| column.get(tally)).sum()
    }

    /// Returns the number of waiting deliveries at the end of each column, computed backward from
    /// the current number.
    fn waiting_at_end(&self) -> Vec<i64> {
        let mut waiting = self.now.get(Tally::Waiting);
        let mut waited = Vec::with_capacity(self.happened.len());
        for column in self.happened.iter().rev() {
            waited.push(waiting.max(0));
            let ended = [Tally::Delivered, Tally::Dead, Tally::Cancelled];
            let ended: i64 = ended.into_iter().map(|tally| column.get(tally)).sum();
            waiting += ended - column.get(Tally::Decided);
        }
        waited.reverse();
        waited
    }

    pub fn is_idle(&self) -> bool {
        self.now.get(Tally::Waiting) == 0 && self.happened.iter().all(Numbers::is_zero)
    }

    fn to_wire(&self) -> DeliveryStatistics {
        let now = |tally| Some(to_i32(self.now.get(tally)));
        let happened = |tally| {
            let columns = self.happened.iter();
            columns.map(|column| to_i32(column.get(tally))).collect()
        };
        DeliveryStatistics {
            waiting_count: now(Tally::Waiting),
            delivered_count: now(Tally::Delivered),
            dead_count: now(Tally::Dead),
            cancelled_count: now(Tally::Cancelled),
            decided: happened(Tally::Decided),
            delivered: happened(Tally::Delivered),
            dead: happened(Tally::Dead),
            cancelled: happened(Tally::Cancelled),
            failed_attempts: happened(Tally::Failed),
            waiting: self.waiting_at_end().into_iter().map(to_i32).collect(),
        }
    }

    /// Returns the sort key: waiting deliveries first, then activity.
    fn sort_key(&self) -> (i64, i64) {
        let happened = [Tally::Decided, Tally::Failed].map(|tally| self.tally_total(tally));
        (self.now.get(Tally::Waiting), happened.into_iter().sum())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    delivered: i64,
    span_ms: i64,
}

impl Throughput {
    fn measure(columns: &TimeColumns, counts: &[Numbers], now_ms: i64) -> Option<Self> {
        let delivered: Vec<_> = counts.iter().map(|it| it.get(Tally::Delivered)).collect();
        let busy = |from: usize| (from..delivered.len()).find(|at| delivered[*at] > 0);
        // Idle time before recent deliveries does not lower the rate.
        let recent = delivered.len().saturating_sub(RECENT_COLUMNS);
        let first = busy(recent).or_else(|| busy(0))?;
        let start_ms = columns.start_ms() + columns.step_ms() * i64::try_from(first).ok()?;
        Some(Self {
            delivered: delivered[first..].iter().sum(),
            span_ms: now_ms.saturating_sub(start_ms).max(1),
        })
    }

    /// Returns the time that a number of deliveries takes, in milliseconds.
    pub fn duration_ms(self, count: usize) -> i64 {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        count.saturating_mul(self.span_ms) / self.delivered
    }
}

#[derive(Debug, Clone)]
pub struct StatisticsReader {
    store: Store,
    clock: Arc<dyn Clock>,
}

impl StatisticsReader {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// Returns the statistics of the past `span_ms` milliseconds.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the span is out of range, or an error if the store fails.
    pub async fn statistics(
        &self,
        span_ms: i64,
        rules: &Snapshot,
    ) -> Result<GetStatisticsResponse, Error> {
        let columns = TimeColumns::for_span(self.clock.now_ms(), span_minutes(span_ms)?);
        let destinations = rules
            .destinations()
            .map(|it| (it.name.to_string(), it.id))
            .collect();
        let of_rules = rules.rules().iter();
        let of_rules = of_rules.map(|it| (it.name.to_string(), it.id)).collect();
        let deliveries = self.delivery_counts(&columns, Subject::Deliveries).await?;
        Ok(GetStatisticsResponse {
            counted_since_time: self.store.counters_since_ms().await?.map(timestamp),
            start_time: Some(timestamp(columns.start_ms())),
            step: Some(duration_from_ms(columns.step_ms())),
            events: self.events_by_severity(&columns).await?,
            deliveries: Some(deliveries.to_wire()),
            destinations: self
                .busiest_names(&columns, destinations, Subject::Destination)
                .await?,
            rules: self
                .busiest_names(&columns, of_rules, Subject::Rule)
                .await?,
        })
    }

    /// Returns the number of events accepted per minute, for the last 60 minutes, oldest first.
    pub async fn events_per_minute(&self) -> Result<Vec<i64>, EngineError> {
        let columns = TimeColumns::for_span(self.clock.now_ms(), HOUR_MINUTES);
        let minutes = columns.read(&self.store, Subject::Events).await?;
        let all = |minute: Numbers| Severity::ALL.map(|severity| minute.get(severity));
        let sum = |minute| all(minute).into_iter().sum();
        Ok(minutes.into_iter().map(sum).collect())
    }

    /// Returns the rate of successful deliveries to a destination in the last hour, measured from
    /// the first one on; `None` if there were none.
    pub async fn throughput(
        &self,
        destination: RecordId,
    ) -> Result<Option<Throughput>, EngineError> {
        let now_ms = self.clock.now_ms();
        let columns = TimeColumns::for_span(now_ms, HOUR_MINUTES);
        let counts = columns
            .read(&self.store, Subject::Destination(destination))
            .await?;
        Ok(Throughput::measure(&columns, &counts, now_ms))
    }

    pub async fn last_day_counts(
        &self,
        destination: RecordId,
    ) -> Result<DeliveryCounts, EngineError> {
        let columns = TimeColumns {
            start: minute_number(self.clock.now_ms()).saturating_sub(DAY_MINUTES - 1),
            step: 1,
            count: DAY_MINUTES as usize,
        };
        self.delivery_counts(&columns, Subject::Destination(destination))
            .await
    }

    async fn events_by_severity(
        &self,
        columns: &TimeColumns,
    ) -> Result<Vec<SeverityStatistics>, EngineError> {
        let columns = columns.read(&self.store, Subject::Events).await?;
        let of = |severity: Severity| SeverityStatistics {
            severity: severity as i32,
            counts: columns.iter().map(|it| to_i32(it.get(severity))).collect(),
        };
        let all = Severity::ALL.into_iter().map(of);
        Ok(all
            .filter(|it| it.counts.iter().any(|count| *count != 0))
            .collect())
    }

    async fn delivery_counts(
        &self,
        columns: &TimeColumns,
        subject: Subject,
    ) -> Result<DeliveryCounts, EngineError> {
        let now = self.store.current_counts(&[subject]).await?;
        Ok(DeliveryCounts {
            now: now.first().copied().unwrap_or_default(),
            happened: columns.read(&self.store, subject).await?,
        })
    }

    async fn busiest_names(
        &self,
        columns: &TimeColumns,
        named: Vec<(String, RecordId)>,
        subject: impl Fn(RecordId) -> Subject,
    ) -> Result<Vec<NamedStatistics>, EngineError> {
        let mut all = Vec::new();
        for (name, id) in named {
            let counts = self.delivery_counts(columns, subject(id)).await?;
            if !counts.is_idle() {
                all.push((name, counts));
            }
        }
        all.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.sort_key()));
        all.truncate(STATISTICS_SUBJECTS_MAX);
        let named = |(name, counts): (String, DeliveryCounts)| NamedStatistics {
            name,
            deliveries: Some(counts.to_wire()),
        };
        Ok(all.into_iter().map(named).collect())
    }
}

fn span_minutes(span_ms: i64) -> Result<u32, Error> {
    let max_ms = crate::clock::to_millis(STATISTICS_SPAN_MAX);
    if !(MINUTE_MS..=max_ms).contains(&span_ms) {
        let days = STATISTICS_SPAN_MAX.as_secs() / (24 * 3600);
        let range = format!("is between 60 s and {days} days");
        return Err(Error::invalid("span", range));
    }
    let minutes = (span_ms + MINUTE_MS - 1) / MINUTE_MS;
    Ok(u32::try_from(minutes).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_use_the_shortest_step_and_end_now() {
        let now_ms = 1_700_000_123_456;
        for (minutes, step, count) in [(1, 1, 1), (60, 1, 60), (1440, 15, 96), (43_200, 360, 120)] {
            let columns = TimeColumns::for_span(now_ms, minutes);
            assert_eq!((columns.step, columns.count), (step, count), "{minutes}");
            assert_eq!(columns.column_index(minute_number(now_ms)), Some(count - 1));
            assert_eq!(
                columns.column_index(minute_number(now_ms) - minutes + step),
                Some(0)
            );
            assert_eq!(columns.column_index(columns.start.wrapping_sub(1)), None);
        }
    }

    #[test]
    fn throughput_is_measured_from_the_first_recent_delivery() {
        let columns = TimeColumns {
            start: 0,
            step: 1,
            count: 60,
        };
        let measured = |busy: &[(usize, i64)]| {
            let mut counts = vec![Numbers::default(); 60];
            for (at, delivered) in busy {
                counts[*at].add(Tally::Delivered, *delivered);
            }
            let now_ms = 60 * MINUTE_MS;
            Throughput::measure(&columns, &counts, now_ms).map(|it| it.duration_ms(10))
        };
        assert_eq!(measured(&[]), None);
        // Ten a minute for two minutes; earlier deliveries do not count.
        assert_eq!(measured(&[(58, 10), (59, 10)]), Some(MINUTE_MS));
        assert_eq!(measured(&[(3, 1), (58, 10), (59, 10)]), Some(MINUTE_MS));
        // One delivery, 30 minutes ago.
        assert_eq!(measured(&[(30, 1)]), Some(300 * MINUTE_MS));
    }

    #[test]
    fn past_waiting_counts_are_derived_from_current_ones() {
        let column = |decided, delivered, dead| {
            let mut numbers = Numbers::default();
            numbers.add(Tally::Decided, decided);
            numbers.add(Tally::Delivered, delivered);
            numbers.add(Tally::Dead, dead);
            numbers
        };
        let mut now = Numbers::default();
        now.add(Tally::Waiting, 3);
        let counts = DeliveryCounts {
            now,
            happened: vec![column(5, 0, 0), column(0, 2, 1), column(1, 0, 0)],
        };
        assert_eq!(counts.waiting_at_end(), [5, 2, 3]);
    }
}
