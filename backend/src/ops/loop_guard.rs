//! What the service says, as a separate event, when the loop guard stopped a rule.

use crate::{
    decide::{Notices, Unanswered},
    domain::{
        IncomingEvent, Name, Occurrence, RecordId, Severity, Status, is_own,
        response::ESCALATION_KIND,
    },
};

/// The kind of such events.
pub(crate) const LOOP_KIND: &str = "loop-guard";

/// Events to say once what they report on is on disk, each with the rules that led to it.
#[derive(Debug, Default)]
#[must_use]
pub struct Reports(Vec<(IncomingEvent, Vec<RecordId>)>);

impl Reports {
    /// Takes note of the rules that were stopped, unless the service would talk about itself.
    pub(crate) fn note(&mut self, notices: &Notices, occurrence: &Occurrence, now_ms: i64) {
        if is_own(&occurrence.dimensions) {
            return;
        }
        for rule in &notices.stopped {
            let event = event(rule, occurrence, now_ms);
            self.0.push((event, occurrence.chain.clone()));
        }
        for unanswered in &notices.unanswered {
            let event = nobody_responded(unanswered, occurrence, now_ms);
            self.0.push((event, occurrence.chain.clone()));
        }
    }

    /// Adds others.
    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }
}

impl IntoIterator for Reports {
    type Item = (IncomingEvent, Vec<RecordId>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

fn event(rule: &Name, occurrence: &Occurrence, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("rule {rule} led to an event that would pass it again; it stopped there"),
        body: format!("The event is {}, {}.", occurrence.name, occurrence.id()),
        severity: Some(Severity::Warning),
        ..IncomingEvent::own(
            "rule stopped by the loop guard",
            LOOP_KIND,
            [("rule", rule.as_str())],
            now_ms,
        )
    }
}

fn nobody_responded(of: &Unanswered, occurrence: &Occurrence, now_ms: i64) -> IncomingEvent {
    let (rule, policy, id) = (&of.rule, &of.policy, of.occurrence.to_string());
    IncomingEvent {
        summary: format!(
            "no one responded to {}: all rounds of the escalation policy {policy} are over",
            occurrence.name
        ),
        body: format!(
            "The event is {}, {id}. The rule is {rule}.",
            occurrence.name
        ),
        severity: Some(Severity::Critical),
        status: of.is_over.then_some(Status::Closed),
        ..IncomingEvent::own(
            "no one responded",
            ESCALATION_KIND,
            [("rule", rule.as_str()), ("occurrence", &id)],
            now_ms,
        )
    }
}
