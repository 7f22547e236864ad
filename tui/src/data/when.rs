//! Parsing of times and durations as typed in forms and prompts.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time, Weekday},
    tz::TimeZone,
};

/// Accepted formats of a time, for the end of an error message.
pub(crate) const MOMENTS: &str = "2h, +30m, 08:00, tomorrow 9:00, 2026-11-25 08:00 or RFC 3339";
pub(crate) const LENGTHS: &str = "30s, 5m, 2h, 1h30m or 7d";
const LONGEST_MS: i64 = 100 * 366 * 86_400_000;

/// Parses a time: a duration from now, a time of day, a day and a time, or RFC 3339. A time of day
/// without a date means its next occurrence. A local time skipped by a clock change moves forward
/// by the gap; of two possible times, the earlier is used.
///
/// # Errors
///
/// Returns the problem and the accepted forms.
pub(crate) fn parse_time(text: &str, now_ms: i64, zone: &TimeZone) -> Result<Timestamp, String> {
    let text = text.trim();
    let wrong = || format!("`{text}` is not a time; expected {MOMENTS}");
    let now = Timestamp::from_millisecond(now_ms).map_err(|_range| wrong())?;
    let lower = text.to_lowercase();
    if lower == "now" {
        return Ok(now);
    }
    let from_now = lower.strip_prefix("in ").unwrap_or(&lower);
    if let Some(ms) = parse_duration_ms(from_now.strip_prefix('+').unwrap_or(from_now)) {
        return Timestamp::from_millisecond(now_ms.saturating_add(ms)).map_err(|_range| wrong());
    }
    let today = now.to_zoned(zone.clone()).date();
    if let Some(time) = parse_time_of_day(&lower) {
        let at = |day: Date| resolve_local(day.to_datetime(time), zone);
        let first = at(today).ok_or_else(wrong)?;
        if first > now {
            return Ok(first);
        }
        let tomorrow = today.tomorrow().map_err(|_range| wrong())?;
        return at(tomorrow).ok_or_else(wrong);
    }
    if let Some(named) = parse_named_day(text, &lower, today) {
        let (day, time) = named?;
        let found = resolve_local(day.to_datetime(time), zone).ok_or_else(wrong)?;
        let days = if lower.starts_with("today") { 0 } else { 7 };
        return match found {
            _ if found > now => Ok(found),
            _ if days == 0 => Err(format!(
                "`{text}` has passed; the next is tomorrow {}",
                time.strftime("%H:%M")
            )),
            _ => {
                let next = day.saturating_add(jiff::Span::new().days(days));
                resolve_local(next.to_datetime(time), zone).ok_or_else(wrong)
            }
        };
    }
    parse_date(text, zone).ok_or_else(wrong)
}

/// Parses `tomorrow 9:00`, `today 18:00` or `mon 8:00`; `None` if no day is named.
fn parse_named_day(text: &str, lower: &str, today: Date) -> Option<Result<(Date, Time), String>> {
    let (word, time) = lower.split_once(' ').unwrap_or((lower, ""));
    let day = match word {
        "today" => today,
        "tomorrow" => today.tomorrow().ok()?,
        word => {
            let days = [
                ("monday", Weekday::Monday),
                ("tuesday", Weekday::Tuesday),
                ("wednesday", Weekday::Wednesday),
                ("thursday", Weekday::Thursday),
                ("friday", Weekday::Friday),
                ("saturday", Weekday::Saturday),
                ("sunday", Weekday::Sunday),
            ];
            let (_, weekday) = days
                .iter()
                .find(|(name, _)| word.len() >= 3 && name.starts_with(word))?;
            let ahead = (weekday.to_monday_zero_offset() - today.weekday().to_monday_zero_offset())
                .rem_euclid(7);
            today.saturating_add(jiff::Span::new().days(ahead))
        }
    };
    Some(match parse_time_of_day(time.trim()) {
        Some(time) => Ok((day, time)),
        None => Err(format!("`{text}` requires a time, such as `{word} 9:00`")),
    })
}

/// Parses a date, with or without a time, in this zone; also parses RFC 3339.
fn parse_date(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if let Ok(found) = text.parse::<Timestamp>() {
        return Some(found);
    }
    let (day, rest) = match text.split_once([' ', 'T', 't']) {
        Some((day, rest)) => (day, Some(rest.trim())),
        None => (text, None),
    };
    // Rejects further forms that Jiff would accept, such as ISO weeks.
    let is_date = day.len() == 10 && day.bytes().all(|it| it.is_ascii_digit() || it == b'-');
    let day: Date = day.parse().ok().filter(|_| is_date)?;
    let time = rest.map_or(Some(Time::midnight()), parse_time_of_day)?;
    resolve_local(day.to_datetime(time), zone)
}

fn resolve_local(at: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    Some(at.to_zoned(zone.clone()).ok()?.timestamp())
}

/// Parses `8:00`, `08:00` or `08:00:30`.
fn parse_time_of_day(text: &str) -> Option<Time> {
    let mut parts = text.split(':');
    let mut part = |lengths: std::ops::RangeInclusive<usize>| {
        let text = parts.next()?;
        let is_number = lengths.contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<i8>().ok().filter(|_| is_number)
    };
    let (hour, minute) = (part(1..=2)?, part(2..=2)?);
    let second = if text.matches(':').count() == 2 {
        part(2..=2)?
    } else {
        0
    };
    let is_whole = text.matches(':').count() <= 2;
    Time::new(hour, minute, second, 0).ok().filter(|_| is_whole)
}

/// Parses `90s`, `5m`, `2h`, `1h30m`, `7d` or `1w` to milliseconds.
pub(crate) fn parse_duration_ms(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let tail = tail.trim_start();
        let end = tail
            .find(|it: char| !it.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let unit_ms = match unit {
            "s" | "sec" => 1_000,
            "m" | "min" => 60_000,
            "h" | "hour" | "hours" => 3_600_000,
            "d" | "day" | "days" => 86_400_000,
            "w" | "week" | "weeks" => 604_800_000,
            _ => return None,
        };
        let number: i64 = number.parse().ok()?;
        total = total.checked_add(number.checked_mul(unit_ms)?)?;
        rest = after.trim_start();
    }
    let is_some = !text.trim().is_empty() && total <= LONGEST_MS;
    is_some.then_some(total)
}

/// Formats a duration in the syntax of input fields, without zero units: `1h30m`.
pub(crate) fn format_duration(ms: i64) -> String {
    let mut left = ms.max(0) / 1_000;
    let mut words = String::new();
    for (unit, seconds) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if left >= seconds {
            words.extend([(left / seconds).to_string(), unit.to_owned()]);
            left %= seconds;
        }
    }
    if words.is_empty() {
        "0s".to_owned()
    } else {
        words
    }
}

/// Formats a parsed time: `Wed 25 Nov 16:05 CET, in 2h`.
pub(crate) fn format_parsed(at: Timestamp, now_ms: i64, zone: &TimeZone) -> String {
    let zoned = at.to_zoned(zone.clone());
    let now = Timestamp::from_millisecond(now_ms).unwrap_or_default();
    let is_this_year = now.to_zoned(zone.clone()).year() == zoned.year();
    let format = match (is_this_year, zoned.second()) {
        (true, 0) => "%a %-d %b %H:%M %Z",
        (true, _) => "%a %-d %b %H:%M:%S %Z",
        (false, 0) => "%-d %b %Y %H:%M %Z",
        (false, _) => "%-d %b %Y %H:%M:%S %Z",
    };
    let ahead = at.as_millisecond().saturating_sub(now_ms);
    let far = match ahead {
        ..0 => format!("{} ago", round_duration(ahead.saturating_neg())),
        0 => "now".to_owned(),
        _ => format!("in {}", round_duration(ahead)),
    };
    format!("{}, {far}", zoned.strftime(format))
}

/// Rounds a duration to its two largest units.
fn round_duration(ms: i64) -> String {
    let seconds = ms / 1_000;
    let unit = match seconds {
        86_400.. => 3_600,
        3_600.. => 60,
        _ => 1,
    };
    format_duration(seconds / unit * unit * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wednesday, 13:05:30 in Berlin.
    const NOW: &str = "2026-11-25T12:05:30Z";

    fn berlin() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    fn read(text: &str, now: &str) -> Result<String, String> {
        let now: Timestamp = now.parse().unwrap();
        parse_time(text, now.as_millisecond(), &berlin()).map(|at| at.to_string())
    }

    #[test]
    fn relative_and_absolute_times_are_parsed() {
        for (text, at) in [
            ("now", "2026-11-25T12:05:30Z"),
            ("2h", "2026-11-25T14:05:30Z"),
            ("+30m", "2026-11-25T12:35:30Z"),
            ("in 2h", "2026-11-25T14:05:30Z"),
            ("1h30m", "2026-11-25T13:35:30Z"),
            (" 2 h ", "2026-11-25T14:05:30Z"),
            ("1d", "2026-11-26T12:05:30Z"),
            ("1w", "2026-12-02T12:05:30Z"),
            ("0s", "2026-11-25T12:05:30Z"),
            // The next occurrence, even within the current minute.
            ("14:00", "2026-11-25T13:00:00Z"),
            ("13:06", "2026-11-25T12:06:00Z"),
            ("13:05:31", "2026-11-25T12:05:31Z"),
            ("13:05:30", "2026-11-26T12:05:30Z"),
            ("13:05", "2026-11-26T12:05:00Z"),
            ("08:00", "2026-11-26T07:00:00Z"),
            ("8:00", "2026-11-26T07:00:00Z"),
            ("00:00", "2026-11-25T23:00:00Z"),
            ("today 18:00", "2026-11-25T17:00:00Z"),
            ("tomorrow 9:00", "2026-11-26T08:00:00Z"),
            ("Tomorrow 09:00", "2026-11-26T08:00:00Z"),
            ("thu 8:00", "2026-11-26T07:00:00Z"),
            ("monday 08:00", "2026-11-30T07:00:00Z"),
            ("wed 14:00", "2026-11-25T13:00:00Z"),
            ("wed 8:00", "2026-12-02T07:00:00Z"),
            ("2026-11-25 18:00", "2026-11-25T17:00:00Z"),
            ("2026-11-25T18:00", "2026-11-25T17:00:00Z"),
            ("2026-11-25 08:00", "2026-11-25T07:00:00Z"),
            ("2026-12-01", "2026-11-30T23:00:00Z"),
            ("2026-11-25T18:00:00Z", "2026-11-25T18:00:00Z"),
            ("2026-11-25T18:00:00+05:30", "2026-11-25T12:30:00Z"),
            ("2026-11-25 18:00:00Z", "2026-11-25T18:00:00Z"),
        ] {
            assert_eq!(read(text, NOW).as_deref(), Ok(at), "{text}");
        }
    }

    #[test]
    fn local_times_are_parsed_across_dst_changes() {
        for (now, text, at) in [
            // The night of 29 March has no 02:30; the night of 25 October has 02:30 twice.
            (
                "2026-03-28T12:00:00Z",
                "2026-03-29 02:30",
                "2026-03-29T01:30:00Z",
            ),
            ("2026-03-29T00:30:00Z", "02:30", "2026-03-29T01:30:00Z"),
            (
                "2026-03-28T12:00:00Z",
                "tomorrow 08:00",
                "2026-03-29T06:00:00Z",
            ),
            ("2026-03-28T12:00:00Z", "24h", "2026-03-29T12:00:00Z"),
            (
                "2026-10-24T12:00:00Z",
                "2026-10-25 02:30",
                "2026-10-25T00:30:00Z",
            ),
            ("2026-10-24T22:30:00Z", "02:30", "2026-10-25T00:30:00Z"),
            // The current time is between the two occurrences of 02:30.
            ("2026-10-25T00:45:00Z", "02:30", "2026-10-26T01:30:00Z"),
            ("2026-10-24T22:00:00Z", "08:00", "2026-10-25T07:00:00Z"),
        ] {
            assert_eq!(read(text, now).as_deref(), Ok(at), "{text} at {now}");
        }
    }

    #[test]
    fn invalid_time_is_rejected_with_an_example() {
        for text in [
            "",
            "soon",
            "2",
            "h",
            "-2h",
            "2x",
            "2h!",
            "24:00",
            "8:0",
            "08:60",
            "1:2:3",
            "08:00:00:00",
            "8",
            "2026-13-01 08:00",
            "2026-02-30",
            "2026-11-25 8",
            "20261125",
            "99999999999999999999h",
            "9999999999d",
            "2026-11-25T18:00:00+99:00",
            "yesterday 8:00",
            "+",
            "in ",
        ] {
            let error = read(text, NOW).unwrap_err();
            assert!(error.ends_with(MOMENTS), "{text}: {error}");
        }
        let tomorrow = read("tomorrow", NOW).unwrap_err();
        assert_eq!(
            tomorrow,
            "`tomorrow` requires a time, such as `tomorrow 9:00`"
        );
        let passed = read("today 8:00", NOW).unwrap_err();
        assert_eq!(
            passed,
            "`today 8:00` has passed; the next is tomorrow 08:00"
        );
    }

    #[test]
    fn parsed_time_is_shown_with_its_distance() {
        let now: Timestamp = NOW.parse().unwrap();
        for (text, expected) in [
            ("2h", "Wed 25 Nov 15:05:30 CET, in 2h"),
            ("08:00", "Thu 26 Nov 08:00 CET, in 18h54m"),
            ("2027-07-01 08:00", "1 Jul 2027 08:00 CEST, in 217d17h"),
            ("2026-11-25 08:00", "Wed 25 Nov 08:00 CET, 5h5m ago"),
            ("now", "Wed 25 Nov 13:05:30 CET, now"),
        ] {
            let at = parse_time(text, now.as_millisecond(), &berlin()).unwrap();
            assert_eq!(format_parsed(at, now.as_millisecond(), &berlin()), expected);
        }
    }

    #[test]
    fn durations_round_trip() {
        for (text, ms) in [
            ("30s", Some(30_000)),
            ("7200s", Some(7_200_000)),
            ("1h30m", Some(5_400_000)),
            ("1d", Some(86_400_000)),
            ("0s", Some(0)),
            ("", None),
            ("90", None),
            ("1.5h", None),
        ] {
            assert_eq!(parse_duration_ms(text), ms, "{text}");
        }
        for text in ["30s", "2h", "1h30m", "1d2h", "0s"] {
            assert_eq!(format_duration(parse_duration_ms(text).unwrap()), text);
        }
    }
}
