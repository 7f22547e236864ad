//! Counters: numbers to which each commit adds without reading them, so that commits do not
//! conflict over them.
//!
//! Counters of the present can be derived from the records, and `verify` compares them with the
//! records. Counters of past minutes and hours cannot be derived. They begin when a version that
//! counts first opens a data folder.

use std::collections::BTreeMap;

use super::{
    Store,
    bytes::{Key, read_id},
};
use crate::{
    domain::{
        Delivery, DeliveryState, RecordId,
        counter::{Counter, CounterTally, Numbers, Period, SLOTS, Slot, Subject, Tally},
        noise::{NoiseBy, day_number},
    },
    engine::{
        Action, Change, Direction, EngineError, Expect, Index, Kind, Lane, Range, decode_numbers,
    },
};

/// Key of the record with the time since which there are counters; sorts before all counters.
const SINCE: &[u8] = &[0];
/// Key of the record with the time since which there are noise counters, if they began later.
const NOISE_SINCE: &[u8] = &[0, 1];
/// Key of the record with the time since which resent dead deliveries are no longer counted as
/// dead.
const RESENT_SINCE: &[u8] = &[0, 2];
const DAYS: u8 = 4;
const DAY_MS: i64 = 24 * 3_600_000;
const PAGE: usize = 1_000;

#[derive(Debug, Default)]
pub struct Counts(BTreeMap<Counter, Numbers>);

impl Counts {
    pub(crate) fn add(&mut self, counter: Counter, slot: impl Slot, number: i64) {
        self.0.entry(counter).or_default().add(slot, number);
    }

    /// Counts a new record. With `is_past`, its past steps were already counted.
    pub(crate) fn add_new(&mut self, new: &[CounterTally], is_past: bool) {
        for (counter, tally) in new {
            if counter.period == Period::Now || !is_past {
                self.add(*counter, *tally, 1);
            }
        }
    }

    pub(crate) fn replace_counted(&mut self, old: &[CounterTally], new: &[CounterTally]) {
        let other = |these: &[CounterTally], those: &[CounterTally]| -> Vec<CounterTally> {
            let these = these.iter().filter(|it| !those.contains(it));
            these.copied().collect()
        };
        self.subtract_removed(&other(old, new));
        self.add_new(&other(new, old), false);
    }

    /// Counts the removal of a record. Counters of the past are unaffected.
    pub(crate) fn subtract_removed(&mut self, old: &[CounterTally]) {
        for (counter, tally) in old {
            if counter.period == Period::Now {
                self.add(*counter, *tally, -1);
            }
        }
    }

    /// Moves the value of a minute, as it was read, to an hour.
    pub(super) fn merge_into_hour(&mut self, minute: &StoredCounter, hour: u32) {
        let counter = Counter {
            period: Period::Hour(hour),
            ..minute.counter
        };
        self.0.entry(counter).or_default().add_all(&minute.numbers);
        self.subtract(minute);
    }

    /// Subtracts the value of a counter as it was read. Concurrent additions remain.
    pub(super) fn subtract(&mut self, stored: &StoredCounter) {
        let back = Numbers(stored.numbers.0.map(i64::saturating_neg));
        self.0.entry(stored.counter).or_default().add_all(&back);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_iter(self) -> impl Iterator<Item = (Counter, Numbers)> {
        self.0.into_iter()
    }

    pub(crate) fn into_changes(self) -> impl Iterator<Item = Change> {
        let counted = self.0.into_iter().filter(|(_, numbers)| !numbers.is_zero());
        counted.map(|(counter, numbers)| addition_change(counter, &numbers))
    }
}

fn addition_change(counter: Counter, numbers: &Numbers) -> Change {
    counter_change(
        &counter_key(counter),
        Expect::Any,
        Action::Add(numbers.0.into()),
    )
}

fn counter_change(key: &[u8], expect: Expect, action: Action) -> Change {
    Change {
        is_logged: false,
        ..Change::new(Kind::Counter, key, expect, action)
    }
}

fn subject_prefix(subject: Option<Subject>, period: Period) -> Key {
    let period = match period {
        Period::Now => 1,
        Period::Minute(_) => 2,
        Period::Hour(_) => 3,
        Period::Day(_) => DAYS,
    };
    let key = Key::new().byte(period);
    match subject {
        None => key,
        Some(Subject::Events) => key.byte(1),
        Some(Subject::Deliveries) => key.byte(2),
        Some(Subject::Destination(id)) => key.byte(3).id(id),
        Some(Subject::Rule(id)) => key.byte(4).id(id),
        Some(Subject::Noise(by, id, part)) => key.byte(by as u8).id(id).byte(part),
    }
}

fn day_prefix(by: NoiseBy, day: u32) -> Key {
    Key::new().byte(DAYS).byte(by as u8).number(day)
}

fn counter_key(counter: Counter) -> Vec<u8> {
    if let (Period::Day(day), Subject::Noise(by, id, part)) = (counter.period, counter.subject) {
        return day_prefix(by, day).id(id).byte(part).build();
    }
    let key = subject_prefix(Some(counter.subject), counter.period);
    match counter.period {
        Period::Now => key,
        Period::Minute(number) | Period::Hour(number) | Period::Day(number) => key.number(number),
    }
    .build()
}

fn parse_counter_key(key: &[u8]) -> Option<Counter> {
    let (period, rest) = key.split_first()?;
    let (subject, rest) = rest.split_first()?;
    if *period == DAYS {
        return parse_day_key(*subject, rest);
    }
    let id = || -> Option<(RecordId, &[u8])> { Some((read_id(rest, 0)?, rest.get(16..)?)) };
    let (subject, time) = match subject {
        1 => (Subject::Events, rest),
        2 => (Subject::Deliveries, rest),
        3 => id().map(|(id, time)| (Subject::Destination(id), time))?,
        4 => id().map(|(id, time)| (Subject::Rule(id), time))?,
        _ => return None,
    };
    let number = || Some(u32::from_be_bytes(time.try_into().ok()?));
    let period = match period {
        1 if time.is_empty() => Period::Now,
        2 => Period::Minute(number()?),
        3 => Period::Hour(number()?),
        _ => return None,
    };
    Some(Counter { subject, period })
}

fn parse_day_key(by: u8, rest: &[u8]) -> Option<Counter> {
    let by = NoiseBy::ALL.into_iter().find(|it| *it as u8 == by)?;
    let (day, rest) = rest.split_first_chunk()?;
    let (id, part) = (read_id(rest, 0)?, rest.get(16..)?);
    let [part] = part else { return None };
    Some(Counter {
        subject: Subject::Noise(by, id, *part),
        period: Period::Day(u32::from_be_bytes(*day)),
    })
}

pub(crate) fn is_independent_counter(key: &[u8]) -> bool {
    parse_counter_key(key).is_none_or(|counter| counter.period != Period::Now)
}

/// Decodes a counter; `None` for a record with a start time.
pub(crate) fn decode_counter(
    key: &[u8],
    value: &[u8],
) -> Result<Option<(Counter, Numbers)>, EngineError> {
    let found = decode_numbers(value)?;
    if [SINCE, NOISE_SINCE, RESENT_SINCE].contains(&key) {
        return Ok(None);
    }
    let corrupt = || EngineError::Corrupt("a counter has an unknown key".into());
    let counter = parse_counter_key(key).ok_or_else(corrupt)?;
    let mut all = [0; SLOTS];
    all.iter_mut().zip(found).for_each(|(to, from)| *to = from);
    Ok(Some((counter, Numbers(all))))
}

#[derive(Debug)]
pub struct StoredCounter {
    pub counter: Counter,
    pub numbers: Numbers,
}

#[derive(Debug)]
pub struct CounterPages<'a> {
    store: &'a Store,
    range: Option<Range>,
}

impl CounterPages<'_> {
    pub async fn next(&mut self) -> Result<Option<Vec<StoredCounter>>, EngineError> {
        let Some(range) = &mut self.range else {
            return Ok(None);
        };
        let engine = self.store.engine();
        let page = engine.read_page(Kind::Counter, range.clone(), Direction::Ascending, PAGE);
        let page = page.await?;
        match page.last() {
            Some((last, _)) if page.len() == PAGE => range.exclude_through(last),
            _ => self.range = None,
        }
        let mut counters = Vec::with_capacity(page.len());
        for (key, row) in page {
            if let Some((counter, numbers)) = decode_counter(&key, &row.value)? {
                counters.push(StoredCounter { counter, numbers });
            }
        }
        Ok(Some(counters))
    }
}

impl Store {
    /// Iterates over the counters of one subject or of all subjects, beginning with the period
    /// `from` and limited to periods of the same length.
    pub fn counters(&self, subject: Option<Subject>, from: Period) -> CounterPages<'_> {
        let prefix = subject_prefix(subject, from).build();
        let mut range = Range::with_prefix(&prefix);
        if let Some(subject) = subject {
            range.start = counter_key(Counter {
                subject,
                period: from,
            });
        }
        CounterPages {
            store: self,
            range: Some(range),
        }
    }

    /// Iterates over the daily counters from one day to another (exclusive).
    pub fn noise(&self, by: NoiseBy, from: u32, until: u32) -> CounterPages<'_> {
        let range = Range {
            start: day_prefix(by, from).build(),
            end: Some(day_prefix(by, until).build()),
        };
        CounterPages {
            store: self,
            range: Some(range),
        }
    }

    pub async fn current_counts(&self, subjects: &[Subject]) -> Result<Vec<Numbers>, EngineError> {
        let period = Period::Now;
        let keys = subjects.iter().map(|subject| {
            counter_key(Counter {
                subject: *subject,
                period,
            })
        });
        let keys: Vec<_> = keys.collect();
        let rows = self.engine().get(Kind::Counter, &keys).await?;
        let numbers = keys.iter().zip(rows).map(|(key, row)| {
            let read = row
                .map(|row| decode_counter(key, &row.value))
                .transpose()?
                .flatten();
            Ok(read.map(|(_, numbers)| numbers).unwrap_or_default())
        });
        numbers.collect()
    }

    /// Returns the time since which there are counters, in milliseconds since 1970. `None` if no
    /// service that counts has opened the store.
    pub async fn counters_since_ms(&self) -> Result<Option<i64>, EngineError> {
        Ok(self.start_times().await?.first().copied())
    }

    /// Returns the time since which there are noise counters, in milliseconds since 1970; `None` as
    /// for [`Store::counters_since_ms`].
    pub async fn noise_since_ms(&self) -> Result<Option<i64>, EngineError> {
        Ok(self.start_times().await?.get(1).copied())
    }

    async fn start_times(&self) -> Result<Vec<i64>, EngineError> {
        let keys = [SINCE, NOISE_SINCE].map(Into::into);
        let rows = self.engine().get(Kind::Counter, &keys).await?;
        let mut since = Vec::new();
        for row in rows.into_iter().flatten() {
            since.extend(decode_numbers(&row.value)?);
        }
        Ok(since)
    }

    /// Initializes the counters from the existing records, unless that was done before. No other
    /// process may change the store during the call.
    pub async fn begin_counting(&self, now_ms: i64) -> Result<(), EngineError> {
        // Noise is counted from the next day on, because earlier notifications of this day were not
        // counted.
        let next_day_ms = i64::from(day_number(now_ms) + 1) * DAY_MS;
        match self.start_times().await?.len() {
            0 => {}
            1 => {
                self.count_since(NOISE_SINCE, vec![next_day_ms], []).await?;
                return self.recount_dead(now_ms).await;
            }
            _ => return self.recount_dead(now_ms).await,
        }
        let mut is_new = true;
        let mut counts = Counts::default();
        let mut range = Range::with_prefix(&[]);
        loop {
            let (index, direction) = (Index::DeliveryByState, Direction::Ascending);
            let page = self.engine().entries(index, range.clone(), direction, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                break;
            };
            range.exclude_through(last);
            is_new = false;
            let keys = page.into_iter().map(|(_, key)| key).collect();
            let (found, _) = self.get_readable::<Delivery>(keys).await?;
            for delivery in found.into_iter().flatten() {
                counts.add_new(&delivery.value.counter_entries(), true);
            }
        }
        // Subtracts the remains of an interrupted count or of a restore, so that nothing is counted
        // twice.
        let mut left = self.counters(None, Period::Now);
        while let Some(page) = left.next().await? {
            for one in page {
                counts.subtract(&one);
            }
        }
        let noise_ms = if is_new { now_ms } else { next_day_ms };
        let since = vec![now_ms.max(1), noise_ms.max(1)];
        let resent = Action::Add(vec![now_ms.max(1)]);
        let resent = counter_change(RESENT_SINCE, Expect::Any, resent);
        let changes = counts.into_changes().chain([resent]);
        self.count_since(SINCE, since, changes).await
    }

    /// Counts dead deliveries again, once: earlier versions included those that were resent.
    async fn recount_dead(&self, now_ms: i64) -> Result<(), EngineError> {
        let mark = [RESENT_SINCE.into()];
        let done = self.engine().get(Kind::Counter, &mark).await?;
        if done.iter().any(Option::is_some) {
            return Ok(());
        }
        let mut counts = Counts::default();
        let mut range = Range::with_prefix(&[DeliveryState::Dead.number()]);
        loop {
            let (index, direction) = (Index::DeliveryByState, Direction::Ascending);
            let page = self.engine().entries(index, range.clone(), direction, PAGE);
            let page = page.await?;
            let Some((last, _)) = page.last() else {
                break;
            };
            range.exclude_through(last);
            let keys = page.into_iter().map(|(_, key)| key).collect();
            let (found, _) = self.get_readable::<Delivery>(keys).await?;
            for delivery in found.into_iter().flatten() {
                counts.add_new(&delivery.value.counter_entries(), true);
            }
        }
        let mut stored = self.counters(None, Period::Now);
        while let Some(page) = stored.next().await? {
            for it in page {
                counts.add(it.counter, Tally::Dead, -it.numbers.get(Tally::Dead));
            }
        }
        let changes = counts.into_changes();
        self.count_since(RESENT_SINCE, vec![now_ms.max(1)], changes)
            .await
    }

    async fn count_since(
        &self,
        key: &[u8],
        since: Vec<i64>,
        counts: impl IntoIterator<Item = Change>,
    ) -> Result<(), EngineError> {
        let since = counter_change(key, Expect::Absent, Action::Add(since));
        let changes: Vec<_> = counts.into_iter().chain([since]).collect();
        match self.engine().apply(Lane::Admin, changes.into()).await {
            // Another node that shares the store was faster.
            Err(EngineError::Conflict(_)) => Ok(()),
            counted => counted.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{samples, verify};

    const WAITING: DeliveryState = DeliveryState::Pending { due_ms: 5 };

    fn sample_delivery(number: u64, state: DeliveryState) -> Delivery {
        Delivery {
            end_ms: state.due_ms().is_none().then_some(90_000),
            create_ms: 30_000,
            test: false,
            ..samples::delivery(number, state)
        }
    }

    async fn insert_delivery(store: &Store, delivery: &Delivery) {
        let mut changes = store.new_changes();
        changes.insert(delivery);
        store.apply(Lane::Bulk, changes).await.unwrap();
    }

    async fn change_state(store: &Store, number: u64, state: Option<DeliveryState>) {
        let key = sample_delivery(number, WAITING).id.to_bytes().into();
        let old = store.get::<Delivery>(key).await.unwrap().unwrap();
        let mut changes = store.new_changes();
        match state {
            Some(state) => changes.update(&old, &sample_delivery(number, state)),
            None => changes.delete(&old),
        }
        store.apply(Lane::Bulk, changes).await.unwrap();
    }

    async fn current_numbers(store: &Store) -> Vec<i64> {
        let found = store.current_counts(&[Subject::Deliveries]).await.unwrap();
        found[0].0.into()
    }

    async fn counted_periods(store: &Store) -> Vec<(Period, [i64; SLOTS])> {
        let mut pages = store.counters(Some(Subject::Deliveries), Period::Minute(0));
        let page = pages.next().await.unwrap().unwrap();
        page.into_iter()
            .map(|it| (it.counter.period, it.numbers.0))
            .collect()
    }

    #[test]
    fn counter_key_round_trips() {
        let id = samples::id(7);
        for subject in [
            Subject::Events,
            Subject::Deliveries,
            Subject::Destination(id),
            Subject::Rule(id),
        ] {
            for period in [Period::Now, Period::Minute(3), Period::Hour(u32::MAX)] {
                let written = Counter { subject, period };
                assert_eq!(parse_counter_key(&counter_key(written)), Some(written));
            }
        }
        for by in NoiseBy::ALL {
            let written = Counter {
                subject: Subject::Noise(by, id, 13),
                period: Period::Day(20_000),
            };
            assert_eq!(parse_counter_key(&counter_key(written)), Some(written));
        }
        for wrong in [
            &b""[..],
            SINCE,
            NOISE_SINCE,
            b"\x04\x01\0\0\0\x01id",
            b"\x04\x09",
            b"\x01",
            b"\x01\x03id",
            b"\x02\x01abc",
            b"\x09\x01",
        ] {
            assert_eq!(parse_counter_key(wrong), None, "{wrong:?}");
        }
    }

    #[tokio::test]
    async fn current_counts_follow_deliveries_and_history_stays() {
        let store = Store::in_memory();
        store.begin_counting(1).await.unwrap();
        for number in 1..=3 {
            insert_delivery(&store, &sample_delivery(number, WAITING)).await;
        }
        insert_delivery(
            &store,
            &Delivery {
                test: true,
                ..sample_delivery(4, WAITING)
            },
        )
        .await;
        assert_eq!(current_numbers(&store).await, [3, 0, 0, 0, 0, 0]);
        change_state(&store, 1, Some(DeliveryState::Leased { until_ms: 9 })).await;
        change_state(&store, 1, Some(DeliveryState::Delivered)).await;
        change_state(&store, 2, Some(DeliveryState::Dead)).await;
        assert_eq!(current_numbers(&store).await, [1, 0, 1, 1, 0, 0]);
        let before = counted_periods(&store).await;
        assert_eq!(
            before,
            [
                (Period::Minute(0), [0, 3, 0, 0, 0, 0]),
                (Period::Minute(1), [0, 0, 1, 1, 0, 0]),
            ]
        );
        for number in 1..=3 {
            change_state(&store, number, None).await;
        }
        assert_eq!(current_numbers(&store).await, [0; SLOTS]);
        assert_eq!(counted_periods(&store).await, before);
        assert_eq!(
            verify(&store, &|_| {}).await.descriptions,
            Vec::<String>::new()
        );
    }

    #[tokio::test]
    async fn uncounted_store_is_counted_once_without_history() {
        let store = Store::in_memory();
        for number in 1..=5 {
            insert_delivery(&store, &sample_delivery(number, WAITING)).await;
        }
        change_state(&store, 1, Some(DeliveryState::Dead)).await;
        // Removes the counters, as in a store of a version that does not count.
        let mut gone = Vec::new();
        for from in [Period::Now, Period::Minute(0)] {
            let mut pages = store.counters(None, from);
            while let Some(page) = pages.next().await.unwrap() {
                gone.extend(page);
            }
        }
        let mut changes = store.new_changes();
        for counter in &gone {
            changes.remove(counter);
        }
        store.apply(Lane::Bulk, changes).await.unwrap();
        assert_eq!(current_numbers(&store).await, [0; SLOTS]);

        assert_eq!(store.counters_since_ms().await.unwrap(), None);
        for at_ms in [70_000, 80_000] {
            store.begin_counting(at_ms).await.unwrap();
            assert_eq!(store.counters_since_ms().await.unwrap(), Some(70_000));
            assert_eq!(current_numbers(&store).await, [4, 0, 0, 1, 0, 0]);
        }
        assert_eq!(counted_periods(&store).await, []);
        assert_eq!(
            verify(&store, &|_| {}).await.descriptions,
            Vec::<String>::new()
        );
    }

    #[tokio::test]
    async fn noise_counting_starts_with_first_complete_day() {
        let next_day_ms = i64::from(day_number(70_000) + 1) * DAY_MS;
        let store = Store::in_memory();
        store.begin_counting(70_000).await.unwrap();
        assert_eq!(store.noise_since_ms().await.unwrap(), Some(70_000));
        // A store with deliveries, and one of a version without daily counters.
        let used = Store::in_memory();
        insert_delivery(&used, &sample_delivery(1, WAITING)).await;
        let earlier = Store::in_memory();
        let since = counter_change(SINCE, Expect::Absent, Action::Add(vec![5]));
        let engine = earlier.engine();
        let written = engine.apply(Lane::Admin, vec![since].into()).await;
        written.unwrap();
        for store in [used, earlier] {
            for at_ms in [70_000, 3 * DAY_MS] {
                store.begin_counting(at_ms).await.unwrap();
                let since_ms = store.noise_since_ms().await.unwrap();
                assert_eq!(since_ms, Some(next_day_ms));
            }
        }
        let since_ms = store.counters_since_ms().await.unwrap();
        assert_eq!(since_ms, Some(70_000));
    }

    #[tokio::test]
    async fn verify_reports_counter_mismatch() {
        let store = Store::in_memory();
        store.begin_counting(1).await.unwrap();
        insert_delivery(&store, &sample_delivery(1, WAITING)).await;
        let counter = Counter {
            subject: Subject::Deliveries,
            period: Period::Now,
        };
        let mut counts = Counts::default();
        counts.add(counter, Tally::Dead, 1);
        let changes: Vec<_> = counts.into_changes().collect();
        let engine = store.engine();
        engine.apply(Lane::Bulk, changes.into()).await.unwrap();
        let descriptions = verify(&store, &|_| {}).await.descriptions;
        assert_eq!(descriptions.len(), 1, "{descriptions:?}");
    }

    #[tokio::test]
    async fn resent_delivery_of_earlier_version_is_not_counted_as_dead() {
        let store = Store::in_memory();
        store.begin_counting(60_000).await.unwrap();
        for number in 1..4 {
            insert_delivery(&store, &sample_delivery(number, DeliveryState::Dead)).await;
        }
        let resent = Delivery {
            retried_as: Some(sample_delivery(3, WAITING).id),
            ..sample_delivery(4, DeliveryState::Dead)
        };
        insert_delivery(&store, &resent).await;
        assert_eq!(current_numbers(&store).await[Tally::Dead as usize], 3);
        // The state that an earlier version leaves: counted, but without the mark.
        let mut changes = store.new_changes();
        let counter = Counter {
            subject: Subject::Deliveries,
            period: Period::Now,
        };
        changes.counts.add(counter, Tally::Dead, 1);
        store.apply(Lane::Bulk, changes).await.unwrap();
        let mark = Change::new(Kind::Counter, RESENT_SINCE, Expect::Any, Action::Delete);
        let engine = store.engine();
        engine.apply(Lane::Admin, vec![mark].into()).await.unwrap();
        assert_eq!(current_numbers(&store).await[Tally::Dead as usize], 4);

        for _ in 0..2 {
            store.begin_counting(70_000).await.unwrap();
            assert_eq!(current_numbers(&store).await[Tally::Dead as usize], 3);
        }
    }
}
