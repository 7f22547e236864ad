//! What a decision rests on beside the rules in force: triggers and rules as they were, and causes.

use std::collections::{BTreeMap, BTreeSet};

use super::{Causes, Snapshot};
use crate::domain::{
    GroupKey, Inhibition, Name, Occurrence, RecordId, Revised, Revision, RevisionId, RevisionOf,
    Rule, Trigger,
};

/// Triggers and rules that are not in force any more, as far as messages still report on them, and
/// what else is open that holds something back.
#[derive(Debug, Default)]
pub struct Past {
    triggers: BTreeMap<RevisionId, Trigger>,
    rules: BTreeMap<RevisionId, Rule>,
    /// Rules as they were when they were deleted.
    deleted: BTreeMap<RecordId, Rule>,
    causes: Causes,
    /// What each of these rules frees now is one group, though the rule does not group.
    together: BTreeMap<RecordId, GroupKey>,
    /// Deliveries of responses that ended dead, or wait for a paused destination.
    failed: BTreeSet<RecordId>,
    /// Inhibitions of which everything open is marked by the revision in force.
    marked: BTreeSet<(RecordId, u64)>,
}

/// What messages about some occurrences may have to report on and the rules in force do not know.
#[derive(Debug, Default)]
pub struct Wanted {
    /// The triggers and rules of opening messages, as they were then.
    pub revisions: Vec<(RevisionOf, RevisionId)>,
    /// Rules that were deleted, as they were last.
    pub deleted: Vec<(Name, RecordId)>,
}

impl Wanted {
    /// What the updates of these occurrences may report on: their opening's trigger when it was
    /// edited since, their rule when it was deleted.
    pub fn of<'a>(snapshot: &Snapshot, occurrences: impl Iterator<Item = &'a Occurrence>) -> Self {
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
                let trigger = (RevisionOf::Trigger, opening.trigger.clone());
                wanted.revisions.push(trigger);
            }
            if rule.is_none() {
                let rule = RevisionId {
                    name: entry.rule_name.clone(),
                    id: entry.rule,
                    revision: opening.rule_revision,
                };
                wanted.revisions.push((RevisionOf::Rule, rule));
            }
        }
        wanted
    }
}

impl Past {
    /// The same with the causes that are known.
    #[must_use]
    pub fn asking(self, causes: &Causes) -> Self {
        let causes = causes.clone();
        Self { causes, ..self }
    }

    /// The same where so much of some rules is released together that it is reported as one group.
    #[must_use]
    pub fn freeing(self, together: BTreeMap<RecordId, GroupKey>) -> Self {
        Self { together, ..self }
    }

    /// The group of what is freed of a rule now.
    pub(super) fn together(&self, rule: RecordId) -> Option<GroupKey> {
        self.together.get(&rule).copied()
    }

    /// The same where these deliveries of responses do not arrive.
    #[must_use]
    pub fn failing(self, failed: BTreeSet<RecordId>) -> Self {
        Self { failed, ..self }
    }

    /// Adds the inhibitions, each with its revision, of which everything open is marked.
    #[must_use]
    pub fn marked(self, marked: BTreeSet<(RecordId, u64)>) -> Self {
        Self { marked, ..self }
    }

    /// Whether everything open is marked for an inhibition as it is in force.
    pub(super) fn is_marked(&self, inhibition: &Inhibition) -> bool {
        let revision = inhibition.revision;
        inhibition.counted_revision == revision || self.marked.contains(&(inhibition.id, revision))
    }

    /// The deliveries of responses that do not arrive.
    pub(super) fn failed(&self) -> &BTreeSet<RecordId> {
        &self.failed
    }

    /// The causes that are known.
    pub fn causes(&self) -> &Causes {
        &self.causes
    }

    /// Adds a definition.
    pub fn add(&mut self, revision: Revision) {
        let id = revision.id();
        match revision.was {
            Revised::Trigger(trigger) => drop(self.triggers.insert(id, trigger)),
            Revised::Rule(rule) => {
                if revision.deleted {
                    self.deleted.insert(rule.id, rule.clone());
                }
                self.rules.insert(id, rule);
            }
            Revised::Silence(_) | Revised::Schedule(_) => {}
        }
    }

    /// A trigger as it was.
    pub fn trigger(&self, id: &RevisionId) -> Option<&Trigger> {
        self.triggers.get(id)
    }

    /// A rule as it was.
    pub fn rule(&self, id: &RevisionId) -> Option<&Rule> {
        self.rules.get(id)
    }

    /// A rule as it was when it was deleted.
    pub fn deleted(&self, id: RecordId) -> Option<&Rule> {
        self.deleted.get(&id)
    }
}
