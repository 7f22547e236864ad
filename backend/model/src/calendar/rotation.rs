//! Hand-offs of a rotation: their count up to a time, and their times in a range.

use std::sync::{Mutex, PoisonError};

use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, DateTime},
    tz::TimeZone,
};

use super::starts::{Starts, StepBudget};
use crate::{
    domain::calendar::{Recurrence, Until, Window},
    limits::{CALENDAR_COUNTED_MAX, CALENDAR_FIRST_YEARS},
};

/// The times at which turns of a rotation change.
#[derive(Debug)]
pub struct Rotation {
    zone: TimeZone,
    window: Window,
    starts: Starts,
    /// End of the last turn; `None` if turns never end.
    end_ms: Option<i64>,
    /// A day, and the number of hand-offs before it. Most lookups are for increasing days.
    known: Mutex<Option<(Date, u64)>>,
}

impl Rotation {
    /// Creates a rotation whose hand-offs are the starts of a window in a time zone.
    pub fn new(window: &Window, zone: TimeZone) -> Self {
        let mut rotation = Self::without_end(window.clone(), zone);
        rotation.end_ms = rotation.find_end();
        rotation
    }

    fn without_end(window: Window, zone: TimeZone) -> Self {
        Self {
            zone,
            starts: Starts::new(&window),
            window,
            end_ms: None,
            known: Mutex::default(),
        }
    }

    /// Returns the first hand-off beyond `COUNT` or `UNTIL`, at which the last turn ends.
    fn find_end(&self) -> Option<i64> {
        let rule = self.window.recurrence.as_ref()?;
        let (day, after) = match (rule.until, self.starts.last_start_day()) {
            (Some(Until::Day(day)), _) | (None, Some(day)) => (day.tomorrow().ok()?, None),
            (Some(Until::Time(at)), _) => (
                self.zone.to_datetime(at).date().saturating_sub(2.days()),
                Some(at),
            ),
            (None, None) => return None,
        };
        let endless = Window {
            recurrence: Some(Recurrence {
                count: None,
                until: None,
                ..rule.clone()
            }),
            ..self.window.clone()
        };
        let endless = Self::without_end(endless, self.zone.clone());
        let last = day.saturating_add(CALENDAR_FIRST_YEARS.years());
        let mut found = None;
        endless.visit_hand_offs(day, last, &mut |start| {
            found = Some(start).filter(|it| after.is_none_or(|after| *it > after));
            found.is_none()
        });
        found.map(Timestamp::as_millisecond)
    }

    pub fn end_ms(&self) -> Option<i64> {
        self.end_ms
    }

    /// Returns the index of the turn at a time; `None` before the first and after the last.
    pub fn turn_at(&self, at_ms: i64) -> Option<u64> {
        if self.end_ms.is_some_and(|end_ms| end_ms <= at_ms) {
            return None;
        }
        self.turn_count(at_ms).checked_sub(1)
    }

    /// Returns the last hand-off up to a time; `None` before the first.
    pub fn last_hand_off(&self, at_ms: i64) -> Option<i64> {
        let first_ms = self.resolve_local(self.window.start)?.as_millisecond();
        let back = [2_i64, 40, 400].map(|days| at_ms.saturating_sub(days * 86_400_000));
        let mut back = back.into_iter().chain([first_ms - 1]);
        back.find_map(|from_ms| {
            self.hand_offs_between(from_ms, at_ms.saturating_add(1))
                .pop()
        })
    }

    /// Returns the number of hand-offs up to a time, including the first.
    pub fn turn_count(&self, at_ms: i64) -> u64 {
        let Ok(at) = Timestamp::from_millisecond(at_ms) else {
            return 0;
        };
        let today = self.zone.to_datetime(at).date();
        // A clock change moves a start by less than this margin.
        let (near, through) = (
            today.saturating_sub(2.days()),
            today.saturating_add(2.days()),
        );
        let mut count = self.hand_offs_before(near);
        self.for_each(near, through, &mut |start| count += u64::from(start <= at));
        count
    }

    fn hand_offs_before(&self, day: Date) -> u64 {
        let first = self.window.start.date();
        if day <= first {
            return 0;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (from, mut count) = known
            .filter(|(until, _)| *until <= day)
            .unwrap_or((first, 0));
        if from < day {
            self.for_each(from, day.saturating_sub(1.day()), &mut |_| count += 1);
            *known = Some((day, count));
        }
        count
    }

    /// Returns the hand-offs strictly inside a range, in order.
    pub fn hand_offs_between(&self, start_ms: i64, end_ms: i64) -> Vec<i64> {
        let local = |at_ms| {
            let at = Timestamp::from_millisecond(at_ms).unwrap_or(Timestamp::MAX);
            self.zone.to_datetime(at).date()
        };
        let (from, through) = (
            local(start_ms).saturating_sub(2.days()),
            local(end_ms).saturating_add(2.days()),
        );
        let mut found = Vec::new();
        self.for_each(from, through, &mut |start| {
            found.push(start.as_millisecond());
        });
        found.retain(|it| (start_ms + 1..end_ms).contains(it));
        found
    }

    /// Calls `see` with the hand-offs on the days of a range, in order.
    fn for_each(&self, from: Date, through: Date, see: &mut dyn FnMut(Timestamp)) {
        self.visit_hand_offs(from, through, &mut |start| {
            see(start);
            true
        });
    }

    /// Like [`Self::for_each`], until `see` returns false.
    fn visit_hand_offs(&self, from: Date, through: Date, see: &mut dyn FnMut(Timestamp) -> bool) {
        let time = self.window.start.time();
        let rule = self.window.recurrence.as_ref();
        let last = rule.and_then(|it| match it.until {
            Some(Until::Time(last)) => Some(last),
            _ => None,
        });
        let mut steps = StepBudget::new(CALENDAR_COUNTED_MAX);
        let _more = self
            .starts
            .visit_days((from, through), &mut steps, &mut |day| {
                let start = self.resolve_local(day.to_datetime(time));
                match start.filter(|it| last.is_none_or(|last| *it <= last)) {
                    Some(start) => see(start),
                    None => true,
                }
            });
    }

    /// Resolves a local time. An ambiguous time resolves to the first of the two; a skipped time is
    /// resolved with the offset before the gap.
    fn resolve_local(&self, local: DateTime) -> Option<Timestamp> {
        self.zone.to_ambiguous_timestamp(local).compatible().ok()
    }
}
