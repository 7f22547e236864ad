//! Conversion of audit entries and of the filters of their list.

use bellwether_proto::v1::{self, audit_entry::Action, audit_state::Resource};

use super::AuditFilter;
use crate::{
    domain::{AnyResource, AuditAction, AuditEntry, any_resource::each_resource},
    error::Error,
    from_domain::FromDomain,
    page::PageRequest,
    validate::Violations,
    wire::time,
};

pub fn list(
    request: v1::ListAuditEntriesRequest,
    is_admin: bool,
) -> Result<(AuditFilter, PageRequest), Error> {
    let mut violations = Violations::default();
    violations.check_entries("clientNames", request.client_names.len());
    violations.check_entries("kinds", request.kinds.len());
    violations.check_entries("names", request.names.len());
    violations.check_entries("actions", request.actions.len());
    let action = |action| match action {
        Action::Created => Some(AuditAction::Created),
        Action::Updated => Some(AuditAction::Updated),
        Action::Deleted => Some(AuditAction::Deleted),
        Action::Read => Some(AuditAction::Read),
        Action::Refused => Some(AuditAction::Refused),
        Action::Unspecified => None,
    };
    let expected = "CREATED, UPDATED, DELETED, READ and REFUSED";
    let actions = violations.convert_each("actions", &request.actions, expected, action);
    violations.finish()?;
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
