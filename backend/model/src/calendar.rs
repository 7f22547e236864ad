//! Computes the spans of a calendar from its windows on demand; they are never stored.
//!
//! - A span includes its start and excludes its end. Spans that overlap or touch are merged.
//! - A local time that the clocks skip is resolved with the offset before the gap. Of a time that
//!   occurs twice, a start means the first and an end the second, so that windows never shrink.

mod check;
mod cron;
mod rotation;
mod starts;
mod union;

use std::sync::{Arc, Mutex, PoisonError};

use jiff::{
    SignedDuration, Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

use crate::{
    domain::calendar::{Calendar, ExcludedStarts, Length, Until, Window},
    limits::CALENDAR_CANDIDATES_MAX,
};
use starts::{Starts, StepBudget};

pub use check::{MissingZone, check_calendar, find_zone};
pub use cron::Cron;
pub use rotation::Rotation;

#[expect(clippy::struct_field_names, reason = "a name ends with its unit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start_ms: i64,
    /// The exclusive end, in milliseconds since 1970.
    pub end_ms: i64,
    /// The amount by which a clock change makes the span longer, in milliseconds; negative if it is
    /// shorter.
    pub longer_ms: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalendarStatus {
    pub in_window: bool,
    /// Time of the next change, in milliseconds since 1970; `None` if there is none within the
    /// search horizon.
    pub changes_ms: Option<i64>,
}

#[derive(Debug)]
pub struct SpansFound {
    /// The spans that overlap the range, in order. They may extend past its ends.
    pub spans: Vec<Span>,
    /// The end of the known spans, in milliseconds since 1970: the end of the range, or earlier if
    /// continuing would have cost too much.
    pub until_ms: i64,
    /// The remaining number of days that may be scanned.
    left: usize,
}

#[derive(Debug)]
pub struct PreparedCalendar {
    zone: TimeZone,
    windows: Vec<PreparedWindow>,
    except: Vec<Arc<PreparedCalendar>>,
    /// The last computed status and the time from which it holds. Most lookups are for consecutive
    /// times.
    known: Mutex<Option<CachedStatus>>,
}

#[derive(Debug, Clone, Copy)]
struct CachedStatus {
    from_ms: i64,
    standing: CalendarStatus,
}

#[derive(Debug)]
struct PreparedWindow {
    window: Window,
    starts: Starts,
}

/// The horizons to search for the next change, tried in turn.
const HORIZONS: [SignedDuration; 4] = [
    SignedDuration::from_hours(2 * 24),
    SignedDuration::from_hours(40 * 24),
    SignedDuration::from_hours(400 * 24),
    SignedDuration::from_hours(10 * 366 * 24),
];

/// Upper bound for a clock change.
const SHIFT_MAX: SignedDuration = SignedDuration::from_hours(26);

impl PreparedCalendar {
    pub fn new(calendar: &Calendar, except: Vec<Arc<Self>>) -> Result<Self, MissingZone> {
        let windows = calendar.windows.iter().map(|window| PreparedWindow {
            starts: Starts::new(window),
            window: window.clone(),
        });
        Ok(Self {
            zone: find_zone(&calendar.time_zone)?,
            windows: windows.collect(),
            except,
            known: Mutex::default(),
        })
    }

    pub fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    pub fn to_local_time(&self, at_ms: i64) -> Option<DateTime> {
        let at = Timestamp::from_millisecond(at_ms).ok()?;
        Some(self.zone.to_datetime(at))
    }

    pub fn status_at(&self, now_ms: i64) -> CalendarStatus {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let still = known.filter(|it| {
            let until_ms = it.standing.changes_ms;
            it.from_ms <= now_ms && until_ms.is_some_and(|until_ms| now_ms < until_ms)
        });
        if let Some(still) = still {
            return still.standing;
        }
        let standing = self.compute_status(now_ms);
        *known = Some(CachedStatus {
            from_ms: now_ms,
            standing,
        });
        standing
    }

    fn compute_status(&self, now_ms: i64) -> CalendarStatus {
        let mut in_window = false;
        let mut left = CALENDAR_CANDIDATES_MAX;
        for horizon in HORIZONS {
            let end_ms = now_ms.saturating_add(to_millis(horizon));
            let found = self.compute_spans((now_ms, end_ms), left);
            left = found.left;
            let first = found.spans.first();
            in_window = first.is_some_and(|it| it.start_ms <= now_ms);
            let changes_ms = match first {
                Some(first) if in_window => Some(first.end_ms),
                first => first.map(|it| it.start_ms),
            };
            // A span that reaches the end of the search may be longer.
            if let Some(changes_ms) = changes_ms.filter(|it| *it < found.until_ms) {
                return CalendarStatus {
                    in_window,
                    changes_ms: Some(changes_ms),
                };
            }
            if found.until_ms < end_ms {
                break;
            }
        }
        CalendarStatus {
            in_window,
            changes_ms: None,
        }
    }

    /// Returns the spans that overlap the time from `start_ms` to before `end_ms`.
    pub fn spans_between(&self, start_ms: i64, end_ms: i64) -> SpansFound {
        self.compute_spans((start_ms, end_ms), CALENDAR_CANDIDATES_MAX)
    }

    fn compute_spans(&self, (start_ms, end_ms): (i64, i64), candidates: usize) -> SpansFound {
        let mut found = self.windows_between((start_ms, end_ms), candidates);
        for other in &self.except {
            let (Some(first), Some(last)) = (found.spans.first(), found.spans.last()) else {
                break;
            };
            let range = (first.start_ms, last.end_ms);
            let out = other.windows_between(range, found.left);
            found = SpansFound {
                spans: union::subtract_spans(&found.spans, &out.spans),
                until_ms: found.until_ms.min(match out.until_ms {
                    until_ms if until_ms < range.1 => until_ms,
                    _ => i64::MAX,
                }),
                left: out.left,
            };
        }
        let until_ms = found.until_ms;
        let is_inside = |it: &Span| it.end_ms > start_ms && it.start_ms < until_ms;
        found.spans.retain(is_inside);
        found
    }

    fn windows_between(&self, (start_ms, end_ms): (i64, i64), candidates: usize) -> SpansFound {
        let mut found = SpansFound {
            spans: Vec::new(),
            until_ms: end_ms,
            left: candidates,
        };
        let (Ok(start), Ok(end)) = (
            Timestamp::from_millisecond(start_ms),
            Timestamp::from_millisecond(end_ms),
        ) else {
            return found;
        };
        let share = candidates / self.windows.len().max(1);
        for each in &self.windows {
            let mut steps = StepBudget::new(share);
            let range = (start, end);
            let stopped = each.add_spans(range, &self.zone, &mut steps, &mut found.spans);
            let stopped = stopped.and_then(|day| day.to_zoned(self.zone.clone()).ok());
            if let Some(stopped) = stopped {
                found.until_ms = found.until_ms.min(stopped.timestamp().as_millisecond());
            }
            found.left = found.left.saturating_sub(share - steps.remaining());
        }
        found.spans = union::merge_spans(found.spans);
        found
    }
}

impl PreparedWindow {
    /// Adds the spans in a range. Returns the day at which the step budget was exhausted, if it
    /// was.
    fn add_spans(
        &self,
        (start, end): (Timestamp, Timestamp),
        zone: &TimeZone,
        steps: &mut StepBudget,
        spans: &mut Vec<Span>,
    ) -> Option<Date> {
        let longest = max_duration(self.window.length).saturating_add(SHIFT_MAX);
        let from = start.saturating_sub(longest).unwrap_or(Timestamp::MIN);
        let through = end.saturating_add(SHIFT_MAX).unwrap_or(Timestamp::MAX);
        let (from, through) = (zone.to_datetime(from), zone.to_datetime(through));
        let mut take = |local: DateTime| {
            let span = self.span_from(local, zone);
            // A span that ended before the range may be merged with one that overlaps it.
            if let Some((raw, longer)) = span.filter(|(raw, _)| raw.0 < end) {
                spans.push(Span {
                    start_ms: raw.0.as_millisecond(),
                    end_ms: raw.1.as_millisecond(),
                    longer_ms: to_millis(longer),
                });
            }
        };
        let stopped = self.starts.visit_starts((from, through), steps, &mut take);
        let further = self.window.with.iter().copied();
        let further = further.filter(|it| (from..=through).contains(it));
        further
            .filter(|it| !is_excluded(&self.window, *it))
            .for_each(take);
        stopped
    }

    /// Returns the span of a local start, and the amount by which a clock change makes it longer;
    /// `None` for a start after the last one.
    fn span_from(
        &self,
        local: DateTime,
        zone: &TimeZone,
    ) -> Option<((Timestamp, Timestamp), SignedDuration)> {
        let start = zone.to_ambiguous_timestamp(local).compatible().ok()?;
        let recurrence = self.window.recurrence.as_ref();
        if let Some(Until::Time(last)) = recurrence.and_then(|it| it.until)
            && start > last
            && !self.window.with.contains(&local)
        {
            return None;
        }
        let (end, usual) = match self.window.length {
            Length::For { days: 0, exact } => (start.checked_add(exact).ok()?, exact),
            Length::For { days, exact } => {
                let nominal = local.checked_add(jiff::Span::new().days(days)).ok()?;
                let end = zone.to_ambiguous_timestamp(nominal).later().ok()?;
                let usual = SignedDuration::from_hours(24) * days;
                (end.checked_add(exact).ok()?, usual + exact)
            }
            Length::Until(time) => {
                let nominal = next_local_time(local, time)?;
                let usual = nominal.duration_since(local);
                let end = zone.to_ambiguous_timestamp(nominal).later().ok()?;
                // Start and end are in a gap, and the start was moved past the end.
                let end = if end > start {
                    end
                } else {
                    start.checked_add(usual).ok()?
                };
                (end, usual)
            }
        };
        Some(((start, end), end.duration_since(start) - usual))
    }
}

fn is_excluded(window: &Window, start: DateTime) -> bool {
    let mut all = window.without.iter();
    all.any(|it| match it {
        ExcludedStarts::Day(day) => *day == start.date(),
        ExcludedStarts::Start(other) => *other == start,
    })
}

fn next_local_time(after: DateTime, time: Time) -> Option<DateTime> {
    let same_day = after.date().to_datetime(time);
    if same_day > after {
        return Some(same_day);
    }
    Some(after.date().tomorrow().ok()?.to_datetime(time))
}

fn max_duration(length: Length) -> SignedDuration {
    match length {
        Length::For { days, exact } => {
            (SignedDuration::from_hours(24) * days).saturating_add(exact)
        }
        Length::Until(_) => SignedDuration::from_hours(24),
    }
}

fn to_millis(length: SignedDuration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
