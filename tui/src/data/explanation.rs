//! Why rules did or did not notify about an occurrence.

use serde_json::Value;

/// Why rules did or did not notify.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Explanation {
    pub(crate) occurrence_id: String,
    pub(crate) rules: Vec<RuleExplanation>,
}

/// Why one rule did or did not notify.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuleExplanation {
    pub(crate) rule_name: String,
    pub(crate) notified: bool,
    pub(crate) deleted: bool,
    /// Absent when the rule is there, or it is not known when it went.
    pub(crate) deleted_ms: Option<i64>,
    /// The decision that tells most.
    pub(crate) main: Judgement,
    /// A later decision, and what would be decided now.
    pub(crate) others: Vec<Judgement>,
    /// Each time it told something, oldest first.
    pub(crate) told: Vec<Told>,
    pub(crate) deliveries: Vec<ExplainedDelivery>,
}

/// Which decision a judgement speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A service that does not say: what it tells is of now.
    #[default]
    Unknown,
    Notification,
    Last,
    Earlier,
    Now,
}

/// What a rule made of an occurrence at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) basis: Basis,
    pub(crate) time_ms: i64,
    pub(crate) notifies: bool,
    pub(crate) reason: String,
    pub(crate) definition: Option<Definition>,
    pub(crate) triggers: Vec<TriggerExplanation>,
    pub(crate) gates: Vec<GateVerdict>,
}

/// Which state of a trigger or rule is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) revision: i64,
    /// Absent while it is in force.
    pub(crate) until_ms: Option<i64>,
    pub(crate) deleted: bool,
}

/// How one trigger saw the occurrence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TriggerExplanation {
    pub(crate) trigger_name: String,
    /// Absent when it is not known.
    pub(crate) matched: Option<bool>,
    pub(crate) clause: Option<ClauseExplanation>,
    pub(crate) definition: Option<Definition>,
}

/// How one clause saw the occurrence.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ClauseExplanation {
    pub(crate) kind: String,
    pub(crate) field: String,
    pub(crate) expected: Value,
    /// Absent when the event lacks the field, or it is not known what it held.
    pub(crate) actual: Option<Value>,
    /// Absent when it is not known.
    pub(crate) result: Option<bool>,
    pub(crate) clauses: Vec<ClauseExplanation>,
}

/// One thing between a match and a notification.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GateVerdict {
    pub(crate) name: String,
    pub(crate) passed: bool,
    pub(crate) detail: String,
}

/// One time a rule told something.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub(crate) time_ms: i64,
    pub(crate) clear: bool,
    pub(crate) trigger_name: String,
    pub(crate) delivery_ids: Vec<String>,
}

/// A delivery that a rule caused.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExplainedDelivery {
    pub(crate) id: String,
    pub(crate) destination: String,
    pub(crate) state: String,
    pub(crate) next_attempt_ms: Option<i64>,
    /// When each attempt began, and what became of it.
    pub(crate) attempts: Vec<(i64, String)>,
}
