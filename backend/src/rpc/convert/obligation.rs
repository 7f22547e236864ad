//! Conversion of obligations and of the filters of their list.

use bellwether_proto::v1;

use super::time::timestamp;
use crate::{
    domain::GroupId,
    error::Error,
    ops::{
        delivery::{Obligation, ObligationFilter},
        page::PageRequest,
    },
    validate::Violations,
};

pub fn list(request: v1::ListObligationsRequest) -> Result<(ObligationFilter, PageRequest), Error> {
    let mut violations = Violations::default();
    violations.check_entries("ruleNames", request.rule_names.len());
    violations.check_entries("destinationNames", request.destination_names.len());
    let event = violations.optional_event("eventId", &request.event_id);
    violations.finish()?;
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
