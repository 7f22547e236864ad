//! Import of time intervals as calendars, and of the intervals of a route as one calendar.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::{Date, Weekday};
use serde_json::{Value, json};

use super::super::{
    fields::{Fields, invalid_field_error},
    imported::ImportOutput,
};
use crate::error::ImportError;

const WINDOWS_MAX: usize = 50;
const EXCEPT_MAX: usize = 10;
/// Time zone of an interval without `location`.
const ZONE: &str = "UTC";
/// Number of days in which the first occurrence is searched: leap years can be 8 years apart.
const FIRST_DAYS_MAX: usize = 366 * 9;

const WEEKDAYS: [(&str, &str, Weekday); 7] = [
    ("sunday", "SU", Weekday::Sunday),
    ("monday", "MO", Weekday::Monday),
    ("tuesday", "TU", Weekday::Tuesday),
    ("wednesday", "WE", Weekday::Wednesday),
    ("thursday", "TH", Weekday::Thursday),
    ("friday", "FR", Weekday::Friday),
    ("saturday", "SA", Weekday::Saturday),
];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

pub(crate) struct Intervals {
    named: BTreeMap<String, Vec<Calendar>>,
    /// Calendars that combine several others, by the names of the others.
    joined: BTreeMap<(Vec<String>, Vec<String>), Option<String>>,
}

#[derive(Debug, Clone)]
struct Calendar {
    name: String,
    zone: String,
    windows: Vec<Value>,
}

pub(crate) struct Times<'a> {
    pub(crate) path: &'a str,
    pub(crate) active: &'a [String],
    pub(crate) muted: &'a [String],
}

pub(crate) fn read_intervals(
    fields: &mut Fields,
    imported: &mut ImportOutput,
) -> Result<Intervals, ImportError> {
    let mut named = BTreeMap::new();
    for list in ["time_intervals", "mute_time_intervals"] {
        for mut interval in fields.take_objects(list)? {
            let name = interval.take_text("name")?;
            let path = interval.path.clone();
            let name =
                name.ok_or_else(|| invalid_field_error(&format!("{path}.name"), "is required"))?;
            let mut zones: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for mut one in interval.take_objects("time_intervals")? {
                let zone = one
                    .take_text("location")?
                    .unwrap_or_else(|| ZONE.to_owned());
                let windows = read_windows(&mut one, imported)?;
                zones.entry(zone).or_default().extend(windows);
                one.finish(imported);
            }
            interval.finish(imported);
            let mut calendars = Vec::new();
            for (zone, windows) in zones {
                if windows.is_empty() || windows.len() > WINDOWS_MAX {
                    let why = format!("a calendar must have 1 to {WINDOWS_MAX} windows");
                    imported.record_omission(&path, &why);
                    continue;
                }
                let calendar = imported.unique_name("calendar", &name);
                let calendar = Calendar {
                    name: calendar,
                    zone,
                    windows,
                };
                calendar.add(&format!("Alertmanager: {path}"), &[], imported);
                calendars.push(calendar);
            }
            named.insert(name, calendars);
        }
    }
    Ok(Intervals {
        named,
        joined: BTreeMap::new(),
    })
}

impl Calendar {
    fn add(&self, description: &str, except: &[String], imported: &mut ImportOutput) {
        let mut body = json!({
            "name": self.name, "description": description, "timeZone": self.zone,
            "windows": self.windows,
        });
        if !except.is_empty() {
            body["exceptCalendarNames"] = json!(except);
        }
        imported.add("calendar", body);
    }
}

impl Intervals {
    fn find(
        &self,
        names: &[String],
        times: &Times<'_>,
        field: &str,
    ) -> Result<Vec<Calendar>, ImportError> {
        let mut calendars = Vec::new();
        for name in names {
            let found = self.named.get(name).ok_or_else(|| {
                let path = format!("{}.{field}", times.path);
                invalid_field_error(&path, "expected `time_intervals` names")
            })?;
            calendars.extend(found.iter().cloned());
        }
        Ok(calendars)
    }

    /// Returns the calendar of a route's active times; `None` if the route is always active.
    pub(crate) fn add_calendar(
        &mut self,
        times: &Times<'_>,
        imported: &mut ImportOutput,
    ) -> Result<Option<String>, ImportError> {
        let active = self.find(times.active, times, "active_time_intervals")?;
        let muted = self.find(times.muted, times, "mute_time_intervals")?;
        for (names, field) in [
            (times.active, "active_time_intervals"),
            (times.muted, "mute_time_intervals"),
        ] {
            let is_lost = |name: &String| self.named.get(name).is_some_and(Vec::is_empty);
            if names.iter().any(is_lost) {
                let why = "ignored a time interval that could not be converted";
                imported.record_omission(&format!("{}.{field}", times.path), why);
            }
        }
        match (&active[..], &muted[..]) {
            ([], []) => Ok(None),
            ([only], []) => Ok(Some(only.name.clone())),
            _ => {
                let key = (times.active.to_vec(), times.muted.to_vec());
                if let Some(made) = self.joined.get(&key) {
                    return Ok(made.clone());
                }
                let made = combine(times, &active, &muted, imported);
                self.joined.insert(key, made.clone());
                Ok(made)
            }
        }
    }
}

fn combine(
    times: &Times<'_>,
    active: &[Calendar],
    muted: &[Calendar],
    imported: &mut ImportOutput,
) -> Option<String> {
    let zone = active.first().or(muted.first()).map(|it| it.zone.clone())?;
    let windows = if active.is_empty() {
        let always =
            json!({"dtstart": "2000-01-01T00:00:00", "duration": "P1D", "rrule": "FREQ=DAILY"});
        vec![always]
    } else {
        active.iter().flat_map(|it| it.windows.clone()).collect()
    };
    let several_zones = active.iter().any(|it| it.zone != zone);
    if several_zones || windows.len() > WINDOWS_MAX || muted.len() > EXCEPT_MAX {
        let why = format!(
            "a calendar has one time zone, at most {WINDOWS_MAX} windows and excludes at most \
             {EXCEPT_MAX} others; the route is active at any time"
        );
        let field = format!(
            "{}.active_time_intervals and mute_time_intervals",
            times.path
        );
        imported.record_omission(&field, &why);
        return None;
    }
    let except: Vec<_> = muted.iter().map(|it| it.name.clone()).collect();
    let active: Vec<_> = active.iter().map(|it| it.name.clone()).collect();
    let wanted = match (active.is_empty(), except.is_empty()) {
        (true, _) => format!("not {}", except.join(" ")),
        (false, true) => active.join(" "),
        (false, false) => format!("{} not {}", active.join(" "), except.join(" ")),
    };
    let calendar = Calendar {
        name: imported.unique_name("calendar", &wanted),
        zone,
        windows,
    };
    calendar.add(&format!("Alertmanager: {}", times.path), &except, imported);
    Some(calendar.name)
}

#[derive(Default)]
struct Days {
    months: BTreeSet<i8>,
    dates: BTreeSet<i8>,
    weekdays: BTreeSet<usize>,
}

fn read_windows(one: &mut Fields, imported: &mut ImportOutput) -> Result<Vec<Value>, ImportError> {
    let spans = read_spans(one, imported)?;
    let Some(days) = read_days(one, imported)? else {
        return Ok(Vec::new());
    };
    let year = |word: &str| word.parse().ok().filter(|it| (1970..=9998).contains(it));
    let years = read_ranges(one, "years", year, "expected years such as 2026:2028")?;
    let years: Vec<_> = if years.is_empty() {
        vec![None]
    } else {
        years.into_iter().map(Some).collect()
    };
    let mut windows = Vec::new();
    for years in years {
        let Some((first, rule)) = days.rule(years) else {
            imported.record_omission(&one.path, "it is on no day");
            continue;
        };
        windows.extend(spans.iter().map(|span| window_json(first, *span, &rule)));
    }
    Ok(windows)
}

/// Returns the spans of a day, in minutes; the whole day if none are given.
fn read_spans(
    one: &mut Fields,
    imported: &mut ImportOutput,
) -> Result<Vec<(u16, u16)>, ImportError> {
    let mut spans = Vec::new();
    for mut times in one.take_objects("times")? {
        let path = times.path.clone();
        let mut read = |name| {
            let minutes = times.take_text(name)?.and_then(|text| parse_minutes(&text));
            minutes.ok_or_else(|| {
                invalid_field_error(&format!("{path}.{name}"), "expected a time such as 09:00")
            })
        };
        let (start, end) = (read("start_time")?, read("end_time")?);
        times.finish(imported);
        if start >= end {
            return Err(invalid_field_error(
                &path,
                "expected `start_time` before `end_time`",
            ));
        }
        spans.push((start, end));
    }
    if spans.is_empty() {
        spans.push((0, 1_440));
    }
    Ok(spans)
}

/// Returns the days. If a calendar cannot represent them, reports this and returns `None`.
fn read_days(one: &mut Fields, imported: &mut ImportOutput) -> Result<Option<Days>, ImportError> {
    let mut days = Days::default();
    let weekday = |word: &str| WEEKDAYS.iter().position(|(name, ..)| *name == word);
    let why = "expected days such as monday:friday";
    for (first, last) in read_ranges(one, "weekdays", weekday, why)? {
        days.weekdays.extend(first..=last);
    }
    let month = |word: &str| {
        let named = MONTHS.iter().position(|name| *name == word);
        let number = named.map(|at| at + 1).or_else(|| word.parse().ok());
        i8::try_from(number?)
            .ok()
            .filter(|it| (1..=12).contains(it))
    };
    for (first, last) in read_ranges(one, "months", month, "expected months such as 1:3 or may")? {
        days.months.extend(first..=last);
    }
    let date = |word: &str| {
        let number = word.parse().ok();
        number.filter(|it: &i8| *it != 0 && (-31..=31).contains(it))
    };
    let path = one.path_of("days_of_month");
    for text in one.take_texts("days_of_month")? {
        match parse_range(&text, date) {
            Some((1, -1)) => days.dates.extend(1..=31),
            Some((first, last)) if first > 0 && last < 0 => {
                let why = "the range starts with a day counted from the start of the month and \
                           ends with one counted from its end; the time interval is omitted";
                imported.record_omission(&path, why);
                return Ok(None);
            }
            Some((first, last)) if first <= last && (first > 0) == (last > 0) => {
                days.dates.extend(first..=last);
            }
            _ => {
                return Err(invalid_field_error(
                    &path,
                    "expected days such as 1:5 or -3:-1",
                ));
            }
        }
    }
    Ok(Some(days))
}

fn read_ranges<T: PartialOrd>(
    one: &mut Fields,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
    why: &str,
) -> Result<Vec<(T, T)>, ImportError> {
    let path = one.path_of(name);
    let texts = one.take_texts(name)?.into_iter();
    let ranges = texts.map(|text| {
        let range = parse_range(&text, &read).filter(|(first, last)| first <= last);
        range.ok_or_else(|| invalid_field_error(&path, why))
    });
    ranges.collect()
}

fn window_json(first: Date, (start, end): (u16, u16), rule: &str) -> Value {
    let clock = |minutes: u16| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
    let dtstart = format!("{first}T{}:00", clock(start));
    if (start, end) == (0, 1_440) {
        json!({"dtstart": dtstart, "duration": "P1D", "rrule": rule})
    } else {
        json!({"dtstart": dtstart, "endTimeOfDay": clock(end), "rrule": rule})
    }
}

impl Days {
    fn rule(&self, years: Option<(i16, i16)>) -> Option<(Date, String)> {
        let numbers = |numbers: &BTreeSet<i8>| numbers.iter().map(ToString::to_string).collect();
        let weekdays = self.weekdays.iter().map(|day| WEEKDAYS[*day].1.to_owned());
        let until = years.map(|(_, last)| format!("{last}1231"));
        let parts: [(&str, Vec<String>); 4] = [
            ("BYMONTH", numbers(&self.months)),
            ("BYMONTHDAY", numbers(&self.dates)),
            ("BYDAY", weekdays.collect()),
            ("UNTIL", until.into_iter().collect()),
        ];
        let parts = parts.iter().filter(|(_, values)| !values.is_empty());
        let parts = parts.map(|(name, values)| format!(";{name}={}", values.join(",")));
        let rule = format!("FREQ=DAILY{}", parts.collect::<String>());
        let from = Date::new(years.map_or(2000, |(first, _)| first), 1, 1).ok()?;
        let days = from.series(jiff::Span::new().days(1)).take(FIRST_DAYS_MAX);
        let mut days = days.take_while(|day| years.is_none_or(|(_, last)| day.year() <= last));
        let first = days.find(|day| self.includes(*day))?;
        Some((first, rule))
    }

    fn includes(&self, day: Date) -> bool {
        let from_end = day.day() - day.days_in_month() - 1;
        let is_month_day = |it: &i8| *it == day.day() || *it == from_end;
        (self.months.is_empty() || self.months.contains(&day.month()))
            && (self.dates.is_empty() || self.dates.iter().any(is_month_day))
            && (self.weekdays.is_empty()
                || self
                    .weekdays
                    .iter()
                    .any(|it| WEEKDAYS[*it].2 == day.weekday()))
    }
}

/// Parses a range such as `1:5`; a single value is a range of one.
fn parse_range<T>(text: &str, read: impl Fn(&str) -> Option<T>) -> Option<(T, T)> {
    let text = text.trim().to_lowercase();
    let (first, last) = text.split_once(':').unwrap_or((&text, &text));
    Some((read(first.trim())?, read(last.trim())?))
}

/// Parses a time of day as minutes; `24:00` is the end of the day.
fn parse_minutes(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let whole = hours * 60 + minutes;
    (hours <= 24 && minutes < 60 && whole <= 1_440).then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_one(one: Value) -> (Vec<Value>, Vec<String>) {
        let mut imported = ImportOutput::new("test", false);
        let mut fields = Fields::from_value("x", one).unwrap();
        let found = read_windows(&mut fields, &mut imported).unwrap();
        (found, imported.differences())
    }

    #[test]
    fn time_interval_becomes_calendar_windows() {
        let table = [
            (
                json!({"weekdays": ["monday:wednesday", "saturday"],
                    "times": [{"start_time": "09:00", "end_time": "17:00"}]}),
                json!([{"dtstart": "2000-01-01T09:00:00", "endTimeOfDay": "17:00",
                    "rrule": "FREQ=DAILY;BYDAY=MO,TU,WE,SA"}]),
            ),
            (
                json!({"months": ["january:february", 12], "days_of_month": ["-3:-1"]}),
                json!([{"dtstart": "2000-01-29T00:00:00", "duration": "P1D",
                    "rrule": "FREQ=DAILY;BYMONTH=1,2,12;BYMONTHDAY=-3,-2,-1"}]),
            ),
            (
                json!({"years": ["2026:2028"], "months": ["february"], "days_of_month": [29],
                    "times": [{"start_time": "22:30", "end_time": "24:00"}]}),
                json!([{"dtstart": "2028-02-29T22:30:00", "endTimeOfDay": "00:00",
                    "rrule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;UNTIL=20281231"}]),
            ),
        ];
        for (one, expected) in table {
            assert_eq!(
                read_one(one.clone()),
                (expected.as_array().unwrap().clone(), vec![]),
                "{one}"
            );
        }
    }

    #[test]
    fn unsupported_intervals_are_reported() {
        let (none, report) = read_one(json!({"days_of_month": ["5:-3"]}));
        assert!(
            none.is_empty() && report[0].starts_with("x.days_of_month: "),
            "{report:?}"
        );
        for invalid in [
            json!({"months": ["5:2"]}),
            json!({"weekdays": ["saturday:sunday"]}),
            json!({"days_of_month": ["-1:-3"]}),
            json!({"days_of_month": ["-3:3"]}),
            json!({"times": [{"start_time": "9:00", "end_time": "08:00"}]}),
            json!({"years": ["x"]}),
        ] {
            let mut fields = Fields::from_value("x", invalid.clone()).unwrap();
            let mut imported = ImportOutput::new("test", false);
            assert!(
                read_windows(&mut fields, &mut imported).is_err(),
                "{invalid}"
            );
        }
        let (none, report) = read_one(json!({"months": [2], "days_of_month": [30]}));
        assert!(none.is_empty(), "{none:?}");
        assert_eq!(report, ["x: it is on no day"]);
    }
}
