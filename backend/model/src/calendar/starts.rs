//! The days on which a window starts, computed period by period from any day, without computing the
//! days before it.

use jiff::{
    Span, Unit,
    civil::{Date, DateTime, Weekday},
};

use super::is_excluded;
use crate::{
    domain::calendar::{Frequency, OrdinalPeriod, Recurrence, Until, WeekdayRule, Window},
    limits::CALENDAR_COUNTED_MAX,
};

#[derive(Debug)]
pub(super) struct StepBudget(usize);

impl StepBudget {
    pub(super) fn new(most: usize) -> Self {
        Self(most)
    }

    fn consume_step(&mut self) -> bool {
        let left = self.0.checked_sub(1);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }

    pub(super) fn remaining(&self) -> usize {
        self.0
    }
}

#[derive(Debug)]
pub(super) struct Starts {
    window: Window,
    /// The last day of a rule with a count; otherwise `None`.
    last: Option<Date>,
    is_counted: bool,
}

impl Starts {
    pub(super) fn new(window: &Window) -> Self {
        let mut starts = Self {
            window: window.clone(),
            last: None,
            is_counted: true,
        };
        let recurrence = window.recurrence.as_ref();
        if let Some(count) = recurrence.and_then(|it| it.count) {
            let (mut seen, mut last) = (0_u16, window.start.date());
            let mut steps = StepBudget::new(CALENDAR_COUNTED_MAX);
            let all = (window.start.date(), Date::MAX);
            let stopped = starts.visit_days(all, &mut steps, &mut |day| {
                seen += 1;
                last = day;
                seen < count
            });
            starts.is_counted = stopped.is_none();
            starts.last = Some(last);
        }
        starts
    }

    pub(super) fn last_start_day(&self) -> Option<Date> {
        self.last
    }

    pub(super) fn has_count_limit(&self) -> bool {
        self.is_counted
    }

    /// Calls `see` with the starts in a range that are not excluded, in order. Returns the day at
    /// which the step budget was exhausted, if it was.
    pub(super) fn visit_starts(
        &self,
        (from, through): (DateTime, DateTime),
        steps: &mut StepBudget,
        see: &mut dyn FnMut(DateTime),
    ) -> Option<Date> {
        let time = self.window.start.time();
        self.visit_days((from.date(), through.date()), steps, &mut |day| {
            let start = day.to_datetime(time);
            if (from..=through).contains(&start) && !is_excluded(&self.window, start) {
                see(start);
            }
            true
        })
    }

    /// Calls `see` with the days in a range that the rule produces, in order, until it returns
    /// false. Returns the day at which the step budget was exhausted, if it was.
    pub(super) fn visit_days(
        &self,
        (from, through): (Date, Date),
        steps: &mut StepBudget,
        see: &mut dyn FnMut(Date) -> bool,
    ) -> Option<Date> {
        let first = self.window.start.date();
        let Some(rule) = &self.window.recurrence else {
            if (from..=through).contains(&first) {
                see(first);
            }
            return None;
        };
        let until = match rule.until {
            Some(Until::Day(day)) => Some(day),
            // The local date of the limit differs from the date in UTC by at most a day.
            Some(Until::Time(at)) => {
                let utc = jiff::tz::TimeZone::UTC.to_datetime(at).date();
                utc.checked_add(Span::new().days(2)).ok()
            }
            None => self.last,
        };
        let from = from.max(first);
        let through = until.map_or(through, |until| through.min(until));
        let mut days = Vec::new();
        let mut period = period_before(rule, first, from);
        while let Some(begins) = nth_period(rule, first, period).filter(|it| *it <= through) {
            days.clear();
            if !collect_days(rule, first, begins, steps, &mut days) {
                return Some(begins);
            }
            for day in days.drain(..).filter(|it| *it >= from) {
                if day > through || !see(day) {
                    return None;
                }
            }
            period += 1;
        }
        None
    }
}

fn period_start(rule: &Recurrence, day: Date) -> Option<Date> {
    match rule.frequency {
        Frequency::Daily => Some(day),
        Frequency::Weekly => {
            let back = days_since(rule.week_start, day.weekday());
            day.checked_sub(Span::new().days(back)).ok()
        }
        Frequency::Monthly => Some(day.first_of_month()),
        Frequency::Yearly => Some(day.first_of_year()),
    }
}

fn days_since(start: Weekday, day: Weekday) -> i8 {
    (day.to_monday_zero_offset() - start.to_monday_zero_offset()).rem_euclid(7)
}

/// Returns the index of the last period that starts no later than a day, counted from the period of
/// the first start.
fn period_before(rule: &Recurrence, first: Date, day: Date) -> i64 {
    let Some(first) = period_start(rule, first) else {
        return 0;
    };
    let months = |it: Date| i64::from(it.year()) * 12 + i64::from(it.month());
    let days = || {
        let since = day.since((Unit::Day, first));
        since.map_or(0, |it| i64::from(it.get_days()))
    };
    let passed = match rule.frequency {
        Frequency::Daily => days(),
        Frequency::Weekly => days() / 7,
        Frequency::Monthly => months(day) - months(first),
        Frequency::Yearly => i64::from(day.year()) - i64::from(first.year()),
    };
    (passed / i64::from(rule.interval)).max(0)
}

fn nth_period(rule: &Recurrence, first: Date, number: i64) -> Option<Date> {
    let count = number.checked_mul(i64::from(rule.interval))?;
    let span = match rule.frequency {
        Frequency::Daily => Span::new().try_days(count),
        Frequency::Weekly => Span::new().try_weeks(count),
        Frequency::Monthly => Span::new().try_months(count),
        Frequency::Yearly => Span::new().try_years(count),
    };
    period_start(rule, first)?.checked_add(span.ok()?).ok()
}

/// Collects the days of one period that the rule produces. Returns false if the step budget was
/// exhausted.
fn collect_days(
    rule: &Recurrence,
    first: Date,
    begins: Date,
    steps: &mut StepBudget,
    days: &mut Vec<Date>,
) -> bool {
    let mut see = |day: Date| {
        let has_step = steps.consume_step();
        if has_step && matches_recurrence(rule, first, day) {
            days.push(day);
        }
        has_step
    };
    let whole = match rule.frequency {
        Frequency::Weekly => days_from(begins, 7).all(&mut see),
        Frequency::Monthly if matches_month(rule, first, begins) => {
            days_of_month(begins).all(&mut see)
        }
        // One day of an excluded month is scanned as well, so that the search uses up its budget.
        Frequency::Daily | Frequency::Monthly => see(begins),
        Frequency::Yearly => {
            let months = (1..=12).filter_map(|it| Date::new(begins.year(), it, 1).ok());
            let mut months = months.filter(|it| matches_month(rule, first, *it));
            months.all(|it| days_of_month(it).all(&mut see))
        }
    };
    if !rule.positions.is_empty() {
        let all = std::mem::take(days);
        let at = |position: i16| {
            let position = isize::from(position);
            let length = isize::try_from(all.len()).ok()?;
            let at = if position > 0 {
                position - 1
            } else {
                length + position
            };
            all.get(usize::try_from(at).ok()?).copied()
        };
        days.extend(rule.positions.iter().filter_map(|it| at(*it)));
        days.sort_unstable();
        days.dedup();
    }
    whole
}

fn days_from(first: Date, count: i8) -> impl Iterator<Item = Date> {
    (0..count).filter_map(move |it| first.checked_add(Span::new().days(it)).ok())
}

fn days_of_month(first: Date) -> impl Iterator<Item = Date> {
    (1..=first.days_in_month())
        .filter_map(move |it| Date::new(first.year(), first.month(), it).ok())
}

/// Whether a rule names no days, so that the day of the first start applies.
fn selects_no_days(rule: &Recurrence) -> bool {
    rule.month_days.is_empty() && rule.weekdays.is_empty()
}

fn matches_month(rule: &Recurrence, first: Date, day: Date) -> bool {
    let of_first =
        rule.frequency == Frequency::Yearly && rule.months.is_empty() && selects_no_days(rule);
    if of_first {
        return day.month() == first.month();
    }
    rule.months.is_empty() || rule.months.contains(&day.month())
}

fn matches_recurrence(rule: &Recurrence, first: Date, day: Date) -> bool {
    if !matches_month(rule, first, day) {
        return false;
    }
    if selects_no_days(rule) {
        return match rule.frequency {
            Frequency::Daily => true,
            Frequency::Weekly => day.weekday() == first.weekday(),
            Frequency::Monthly | Frequency::Yearly => day.day() == first.day(),
        };
    }
    let from_end = day.day() - day.days_in_month() - 1;
    let is_month_day = |it: &i8| *it == day.day() || *it == from_end;
    (rule.month_days.is_empty() || rule.month_days.iter().any(is_month_day))
        && (rule.weekdays.is_empty() || rule.weekdays.iter().any(|it| is_weekday(rule, *it, day)))
}

fn is_weekday(rule: &Recurrence, wanted: WeekdayRule, day: Date) -> bool {
    if wanted.weekday != day.weekday() {
        return false;
    }
    let Some(ordinal) = wanted.ordinal else {
        return true;
    };
    let (at, length) = match rule.ordinal_period() {
        Some(OrdinalPeriod::Month) => (i16::from(day.day()), i16::from(day.days_in_month())),
        Some(OrdinalPeriod::Year) => (day.day_of_year(), day.days_in_year()),
        None => return false,
    };
    let ordinal = i16::from(ordinal);
    ordinal == (at - 1) / 7 + 1 || ordinal == -((length - at) / 7 + 1)
}
