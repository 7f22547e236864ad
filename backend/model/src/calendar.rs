//! When the spans of a calendar are: computed from its windows whenever a user asks, never stored.
//!
//! - A span holds from its start on and not at its end any more. Spans that overlap or touch are one.
//! - A start that the clocks skip is taken with the offset before the gap; one that comes twice is the
//!   first of the two. A time of day at which a span ends is taken with the offset before the gap, or
//!   is the second of the two: no window shrinks.

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
    domain::calendar::{Calendar, Excluded, Length, Until, Window},
    limits::CALENDAR_CANDIDATES_MAX,
};
use starts::{Starts, Steps};

pub use check::{MissingZone, check, zone};
pub use cron::Cron;
pub use rotation::Rotation;

/// A stretch of time that a calendar names.
#[expect(clippy::struct_field_names, reason = "a name ends with its unit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first moment, in milliseconds since 1970.
    pub start_ms: i64,
    /// The first moment after it, in milliseconds since 1970.
    pub end_ms: i64,
    /// By how much a change of the clocks makes it longer than it usually is, in milliseconds;
    /// negative when shorter.
    pub longer_ms: i64,
}

/// What a calendar is at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalendarStatus {
    /// Whether the moment is in a window.
    pub in_window: bool,
    /// When that changes next, in milliseconds since 1970; none when it does not for as long as was
    /// looked ahead.
    pub changes_ms: Option<i64>,
}

/// Spans of a range of time.
#[derive(Debug)]
pub struct SpansFound {
    /// Those that hold at some moment of the range, in order; not cut to it, but where one has gone on
    /// for longer than any single span lasts.
    pub spans: Vec<Span>,
    /// From when on they are not known, in milliseconds since 1970: the end of the range, or earlier
    /// when looking further would have cost too much.
    pub until_ms: i64,
    /// Days that may still be looked at.
    left: usize,
}

/// A calendar, ready to be asked.
#[derive(Debug)]
pub struct Prepared {
    zone: TimeZone,
    windows: Vec<PreparedWindow>,
    except: Vec<Arc<Prepared>>,
    /// What was answered last, for how long: most are asked for one moment after the other.
    known: Mutex<Option<KnownStatus>>,
}

#[derive(Debug, Clone, Copy)]
struct KnownStatus {
    from_ms: i64,
    standing: CalendarStatus,
}

#[derive(Debug)]
struct PreparedWindow {
    window: Window,
    starts: Starts,
}

/// How far is looked for the next change, in turn.
const HORIZONS: [SignedDuration; 4] = [
    SignedDuration::from_hours(2 * 24),
    SignedDuration::from_hours(40 * 24),
    SignedDuration::from_hours(400 * 24),
    SignedDuration::from_hours(10 * 366 * 24),
];

/// Clocks change by less than this.
const SHIFT_MAX: SignedDuration = SignedDuration::from_hours(26);

impl Prepared {
    /// Makes a calendar ready; `except` are those that it takes out, ready as well.
    ///
    /// # Errors
    /// [`MissingZone`] when this machine does not know its zone.
    pub fn new(calendar: &Calendar, except: Vec<Arc<Self>>) -> Result<Self, MissingZone> {
        let windows = calendar.windows.iter().map(|window| PreparedWindow {
            starts: Starts::of(window),
            window: window.clone(),
        });
        Ok(Self {
            zone: zone(&calendar.time_zone)?,
            windows: windows.collect(),
            except,
            known: Mutex::default(),
        })
    }

    /// The zone of its local times.
    pub fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The local time of a moment.
    pub fn local(&self, at_ms: i64) -> Option<DateTime> {
        let at = Timestamp::from_millisecond(at_ms).ok()?;
        Some(self.zone.to_datetime(at))
    }

    /// What it is at a moment.
    pub fn at(&self, now_ms: i64) -> CalendarStatus {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let still = known.filter(|it| {
            let until_ms = it.standing.changes_ms;
            it.from_ms <= now_ms && until_ms.is_some_and(|until_ms| now_ms < until_ms)
        });
        if let Some(still) = still {
            return still.standing;
        }
        let standing = self.looked_up(now_ms);
        *known = Some(KnownStatus {
            from_ms: now_ms,
            standing,
        });
        standing
    }

    fn looked_up(&self, now_ms: i64) -> CalendarStatus {
        let mut in_window = false;
        let mut left = CALENDAR_CANDIDATES_MAX;
        for horizon in HORIZONS {
            let end_ms = now_ms.saturating_add(millis(horizon));
            let found = self.looked_through((now_ms, end_ms), left);
            left = found.left;
            let first = found.spans.first();
            in_window = first.is_some_and(|it| it.start_ms <= now_ms);
            let changes_ms = match first {
                Some(first) if in_window => Some(first.end_ms),
                first => first.map(|it| it.start_ms),
            };
            // A span that continues where looking ends may be longer.
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

    /// The spans that hold at some moment from one up to and without another.
    pub fn between(&self, start_ms: i64, end_ms: i64) -> SpansFound {
        self.looked_through((start_ms, end_ms), CALENDAR_CANDIDATES_MAX)
    }

    fn looked_through(&self, (start_ms, end_ms): (i64, i64), candidates: usize) -> SpansFound {
        let mut found = self.windows_between((start_ms, end_ms), candidates);
        for other in &self.except {
            let (Some(first), Some(last)) = (found.spans.first(), found.spans.last()) else {
                break;
            };
            let range = (first.start_ms, last.end_ms);
            let out = other.windows_between(range, found.left);
            found = SpansFound {
                spans: union::without(&found.spans, &out.spans),
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

    /// The spans of all windows.
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
            let mut steps = Steps::new(share);
            let range = (start, end);
            let stopped = each.between(range, &self.zone, &mut steps, &mut found.spans);
            let stopped = stopped.and_then(|day| day.to_zoned(self.zone.clone()).ok());
            if let Some(stopped) = stopped {
                found.until_ms = found.until_ms.min(stopped.timestamp().as_millisecond());
            }
            found.left = found.left.saturating_sub(share - steps.left());
        }
        found.spans = union::joined(found.spans);
        found
    }
}

impl PreparedWindow {
    /// Adds the spans of a range; answers the day from which on nothing was looked at, if there is one.
    fn between(
        &self,
        (start, end): (Timestamp, Timestamp),
        zone: &TimeZone,
        steps: &mut Steps,
        spans: &mut Vec<Span>,
    ) -> Option<Date> {
        let longest = longest(self.window.length).saturating_add(SHIFT_MAX);
        let from = start.saturating_sub(longest).unwrap_or(Timestamp::MIN);
        let through = end.saturating_add(SHIFT_MAX).unwrap_or(Timestamp::MAX);
        let (from, through) = (zone.to_datetime(from), zone.to_datetime(through));
        let mut take = |local: DateTime| {
            let span = self.span(local, zone);
            // What ended before the range may be the beginning of a span that reaches into it.
            if let Some((raw, longer)) = span.filter(|(raw, _)| raw.0 < end) {
                spans.push(Span {
                    start_ms: raw.0.as_millisecond(),
                    end_ms: raw.1.as_millisecond(),
                    longer_ms: millis(longer),
                });
            }
        };
        let stopped = self.starts.visit((from, through), steps, &mut take);
        let further = self.window.with.iter().copied();
        let further = further.filter(|it| (from..=through).contains(it));
        further
            .filter(|it| !is_out(&self.window, *it))
            .for_each(take);
        stopped
    }

    /// The span of a local start, and how much longer it is than usual; none for one that is out of
    /// bounds.
    fn span(
        &self,
        local: DateTime,
        zone: &TimeZone,
    ) -> Option<((Timestamp, Timestamp), SignedDuration)> {
        let start = zone.to_ambiguous_timestamp(local).compatible().ok()?;
        let recurrence = self.window.recurrence.as_ref();
        if let Some(Until::Moment(last)) = recurrence.and_then(|it| it.until)
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
                let nominal = next(local, time)?;
                let usual = nominal.duration_since(local);
                let end = zone.to_ambiguous_timestamp(nominal).later().ok()?;
                // Both in a gap: the start was moved behind the end.
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

/// Whether a start is left out.
fn is_out(window: &Window, start: DateTime) -> bool {
    let mut all = window.without.iter();
    all.any(|it| match it {
        Excluded::Day(day) => *day == start.date(),
        Excluded::Start(other) => *other == start,
    })
}

/// The first such time of day after a local time.
fn next(after: DateTime, time: Time) -> Option<DateTime> {
    let same_day = after.date().to_datetime(time);
    if same_day > after {
        return Some(same_day);
    }
    Some(after.date().tomorrow().ok()?.to_datetime(time))
}

/// How long a span may last.
fn longest(length: Length) -> SignedDuration {
    match length {
        Length::For { days, exact } => {
            (SignedDuration::from_hours(24) * days).saturating_add(exact)
        }
        Length::Until(_) => SignedDuration::from_hours(24),
    }
}

fn millis(length: SignedDuration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
