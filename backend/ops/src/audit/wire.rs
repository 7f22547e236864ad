//! Conversion of audit entries and of the filters of their list.

use bellwether_proto::v1::{self, audit_entry::Action, audit_state::Resource};

use super::AuditFilter;
use crate::{
    domain::{AnyResource, AuditAction, AuditEntry, any_resource::each_resource},
    error::{Error, Violation},
    from_domain::FromDomain,
    limits::RULE_NAMES_MAX,
    page::PageRequest,
    wire::time,
};

pub fn list(
    request: v1::ListAuditEntriesRequest,
    is_admin: bool,
) -> Result<(AuditFilter, PageRequest), Error> {
    let mut violations = Vec::new();
    let lists = [
        ("clientNames", request.client_names.len()),
        ("kinds", request.kinds.len()),
        ("names", request.names.len()),
        ("actions", request.actions.len()),
    ];
    for (field, count) in lists
        .into_iter()
        .filter(|(_, count)| *count > RULE_NAMES_MAX)
    {
        let message = format!("has {count} entries; the limit is {RULE_NAMES_MAX}");
        violations.push(Violation::new(field, message));
    }
    let mut actions = Vec::new();
    for (at, wire) in request.actions.iter().enumerate() {
        match Action::try_from(*wire) {
            Ok(Action::Created) => actions.push(AuditAction::Created),
            Ok(Action::Updated) => actions.push(AuditAction::Updated),
            Ok(Action::Deleted) => actions.push(AuditAction::Deleted),
            Ok(Action::Read) => actions.push(AuditAction::Read),
            Ok(Action::Refused) => actions.push(AuditAction::Refused),
            Ok(Action::Unspecified) | Err(_) => violations.push(Violation::new(
                format!("actions[{at}]"),
                "is not one of CREATED, UPDATED, DELETED, READ and REFUSED",
            )),
        }
    }
    if !violations.is_empty() {
        return Err(Error::Invalid(violations));
    }
    let filter = AuditFilter {
        clients: request.client_names,
        kinds: request.kinds,
        names: request.names,
        actions,
        start_ms: request.start.as_ref().map(time::to_millis),
        end_ms: request.end.as_ref().map(time::to_millis),
        without_clients: !is_admin,
    };
    Ok((
        filter,
        PageRequest::new(request.page_size, request.page_token),
    ))
}

impl FromDomain<AuditEntry> for v1::AuditEntry {
    fn from_domain(entry: AuditEntry) -> Self {
        Self {
            number: entry.number,
            time: Some(time::timestamp(entry.time_ms)),
            client_name: entry.client,
            address: entry.address.map_or_else(String::new, |it| it.to_string()),
            method: entry.method,
            action: entry.action as i32,
            kind: entry.kind,
            names: entry.names,
            count: entry.count,
            before: entry.before.map(FromDomain::from_domain),
            after: entry.after.map(FromDomain::from_domain),
            changed_secrets: entry.changed_secrets,
            reason: entry.reason,
            hash: entry.hash.into(),
            agent: entry.agent,
        }
    }
}

macro_rules! on_the_wire {
    ($($number:literal $word:ident $kind:ident($type:ident) $own:tt)+) => {
        impl FromDomain<AnyResource> for v1::AuditState {
            fn from_domain(state: AnyResource) -> Self {
                let resource = match state {
                    $(AnyResource::$kind(it) => Resource::$kind(FromDomain::from_domain(it)),)+
                };
                let resource = Some(resource);
                Self { resource }
            }
        }
    };
}
each_resource!(on_the_wire);
