//! Earlier revisions of triggers, rules, silences and schedules.

use crate::domain::{Name, RecordId, Rule, Schedule, Silence, Trigger};

/// An earlier revision, stored because decisions were based on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    pub was: RevisedResource,
    /// Time at which the revision was replaced or deleted, in milliseconds since 1970.
    pub until_ms: i64,
    pub deleted: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum RevisedResource {
    Trigger(Trigger),
    Rule(Rule),
    Silence(Silence),
    Schedule(Schedule),
}

/// The kind of resource of a revision. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionKind {
    Trigger = 1,
    Rule = 2,
    Silence = 3,
    Schedule = 4,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RevisionId {
    /// The name of the resource, which never changes but may be reused.
    pub name: Name,
    pub id: RecordId,
    /// The revision, counted from 1.
    pub revision: u64,
}

impl Revision {
    pub fn kind(&self) -> RevisionKind {
        match self.was {
            RevisedResource::Trigger(_) => RevisionKind::Trigger,
            RevisedResource::Rule(_) => RevisionKind::Rule,
            RevisedResource::Silence(_) => RevisionKind::Silence,
            RevisedResource::Schedule(_) => RevisionKind::Schedule,
        }
    }

    pub fn id(&self) -> RevisionId {
        match &self.was {
            RevisedResource::Trigger(trigger) => trigger.into(),
            RevisedResource::Rule(rule) => rule.into(),
            RevisedResource::Silence(silence) => silence.into(),
            RevisedResource::Schedule(schedule) => schedule.into(),
        }
    }

    /// Returns the time at which the revision came into force, in milliseconds since 1970.
    pub fn since_ms(&self) -> i64 {
        match &self.was {
            RevisedResource::Trigger(trigger) => trigger.update_ms,
            RevisedResource::Rule(rule) => rule.update_ms,
            RevisedResource::Silence(silence) => silence.update_ms,
            RevisedResource::Schedule(schedule) => schedule.update_ms,
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
