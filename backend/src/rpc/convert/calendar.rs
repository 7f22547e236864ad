//! Calendars between the wire and the domain.

use bellwether_proto::v1;
use prost_types::Timestamp;

use super::time::{self, timestamp};
use crate::{
    calendar::Span,
    domain::calendar::{Window, WindowText},
    ops::{
        calendar::{CalendarDraft, CalendarView, Expansion, ExpansionSpan},
        etag::etag,
    },
};

impl From<v1::Calendar> for CalendarDraft {
    fn from(wire: v1::Calendar) -> Self {
        let window = |it: v1::CalendarWindow| WindowText {
            dtstart: it.dtstart,
            duration: it.duration,
            end_time_of_day: it.end_time_of_day,
            rrule: it.rrule,
            exdate: it.exdate,
            rdate: it.rdate,
        };
        Self {
            name: wire.name,
            description: wire.description,
            tags: wire.tags,
            time_zone: wire.time_zone,
            windows: wire.windows.into_iter().map(window).collect(),
            except: wire.except_calendar_names,
            etag: wire.etag,
        }
    }
}

impl From<CalendarView> for v1::Calendar {
    fn from(view: CalendarView) -> Self {
        let calendar = view.calendar;
        let user = |(kind, name): (&str, &crate::domain::Name)| v1::CalendarUser {
            kind: kind.to_owned(),
            name: name.to_string(),
        };
        Self {
            name: calendar.name.to_string(),
            description: calendar.description,
            tags: calendar.tags,
            time_zone: calendar.time_zone,
            windows: calendar.windows.iter().map(window).collect(),
            except_calendar_names: calendar.except.iter().map(ToString::to_string).collect(),
            in_window: view.standing.map(|it| it.in_window),
            next_change_time: view.standing.and_then(|it| it.changes_ms).map(timestamp),
            used_by: view.users.all().map(user).collect(),
            create_time: Some(timestamp(calendar.create_ms)),
            update_time: Some(timestamp(calendar.update_ms)),
            etag: etag(calendar.id, calendar.revision),
        }
    }
}

fn window(window: &Window) -> v1::CalendarWindow {
    let text = window.text();
    v1::CalendarWindow {
        dtstart: text.dtstart,
        duration: text.duration,
        end_time_of_day: text.end_time_of_day,
        rrule: text.rrule,
        exdate: text.exdate,
        rdate: text.rdate,
    }
}

/// The time that is asked for.
pub fn asked(start: Option<&Timestamp>, end: Option<&Timestamp>) -> ExpansionSpan {
    ExpansionSpan {
        start_ms: start.map(time::millis),
        end_ms: end.map(time::millis),
    }
}

/// The spans of a calendar.
pub fn spans(expansion: &Expansion) -> Vec<v1::CalendarSpan> {
    let local = |at_ms| {
        let local = expansion.prepared.local(at_ms);
        local.map_or_else(String::new, |it| it.to_string())
    };
    let span = |it: &Span| v1::CalendarSpan {
        start_time: Some(timestamp(it.start_ms)),
        end_time: Some(timestamp(it.end_ms)),
        local_start: local(it.start_ms),
        local_end: local(it.end_ms),
        longer_by: (it.longer_ms != 0).then_some(prost_types::Duration {
            seconds: it.longer_ms / 1_000,
            nanos: 0,
        }),
    };
    expansion.spans.iter().map(span).collect()
}
