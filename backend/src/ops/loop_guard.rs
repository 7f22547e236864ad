//! Reports about stopped rules and unanswered responses, as events of the service itself.

use crate::{
    decide::{Notices, Unanswered},
    domain::{
        IncomingEvent, Name, Occurrence, OwnEvent, Severity, Status, is_own,
        response::ESCALATION_KIND,
    },
    ops::identity::new_id,
    store::Changes,
};

pub(crate) const LOOP_KIND: &str = "loop-guard";

/// Events of the service itself caused by a change, to be stored with it.
#[derive(Debug, Default)]
#[must_use]
pub struct Reports(Vec<OwnEvent>);

/// Stored events of the service itself, to be ingested after the commit, or after a restart.
#[derive(Debug, Default)]
#[must_use]
pub struct RecordedReports(pub(super) Vec<OwnEvent>);

impl Reports {
    /// Adds a report for each stopped rule and unanswered response, unless the occurrence itself is
    /// an event of the service.
    pub(crate) fn note(&mut self, notices: &Notices, occurrence: &Occurrence, now_ms: i64) {
        if is_own(&occurrence.dimensions) {
            return;
        }
        let stopped = notices.stopped.iter();
        let stopped = stopped.map(|rule| event(rule, occurrence, now_ms));
        let unanswered = notices.unanswered.iter();
        let unanswered = unanswered.map(|it| nobody_responded(it, occurrence, now_ms));
        self.0
            .extend(stopped.chain(unanswered).map(|event| OwnEvent {
                id: new_id(now_ms),
                event,
                chain: occurrence.chain.clone(),
            }));
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// Stores the events together with the changes that cause them.
    pub(crate) fn record(self, changes: &mut Changes) -> RecordedReports {
        for event in &self.0 {
            changes.insert(event);
        }
        RecordedReports(self.0)
    }
}

impl RecordedReports {
    pub(crate) fn of(event: OwnEvent) -> Self {
        Self(vec![event])
    }
}

fn event(rule: &Name, occurrence: &Occurrence, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("rule {rule} caused an event that it matches again; the loop was stopped"),
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
            "no one responded to {}: all rounds of the escalation policy {policy} have ended",
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
