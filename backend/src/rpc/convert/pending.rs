//! What waits, on its way out, and the filters of its list on their way in.

use bellwether_proto::v1;

use super::{delivery::NO_EVENT_ID, hold::holds, time};
use crate::{
    domain::{EventId, OccurrenceId},
    error::{Error, Violation},
    limits::RULE_NAMES_MAX,
    ops::{
        edit::Target,
        page::PageRequest,
        pending::{Filter, Waits},
    },
};

/// The filters and the page of a list.
///
/// # Errors
/// [`Error::Invalid`] naming every wrong field.
pub fn list(request: v1::ListPendingRequest) -> Result<(Filter, PageRequest), Error> {
    use v1::pending::Kind;
    let mut violations = Vec::new();
    if request.rule_names.len() > RULE_NAMES_MAX {
        let fault = format!("has more than {RULE_NAMES_MAX} entries");
        violations.push(Violation::new("ruleNames", fault));
    }
    let event = EventId::parse(&request.event_id);
    if event.is_none() && !request.event_id.is_empty() {
        violations.push(Violation::new("eventId", NO_EVENT_ID));
    }
    let mut asked = [false; 2];
    for (at, kind) in request.kinds.iter().enumerate() {
        match Kind::try_from(*kind) {
            Ok(Kind::Opening) => asked[0] = true,
            Ok(Kind::Update) => asked[1] = true,
            _ => violations.push(Violation::new(
                format!("kinds[{at}]"),
                "is none of OPENING and UPDATE",
            )),
        }
    }
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    let filter = Filter {
        is_opening: match asked {
            [true, false] => Some(true),
            [false, true] => Some(false),
            _ => None,
        },
        rule_names: request.rule_names,
        silence_name: request.silence_name,
        event,
        before_ms: request.before.map(|it| time::millis(&it)),
    };
    let page = PageRequest {
        size: request.page_size,
        token: request.page_token,
    };
    Ok((filter, page))
}

/// Which occurrence is meant.
///
/// # Errors
/// [`Error::Invalid`] naming every wrong field.
pub fn target(request: &v1::ReleasePendingRequest) -> Result<Target, Error> {
    let mut violations = Vec::new();
    if request.rule_name.is_empty() {
        violations.push(Violation::new("ruleName", "is required"));
    }
    let event = EventId::parse(&request.event_id);
    if event.is_none() {
        violations.push(Violation::new("eventId", NO_EVENT_ID));
    }
    let occurrence = OccurrenceId::parse(&request.occurrence_id);
    let is_of_event = occurrence.is_none_or(|it| Some(it.event) == event);
    if occurrence.is_none() && !request.occurrence_id.is_empty() || !is_of_event {
        let fault = "is no occurrence id of this event";
        violations.push(Violation::new("occurrenceId", fault));
    }
    match (event, occurrence) {
        (Some(_), Some(id)) if violations.is_empty() => Ok(Target::Exactly(id)),
        (Some(event), None) if violations.is_empty() => Ok(Target::Newest(event)),
        _ => Err(Error::Invalid(violations)),
    }
}

/// Something that waits, on the wire.
pub fn pending(waits: Waits) -> v1::Pending {
    use v1::pending::Kind;
    let Waits {
        pending,
        occurrence,
        destinations,
    } = waits;
    let kind = if pending.is_opening {
        Kind::Opening
    } else {
        Kind::Update
    };
    v1::Pending {
        rule_name: pending.rule_name.to_string(),
        event_id: occurrence.event.to_string(),
        occurrence_id: occurrence.id().to_string(),
        kind: kind.into(),
        holds: holds(&pending.held_by),
        due_time: pending.due_ms().map(time::timestamp),
        destination_names: destinations.iter().map(ToString::to_string).collect(),
        since: Some(time::timestamp(pending.since_ms)),
        event_name: occurrence.name,
        summary: occurrence.summary,
        severity: occurrence.severity as i32,
    }
}
