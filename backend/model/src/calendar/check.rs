//! Checks that a window starts on a date that its rule produces.

use jiff::{Span, civil::DateTime, tz::TimeZone};

use super::starts::{Starts, StepBudget};
use crate::{
    domain::calendar::{Recurrence, Until, Window},
    limits::{CALENDAR_CANDIDATES_MAX, CALENDAR_FIRST_YEARS},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not a time zone installed on this machine; expected an IANA name such as Europe/Berlin"
)]
pub struct MissingZone;

pub fn find_zone(name: &str) -> Result<TimeZone, MissingZone> {
    let known = TimeZone::get(name).ok();
    let known = known.filter(|it| it.iana_name().is_some() && !it.is_unknown());
    known.ok_or(MissingZone)
}

pub fn check_calendar(window: &Window, zone: &TimeZone) -> Result<(), (&'static str, String)> {
    let Some(rule) = &window.recurrence else {
        return Ok(());
    };
    let starts = Starts::new(&Window {
        recurrence: Some(Recurrence {
            count: None,
            until: None,
            ..rule.clone()
        }),
        ..window.clone()
    });
    let first = window.start.date();
    let last = first.saturating_add(Span::new().years(CALENDAR_FIRST_YEARS));
    let mut fits = None;
    let mut steps = StepBudget::new(CALENDAR_CANDIDATES_MAX);
    starts.visit_days((first, last), &mut steps, &mut |day| {
        fits = Some(day);
        false
    });
    let Some(fits) = fits else {
        let message = format!("produces no date within {CALENDAR_FIRST_YEARS} years of `dtstart`");
        return Err(("rrule", message));
    };
    if fits != first {
        let nearest = fits.to_datetime(window.start.time());
        let message = format!("is not a date that `rrule` produces; the next one is {nearest}");
        return Err(("dtstart", message));
    }
    if ends_before(rule, window.start, zone) {
        return Err(("rrule", "has an `UNTIL` before `dtstart`".into()));
    }
    if !Starts::new(window).has_count_limit() {
        let message = "has a `COUNT` that reaches too far ahead; use `UNTIL`";
        return Err(("rrule", message.into()));
    }
    Ok(())
}

fn ends_before(rule: &Recurrence, start: DateTime, zone: &TimeZone) -> bool {
    match rule.until {
        None => false,
        Some(Until::Day(day)) => day < start.date(),
        Some(Until::Time(at)) => {
            let start = zone.to_ambiguous_timestamp(start).compatible();
            start.is_ok_and(|start| at < start)
        }
    }
}
