//! Conversion of silences from their messages.

use bellwether_proto::v1;

use super::{QUERY_PATH, SilenceDraft};
use crate::{
    domain::{EventId, NO_EVENT_ID, Name},
    error::Violation,
    wire::{query, time},
};

const FILTER_PATH: &str = "filter";

pub fn draft_from_wire(wire: v1::Silence, editor: Name) -> SilenceDraft {
    let mut violations = Vec::new();
    let query = (wire.query, wire.filter.as_str());
    let query = query::query_or_filter(query, (QUERY_PATH, FILTER_PATH), &mut violations);
    let from_event = EventId::parse(&wire.from_event_id);
    if from_event.is_none() && !wire.from_event_id.is_empty() {
        violations.push(Violation::new("fromEventId", NO_EVENT_ID));
    }
    let (start, end, calendar) = match (wire.span, wire.calendar) {
        (Some(_), Some(_)) => {
            let message = "conflicts with `span`; set only one of them";
            violations.push(Violation::new("calendar", message));
            (None, None, String::new())
        }
        (None, Some(bounds)) => {
            if bounds.calendar_name.is_empty() {
                let message = "is required: the name of a calendar";
                violations.push(Violation::new("calendar.calendarName", message));
            }
            (bounds.start_time, bounds.end_time, bounds.calendar_name)
        }
        (span, None) => {
            let span = span.unwrap_or_default();
            (span.start_time, span.end_time, String::new())
        }
    };
    SilenceDraft {
        name: wire.name,
        description: wire.description,
        tags: wire.tags,
        reason: wire.reason,
        query,
        rule_names: wire.rule_names,
        destination_names: wire.destination_names,
        annotations: wire.annotations,
        calendar,
        start_ms: start.as_ref().map(time::to_millis),
        end_ms: end.as_ref().map(time::to_millis),
        expire_when_idle_ms: wire.expire_when_idle.as_ref().map(time::duration_to_ms),
        warn_before_ms: wire.warn_before.as_ref().map(time::duration_to_ms),
        from_event,
        editor,
        etag: wire.etag,
        violations,
    }
}
