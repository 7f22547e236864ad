//! Triggers, rules, silences and schedules as they were before they were edited or deleted.

use crate::domain::{Name, RecordId, Rule, Schedule, Silence, Trigger};

/// A trigger, rule, silence or schedule as it was, kept because decisions rest on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// What it was.
    pub was: Revised,
    /// When it was replaced or deleted, in milliseconds since 1970.
    pub until_ms: i64,
    /// Whether it was deleted then.
    pub deleted: bool,
}

/// What a revision keeps.
#[derive(Debug, Clone, PartialEq)]
pub enum Revised {
    /// A trigger.
    Trigger(Trigger),
    /// A rule.
    Rule(Rule),
    /// A silence.
    Silence(Silence),
    /// A schedule.
    Schedule(Schedule),
}

/// Which kind of thing a revision is of. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionOf {
    /// A trigger.
    Trigger = 1,
    /// A rule.
    Rule = 2,
    /// A silence.
    Silence = 3,
    /// A schedule.
    Schedule = 4,
}

/// One revision of a trigger, rule, silence or schedule, by identity.
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
            Revised::Trigger(_) => RevisionOf::Trigger,
            Revised::Rule(_) => RevisionOf::Rule,
            Revised::Silence(_) => RevisionOf::Silence,
            Revised::Schedule(_) => RevisionOf::Schedule,
        }
    }

    /// Which revision it is.
    pub fn id(&self) -> RevisionId {
        match &self.was {
            Revised::Trigger(trigger) => trigger.into(),
            Revised::Rule(rule) => rule.into(),
            Revised::Silence(silence) => silence.into(),
            Revised::Schedule(schedule) => schedule.into(),
        }
    }

    /// Since when it was in force, in milliseconds since 1970.
    pub fn since_ms(&self) -> i64 {
        match &self.was {
            Revised::Trigger(trigger) => trigger.update_ms,
            Revised::Rule(rule) => rule.update_ms,
            Revised::Silence(silence) => silence.update_ms,
            Revised::Schedule(schedule) => schedule.update_ms,
        }
    }
}

macro_rules! revision_id {
    ($($type:ty),+) => {$(
        impl From<&$type> for RevisionId {
            fn from(it: &$type) -> Self {
                Self {
                    name: it.name.clone(),
                    id: it.id,
                    revision: it.revision,
                }
            }
        }
    )+};
}
revision_id!(Trigger, Rule, Silence, Schedule);
