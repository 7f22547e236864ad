//! Cron expressions.
//!
//! - As in Vixie cron, a day matches by its date or its weekday if the expression restricts both.
//! - A time that the clocks skip is resolved with the offset before the gap. One that occurs twice
//!   counts once, unless the job runs every hour.

use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, DateTime},
    tz::TimeZone,
};

use super::Span;

/// Length of the window after a start, in milliseconds; cron's resolution is a minute.
const WINDOW_MS: i64 = 60_000;
/// Number of days within which an expression must match. Leap days are up to eight years apart.
const AHEAD_DAYS: i64 = 9 * 366;
const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const WORDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    minutes: ValueSet,
    hours: ValueSet,
    days: ValueSet,
    months: ValueSet,
    weekdays: ValueSet,
    zone: TimeZone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ValueSet {
    bits: u64,
    /// Whether the field starts with `*`.
    is_any: bool,
}

impl ValueSet {
    fn contains(self, value: i8) -> bool {
        u32::try_from(value).is_ok_and(|value| self.bits & 1 << value != 0)
    }
}

impl Cron {
    pub fn parse(text: &str, zone: TimeZone) -> Result<Self, String> {
        let word = WORDS.iter().find(|(word, _)| text.trim() == *word);
        let fields: Vec<_> = word.map_or(text, |it| it.1).split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!(
                "has {} fields; expected minute, hour, day of the month, month and day of the week, such as \
                 `0 3 * * *`",
                fields.len()
            ));
        };
        let mut weekdays = parse_values(weekday, "day of the week", (0, 7), &WEEKDAYS)?;
        // Both 0 and 7 are Sunday.
        weekdays.bits |= weekdays.bits >> 7;
        let cron = Self {
            minutes: parse_values(minute, "minute", (0, 59), &[])?,
            hours: parse_values(hour, "hour", (0, 23), &[])?,
            days: parse_values(day, "day of the month", (1, 31), &[])?,
            months: parse_values(month, "month", (1, 12), &MONTHS)?,
            weekdays,
            zone,
        };
        let mut days = (0..AHEAD_DAYS).map(|day| jiff::civil::date(2024, 1, 1) + day.days());
        if days.any(|it| cron.matches_day(it)) {
            Ok(cron)
        } else {
            Err("matches no date: that month has no such day".into())
        }
    }

    /// Returns the first start after a time, in milliseconds since 1970.
    pub fn next_after(&self, at_ms: i64) -> Option<i64> {
        let first = self.local_date(at_ms)?.saturating_sub(1.day());
        let mut days = (0..AHEAD_DAYS).filter_map(|day| first.checked_add(day.days()).ok());
        days.find_map(|day| self.start_times(day).into_iter().find(|it| *it > at_ms))
    }

    /// Returns the windows that overlap the time from `start_ms` to before `end_ms`.
    pub fn windows_between(&self, start_ms: i64, end_ms: i64) -> Vec<Span> {
        let (Some(first), Some(last)) = (self.local_date(start_ms), self.local_date(end_ms)) else {
            return Vec::new();
        };
        let mut spans = Vec::new();
        let mut day = first.saturating_sub(1.day());
        while day <= last {
            spans.extend(self.start_times(day).into_iter().map(|start_ms| Span {
                start_ms,
                end_ms: start_ms.saturating_add(WINDOW_MS),
                longer_ms: 0,
            }));
            match day.tomorrow() {
                Ok(next) => day = next,
                Err(_last) => break,
            }
        }
        spans.retain(|it| it.end_ms > start_ms && it.start_ms < end_ms);
        spans
    }

    fn local_date(&self, at_ms: i64) -> Option<Date> {
        let at = Timestamp::from_millisecond(at_ms).ok()?;
        Some(self.zone.to_datetime(at).date())
    }

    fn matches_day(&self, day: Date) -> bool {
        let is_day = self.days.contains(day.day());
        let is_weekday = self
            .weekdays
            .contains(day.weekday().to_sunday_zero_offset());
        let is_either = !self.days.is_any && !self.weekdays.is_any;
        self.months.contains(day.month())
            && if is_either {
                is_day || is_weekday
            } else {
                is_day && is_weekday
            }
    }

    fn start_times(&self, day: Date) -> Vec<i64> {
        if !self.matches_day(day) {
            return Vec::new();
        }
        let is_hourly = (0..24).all(|hour| self.hours.contains(hour));
        let mut times = Vec::new();
        let hours = (0..24).filter(|it| self.hours.contains(*it));
        for local in hours.flat_map(|hour| {
            let minutes = (0..60).filter(|it| self.minutes.contains(*it));
            minutes.map(move |minute| day.at(hour, minute, 0, 0))
        }) {
            times.extend(self.resolve_local(local, is_hourly));
        }
        times.sort_unstable();
        times.dedup();
        times
    }

    fn resolve_local(&self, local: DateTime, both: bool) -> impl Iterator<Item = i64> {
        let first = self.zone.to_ambiguous_timestamp(local).compatible().ok();
        let second = self.zone.to_ambiguous_timestamp(local).later().ok();
        let second = second.filter(|it| both && Some(*it) != first);
        let all = first.into_iter().chain(second);
        all.map(Timestamp::as_millisecond)
    }
}

fn parse_values(
    text: &str,
    field: &str,
    (least, most): (u8, u8),
    names: &[&str],
) -> Result<ValueSet, String> {
    let wrong = |part: &str| {
        format!(
            "the {field} `{part}` is not valid; expected {least} to {most}, such as `{least}-{most}` or `*/2`"
        )
    };
    let value = |part: &str| -> Result<u8, String> {
        let named = names.iter().position(|it| part.eq_ignore_ascii_case(it));
        let named = named.and_then(|at| u8::try_from(at).ok());
        // Months count from 1.
        let named = named.map(|at| at + least.min(1));
        let number = part.bytes().all(|it| it.is_ascii_digit());
        let number = number.then(|| part.parse().ok()).flatten();
        let value = named.or(number);
        value
            .filter(|it| (least..=most).contains(it))
            .ok_or_else(|| wrong(part))
    };
    let mut bits = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, step.parse().map_err(|_no_number| wrong(part))?),
            None => (part, 1),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" => (least, most),
            Some((first, last)) => (value(first)?, value(last)?),
            // As in Vixie cron, `5/10` continues to the last value.
            None if part.contains('/') => (value(range)?, most),
            None => (value(range)?, value(range)?),
        };
        if first > last || step == 0 {
            return Err(wrong(part));
        }
        for it in (first..=last).step_by(step) {
            bits |= 1 << it;
        }
    }
    Ok(ValueSet {
        bits,
        is_any: text.starts_with('*'),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calendar::find_zone;

    fn parse_cron(text: &str, named: &str) -> Cron {
        Cron::parse(text, find_zone(named).unwrap()).unwrap()
    }

    fn due_times(cron: &Cron, from: &str, count: usize) -> Vec<String> {
        let mut at_ms = from.parse::<Timestamp>().unwrap().as_millisecond();
        let next = || {
            at_ms = cron.next_after(at_ms)?;
            Some(Timestamp::from_millisecond(at_ms).unwrap().to_string())
        };
        std::iter::from_fn(next).take(count).collect()
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn expressions_are_due_at_local_times() {
        let table: [(&str, &str, &str, &[&str]); 11] = [
            (
                "0 3 * * *",
                "Europe/Berlin",
                "2027-03-27T12:00:00Z",
                &["2027-03-28T01:00:00Z", "2027-03-29T01:00:00Z"],
            ),
            // 02:30 is skipped on 28 March and occurs twice on 31 October.
            (
                "30 2 * * *",
                "Europe/Berlin",
                "2027-03-27T12:00:00Z",
                &["2027-03-28T01:30:00Z", "2027-03-29T00:30:00Z"],
            ),
            (
                "30 2 * * *",
                "Europe/Berlin",
                "2027-10-30T12:00:00Z",
                &["2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"],
            ),
            (
                "0 * * * *",
                "Europe/Berlin",
                "2027-10-30T23:59:00Z",
                &[
                    "2027-10-31T00:00:00Z",
                    "2027-10-31T01:00:00Z",
                    "2027-10-31T02:00:00Z",
                ],
            ),
            (
                "*/20 9-10 * * mon-fri",
                "UTC",
                "2027-01-01T10:30:00Z",
                &["2027-01-01T10:40:00Z", "2027-01-04T09:00:00Z"],
            ),
            // Either the 13th or a Friday.
            (
                "0 0 13 * 5",
                "UTC",
                "2027-01-10T00:00:00Z",
                &["2027-01-13T00:00:00Z", "2027-01-15T00:00:00Z"],
            ),
            (
                "0 0 */2 * 5",
                "UTC",
                "2027-01-10T00:00:00Z",
                &["2027-01-15T00:00:00Z", "2027-01-29T00:00:00Z"],
            ),
            (
                "0 0 29 feb *",
                "UTC",
                "2027-01-01T00:00:00Z",
                &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
            ),
            (
                "5/20 0 * * 7",
                "UTC",
                "2027-01-01T00:00:00Z",
                &[
                    "2027-01-03T00:05:00Z",
                    "2027-01-03T00:25:00Z",
                    "2027-01-03T00:45:00Z",
                ],
            ),
            (
                "15,45 1 1 1,JUL *",
                "UTC",
                "2027-01-01T01:20:00Z",
                &["2027-01-01T01:45:00Z", "2027-07-01T01:15:00Z"],
            ),
            (
                "@daily",
                "Asia/Kolkata",
                "2027-01-01T00:00:00Z",
                &["2027-01-01T18:30:00Z"],
            ),
        ];
        for (text, zone, from, expected) in table {
            assert_eq!(
                due_times(&parse_cron(text, zone), from, expected.len()),
                expected,
                "{text} {zone}"
            );
        }
    }

    #[test]
    fn invalid_expressions_are_rejected() {
        for (text, expected) in [
            ("0 3 * *", "has 4 fields"),
            ("60 3 * * *", "the minute `60`"),
            ("0 3 0 * *", "the day of the month `0`"),
            ("0 3 * 13 *", "the month `13`"),
            ("0 3 * * 8", "the day of the week `8`"),
            ("0 3 * * sat-sun", "the day of the week `sat-sun`"),
            ("*/0 3 * * *", "the minute `*/0`"),
            ("+1 3 * * *", "the minute `+1`"),
            ("0 0 31 2 *", "matches no date"),
            ("@reboot", "has 1 fields"),
        ] {
            let error = Cron::parse(text, TimeZone::UTC).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn windows_begin_at_each_due_time() {
        let hourly = parse_cron("0 * * * *", "UTC");
        let ms = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        let found = hourly.windows_between(ms("2027-01-01T00:00:30Z"), ms("2027-01-01T02:00:00Z"));
        let found: Vec<_> = found.iter().map(|it| (it.start_ms, it.end_ms)).collect();
        let hour = |text: &str| (ms(text), ms(text) + WINDOW_MS);
        assert_eq!(
            found,
            [hour("2027-01-01T00:00:00Z"), hour("2027-01-01T01:00:00Z")]
        );
    }
}
