//! Holds openings and repeats outside the windows of the rule's calendar.

use super::OutgoingNotification;
use crate::domain::{HeldBy, HoldKind};

pub(super) fn active_times_hold(sending: &OutgoingNotification<'_>) -> Option<HeldBy> {
    let is_held = sending.is_opening || sending.is_repeat;
    let rule = sending.rule.filter(|_| is_held);
    let name = rule.and_then(|rule| rule.active_calendar.as_ref());
    let calendar = name.and_then(|name| sending.calendars.get(name));
    calendar.and_then(|loaded| {
        let standing = loaded.status_at(sending.now_ms);
        let calendar = &loaded.calendar;
        (!standing.in_window).then(|| HeldBy {
            kind: HoldKind::ActiveTimes,
            id: calendar.id,
            name: calendar.name.clone(),
            revision: calendar.revision,
            since_ms: sending.now_ms,
            until_ms: standing.changes_ms,
            author: None,
            shared: Vec::new(),
            detail: match standing.changes_ms {
                Some(_) => format!("outside the windows of `{}`", calendar.name),
                None => format!("no window of `{}` in the next 10 years", calendar.name),
            },
        })
    })
}
