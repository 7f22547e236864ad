//! The decisions about an occurrence that can still be explained, and the state of the occurrence
//! at each of them.

use crate::{
    domain::{Field, Name, Occurrence, Severity, Status},
    matching::field,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecisionPoint {
    pub(super) at_ms: i64,
    /// Edits of triggers and rules up to this time were in force.
    pub(super) rules_ms: i64,
    pub(super) last: bool,
}

/// The state of an occurrence at a decision, with unknown parts marked.
#[derive(Debug, Clone)]
pub(super) struct PastState {
    pub(super) occurrence: Occurrence,
    /// Whether type, summary, body and metadata are unchanged since the decision.
    content_known: bool,
    /// Whether the count and the last-seen time are unchanged since the decision.
    count_known: bool,
    /// Whether an event caused the decision; also true if the cause is unknown.
    pub(super) by_event: bool,
}

impl PastState {
    /// Returns the current state, which is fully known.
    pub(super) fn from_current(occurrence: Occurrence) -> Self {
        Self {
            occurrence,
            content_known: true,
            count_known: true,
            by_event: true,
        }
    }

    /// Returns whether the occurrence still has the value that the field had at the decision.
    pub(super) fn retains_value(&self, field: &field::Field) -> bool {
        use field::Field as F;
        match field {
            F::Id
            | F::Name
            | F::Severity
            | F::Status
            | F::Acknowledged
            | F::Assignee
            | F::StartTime
            | F::Dimension(_) => true,
            F::Count | F::LastSeen => self.count_known,
            F::Type | F::Summary | F::Body | F::Metadata(_) => self.content_known,
            F::Either(key) => {
                self.content_known || self.occurrence.dimensions.contains_key(key.as_str())
            }
        }
    }
}

/// Returns the latest `limit` decisions, newest first: the last one, each change of severity,
/// status, acknowledgement or assignee, and the opening.
pub(super) fn decision_points(occurrence: &Occurrence, limit: usize) -> Vec<DecisionPoint> {
    let last = occurrence.evaluation.map(|evaluation| DecisionPoint {
        at_ms: evaluation.at_ms,
        rules_ms: evaluation.rules_ms,
        last: true,
    });
    let changes = occurrence.history.iter().rev().map(|entry| DecisionPoint {
        at_ms: entry.at_ms,
        rules_ms: entry.at_ms,
        last: false,
    });
    let mut points: Vec<DecisionPoint> = last.into_iter().chain(changes).collect();
    points.dedup_by_key(|point| point.at_ms);
    if points.len() > limit {
        let opening = points.pop();
        points.truncate(limit.saturating_sub(1));
        points.extend(opening);
    }
    points
}

pub(super) fn state_at(occurrence: &Occurrence, point: DecisionPoint) -> PastState {
    let mut then = occurrence.clone();
    for entry in occurrence.history.iter().rev() {
        let is_opening = entry.from.is_empty() && entry.field != Field::Assignee;
        if entry.at_ms <= point.at_ms || is_opening {
            continue;
        }
        match entry.field {
            Field::Severity => set_from_word(
                &mut then.severity,
                &Severity::ALL,
                &entry.from,
                Severity::as_str,
            ),
            Field::Status => {
                set_from_word(&mut then.status, &Status::ALL, &entry.from, Status::as_str);
            }
            Field::Acknowledged => then.acknowledged = entry.from == "true",
            Field::Assignee => then.assignee = Name::parse(&entry.from).ok(),
        }
    }
    let known_since_ms = occurrence.content_ms;
    let once = occurrence.count == 1;
    PastState {
        content_known: point.last || once || known_since_ms.is_some_and(|it| it <= point.at_ms),
        count_known: point.last || once,
        by_event: !point.last || occurrence.evaluation.is_none_or(|it| it.by_event),
        occurrence: then,
    }
}

fn set_from_word<T: Copy>(
    value: &mut T,
    all: &[T],
    word: &str,
    word_of: impl Fn(T) -> &'static str,
) {
    if let Some(found) = all.iter().find(|it| word_of(**it) == word) {
        *value = *found;
    }
}
