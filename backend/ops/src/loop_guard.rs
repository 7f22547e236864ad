//! Reports about stopped rules, as events of the service itself, and markers of unanswered
//! responses.

use crate::{
    decide::{Notices, UnansweredNotice},
    domain::{
        IncomingEvent, Name, Occurrence, OwnEvent, Severity, Status, Value, has_own_source,
        own_event::{LOOP_STOPPED, NO_RESPONSE},
        response::POLICY_DIMENSION,
    },
    identity::new_id,
    store::Changes,
};

/// Events of the service itself caused by a change, to be stored with it.
#[derive(Debug, Default)]
#[must_use]
pub struct Reports(Vec<OwnEvent>);

/// Stored events of the service itself, to be ingested after the commit, or after a restart.
#[derive(Debug, Default)]
#[must_use]
pub struct RecordedReports(pub(super) Vec<OwnEvent>);

impl Reports {
    /// Adds a report for each stopped rule, unless the occurrence itself is an event of the
    /// service. Adds a marker for each response that became unanswered or is no longer unanswered.
    pub(crate) fn add_reports(&mut self, notices: &Notices, occurrence: &Occurrence, now_ms: i64) {
        let is_reported = !has_own_source(&occurrence.dimensions);
        let stopped = notices.stopped.iter().filter(|_| is_reported);
        let stopped = stopped.map(|rule| loop_event(rule, occurrence, now_ms));
        let is_counted = !occurrence.is_unanswered_report() && !occurrence.is_drill();
        let unanswered = notices.unanswered.iter().filter(|_| is_counted);
        let unanswered = unanswered.map(|it| marker_event(it, now_ms));
        self.0
            .extend(stopped.chain(unanswered).map(|event| OwnEvent {
                id: new_id(now_ms),
                event,
                chain: occurrence.chain.clone(),
            }));
    }

    pub(crate) fn add_event(&mut self, event: IncomingEvent, now_ms: i64) {
        self.0.push(OwnEvent {
            id: new_id(now_ms),
            event,
            chain: Vec::new(),
        });
    }

    pub(crate) fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// Stores the events together with the changes that cause them. Markers are evaluated by the
    /// next review.
    pub(crate) fn record(mut self, changes: &mut Changes) -> RecordedReports {
        for event in &self.0 {
            changes.insert(event);
        }
        self.0.retain(|it| !is_mark(it));
        RecordedReports(self.0)
    }
}

impl RecordedReports {
    pub(crate) fn from_event(event: OwnEvent) -> Self {
        Self(vec![event])
    }
}

fn loop_event(rule: &Name, occurrence: &Occurrence, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("loop stopped: rule {rule} matches an event that it caused"),
        body: format!("Event: {}, {}.", occurrence.name, occurrence.id()),
        severity: Some(Severity::Warning),
        ..LOOP_STOPPED.event([rule.as_str()], now_ms)
    }
}

/// Returns the marker of a response that became unanswered or is no longer unanswered. The marker
/// has the form of the event that earlier versions reported for each response, before responses
/// were counted by policy. The marker is not ingested.
fn marker_event(of: &UnansweredNotice, now_ms: i64) -> IncomingEvent {
    let (rule, policy, id) = (&of.rule, &of.policy, of.occurrence.to_string());
    let policy = Value::Text(policy.to_string());
    IncomingEvent {
        metadata: [(POLICY_DIMENSION.to_owned(), policy)].into(),
        status: of.is_over.then_some(Status::Closed),
        ..IncomingEvent::new_own_event(
            NO_RESPONSE.name,
            NO_RESPONSE.kind,
            [("rule", rule.as_str()), ("occurrence", &id)],
            now_ms,
        )
    }
}

pub(crate) fn is_mark(of: &OwnEvent) -> bool {
    let dimensions = &of.event.dimensions;
    of.event.kind == NO_RESPONSE.kind && !dimensions.contains_key(POLICY_DIMENSION)
}
