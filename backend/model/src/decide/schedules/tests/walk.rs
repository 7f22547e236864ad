//! Compares random schedules with a model that lists every hand-off day by day: time zones, bounds,
//! empty slots, overrides, calendars, `UNTIL` and `COUNT`.
//!
//! `BELLWETHER_SCHEDULES` sets the number of schedules.

use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, Time, Weekday},
};

use super::*;
use crate::{
    domain::{
        Calendar,
        calendar::{Window, WindowText},
    },
    testing::walks::walk_length,
};

const ZONES: [&str; 17] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "Europe/Dublin",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Santiago",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Asia/Tokyo",
    "Australia/Sydney",
    "Australia/Lord_Howe",
    "Pacific/Auckland",
    "Pacific/Apia",
];
const NAMES: [&str; 5] = ["ana", "ben", "cleo", "dora", "emil"];
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MO", Weekday::Monday),
    ("TU", Weekday::Tuesday),
    ("WE", Weekday::Wednesday),
    ("TH", Weekday::Thursday),
    ("FR", Weekday::Friday),
    ("SA", Weekday::Saturday),
    ("SU", Weekday::Sunday),
];
const DAYS: i64 = 60;

/// A random generator with the same sequence in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % most
    }

    fn number(&mut self, least: i64, most: i64) -> i64 {
        let span = usize::try_from(most - least + 1).unwrap();
        least + i64::try_from(self.below(span)).unwrap()
    }

    fn local(&mut self, around: Date, least: i64, most: i64) -> DateTime {
        let day = around + self.number(least, most).days();
        let minutes = self.number(0, 47) * 30;
        let (hour, minute) = (minutes / 60, minutes % 60);
        day.at(hour.try_into().unwrap(), minute.try_into().unwrap(), 0, 0)
    }

    fn contacts(&mut self) -> Vec<Name> {
        let count = [0, 1, 1, 1, 2][self.below(5)];
        let first = self.below(NAMES.len());
        let at = |it| (first + it) % NAMES.len();
        (0..count).map(|it| name(NAMES[at(it)])).collect()
    }
}

/// The turns of a layer, listed one by one.
struct Expected {
    starts: Vec<i64>,
    /// Time of the first hand-off that is excluded.
    end_ms: i64,
    applies_ms: Range<i64>,
    slots: Vec<Vec<Name>>,
    /// The hours of each UTC day to which the layer is limited.
    hours: Option<(i64, i64)>,
}

impl Expected {
    fn at(&self, at_ms: i64) -> Option<&[Name]> {
        let is_limited = self.hours.is_some_and(|(first, last)| {
            let hour = at_ms.rem_euclid(DAY_MS) / 3_600_000;
            !(first..last).contains(&hour)
        });
        if is_limited || !self.applies_ms.contains(&at_ms) || at_ms >= self.end_ms {
            return None;
        }
        let passed = self.starts.iter().filter(|it| **it <= at_ms).count();
        let slot = passed.checked_sub(1)? % self.slots.len();
        let contacts = self.slots[slot].as_slice();
        (!contacts.is_empty()).then_some(contacts)
    }
}

fn ms(local: DateTime, zone: &TimeZone) -> i64 {
    let at = zone.to_ambiguous_timestamp(local).compatible().unwrap();
    at.as_millisecond()
}

fn days_between(from: Date, day: Date) -> i64 {
    let since = day.since((jiff::Unit::Day, from)).unwrap();
    i64::from(since.get_days())
}

/// Returns a recurrence rule without an end, and the days on which it recurs up to `last`.
fn rule(chance: &mut Chance, first: Date, last: Date) -> (String, Vec<Date>) {
    let interval = chance.number(1, 3);
    let days = std::iter::successors(Some(first), |day| day.tomorrow().ok());
    let days = days.take_while(|day| *day <= last);
    let monday = first - i64::from(first.weekday().to_monday_zero_offset()).days();
    match chance.below(5) {
        0 => (String::new(), vec![first]),
        1 => (
            format!("FREQ=DAILY;INTERVAL={interval}"),
            days.filter(|day| days_between(first, *day) % interval == 0)
                .collect(),
        ),
        2 => (
            format!("FREQ=WEEKLY;INTERVAL={interval}"),
            days.filter(|day| days_between(first, *day) % (7 * interval) == 0)
                .collect(),
        ),
        3 => {
            let mut on = WEEKDAYS.to_vec();
            on.retain(|it| it.1 == first.weekday() || chance.below(3) == 0);
            let words: Vec<_> = on.iter().map(|it| it.0).collect();
            let is_start = |day: &Date| {
                days_between(monday, *day) / 7 % interval == 0
                    && on.iter().any(|it| it.1 == day.weekday())
            };
            (
                format!("FREQ=WEEKLY;INTERVAL={interval};BYDAY={}", words.join(",")),
                days.filter(is_start).collect(),
            )
        }
        _ => (
            "FREQ=MONTHLY".to_owned(),
            days.filter(|day| day.day() == first.day()).collect(),
        ),
    }
}

fn random_layer(chance: &mut Chance, base: Date, zone: &TimeZone) -> (Layer, Expected) {
    let start = chance.local(base, -200, 20);
    let (mut rrule, days) = rule(chance, start.date(), base + 400.days());
    let starts = days
        .iter()
        .map(|day| ms(day.to_datetime(start.time()), zone));
    let mut starts: Vec<i64> = starts.collect();
    let mut end_ms = i64::MAX;
    if !rrule.is_empty() {
        let most = starts.len().min(120);
        let limit = match chance.below(4) {
            0 => {
                let count = 1 + chance.below(most);
                rrule = format!("{rrule};COUNT={count}");
                count
            }
            1 => {
                let last = days[chance.below(most)];
                rrule = format!("{rrule};UNTIL={}", last.strftime("%Y%m%d"));
                days.iter().filter(|day| **day <= last).count()
            }
            _ => usize::MAX,
        };
        if limit < starts.len() {
            end_ms = starts[limit];
            starts.truncate(limit);
        }
    }
    let slots: Vec<_> = (0..=chance.below(4)).map(|_| chance.contacts()).collect();
    let mut bound = |least, most| (chance.below(3) == 0).then(|| chance.local(base, least, most));
    let (from, until) = (bound(-30, 40), bound(0, 80));
    let hours = (chance.below(3) == 0).then(|| {
        let first = chance.number(0, 20);
        (first, chance.number(first + 1, 24))
    });
    let slot = |it: &Vec<Name>| Slot {
        contacts: it.clone(),
    };
    let layer = Layer {
        name: String::new(),
        slots: slots.iter().map(slot).collect(),
        hand_offs: rotation(&start.to_string(), &rrule),
        calendar: hours.map(|(first, last)| name(&calendar_name(first, last))),
        from,
        until,
    };
    let from_ms = from.map_or(i64::MIN, |it| ms(it, zone));
    let expected = Expected {
        starts,
        end_ms,
        applies_ms: from_ms..until.map_or(i64::MAX, |it| ms(it, zone)),
        slots,
        hours,
    };
    (layer, expected)
}

fn calendar_name(first: i64, last: i64) -> String {
    format!("{first} to {last}")
}

/// Returns a calendar that covers these hours of every UTC day.
fn hours(first: i64, last: i64) -> Calendar {
    let text = WindowText {
        dtstart: format!("2020-01-01T{first:02}:00:00"),
        duration: format!("PT{}H", last - first),
        rrule: "FREQ=DAILY".into(),
        ..WindowText::default()
    };
    Calendar {
        name: name(&calendar_name(first, last)),
        time_zone: "UTC".into(),
        windows: vec![Window::parse(&text).unwrap()],
        except: Vec::new(),
        ..samples::calendar("x")
    }
}

fn expected_at<'a>(schedule: &'a Schedule, layers: &'a [Expected], at_ms: i64) -> &'a [Name] {
    let mut overrides = schedule.overrides.iter().rev();
    if let Some(found) = overrides.find(|it| it.start_ms <= at_ms && at_ms < it.end_ms) {
        return &found.contacts;
    }
    let mut layers = layers.iter().rev();
    layers.find_map(|it| it.at(at_ms)).unwrap_or_default()
}

#[test]
fn random_schedules_match_an_independent_computation() {
    let mut chance = Chance(0x0CA11);
    let (mut instants, mut gaps, mut ended) = (0, 0, 0);
    let calendars: Vec<_> = (0..24)
        .flat_map(|first| (first + 1..=24).map(move |last| hours(first, last)))
        .collect();
    let calendars = Calendars::new(calendars.iter());
    for number in 0..walk_length("BELLWETHER_SCHEDULES") {
        let zone_name = ZONES[chance.below(ZONES.len())];
        let zone = find_zone(zone_name).unwrap();
        let base = jiff::civil::date(2026, 1, 1) + chance.number(0, 1_400).days();
        let (layers, expected): (Vec<_>, Vec<_>) = (0..=chance.below(4))
            .map(|_| random_layer(&mut chance, base, &zone))
            .unzip();
        let mut random = schedule(layers);
        random.time_zone = zone_name.into();
        for _ in 0..chance.below(4) {
            let start_ms = ms(chance.local(base, -5, DAYS), &zone);
            random.overrides.push(Override {
                contacts: chance.contacts(),
                start_ms,
                end_ms: start_ms + chance.number(1, 200) * 1_800_000,
                ..samples::schedule("x").overrides.remove(0)
            });
        }
        let at = |at_ms| expected_at(&random, &expected, at_ms);
        let start_ms = ms(base.to_datetime(Time::midnight()), &TimeZone::UTC);
        let end_ms = start_ms + DAYS * DAY_MS;
        let loaded = LoadedSchedule::new(random.clone(), &calendars).unwrap();
        let found = loaded.shifts(start_ms, end_ms, usize::MAX);
        assert!(!found.stopped_early, "{number}");
        let edges = expected.iter().flat_map(|it| {
            let bounds = [it.applies_ms.start, it.applies_ms.end, it.end_ms];
            it.starts.iter().copied().chain(bounds)
        });
        let overrides = random.overrides.iter();
        let edges = edges.chain(overrides.flat_map(|it| [it.start_ms, it.end_ms]));
        let mut moments: Vec<i64> = edges.flat_map(|it| [it.saturating_sub(1), it]).collect();
        moments.extend((0..20).map(|_| start_ms + chance.number(0, DAYS * 1_440) * 60_000));
        moments.retain(|it| (start_ms..end_ms).contains(it));
        for at_ms in moments {
            let (expected, when) = (at(at_ms), Timestamp::from_millisecond(at_ms).unwrap());
            let contacts = loaded.on_call_at(at_ms).contacts;
            assert_eq!(contacts, expected, "{number} {when} {random:#?}");
            let shift = found.shifts.partition_point(|it| it.end_ms <= at_ms);
            let shift = &found.shifts[shift];
            assert_eq!(shift.contacts, expected, "{number} {when} {random:#?}");
            assert!(shift.begin_ms <= at_ms, "{number} {when} {shift:?}");
            instants += 1;
            gaps += usize::from(expected.is_empty());
        }
        for shift in &found.shifts {
            for at_ms in [shift.start_ms, shift.end_ms - 1] {
                assert_eq!(shift.contacts, at(at_ms), "{number} {shift:?} {random:#?}");
            }
        }
        for (at, it) in expected.iter().enumerate() {
            let is_over = it.applies_ms.end.min(it.end_ms) <= end_ms;
            assert_eq!(loaded.has_ended(at, end_ms), is_over, "{number} {at}");
            ended += usize::from(is_over);
        }
    }
    assert!(
        instants > 1_000 && gaps > 100 && ended > 20,
        "{instants} {gaps} {ended}"
    );
}
