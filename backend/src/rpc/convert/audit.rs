//! Entries of the audit log on their way out, and the filters of their list on their way in.

use bellwether_proto::v1::{self, audit_entry::Action, audit_state::Resource};

use super::time;
use crate::{
    domain::{AuditAction, AuditEntry, AuditState},
    error::{Error, Violation},
    limits::RULE_NAMES_MAX,
    ops::{audit::AuditFilter, page::PageRequest, resource::Drafted as _},
};

/// The filters and the page of a list.
///
/// # Errors
/// [`Error::Invalid`] naming every wrong field.
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
        let fault = format!("has {count} entries; at most {RULE_NAMES_MAX} are taken");
        violations.push(Violation::new(field, fault));
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
                "is none of CREATED, UPDATED, DELETED, READ and REFUSED",
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
        start_ms: request.start.as_ref().map(time::millis),
        end_ms: request.end.as_ref().map(time::millis),
        without_clients: !is_admin,
    };
    let page = PageRequest {
        size: request.page_size,
        token: request.page_token,
    };
    Ok((filter, page))
}

impl From<AuditEntry> for v1::AuditEntry {
    fn from(entry: AuditEntry) -> Self {
        let action = match entry.action {
            AuditAction::Created => Action::Created,
            AuditAction::Updated => Action::Updated,
            AuditAction::Deleted => Action::Deleted,
            AuditAction::Read => Action::Read,
            AuditAction::Refused => Action::Refused,
        };
        Self {
            number: entry.number,
            time: Some(time::timestamp(entry.time_ms)),
            client_name: entry.client,
            address: entry.address.map_or_else(String::new, |it| it.to_string()),
            method: entry.method,
            action: action.into(),
            kind: entry.kind,
            names: entry.names,
            count: entry.count,
            before: entry.before.map(Into::into),
            after: entry.after.map(Into::into),
            changed_secrets: entry.changed_secrets,
            reason: entry.reason,
            hash: entry.hash.into(),
        }
    }
}

impl From<AuditState> for v1::AuditState {
    fn from(state: AuditState) -> Self {
        let resource = match state {
            AuditState::Trigger(trigger) => Resource::Trigger(trigger.bare()),
            AuditState::Destination(it) => Resource::Destination(it.bare()),
            AuditState::Rule(rule) => Resource::Rule(rule.bare()),
            AuditState::Silence(silence) => Resource::Silence(silence.bare().into()),
            AuditState::Calendar(calendar) => Resource::Calendar(calendar.bare()),
            AuditState::Inhibition(it) => Resource::Inhibition(it.bare()),
            AuditState::Mapping(mapping) => Resource::Mapping(mapping.bare()),
            AuditState::View(view) => Resource::View(view.bare()),
            AuditState::Client(client) => Resource::Client(client.into()),
        };
        let resource = Some(resource);
        Self { resource }
    }
}
