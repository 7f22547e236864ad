//! Windows of a calendar: their starts and length in local time.

use jiff::{
    SignedDuration, Span, Unit,
    civil::{Date, DateTime, Time},
};

use super::Recurrence;
use crate::limits::{CALENDAR_DATES_MAX, CALENDAR_LENGTH_DAYS_MAX};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub start: DateTime,
    pub length: Length,
    /// The recurrence; `None` if the window starts once.
    pub recurrence: Option<Recurrence>,
    pub without: Vec<ExcludedStarts>,
    pub with: Vec<DateTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// A number of days on the local calendar, followed by an exact duration.
    For { days: i32, exact: SignedDuration },
    /// Until the next occurrence of a time of day after the start.
    Until(Time),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExcludedStarts {
    /// All starts on a day.
    Day(Date),
    Start(DateTime),
}

/// A window as text, in the terms of RFC 5545.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WindowText {
    pub dtstart: String,
    pub duration: String,
    pub end_time_of_day: String,
    pub rrule: String,
    pub exdate: Vec<String>,
    pub rdate: Vec<String>,
}

/// The valid years of local times.
const YEARS: std::ops::RangeInclusive<i16> = 1970..=9000;

const MOMENT_FORM: &str = "a local date and time without a zone, such as 2027-03-28T02:30:00";

impl Window {
    pub fn parse(text: &WindowText) -> Result<Self, Vec<(String, String)>> {
        let mut violations = Vec::new();
        let start = parse_date_time(&text.dtstart)
            .map_err(|message| violations.push(("dtstart".into(), message)))
            .ok();
        let length = parse_length(text)
            .map_err(|(field, message)| violations.push((field.to_owned(), message)))
            .ok();
        let recurrence = match text.rrule.as_str() {
            "" => None,
            rrule => rrule
                .parse()
                .map_err(|message| violations.push(("rrule".into(), message)))
                .ok(),
        };
        let without = parse_each(&text.exdate, "exdate", parse_excluded, &mut violations);
        let with = parse_each(&text.rdate, "rdate", parse_date_time, &mut violations);
        match (start, length) {
            (Some(start), Some(length)) if violations.is_empty() => Ok(Self {
                start,
                length,
                recurrence,
                without,
                with,
            }),
            _ => Err(violations),
        }
    }

    /// Returns the text from which [`Self::parse`] parses the same window.
    pub fn to_text(&self) -> WindowText {
        let (duration, end_time_of_day) = match self.length {
            Length::For { days, exact } => (format_duration(days, exact), String::new()),
            Length::Until(time) if time.second() == 0 => {
                (String::new(), time.strftime("%H:%M").to_string())
            }
            Length::Until(time) => (String::new(), time.strftime("%H:%M:%S").to_string()),
        };
        let recurrence = self.recurrence.as_ref().map(ToString::to_string);
        let excluded = |it: &ExcludedStarts| match it {
            ExcludedStarts::Day(day) => day.to_string(),
            ExcludedStarts::Start(start) => start.to_string(),
        };
        WindowText {
            dtstart: self.start.to_string(),
            duration,
            end_time_of_day,
            rrule: recurrence.unwrap_or_default(),
            exdate: self.without.iter().map(excluded).collect(),
            rdate: self.with.iter().map(ToString::to_string).collect(),
        }
    }
}

fn parse_each<T>(
    texts: &[String],
    field: &str,
    read: impl Fn(&str) -> Result<T, String>,
    violations: &mut Vec<(String, String)>,
) -> Vec<T> {
    if texts.len() > CALENDAR_DATES_MAX {
        let count = texts.len();
        let message = format!("has {count} dates; the limit is {CALENDAR_DATES_MAX}");
        violations.push((field.into(), message));
        return Vec::new();
    }
    let mut all = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        match read(text) {
            Ok(value) => all.push(value),
            Err(message) => violations.push((format!("{field}[{at}]"), message)),
        }
    }
    all
}

/// Whether the text contains only characters of dates and times without a time zone.
fn has_no_time_zone(text: &str) -> bool {
    let is_part = |it: char| it.is_ascii_digit() || matches!(it, '-' | ':' | 'T');
    text.len() <= 19 && text.chars().all(is_part)
}

pub fn parse_date_time(text: &str) -> Result<DateTime, String> {
    if text.is_empty() {
        return Err(format!("is required: {MOMENT_FORM}"));
    }
    let read = text.parse::<DateTime>().ok();
    let read = read
        .filter(|it| has_no_time_zone(text) && text.contains('T') && YEARS.contains(&it.year()));
    read.ok_or_else(|| format!("is not a time; expected {MOMENT_FORM}"))
}

fn parse_excluded(text: &str) -> Result<ExcludedStarts, String> {
    if text.contains('T') {
        return parse_date_time(text).map(ExcludedStarts::Start);
    }
    let day = text.parse().ok().filter(|_| has_no_time_zone(text));
    let invalid = || format!("is not a date; expected a date such as 2027-03-28, or {MOMENT_FORM}");
    day.map(ExcludedStarts::Day).ok_or_else(invalid)
}

fn parse_length(text: &WindowText) -> Result<Length, (&'static str, String)> {
    match (text.duration.as_str(), text.end_time_of_day.as_str()) {
        ("", "") => Err((
            "duration",
            "is required, such as PT8H or P1D, unless `endTimeOfDay` is set".into(),
        )),
        (duration, "") => parse_duration(duration).map_err(|message| ("duration", message)),
        ("", time) => {
            let read = time.parse::<Time>().ok();
            let read = read.filter(|it| has_no_time_zone(time) && it.subsec_nanosecond() == 0);
            let message = || {
                (
                    "endTimeOfDay",
                    "is not a time of day; expected a time such as 07:00".into(),
                )
            };
            read.map(Length::Until).ok_or_else(message)
        }
        _ => Err((
            "endTimeOfDay",
            "conflicts with `duration`; set only one of them".into(),
        )),
    }
}

fn parse_duration(text: &str) -> Result<Length, String> {
    let invalid = || "is not an ISO 8601 duration; expected one such as PT8H or P1D".to_owned();
    if !text.starts_with('P') || text.len() > 40 {
        return Err(invalid());
    }
    let span: Span = text.parse().map_err(|_error| invalid())?;
    let is_nominal = span.get_years() == 0 && span.get_months() == 0 && !span.is_negative();
    let is_whole =
        span.get_milliseconds() == 0 && span.get_microseconds() == 0 && span.get_nanoseconds() == 0;
    if !is_nominal || !is_whole {
        return Err(invalid());
    }
    let days = span
        .get_weeks()
        .saturating_mul(7)
        .saturating_add(span.get_days());
    let clock = Span::new()
        .try_hours(span.get_hours())
        .and_then(|it| it.try_minutes(span.get_minutes()))
        .and_then(|it| it.try_seconds(span.get_seconds()))
        .map_err(|_error| invalid())?;
    let exact = clock.total(Unit::Second).map_err(|_error| invalid())?;
    let exact = SignedDuration::try_from_secs_f64(exact).map_err(|_error| invalid())?;
    let whole_days = exact.as_hours() / 24 + i64::from(days);
    if whole_days > i64::from(CALENDAR_LENGTH_DAYS_MAX) {
        return Err(format!("is longer than {CALENDAR_LENGTH_DAYS_MAX} days"));
    }
    if days == 0 && exact.is_zero() {
        return Err("must be longer than zero".into());
    }
    Ok(Length::For { days, exact })
}

/// Formats a duration as in RFC 5545.
fn format_duration(days: i32, exact: SignedDuration) -> String {
    let seconds = exact.as_secs();
    let part = |count: i64, unit: char| match count {
        0 => String::new(),
        count => format!("{count}{unit}"),
    };
    let clock = [
        part(seconds / 3_600, 'H'),
        part(seconds / 60 % 60, 'M'),
        part(seconds % 60, 'S'),
    ];
    let date = part(days.into(), 'D');
    match clock.concat() {
        clock if clock.is_empty() => format!("P{date}"),
        clock => format!("P{date}T{clock}"),
    }
}
