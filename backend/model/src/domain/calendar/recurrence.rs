//! Recurrences of windows: the supported part of RFC 5545's `RRULE`.

use std::{fmt, str::FromStr};

use jiff::{
    Timestamp,
    civil::{Date, Weekday},
};

use crate::limits::{CALENDAR_COUNT_MAX, CALENDAR_INTERVAL_MAX};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recurrence {
    pub frequency: Frequency,
    /// The interval, in periods.
    pub interval: u16,
    pub count: Option<u16>,
    pub until: Option<Until>,
    pub months: Vec<i8>,
    /// The days of the month to which the recurrence is restricted, counted from the end if
    /// negative.
    pub month_days: Vec<i8>,
    pub weekdays: Vec<WeekdayRule>,
    /// The positions among the starts of a period to which the recurrence is restricted, counted
    /// from the end if negative.
    pub positions: Vec<i16>,
    pub week_start: Weekday,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frequency {
    Daily,
    Weekly,
    Monthly,
    Yearly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The end of a local day.
    Day(Date),
    Time(Timestamp),
}

/// A day of the week, optionally a specific one in the month or year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeekdayRule {
    /// The ordinal, counted from the end if negative; `None` means every such day.
    pub ordinal: Option<i8>,
    pub weekday: Weekday,
}

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MO", Weekday::Monday),
    ("TU", Weekday::Tuesday),
    ("WE", Weekday::Wednesday),
    ("TH", Weekday::Thursday),
    ("FR", Weekday::Friday),
    ("SA", Weekday::Saturday),
    ("SU", Weekday::Sunday),
];

const FREQUENCIES: [(&str, Frequency); 4] = [
    ("DAILY", Frequency::Daily),
    ("WEEKLY", Frequency::Weekly),
    ("MONTHLY", Frequency::Monthly),
    ("YEARLY", Frequency::Yearly),
];

const DAY_FORMAT: &str = "%Y%m%d";
const MOMENT_FORMAT: &str = "%Y%m%dT%H%M%SZ";

const TEXT_BYTES_MAX: usize = 1_000;

/// The period in which the ordinal of a weekday counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrdinalPeriod {
    Month,
    Year,
}

impl Recurrence {
    /// Returns the period in which the ordinal of a weekday counts; `None` if weekdays cannot have
    /// an ordinal.
    pub fn ordinal_period(&self) -> Option<OrdinalPeriod> {
        match self.frequency {
            Frequency::Daily | Frequency::Weekly => None,
            Frequency::Yearly if self.months.is_empty() => Some(OrdinalPeriod::Year),
            Frequency::Monthly | Frequency::Yearly => Some(OrdinalPeriod::Month),
        }
    }

    fn check(&self) -> Result<(), String> {
        let has_ordinal = self.weekdays.iter().any(|it| it.ordinal.is_some());
        if has_ordinal && self.ordinal_period().is_none() {
            return Err(
                "has numbered weekdays, which require `FREQ=MONTHLY` or `FREQ=YEARLY`".into(),
            );
        }
        let month_ordinals = self.weekdays.iter().filter_map(|it| it.ordinal);
        let is_month = self.ordinal_period() == Some(OrdinalPeriod::Month);
        if is_month && { month_ordinals }.any(|it| it.abs() > 5) {
            return Err("selects a sixth weekday of a month; the maximum is five".into());
        }
        if self.frequency == Frequency::Weekly && !self.month_days.is_empty() {
            return Err("has `BYMONTHDAY`, which `FREQ=WEEKLY` forbids".into());
        }
        if self.count.is_some() && self.until.is_some() {
            return Err("has both `COUNT` and `UNTIL`; use one".into());
        }
        let is_by =
            !self.months.is_empty() || !self.month_days.is_empty() || !self.weekdays.is_empty();
        if !self.positions.is_empty() && !is_by {
            return Err("has `BYSETPOS`, which requires another part, such as `BYDAY`".into());
        }
        Ok(())
    }
}

impl FromStr for Recurrence {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(format!("is longer than {TEXT_BYTES_MAX} characters"));
        }
        let text = text.trim();
        let text = text.strip_prefix("RRULE:").unwrap_or(text);
        let text = text.to_ascii_uppercase();
        let mut frequency = None;
        let mut read = Self {
            frequency: Frequency::Daily,
            interval: 1,
            count: None,
            until: None,
            months: Vec::new(),
            month_days: Vec::new(),
            weekdays: Vec::new(),
            positions: Vec::new(),
            week_start: Weekday::Monday,
        };
        let mut seen: Vec<&str> = Vec::new();
        for part in text.split(';') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("has a part `{part}` that is not `NAME=VALUE`"))?;
            if seen.contains(&name) {
                return Err(format!("has `{name}` twice"));
            }
            seen.push(name);
            match name {
                "FREQ" => {
                    let mut all = FREQUENCIES.iter();
                    let found = all.find(|(word, _)| *word == value);
                    let refused =
                        || format!("has `FREQ={value}`; expected DAILY, WEEKLY, MONTHLY or YEARLY");
                    frequency = Some(found.ok_or_else(refused)?.1);
                }
                "INTERVAL" => read.interval = parse_number(name, value, 1..=CALENDAR_INTERVAL_MAX)?,
                "COUNT" => read.count = Some(parse_number(name, value, 1..=CALENDAR_COUNT_MAX)?),
                "UNTIL" => read.until = Some(parse_until(value)?),
                "BYMONTH" => read.months = parse_list(value, |it| parse_number(name, it, 1..=12))?,
                "BYMONTHDAY" => {
                    read.month_days = parse_list(value, |it| parse_nonzero(name, it, -31..=31))?;
                }
                "BYDAY" => read.weekdays = parse_list(value, parse_weekday_rule)?,
                "BYSETPOS" => {
                    read.positions = parse_list(value, |it| parse_nonzero(name, it, -366..=366))?;
                }
                "WKST" => read.week_start = parse_weekday(value)?,
                other => {
                    return Err(format!(
                        "has `{other}`; expected FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, \
                         BYMONTHDAY, BYDAY, BYSETPOS and WKST"
                    ));
                }
            }
        }
        read.frequency = frequency.ok_or("has no `FREQ`")?;
        read.check()?;
        Ok(read)
    }
}

const LIST_MAX: usize = 400;

fn parse_list<T: PartialEq>(
    value: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for text in value.split(',').take(LIST_MAX) {
        let value = read(text)?;
        if !all.contains(&value) {
            all.push(value);
        }
    }
    Ok(all)
}

fn parse_number<T>(name: &str, text: &str, range: std::ops::RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + fmt::Display,
{
    let read = text.parse().ok().filter(|it| range.contains(it));
    read.ok_or_else(|| {
        let (first, last) = (range.start(), range.end());
        format!("has `{name}={text}`; expected {first} to {last}")
    })
}

fn parse_nonzero<T>(name: &str, text: &str, range: std::ops::RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + fmt::Display + Default,
{
    let read = parse_number(name, text, range)?;
    if read == T::default() {
        return Err(format!(
            "has `{name}=0`; use 1 for the first or -1 for the last"
        ));
    }
    Ok(read)
}

fn parse_weekday(text: &str) -> Result<Weekday, String> {
    let found = WEEKDAYS.iter().find(|(word, _)| *word == text);
    let weekday = found.map(|(_, weekday)| *weekday);
    weekday.ok_or_else(|| {
        format!("has the invalid day `{text}`; expected MO, TU, WE, TH, FR, SA or SU")
    })
}

fn parse_weekday_rule(text: &str) -> Result<WeekdayRule, String> {
    let at = text.len().saturating_sub(2);
    let (ordinal, day) = text.split_at_checked(at).unwrap_or(("", text));
    let weekday = parse_weekday(day)?;
    let ordinal = match ordinal {
        "" => None,
        ordinal => Some(parse_nonzero("BYDAY", ordinal, -53..=53)?),
    };
    Ok(WeekdayRule { ordinal, weekday })
}

fn parse_until(text: &str) -> Result<Until, String> {
    let day = || Date::strptime(DAY_FORMAT, text).map(Until::Day).ok();
    let moment = || {
        let local = jiff::civil::DateTime::strptime(MOMENT_FORMAT, text).ok()?;
        let moment = local.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(Until::Time(moment.timestamp()))
    };
    day().or_else(moment).ok_or_else(|| {
        format!("has `UNTIL={text}`; expected a date such as 20271231 or a time such as 20271231T220000Z")
    })
}

impl fmt::Display for Recurrence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut frequencies = FREQUENCIES.iter();
        let frequency = frequencies.find(|(_, it)| *it == self.frequency);
        write!(out, "FREQ={}", frequency.map_or("", |(word, _)| word))?;
        if self.interval != 1 {
            write!(out, ";INTERVAL={}", self.interval)?;
        }
        if let Some(count) = self.count {
            write!(out, ";COUNT={count}")?;
        }
        match self.until {
            Some(Until::Day(day)) => write!(out, ";UNTIL={}", day.strftime(DAY_FORMAT))?,
            Some(Until::Time(at)) => write!(out, ";UNTIL={}", at.strftime(MOMENT_FORMAT))?,
            None => {}
        }
        write_list(out, "BYMONTH", &self.months)?;
        write_list(out, "BYMONTHDAY", &self.month_days)?;
        write_list(out, "BYDAY", &self.weekdays)?;
        write_list(out, "BYSETPOS", &self.positions)?;
        if self.week_start != Weekday::Monday {
            write!(out, ";WKST={}", weekday_code(self.week_start))?;
        }
        Ok(())
    }
}

fn write_list(
    out: &mut fmt::Formatter<'_>,
    name: &str,
    values: &[impl fmt::Display],
) -> fmt::Result {
    for (at, value) in values.iter().enumerate() {
        match at {
            0 => write!(out, ";{name}={value}")?,
            _ => write!(out, ",{value}")?,
        }
    }
    Ok(())
}

fn weekday_code(weekday: Weekday) -> &'static str {
    let found = WEEKDAYS.iter().find(|(_, it)| *it == weekday);
    found.map_or("", |(word, _)| word)
}

impl fmt::Display for WeekdayRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(ordinal) = self.ordinal {
            write!(out, "{ordinal}")?;
        }
        out.write_str(weekday_code(self.weekday))
    }
}
