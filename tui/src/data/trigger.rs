//! Triggers as stored, as written, and tried.

use serde::{Deserialize, Serialize};

use super::{Clause, EventRow};

/// A stored trigger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trigger {
    pub(crate) spec: TriggerSpec,
    pub(crate) rule_names: Vec<String>,
    /// Notifications in the last 24 h.
    pub(crate) recent_count: i32,
    pub(crate) create_ms: Option<i64>,
    pub(crate) update_ms: Option<i64>,
    pub(crate) etag: String,
}

/// A trigger as an operator writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TriggerSpec {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    #[serde(default, rename = "type")]
    pub(crate) kind: TriggerType,
}

/// What a trigger looks at.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TriggerType {
    #[serde(default)]
    pub(crate) event: EventTrigger,
}

/// Looks at events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EventTrigger {
    #[serde(default)]
    pub(crate) query: Query,
}

/// A condition over events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Query {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clause: Option<Clause>,
}

impl TriggerSpec {
    /// The outermost clause.
    pub(crate) fn clause(&self) -> Option<&Clause> {
        self.kind.event.query.clause.as_ref()
    }
}

/// What a draft query would have matched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TriggerTest {
    pub(crate) matched: i32,
    /// Absent when no trigger of that name is stored.
    pub(crate) matched_by_saved: Option<i32>,
    pub(crate) scanned: i32,
    /// The first matches, newest first.
    pub(crate) occurrences: Vec<EventRow>,
    /// Set when it stopped early: everything last seen at or after this moment was looked at.
    pub(crate) stopped_at_ms: Option<i64>,
}
