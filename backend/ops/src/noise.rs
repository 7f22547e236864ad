//! The noise report: notifications of a period of days, and the reactions to them.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_backend_model::calendar;
use jiff::{Timestamp, tz::TimeZone};

use crate::{
    clock::{Clock, DAY_MS, to_millis},
    domain::{
        Contact, Delivery, Destination, HoldKind, Name, Occurrence, RecordId, Rule, Status,
        Trigger,
        counter::{Counter, Numbers, Period, SLOTS, Subject},
        noise::{
            ACKNOWLEDGED_WITHIN, HALF_HOUR_MS, HALF_HOURS, NOISE_NUMBERS, NoiseBy, NoiseTally,
            contact_id, day_number,
        },
    },
    error::Error,
    limits::{
        NOISE_COUNTERS_MAX, NOISE_DAYS, NOISE_EVENTS_MAX, NOISE_RECORDS_MAX, NOISE_ROWS_MAX,
        NOISE_SPAN,
    },
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
    settings,
    store::{Direction, Record, Store, engine::Range, record::noise::NoiseScan},
};

const BATCH: usize = 500;
/// The local hours at which night ends and begins.
const NIGHT_HOURS: (i8, i8) = (7, 22);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseRows {
    Counted(NoiseBy),
    EventName,
}

#[derive(Debug)]
pub struct NoiseRequest {
    pub start_ms: Option<i64>,
    pub end_ms: Option<i64>,
    pub rows: NoiseRows,
    /// IANA time zone for determining the night; empty for UTC.
    pub time_zone: String,
}

/// The notifications of a period of days, and the reactions to them.
#[derive(Debug)]
pub struct NoiseReport {
    /// Rows, most notifications first.
    pub rows: Vec<NoiseLine>,
    /// Start of the first day, in milliseconds since the epoch.
    pub start_ms: i64,
    /// End of the last day, in milliseconds since the epoch.
    pub end_ms: i64,
    /// Time since which notifications are counted by event name, in milliseconds since the epoch.
    pub events_start_ms: i64,
    pub left_out: usize,
}

#[derive(Debug, Clone)]
pub struct NoiseLine {
    /// Name of the subject; empty for the sum of deleted subjects.
    pub name: String,
    pub numbers: NoiseNumbers,
    pub night: i64,
    /// Names of events with their notifications, most frequent first.
    pub events: Vec<(String, i64)>,
}

#[derive(Debug, Clone)]
pub struct NoiseNumbers([i64; NOISE_NUMBERS]);

impl Default for NoiseNumbers {
    fn default() -> Self {
        Self([0; NOISE_NUMBERS])
    }
}

impl NoiseNumbers {
    pub fn get(&self, tally: NoiseTally) -> i64 {
        self.0[usize::from(tally.index())]
    }

    pub(super) fn add(&mut self, part: u8, numbers: &Numbers) {
        let first = usize::from(part) * SLOTS;
        for (to, number) in self.0.iter_mut().skip(first).zip(numbers.0) {
            *to = to.saturating_add(number);
        }
    }

    pub fn skipped_by_hold(&self) -> impl Iterator<Item = (HoldKind, i64)> {
        let all = HoldKind::ALL.into_iter();
        let all = all.map(|kind| (kind, self.get(NoiseTally::Skipped(kind))));
        all.filter(|(_, count)| *count > 0)
    }

    /// Returns the median time to acknowledgement in seconds; `None` without acknowledgements.
    pub fn median_acknowledge_seconds(&self) -> Option<i64> {
        let within = |at: usize| {
            let at = u8::try_from(at).unwrap_or_default();
            self.get(NoiseTally::AcknowledgedWithin(at))
        };
        let all: i64 = (0..ACKNOWLEDGED_WITHIN.len()).map(within).sum();
        let mut sum = 0;
        let bounds = ACKNOWLEDGED_WITHIN.iter().enumerate();
        let mut reached = bounds.filter(|(at, _)| {
            sum += within(*at);
            sum > 0 && sum * 2 >= all
        });
        reached.next().map(|(_, bound)| *bound)
    }
}

#[derive(Default)]
struct NoiseSum {
    numbers: NoiseNumbers,
    night: i64,
}

impl NoiseSum {
    fn add(&mut self, part: u8, numbers: &Numbers, day: u32, zone: &TimeZone) {
        self.numbers.add(part, numbers);
        for half_hour in 0..HALF_HOURS {
            let (of, slot) = NoiseTally::HalfHour(half_hour).slot();
            if of == part && numbers.get(slot) != 0 {
                let at_ms = i64::from(day) * DAY_MS + i64::from(half_hour) * HALF_HOUR_MS;
                if is_night(at_ms, zone) {
                    self.night += numbers.get(slot);
                }
            }
        }
    }
}

fn is_night(at_ms: i64, zone: &TimeZone) -> bool {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else {
        return false;
    };
    let hour = zone.to_datetime(at).hour();
    hour < NIGHT_HOURS.0 || hour >= NIGHT_HOURS.1
}

#[derive(Debug, Clone)]
pub struct NoiseReports {
    store: Store,
    clock: Arc<dyn Clock>,
}

/// A range of whole UTC days since the epoch.
#[derive(Debug, Clone, Copy)]
struct DayRange {
    start: u32,
    end: u32,
}

impl DayRange {
    fn start_ms(self) -> i64 {
        i64::from(self.start) * DAY_MS
    }

    fn end_ms(self) -> i64 {
        i64::from(self.end) * DAY_MS
    }

    /// Removes the days before `known_ms`, for which counts may be missing.
    fn with_start(self, known_ms: i64) -> Self {
        let first = u32::try_from(known_ms.max(0).div_euclid(DAY_MS)).unwrap_or(u32::MAX);
        let start = self.start.max(first).min(self.end);
        Self { start, ..self }
    }
}

type Names = BTreeMap<RecordId, String>;
type Events = HashMap<RecordId, BTreeMap<String, i64>>;

impl NoiseReports {
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    pub async fn report(&self, request: &NoiseRequest) -> Result<NoiseReport, Error> {
        let (days, zone) = self.check_request(request)?;
        let since_ms = self.store.noise_since_ms().await?;
        let days = days.with_start(since_ms.unwrap_or_else(|| self.clock.now_ms()));
        match request.rows {
            NoiseRows::Counted(by) => self.count_notifications(by, days, &zone).await,
            NoiseRows::EventName => self.count_by_event(days, &zone).await,
        }
    }

    fn check_request(&self, request: &NoiseRequest) -> Result<(DayRange, TimeZone), Error> {
        let end_ms = request.end_ms.unwrap_or_else(|| self.clock.now_ms());
        let start_ms = request.start_ms.unwrap_or(end_ms - to_millis(NOISE_SPAN));
        if end_ms <= start_ms {
            return Err(Error::invalid("end", "must be after `start`"));
        }
        if end_ms.saturating_sub(start_ms) > i64::from(NOISE_DAYS) * DAY_MS {
            let message = format!("is more than {NOISE_DAYS} d after `start`");
            return Err(Error::invalid("end", message));
        }
        let zone = match &*request.time_zone {
            "" => TimeZone::UTC,
            name => calendar::find_zone(name)
                .map_err(|missing| Error::invalid("timeZone", missing.to_string()))?,
        };
        for at_ms in [start_ms, end_ms] {
            let at = Timestamp::from_millisecond(at_ms);
            let at = at.map_err(|_far| Error::invalid("start", "is not a valid time"))?;
            if zone.to_offset(at).seconds() % 1_800 != 0 {
                let message = "has an offset that is not a multiple of 30 min; use another zone";
                return Err(Error::invalid("timeZone", message));
            }
        }
        let days = DayRange {
            start: day_number(start_ms),
            end: day_number(end_ms - 1).saturating_add(1),
        };
        Ok((days, zone))
    }

    async fn count_notifications(
        &self,
        by: NoiseBy,
        days: DayRange,
        zone: &TimeZone,
    ) -> Result<NoiseReport, Error> {
        let names = self.load_names(by).await?;
        let mut sums: BTreeMap<Option<RecordId>, NoiseSum> = BTreeMap::new();
        let mut pages = self.store.noise(by, days.start, days.end);
        let mut read = 0;
        while let Some(page) = pages.next().await? {
            read += page.len();
            if read > NOISE_COUNTERS_MAX {
                let message = "too much data in this period; use a later start";
                return Err(Error::invalid("start", message));
            }
            for one in page {
                if let Some((id, part, day)) = counter_subject(&one.counter) {
                    let sum = sums.entry(Some(id).filter(|it| names.contains_key(it)));
                    sum.or_default().add(part, &one.numbers, day, zone);
                }
            }
            scan::yield_if_needed().await;
        }
        let (mut events, events_start_ms) = self.load_events(by, days).await?;
        let lines = sums.into_iter().map(|(id, sum)| {
            let name = id.and_then(|id| names.get(&id)).cloned();
            let events = id.and_then(|id| events.remove(&id)).unwrap_or_default();
            NoiseLine {
                name: name.unwrap_or_default(),
                numbers: sum.numbers,
                night: sum.night,
                events: sort_by_count(events),
            }
        });
        Ok(report(lines.collect(), days, events_start_ms))
    }

    async fn load_names(&self, by: NoiseBy) -> Result<Names, Error> {
        let store = &self.store;
        let of = |id: RecordId, name: &Name| (id, name.to_string());
        match by {
            NoiseBy::Rule => collect_names(store, |it: &Rule| of(it.id, &it.name)).await,
            NoiseBy::Trigger => collect_names(store, |it: &Trigger| of(it.id, &it.name)).await,
            NoiseBy::Destination => {
                collect_names(store, |it: &Destination| of(it.id, &it.name)).await
            }
            NoiseBy::Contact => {
                collect_names(store, |it: &Contact| of(contact_id(&it.name), &it.name)).await
            }
        }
    }

    /// Returns the number of notifications per subject and event name, and the time from which they
    /// are known, in milliseconds since the epoch.
    async fn load_events(&self, by: NoiseBy, days: DayRange) -> Result<(Events, i64), Error> {
        let mut events = Events::new();
        let mut decided = BTreeSet::new();
        let start_ms = self.count_deliveries(days, |delivery| {
            let Some(decision) = delivery.decision_key().filter(|_| !delivery.is_dry_run()) else {
                return;
            };
            for (_, id) in delivery.noise_subjects().filter(|it| it.0 == by) {
                if decided.insert((decision, id)) {
                    let name = delivery.content.occurrence.name.clone();
                    *events.entry(id).or_default().entry(name).or_default() += 1;
                }
            }
        });
        let start_ms = start_ms.await?;
        Ok((events, start_ms))
    }

    /// Reads the stored deliveries of a period of days, newest first. Returns the time from which
    /// they are complete, in milliseconds since the epoch.
    async fn count_deliveries(
        &self,
        days: DayRange,
        mut read: impl FnMut(&Delivery),
    ) -> Result<i64, Error> {
        let retention = settings::read_values(&self.store).await?.delivery_retention;
        let retained_ms = self.clock.now_ms().saturating_sub(to_millis(retention));
        let start_ms = if retention.is_zero() {
            days.start_ms()
        } else {
            days.start_ms().max(retained_ms.min(days.end_ms()))
        };
        let key = |at_ms: i64| {
            let at_ms = u64::try_from(at_ms).unwrap_or_default();
            RecordId::first_at_time(at_ms).to_bytes().to_vec()
        };
        let mut range = Range {
            start: key(start_ms),
            end: Some(key(days.end_ms())),
        };
        let mut left = NOISE_RECORDS_MAX;
        loop {
            let page =
                self.store
                    .page::<Delivery>(range.clone(), Direction::Descending, BATCH.min(left));
            let page = page.await?;
            let Some(last) = page.last() else {
                return Ok(start_ms);
            };
            left -= page.len();
            range.end = Some(last.value.key());
            let last_ms = last.value.create_ms;
            for delivery in &page {
                read(&delivery.value);
                scan::yield_if_needed().await;
            }
            if left == 0 {
                // Further deliveries may have the time `last_ms`.
                return Ok(last_ms + 1);
            }
        }
    }

    async fn count_by_event(&self, days: DayRange, zone: &TimeZone) -> Result<NoiseReport, Error> {
        let mut sums: BTreeMap<String, BTreeMap<u32, NoiseSum>> = BTreeMap::new();
        let mut scan = NoiseScan::default();
        let mut add = |name: &str, scan: &mut NoiseScan| {
            for (counter, numbers) in scan.take_counts() {
                // Sum by rule only, because each notification belongs to exactly one rule.
                if let Subject::Noise(NoiseBy::Rule, _, part) = counter.subject
                    && let Period::Day(day) = counter.period
                {
                    let of_name = sums.entry(name.to_owned()).or_default();
                    let sum = of_name.entry(day).or_default();
                    sum.add(part, &numbers, day, zone);
                }
            }
        };
        let known_ms = self.count_deliveries(days, |delivery| {
            scan.add(delivery);
            add(&delivery.content.occurrence.name, &mut scan);
        });
        let known_ms = known_ms.await?;
        let known_ms = known_ms.max(
            self.count_occurrences(days, |occurrence| {
                scan.add(occurrence);
                add(&occurrence.name, &mut scan);
            })
            .await?,
        );
        // The first day may be incomplete.
        let whole = days.with_start(known_ms.saturating_add(DAY_MS - 1));
        let lines = sums.into_iter().filter_map(|(name, by_day)| {
            let mut numbers = NoiseNumbers::default();
            let mut night = 0;
            for sum in by_day.range(whole.start..whole.end).map(|it| it.1) {
                for (to, number) in numbers.0.iter_mut().zip(sum.numbers.0) {
                    *to += number;
                }
                night += sum.night;
            }
            let is_there = numbers.0.iter().any(|it| *it != 0);
            is_there.then(|| NoiseLine {
                events: Vec::new(),
                name,
                numbers,
                night,
            })
        });
        Ok(report(lines.collect(), whole, whole.start_ms()))
    }

    /// Reads the stored occurrences that may have notified in a period of days. Returns the time
    /// from which they are complete, in milliseconds since the epoch.
    async fn count_occurrences(
        &self,
        days: DayRange,
        mut read: impl FnMut(&Occurrence),
    ) -> Result<i64, Error> {
        let retention = settings::read_values(&self.store).await?.event_retention;
        let mut start_ms = days.start_ms();
        if !retention.is_zero() {
            start_ms = start_ms.max(self.clock.now_ms().saturating_sub(to_millis(retention)));
        }
        for statuses in [vec![Status::Open, Status::Suppressed], vec![Status::Closed]] {
            let is_closed = statuses.contains(&Status::Closed);
            let filter = Filter {
                statuses,
                ..Filter::default()
            };
            let mut walk = IndexWalk::new(&self.store, &filter, NEWEST_FIRST, None);
            let mut left = NOISE_RECORDS_MAX;
            loop {
                let batch = walk.next(BATCH).await?;
                let Some((_, last)) = batch.last() else { break };
                left = left.saturating_sub(batch.len());
                let last_ms = last.value.last_seen_ms;
                for (_, found) in &batch {
                    read(&found.value);
                    scan::yield_if_needed().await;
                }
                if left == 0 {
                    // An occurrence can notify after it was last seen; an open one, long after.
                    start_ms = if is_closed {
                        start_ms.max(last_ms.saturating_add(DAY_MS))
                    } else {
                        days.end_ms()
                    };
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        Ok(start_ms)
    }
}

async fn collect_names<T: Record>(
    store: &Store,
    of: impl Fn(&T) -> (RecordId, String),
) -> Result<Names, Error> {
    let mut names = Names::new();
    let mut pages = store.pages::<T>(Range::with_prefix(&[]));
    while let Some(page) = pages.next().await? {
        names.extend(page.iter().map(|it| of(&it.value)));
    }
    Ok(names)
}

fn counter_subject(counter: &Counter) -> Option<(RecordId, u8, u32)> {
    match (counter.subject, counter.period) {
        (Subject::Noise(_, id, part), Period::Day(day)) => Some((id, part, day)),
        _ => None,
    }
}

fn sort_by_count(events: BTreeMap<String, i64>) -> Vec<(String, i64)> {
    let mut events: Vec<_> = events.into_iter().collect();
    events.sort_by_key(|(_, count)| Reverse(*count));
    events.truncate(NOISE_EVENTS_MAX);
    events
}

fn report(mut rows: Vec<NoiseLine>, days: DayRange, events_start_ms: i64) -> NoiseReport {
    rows.sort_by(|a, b| {
        let count = |it: &NoiseLine| it.numbers.get(NoiseTally::Notification);
        let order = count(b).cmp(&count(a));
        order.then_with(|| a.name.cmp(&b.name))
    });
    let left_out = rows.len().saturating_sub(NOISE_ROWS_MAX);
    rows.truncate(NOISE_ROWS_MAX);
    NoiseReport {
        rows,
        start_ms: days.start_ms(),
        end_ms: days.end_ms(),
        events_start_ms,
        left_out,
    }
}

#[cfg(test)]
mod tests;
