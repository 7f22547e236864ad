//! Triggers and rules as they were before they were edited or deleted.

use crate::domain::{Name, RecordId, Rule, Trigger};

/// A trigger or a rule as it was, kept because decisions rest on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// What it was.
    pub was: Was,
    /// When it was replaced or deleted, in milliseconds since 1970.
    pub until_ms: i64,
    /// Whether it was deleted then.
    pub deleted: bool,
}

/// What a revision keeps.
#[derive(Debug, Clone, PartialEq)]
pub enum Was {
    /// A trigger.
    Trigger(Trigger),
    /// A rule.
    Rule(Rule),
}

/// Which kind of thing a revision is of. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionOf {
    /// A trigger.
    Trigger = 1,
    /// A rule.
    Rule = 2,
}

/// One revision of a trigger or rule, by identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RevisionId {
    /// The name, which never changes; another one of that name may follow it.
    pub name: Name,
    /// The identity.
    pub id: RecordId,
    /// Counts its edits from 1.
    pub revision: u64,
}

impl Revision {
    /// The kind of thing it is of.
    pub fn of(&self) -> RevisionOf {
        match self.was {
            Was::Trigger(_) => RevisionOf::Trigger,
            Was::Rule(_) => RevisionOf::Rule,
        }
    }

    /// Which revision it is.
    pub fn id(&self) -> RevisionId {
        match &self.was {
            Was::Trigger(trigger) => trigger.into(),
            Was::Rule(rule) => rule.into(),
        }
    }

    /// Since when it was in force, in milliseconds since 1970.
    pub fn since_ms(&self) -> i64 {
        match &self.was {
            Was::Trigger(trigger) => trigger.update_ms,
            Was::Rule(rule) => rule.update_ms,
        }
    }
}

impl From<&Trigger> for RevisionId {
    fn from(trigger: &Trigger) -> Self {
        Self {
            name: trigger.name.clone(),
            id: trigger.id,
            revision: trigger.revision,
        }
    }
}

impl From<&Rule> for RevisionId {
    fn from(rule: &Rule) -> Self {
        Self {
            name: rule.name.clone(),
            id: rule.id,
            revision: rule.revision,
        }
    }
}
