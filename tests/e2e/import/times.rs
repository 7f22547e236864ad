//! Compares time intervals of Alertmanager with the calendars that they become.

use std::fs;

use bellwether_tests::{rest::Rest, world::World};
use jiff::{Timestamp, ToSpan, Zoned, tz::TimeZone};
use serde_json::{Value, json};

use super::{Chance, apply, import};

const ZONES: [&str; 4] = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"];
const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// An inclusive range of numbers; `None` for all.
type Range = Option<(i32, i32)>;

#[derive(Debug)]
struct Interval {
    zone: &'static str,
    minutes: Range,
    weekdays: Range,
    dates: Range,
    months: Range,
    years: Range,
}

impl Interval {
    fn any(chance: &mut Chance) -> Self {
        let mut range = |first: i32, last: i32, often: usize| -> Range {
            (chance.below(4) < often).then(|| {
                let mut one =
                    || first + i32::try_from(chance.below(1_000)).unwrap() % (last - first + 1);
                let (one, other) = (one(), one());
                (one.min(other), one.max(other))
            })
        };
        let minutes = range(0, 95, 3).map(|(from, to)| (from * 15, (to + 1) * 15));
        let from_the_end = range(-31, -1, 1);
        Self {
            minutes,
            weekdays: range(0, 6, 2),
            dates: range(1, 31, 2).or(from_the_end),
            months: range(1, 12, 2),
            years: range(2026, 2029, 1),
            zone: ZONES[chance.below(ZONES.len())],
        }
    }

    fn written(&self) -> Value {
        let text = |range: Range| range.map(|(first, last)| json!([format!("{first}:{last}")]));
        let clock = |minutes: i32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
        let times = self
            .minutes
            .map(|(from, to)| json!([{"start_time": clock(from), "end_time": clock(to)}]));
        let day = |at: i32| WEEKDAYS[usize::try_from(at).unwrap()];
        let weekdays = self
            .weekdays
            .map(|(first, last)| json!([format!("{}:{}", day(first), day(last))]));
        json!({
            "times": times, "weekdays": weekdays, "days_of_month": text(self.dates),
            "months": text(self.months), "years": text(self.years), "location": self.zone,
        })
    }

    /// Whether the interval is active, implemented from Alertmanager's documentation: all fields
    /// that are set must match.
    fn holds(&self, at: Timestamp) -> bool {
        let local = Zoned::new(at, TimeZone::get(self.zone).unwrap());
        let within = |range: Range, value: i32| {
            range.is_none_or(|(first, last)| (first..=last).contains(&value))
        };
        let minute = i32::from(local.hour()) * 60 + i32::from(local.minute());
        let date = i32::from(local.day());
        let from_end = date - i32::from(local.days_in_month()) - 1;
        let is_date = self.dates.is_none_or(|(first, last)| {
            let value = if first > 0 { date } else { from_end };
            (first..=last).contains(&value)
        });
        self.minutes
            .is_none_or(|(from, to)| (from..to).contains(&minute))
            && within(
                self.weekdays,
                local.weekday().to_sunday_zero_offset().into(),
            )
            && within(self.months, local.month().into())
            && within(self.years, local.year().into())
            && is_date
    }
}

/// Returns whether a calendar has a window at each of these times.
async fn spans(rest: &Rest, name: &str, times: &[Timestamp]) -> Vec<bool> {
    let mut found = Vec::new();
    for at in times {
        let end = at.checked_add(1.second()).unwrap();
        let path = format!("/v1/notification/calendars/{name}:expand?start={at}&end={end}");
        let answer = rest.get(&path).await.ok();
        let spans = answer["spans"].as_array().cloned().unwrap_or_default();
        found.push(!spans.is_empty());
    }
    found
}

#[tokio::test]
async fn imported_calendar_matches_its_time_interval() {
    let world = World::start();
    let mut chance = Chance(0xCA1E);
    let intervals: Vec<_> = (0..40).map(|_| Interval::any(&mut chance)).collect();
    let named = intervals.iter().enumerate();
    let named = named.map(|(at, interval)| {
        json!({"name": format!("times-{at:02}"), "time_intervals": [interval.written()]})
    });
    let configuration = json!({
        "route": {"receiver": "none"}, "receivers": [{"name": "none"}],
        "time_intervals": named.collect::<Vec<_>>(),
    });
    let file = world.folder().join("times.yml");
    fs::write(&file, configuration.to_string()).unwrap();
    let (documents, report) = import(&world, &["alertmanager", file.to_str().unwrap()]);
    apply(&world, "alertmanager", &documents, &[]);
    let rest = world.rest();
    let start: Timestamp = "2027-01-01T00:07:00Z".parse().unwrap();
    let (mut compared, mut held) = (0, 0);
    for (at, interval) in intervals.iter().enumerate() {
        if report.contains(&format!(
            "time_intervals[{at}].time_intervals[0]: it is on no day"
        )) {
            continue;
        }
        let minute = || i64::try_from(chance.below(2 * 365 * 24 * 4)).unwrap() * 15;
        let times: Vec<_> = std::iter::repeat_with(minute)
            .map(|minutes| start.checked_add(minutes.minutes()).unwrap())
            .take(25)
            .collect();
        let found = spans(&rest, &format!("times-{at:02}"), &times).await;
        for (time, found) in times.iter().zip(found) {
            assert_eq!(found, interval.holds(*time), "{time} {interval:?}");
            held += usize::from(found);
        }
        compared += 1;
    }
    assert!(compared > 30 && held > 50, "{compared} {held}");
}
