//! Opens and closes events about missing beats.

use crate::{
    decide::{AlarmFacts, LoadedHeartbeat},
    decision_context::DecisionContext,
    domain::{EventId, Expectation, IncomingEvent, Report, Status},
    error::Error,
    find,
    intake::Intake,
};

const KIND: &str = "heartbeat";

pub(super) fn alarm_event(
    loaded: &LoadedHeartbeat,
    expected: &Expectation,
    facts: AlarmFacts,
    now_ms: i64,
) -> IncomingEvent {
    let heartbeat = &loaded.heartbeat;
    let rendered = loaded.alarm_texts().render(heartbeat, expected, facts);
    IncomingEvent {
        name: rendered.name,
        kind: KIND.to_owned(),
        dimensions: rendered.dimensions,
        metadata: crate::domain::value::Fields::new(),
        summary: rendered.summary,
        body: String::new(),
        severity: Some(heartbeat.event.severity),
        status: Some(Status::Open),
        acknowledged: None,
        timestamp_ms: now_ms,
        expire_ms: None,
        report: Report::default(),
    }
}

pub(super) async fn close_alarm(
    deciding: &DecisionContext,
    intake: &Intake,
    event: EventId,
    why: &str,
) -> Result<(), Error> {
    let newest = find::newest_occurrence(&deciding.store, event).await?;
    let Some(open) = newest.filter(|it| it.status != Status::Closed) else {
        return Ok(());
    };
    let now_ms = deciding.clock.now_ms();
    let closing = open.closing_event(format!("closed: {why}"), now_ms);
    intake.submit_internal(closing, Vec::new()).await?;
    Ok(())
}
