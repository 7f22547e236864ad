//! Earlier revisions of triggers, rules, silences and schedules.

use crate::domain::{Name, RecordId, Rule, Schedule, Silence, Trigger};

/// An earlier revision, kept because decisions were based on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Revision {
    /// The resource.
    pub was: RevisedResource,
    /// Time it was replaced or deleted, in milliseconds since 1970.
    pub until_ms: i64,
    /// Whether the resource was deleted.
    pub deleted: bool,
}

/// The resource of a revision.
#[derive(Debug, Clone, PartialEq)]
pub enum RevisedResource {
    /// A trigger.
    Trigger(Trigger),
    /// A rule.
    Rule(Rule),
    /// A silence.
    Silence(Silence),
    /// A schedule.
    Schedule(Schedule),
}

/// The kind of resource of a revision. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionKind {
    /// A trigger.
    Trigger = 1,
    /// A rule.
    Rule = 2,
    /// A silence.
    Silence = 3,
    /// A schedule.
    Schedule = 4,
}

/// The identity of a revision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RevisionId {
    /// The name of the resource, which never changes but may be reused.
    pub name: Name,
    /// The identity of the resource.
    pub id: RecordId,
    /// The revision, counted from 1.
    pub revision: u64,
}

impl Revision {
    /// Returns the kind of resource.
    pub fn kind(&self) -> RevisionKind {
        match self.was {
            RevisedResource::Trigger(_) => RevisionKind::Trigger,
            RevisedResource::Rule(_) => RevisionKind::Rule,
            RevisedResource::Silence(_) => RevisionKind::Silence,
            RevisedResource::Schedule(_) => RevisionKind::Schedule,
        }
    }

    /// Returns the identity of the revision.
    pub fn id(&self) -> RevisionId {
        match &self.was {
            RevisedResource::Trigger(trigger) => trigger.into(),
            RevisedResource::Rule(rule) => rule.into(),
            RevisedResource::Silence(silence) => silence.into(),
            RevisedResource::Schedule(schedule) => schedule.into(),
        }
    }

    /// Returns the time it came into force, in milliseconds since 1970.
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
