//! Conversion of obligations and of the filters of their list.

use bellwether_proto::v1;

use super::{delivery::NO_EVENT_ID, time::timestamp};
use crate::{
    domain::{EventId, GroupId},
    error::{Error, Violation},
    limits::RULE_NAMES_MAX,
    ops::{
        delivery::{Obligation, ObligationFilter},
        page::PageRequest,
    },
};

pub fn list(request: v1::ListObligationsRequest) -> Result<(ObligationFilter, PageRequest), Error> {
    let mut violations = Vec::new();
    for (field, names) in [
        ("ruleNames", &request.rule_names),
        ("destinationNames", &request.destination_names),
    ] {
        if names.len() > RULE_NAMES_MAX {
            let count = names.len();
            let message = format!("has {count} entries; the limit is {RULE_NAMES_MAX}");
            violations.push(Violation::new(field, message));
        }
    }
    let event = EventId::parse(&request.event_id);
    if event.is_none() && !request.event_id.is_empty() {
        violations.push(Violation::new("eventId", NO_EVENT_ID));
    }
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    let filter = ObligationFilter {
        rule_names: request.rule_names,
        destination_names: request.destination_names,
        event,
    };
    Ok((
        filter,
        PageRequest::new(request.page_size, request.page_token),
    ))
}

pub fn obligation(obligation: Obligation) -> v1::Obligation {
    let contact = obligation
        .contact
        .map(|(name, method)| (name.to_string(), method));
    let (contact_name, method_id) = contact.unwrap_or_default();
    v1::Obligation {
        rule_name: obligation.rule_name.to_string(),
        destination_name: obligation.destination_name.to_string(),
        contact_name,
        method_id,
        event_id: obligation.occurrence.event.to_string(),
        occurrence_id: obligation.occurrence.to_string(),
        event_name: obligation.event_name,
        summary: obligation.summary,
        severity: obligation.severity as i32,
        status: obligation.status as i32,
        notify_time: Some(timestamp(obligation.notify_ms)),
        group_id: obligation
            .group
            .map(|it| GroupId(it).to_string())
            .unwrap_or_default(),
    }
}
