//! Conversion of pending notifications and of the filters of their list.

use bellwether_proto::v1::{self, HoldKind, pending::Kind as WireKind};

use super::{delivery::NO_EVENT_ID, time};
use crate::{
    domain::{Delivery, EventId, Name, Occurrence, OccurrenceId, Pending},
    error::{Error, Violation},
    ops::{
        edit::OccurrenceTarget,
        page::PageRequest,
        pending::{Filter, HeldMessage, Kind},
    },
    validate::Violations,
    wire::holds,
};

pub fn list(request: v1::ListPendingRequest) -> Result<(Filter, PageRequest), Error> {
    let mut violations = Violations::default();
    violations.check_entries("ruleNames", request.rule_names.len());
    let event = violations.optional_event("eventId", &request.event_id);
    let kind = |kind| match kind {
        WireKind::Opening => Some(Kind::Opening),
        WireKind::Update => Some(Kind::Update),
        WireKind::Digest => Some(Kind::Digest),
        WireKind::Unspecified => None,
    };
    let expected = "OPENING, UPDATE and DIGEST";
    let kinds = violations.convert_each("kinds", &request.kinds, expected, kind);
    violations.finish()?;
    let filter = Filter {
        kinds,
        rule_names: request.rule_names,
        silence_name: request.silence_name,
        event,
        before_ms: request.before.map(|it| time::to_millis(&it)),
    };
    Ok((
        filter,
        PageRequest::new(request.page_size, request.page_token),
    ))
}

pub fn target(request: &v1::ReleasePendingRequest) -> Result<OccurrenceTarget, Error> {
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
        let message = "is not an occurrence id of this event";
        violations.push(Violation::new("occurrenceId", message));
    }
    match (event, occurrence) {
        (Some(_), Some(id)) if violations.is_empty() => Ok(OccurrenceTarget::Exactly(id)),
        (Some(event), None) if violations.is_empty() => Ok(OccurrenceTarget::Newest(event)),
        _ => Err(Error::Invalid(violations)),
    }
}

pub fn pending_to_wire(waits: HeldMessage) -> v1::Pending {
    match waits {
        HeldMessage::Decision {
            pending,
            occurrence,
            destinations,
        } => decision_to_wire(&pending, *occurrence, &destinations),
        HeldMessage::Digest(delivery) => digest_to_wire(*delivery),
    }
}

fn decision_to_wire(
    pending: &Pending,
    occurrence: Occurrence,
    destinations: &[Name],
) -> v1::Pending {
    let destinations = match &pending.left_out[..] {
        [] => destinations,
        left_out => left_out,
    };
    let kind = if pending.is_opening {
        WireKind::Opening
    } else {
        WireKind::Update
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
        delivery_id: String::new(),
        message_count: 0,
    }
}

fn digest_to_wire(delivery: Delivery) -> v1::Pending {
    let content = delivery.content;
    let count = content.digest.as_ref().map_or(1, |it| it.count);
    let due_time = delivery.state.due_ms().map(time::timestamp);
    let since = Some(time::timestamp(delivery.create_ms));
    let event = delivery.event;
    let occurrence_id = event.map(|_| content.occurrence.id().to_string());
    v1::Pending {
        rule_name: content.rule.name,
        event_id: event.map(|it| it.to_string()).unwrap_or_default(),
        occurrence_id: occurrence_id.unwrap_or_default(),
        kind: WireKind::Digest.into(),
        holds: vec![v1::Hold {
            kind: HoldKind::Budget.into(),
            name: delivery.destination_name.clone(),
            revision: 0,
            since,
            until: due_time,
            author: String::new(),
            detail: "the destination's budget is exhausted".into(),
        }],
        due_time,
        destination_names: vec![delivery.destination_name],
        since,
        event_name: content.occurrence.name,
        summary: content.occurrence.summary,
        severity: content.occurrence.severity as i32,
        delivery_id: delivery.id.to_string(),
        message_count: count.try_into().unwrap_or(i32::MAX),
    }
}
