//! The events that missing beats open, and how they are closed.

use crate::{
    domain::{EventId, Expectation, Heartbeat, IncomingEvent, Report, Status, hold::SharedValue},
    error::Error,
    ops::{deciding::Deciding, find, heartbeat::NAMED, intake::Intake},
};

/// The kind of such events.
const KIND: &str = "heartbeat";
/// Characters of a summary.
const SUMMARY_CHARACTERS_MAX: usize = 250;

/// The event that is open while a beat is missing.
pub(super) fn event(heartbeat: &Heartbeat, expected: &Expectation, now_ms: i64) -> IncomingEvent {
    let template = &heartbeat.event;
    let mut dimensions = template.dimensions.clone();
    for (field, value) in &expected.values {
        let key = field.rsplit_once('.').map_or(&**field, |(_, key)| key);
        if let Some(value) = value.as_ref().filter(|it| !it.is_empty()) {
            dimensions.insert(key.to_owned(), value.clone());
        }
    }
    dimensions.insert(NAMED.to_owned(), heartbeat.name.to_string());
    let name = match &*template.name {
        "" => heartbeat.name.as_str(),
        name => name,
    };
    let summary = match &*template.summary {
        "" => sentence(heartbeat, expected),
        summary => summary.to_owned(),
    };
    IncomingEvent {
        name: name.to_owned(),
        kind: KIND.to_owned(),
        dimensions,
        metadata: crate::domain::value::Fields::new(),
        summary: summary.chars().take(SUMMARY_CHARACTERS_MAX).collect(),
        body: String::new(),
        severity: Some(template.severity),
        status: Some(Status::Open),
        acknowledged: None,
        timestamp_ms: now_ms,
        expire_ms: None,
        report: Report::default(),
    }
}

fn sentence(heartbeat: &Heartbeat, expected: &Expectation) -> String {
    let whose = match texts(&expected.values) {
        values if values.is_empty() => heartbeat.name.to_string(),
        values => format!("{} ({values})", heartbeat.name),
    };
    let last = expected.last_ms.map(crate::decide::condition::moment);
    match (expected.has_failed, last) {
        (true, _) => format!("{whose} reported a failure"),
        (false, Some(last)) => format!("no beat of {whose} since {last}"),
        (false, None) => format!("no beat of {whose} yet"),
    }
}

fn texts(values: &[SharedValue]) -> String {
    let values = values.iter();
    let texts = values.filter_map(|(name, value)| Some(format!("{name}={}", value.as_ref()?)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Closes an event, if it is open.
///
/// # Errors
/// Those of the store and the intake.
pub(super) async fn close(
    deciding: &Deciding,
    intake: &Intake,
    event: EventId,
    why: &str,
) -> Result<(), Error> {
    let newest = find::newest(&deciding.store, event).await?;
    let Some(open) = newest.filter(|it| it.status != Status::Closed) else {
        return Ok(());
    };
    let closing = IncomingEvent {
        name: open.name,
        kind: open.kind,
        dimensions: open.dimensions,
        metadata: open.metadata,
        summary: format!("closed: {why}"),
        body: String::new(),
        severity: None,
        status: Some(Status::Closed),
        acknowledged: None,
        timestamp_ms: deciding.clock.now_ms(),
        expire_ms: None,
        report: Report::default(),
    };
    intake.submit_internal(closing, Vec::new()).await?;
    Ok(())
}
