//! Holds openings and repeats outside the windows of the rule's calendar.

use super::{super::condition::format_time, HoldCondition};
use crate::{
    decide::Tense,
    domain::{HeldBy, HoldKind},
};

pub(super) const HOLD: HoldCondition = HoldCondition {
    name: "active times",
    kind: HoldKind::ActiveTimes,
    held_by: |sending| {
        let is_held = sending.is_opening || sending.is_repeat;
        let rule = sending.rule.filter(|_| is_held);
        let name = rule.and_then(|rule| rule.active_calendar.as_ref());
        let calendar = name.and_then(|name| sending.calendars.get(name));
        let held = calendar.and_then(|loaded| {
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
                detail: format!(
                    "the rule notifies only inside the windows of `{}`",
                    calendar.name
                ),
            })
        });
        held.into_iter().collect()
    },
    detail: |all, tense| {
        let of_what = all.first().map_or("", |it| it.name.as_str());
        let until = all.first().and_then(|it| it.until_ms);
        let until = until.map_or_else(
            || "with no window in the next 10 years".into(),
            |at_ms| format!("until {}", format_time(at_ms)),
        );
        let is = if tense == Tense::Now { "is" } else { "was" };
        format!("the time {is} outside the windows of calendar `{of_what}`, {until}")
    },
};
