//! Triggers and rules that are not in force any more, as far as messages still tell of them.

use std::collections::BTreeMap;

use super::Snapshot;
use crate::domain::{Occurrence, Revision, RevisionId, RevisionOf, Rule, Trigger, Was};

/// Triggers and rules that are not in force any more, as far as messages still tell of them.
#[derive(Debug, Default)]
pub struct Past {
    triggers: BTreeMap<RevisionId, Trigger>,
    rules: BTreeMap<RevisionId, Rule>,
}

impl Past {
    /// Which revisions the updates of these occurrences may have to tell of and the rules in force
    /// do not know: their opening's trigger when it was edited since, their rule when it was
    /// deleted.
    pub fn wanted<'a>(
        snapshot: &Snapshot,
        occurrences: impl Iterator<Item = &'a Occurrence>,
    ) -> Vec<(RevisionOf, RevisionId)> {
        let mut wanted = Vec::new();
        for entry in occurrences.flat_map(|it| &it.notified) {
            let Some(opening) = entry.opening.as_ref().filter(|_| entry.send_updates) else {
                continue;
            };
            let current = snapshot.trigger(&opening.trigger.name);
            if current.is_none_or(|it| RevisionId::from(it) != opening.trigger) {
                wanted.push((RevisionOf::Trigger, opening.trigger.clone()));
            }
            if snapshot.rule(entry.rule).is_none() {
                let rule = RevisionId {
                    name: entry.rule_name.clone(),
                    id: entry.rule,
                    revision: opening.rule_revision,
                };
                wanted.push((RevisionOf::Rule, rule));
            }
        }
        wanted
    }

    /// Adds a definition.
    pub fn add(&mut self, revision: Revision) {
        let id = revision.id();
        match revision.was {
            Was::Trigger(trigger) => drop(self.triggers.insert(id, trigger)),
            Was::Rule(rule) => drop(self.rules.insert(id, rule)),
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
}
