//! Times as users write them: an age, a time of day, a date, or both.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

use super::Literal;

/// The reference time and time zone of a filter.
#[derive(Debug, Clone)]
pub struct TimeReference {
    /// Milliseconds since 1970.
    pub ms: i64,
    /// The time zone of dates and times of day.
    pub zone: TimeZone,
}

impl TimeReference {
    /// Creates a reference time in UTC.
    pub fn in_utc(ms: i64) -> Self {
        Self {
            ms,
            zone: TimeZone::UTC,
        }
    }

    /// Parses an age such as `2h`, a time of the current day such as `09:30`, or a date such as
    /// `2026-01-31` or `2026-01-31T09:30`. Returns milliseconds since 1970; `None` for any other
    /// text.
    pub fn parse_ms(&self, text: &str) -> Option<i64> {
        parse_age(text)
            .map(|ago_ms| self.ms.saturating_sub(ago_ms))
            .or_else(|| self.parse_time_today(text))
            .or_else(|| parse_date(text, &self.zone))
    }

    fn parse_time_today(&self, text: &str) -> Option<i64> {
        let time = parse_time_of_day(text)?;
        let now = Timestamp::from_millisecond(self.ms).ok()?;
        let today = now.to_zoned(self.zone.clone()).date();
        to_millis(today.to_datetime(time), &self.zone)
    }
}

/// Parses a time in one of these forms; `None` for any other text.
pub(super) fn parse_time(
    text: &str,
    now: Option<&TimeReference>,
) -> Option<Result<Literal, String>> {
    let Some(now) = now else {
        if parse_age(text).is_some() || parse_time_of_day(text).is_some() {
            return Some(Err(format!(
                "`{text}` is relative to now, but this filter is stored; use a date and time such \
                 as `2026-01-31T08:00:00Z`"
            )));
        }
        return parse_date(text, &TimeZone::UTC).map(time_literal(text));
    };
    now.parse_ms(text).map(time_literal(text))
}

fn time_literal(text: &str) -> impl Fn(i64) -> Result<Literal, String> {
    move |ms| match Timestamp::from_millisecond(ms) {
        Ok(moment) => Ok(Literal::Text(format!("{moment:.3}"))),
        Err(_) => Err(format!("`{text}` is before the earliest supported time")),
    }
}

/// Parses an age such as `90s`, `5m`, `2h`, `7d` or `1w` into milliseconds.
fn parse_age(text: &str) -> Option<i64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_ms = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 604_800_000,
        _ => return None,
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = number.parse().ok().filter(|_| digits)?;
    Some(number.saturating_mul(unit_ms))
}

fn parse_time_of_day(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    if hour.len() > 2 || minute.len() != 2 {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

fn parse_date(text: &str, zone: &TimeZone) -> Option<i64> {
    // A time with an explicit offset is parsed elsewhere.
    let begins = text.len() >= "2026-01-31".len() && text.is_ascii();
    let is_local =
        !text.ends_with(['Z', 'z', ']']) && !text[10.min(text.len())..].contains(['+', '-']);
    if !begins || !is_local {
        return None;
    }
    let date = text.parse::<Date>().ok();
    let local = text.parse::<DateTime>().ok();
    let local = local.or_else(|| Some(date?.to_datetime(Time::midnight())))?;
    to_millis(local, zone)
}

fn to_millis(local: DateTime, zone: &TimeZone) -> Option<i64> {
    let zoned = local.to_zoned(zone.clone()).ok()?;
    Some(zoned.timestamp().as_millisecond())
}
