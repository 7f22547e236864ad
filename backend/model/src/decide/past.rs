//! Inputs of a decision other than the definitions in force: earlier definitions and causes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Causes, Snapshot};
use crate::domain::{
    GroupKey, Inhibition, Name, Occurrence, RecordId, RevisedResource, Revision, RevisionId,
    RevisionKind, Rule, Trigger,
};

/// Earlier triggers and rules that messages still report, and the causes of inhibitions.
#[derive(Debug, Default)]
pub struct PastDefinitions {
    triggers: BTreeMap<RevisionId, Trigger>,
    rules: BTreeMap<RevisionId, Rule>,
    deleted: BTreeMap<RecordId, Rule>,
    causes: Causes,
    /// Rules without grouping whose notifications released now are sent as one group.
    together: BTreeMap<RecordId, GroupKey>,
    /// Deliveries of responses, if they failed permanently or wait for a paused destination.
    failed: BTreeSet<RecordId>,
    /// Inhibitions, with the revision in force, for which every open occurrence is marked.
    marked: BTreeSet<(RecordId, u64)>,
}

#[derive(Debug, Default)]
pub struct NeededRevisions {
    /// The triggers and rules of opening messages, as they were at that time.
    pub revisions: Vec<(RevisionKind, RevisionId)>,
    /// The deleted rules whose last definition is required.
    pub deleted: Vec<(Name, RecordId)>,
}

impl NeededRevisions {
    /// Collects the definitions that updates of these occurrences may report: the trigger of the
    /// opening message if it was edited since, and the rule if it was deleted.
    pub fn collect<'a>(
        snapshot: &Snapshot,
        occurrences: impl Iterator<Item = &'a Occurrence>,
    ) -> Self {
        let mut wanted = Self::default();
        for entry in occurrences.flat_map(|it| &it.notified) {
            let rule = snapshot.rule(entry.rule);
            if rule.is_some_and(|it| !it.send_updates && !entry.cleared) {
                continue;
            }
            if rule.is_none() {
                let deleted = (entry.rule_name.clone(), entry.rule);
                wanted.deleted.push(deleted);
            }
            let Some(opening) = &entry.opening else {
                continue;
            };
            let current = snapshot.trigger(&opening.trigger.name);
            if current.is_none_or(|it| RevisionId::from(it) != opening.trigger) {
                let trigger = (RevisionKind::Trigger, opening.trigger.clone());
                wanted.revisions.push(trigger);
            }
            if rule.is_none() {
                let rule = RevisionId {
                    name: entry.rule_name.clone(),
                    id: entry.rule,
                    revision: opening.rule_revision,
                };
                wanted.revisions.push((RevisionKind::Rule, rule));
            }
        }
        wanted
    }
}

impl PastDefinitions {
    #[must_use]
    pub fn with_causes(self, causes: &Causes) -> Self {
        let causes = causes.clone();
        Self { causes, ..self }
    }

    #[must_use]
    pub fn with_released_groups(self, together: BTreeMap<RecordId, GroupKey>) -> Self {
        Self { together, ..self }
    }

    pub(super) fn released_group(&self, rule: RecordId) -> Option<GroupKey> {
        self.together.get(&rule).copied()
    }

    #[must_use]
    pub fn with_failed_deliveries(self, failed: BTreeSet<RecordId>) -> Self {
        Self { failed, ..self }
    }

    #[must_use]
    pub fn with_marked_inhibitions(self, marked: BTreeSet<(RecordId, u64)>) -> Self {
        Self { marked, ..self }
    }

    pub(super) fn is_inhibition_marked(&self, inhibition: &Inhibition) -> bool {
        let revision = inhibition.revision;
        inhibition.counted_revision == revision || self.marked.contains(&(inhibition.id, revision))
    }

    pub(super) fn failed_deliveries(&self) -> &BTreeSet<RecordId> {
        &self.failed
    }

    pub fn causes(&self) -> &Causes {
        &self.causes
    }

    pub fn add(&mut self, revision: Revision) {
        let id = revision.id();
        match revision.was {
            RevisedResource::Trigger(trigger) => drop(self.triggers.insert(id, trigger)),
            RevisedResource::Rule(rule) => {
                if revision.deleted {
                    self.deleted.insert(rule.id, rule.clone());
                }
                self.rules.insert(id, rule);
            }
            RevisedResource::Silence(_) | RevisedResource::Schedule(_) => {}
        }
    }

    pub fn trigger(&self, id: &RevisionId) -> Option<&Trigger> {
        self.triggers.get(id)
    }

    pub fn rule(&self, id: &RevisionId) -> Option<&Rule> {
        self.rules.get(id)
    }

    pub fn deleted_rule(&self, id: RecordId) -> Option<&Rule> {
        self.deleted.get(&id)
    }
}
