//! Attribution of changes: the client, and the audit entries for its changes.

use std::{net::IpAddr, sync::Arc};

use super::engine::{EngineError, Kind};
use crate::domain::{AnyResource, AuditAction, AuditEntry, KeyScope, Occurrence};

const NAMES_MAX: usize = 10;

tokio::task_local! {
    /// The client on whose behalf this task makes changes. Task-local, so that no operation can
    /// omit it.
    static BY: Arc<Actor>;
}

#[derive(Debug, Clone)]
pub struct Actor {
    pub client: String,
    pub address: Option<IpAddr>,
    /// The name that the calling program gave itself; empty if none.
    pub agent: String,
    pub method: &'static str,
    pub time_ms: i64,
    pub scope: Arc<KeyScope>,
}

/// Runs `work` on behalf of a client: its changes are recorded in the audit log in the same commit.
pub fn run_as<F: Future>(by: Actor, work: F) -> impl Future<Output = F::Output> {
    BY.scope(Arc::new(by), work)
}

pub fn with_current_actor<F: Future>(work: F) -> impl Future<Output = F::Output> {
    let by = current_actor();
    async {
        match by {
            Some(by) => BY.scope(by, work).await,
            None => work.await,
        }
    }
}

/// Returns the client of this task; `None` for the service's own work.
pub fn current_actor() -> Option<Arc<Actor>> {
    BY.try_with(Arc::clone).ok()
}

impl Actor {
    fn may_change(&self, tags: &[String]) -> bool {
        let own = &self.scope.tags;
        own.is_empty() || tags.iter().any(|tag| own.contains(tag))
    }

    pub fn audit_entry(&self, action: AuditAction) -> AuditEntry {
        AuditEntry {
            number: 0,
            time_ms: self.time_ms,
            client: self.client.clone(),
            address: self.address,
            agent: self.agent.clone(),
            method: self.method.trim_start_matches('/').to_owned(),
            action,
            kind: String::new(),
            names: Vec::new(),
            count: 1,
            before: None,
            after: None,
            changed_secrets: Vec::new(),
            reason: String::new(),
            previous: [0; 32],
            hash: [0; 32],
            is_proven: true,
        }
    }
}

#[derive(Debug, Clone)]
pub struct AuditSnapshot {
    pub name: String,
    /// The record itself; `None` if the record is only counted.
    pub state: Option<AnyResource>,
    /// Description of the outcome, for records that are described instead of logged; empty
    /// otherwise.
    pub outcome: String,
}

#[derive(Debug, Clone)]
pub(super) struct AuditedChange {
    kind: Kind,
    before: Option<AuditSnapshot>,
    after: Option<AuditSnapshot>,
}

impl AuditedChange {
    pub(super) fn new(
        kind: Kind,
        before: Option<AuditSnapshot>,
        after: Option<AuditSnapshot>,
    ) -> Option<Self> {
        (before.is_some() || after.is_some()).then_some(Self {
            kind,
            before,
            after,
        })
    }

    fn name(&self) -> &str {
        let seen = self.after.as_ref().or(self.before.as_ref());
        seen.map_or("", |seen| &seen.name)
    }

    fn action(&self) -> AuditAction {
        match (&self.before, &self.after) {
            (None, _) => AuditAction::Created,
            (Some(_), Some(_)) => AuditAction::Updated,
            (Some(_), None) => AuditAction::Deleted,
        }
    }

    fn tags(&self) -> impl Iterator<Item = &[String]> {
        let seen = [&self.before, &self.after].into_iter().flatten();
        seen.filter_map(|seen| Some(seen.state.as_ref()?.tags()))
    }

    fn has_state(&self) -> bool {
        let seen = [&self.before, &self.after];
        seen.into_iter().flatten().any(|seen| seen.state.is_some())
    }
}

/// The definition or event to which changed rows belong.
#[derive(Debug)]
pub(super) struct Owner {
    what: String,
    tags: Vec<String>,
}

impl Owner {
    pub(super) fn for_definition(kind: Kind, definition: &AuditSnapshot) -> Self {
        let state = definition.state.as_ref();
        Self {
            what: format!("the {} `{}`", kind.as_str(), definition.name),
            tags: state.map_or_else(Vec::new, |it| it.tags().to_vec()),
        }
    }

    pub(super) fn for_caller(tags: Vec<String>) -> Self {
        Self {
            what: "the client".into(),
            tags,
        }
    }

    pub(super) fn for_event(occurrence: &Occurrence) -> Self {
        Self {
            what: format!("the occurrence `{}`", occurrence.id()),
            tags: event_tags(occurrence),
        }
    }
}

/// Returns the tags of an event: each dimension as `key:value`.
pub fn event_tags(occurrence: &Occurrence) -> Vec<String> {
    let dimensions = occurrence.dimensions.iter();
    dimensions
        .map(|(key, value)| format!("{key}:{value}"))
        .collect()
}

/// Whether each change to rows of a kind has to name the definition or event that owns the rows.
pub(super) fn has_owner(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Occurrence | Kind::Delivery | Kind::Expectation | Kind::Group
    )
}

#[derive(Debug)]
pub(super) struct ChangeAudit {
    pub(super) by: Arc<Actor>,
    pub(super) changes: Vec<AuditedChange>,
    pub(super) owners: Vec<Owner>,
    pub(super) owned: Option<Kind>,
}

impl ChangeAudit {
    pub(super) fn for_actor(by: Arc<Actor>) -> Self {
        Self {
            by,
            changes: Vec::new(),
            owners: Vec::new(),
            owned: None,
        }
    }

    /// Checks that the scope of the client includes all changes.
    ///
    /// # Errors
    /// Returns [`EngineError::Forbidden`] with the first resource outside the scope.
    pub(super) fn check_scope(&self) -> Result<(), EngineError> {
        if self.by.scope.tags.is_empty() {
            return Ok(());
        }
        let is_outside =
            |change: &&AuditedChange| !change.tags().all(|tags| self.by.may_change(tags));
        if let Some(change) = self.changes.iter().find(is_outside) {
            let what = format!("the {} `{}`", change.kind.as_str(), change.name());
            return Err(self.forbidden_error(&what));
        }
        let mut owners = self.owners.iter();
        if let Some(owner) = owners.find(|it| !self.by.may_change(&it.tags)) {
            return Err(self.forbidden_error(&owner.what));
        }
        // Fails closed: owned rows without a named owner are rejected.
        let is_named = !self.owners.is_empty() || self.changes.iter().any(AuditedChange::has_state);
        match self.owned {
            Some(kind) if !is_named => {
                let what = format!("the owner of the {}", kind.as_str());
                Err(self.forbidden_error(&what))
            }
            _ => Ok(()),
        }
    }

    fn forbidden_error(&self, what: &str) -> EngineError {
        let tags = self.by.scope.tags.iter().map(|it| format!("`{it}`"));
        EngineError::Forbidden(format!(
            "{what} has none of the tags that `{}` is restricted to: {}",
            self.by.client,
            tags.collect::<Vec<_>>().join(", ")
        ))
    }

    /// Returns one entry per changed definition, and one entry per kind and action for other
    /// changes.
    pub(super) fn entries(self) -> Vec<AuditEntry> {
        let (defined, counted): (Vec<_>, Vec<_>) =
            self.changes.into_iter().partition(AuditedChange::has_state);
        let mut entries: Vec<AuditEntry> = Vec::new();
        for change in defined {
            let (action, name) = (change.action(), change.name().to_owned());
            let before = change.before.and_then(|seen| seen.state);
            let after = change.after.and_then(|seen| seen.state);
            let changed_secrets = after
                .as_ref()
                .map(|after| after.changed_secrets(before.as_ref()));
            entries.push(AuditEntry {
                kind: change.kind.as_str().into(),
                names: vec![name],
                changed_secrets: changed_secrets.unwrap_or_default(),
                before,
                after,
                ..self.by.audit_entry(action)
            });
        }
        let first_counted = entries.len();
        for change in counted {
            let (action, word) = (change.action(), change.kind.as_str());
            let outcome = change.after.as_ref().map(|seen| seen.outcome.clone());
            let reason = outcome.unwrap_or_default();
            let is_same = |entry: &&mut AuditEntry| {
                entry.action == action && entry.kind == word && entry.reason == reason
            };
            let group = entries[first_counted..].iter_mut().find(is_same);
            if let Some(entry) = group {
                entry.count = entry.count.saturating_add(1);
                if entry.names.len() < NAMES_MAX {
                    entry.names.push(change.name().to_owned());
                }
            } else {
                entries.push(AuditEntry {
                    kind: word.into(),
                    names: vec![change.name().to_owned()],
                    reason,
                    ..self.by.audit_entry(action)
                });
            }
        }
        entries
    }
}

pub(super) fn merge_changes(changes: Vec<AuditedChange>) -> Vec<AuditedChange> {
    let mut merged: Vec<AuditedChange> = Vec::new();
    for next in changes {
        let is_same = |it: &&mut AuditedChange| it.kind == next.kind && it.name() == next.name();
        match merged.iter_mut().find(is_same) {
            Some(earlier) => earlier.after = next.after,
            None => merged.push(next),
        }
    }
    merged.retain(|change| change.before.is_some() || change.after.is_some());
    merged
}
