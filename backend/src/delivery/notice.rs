//! What the service says of its destinations, as events of its own.

use std::collections::BTreeMap;

use crate::domain::{Destination, IncomingEvent, Severity, Status, destination::pause_event};

/// A destination is paused.
pub(crate) fn paused(destination: &Destination, last_error: &str, now_ms: i64) -> IncomingEvent {
    let name = &destination.name;
    IncomingEvent {
        summary: format!("destination {name} is paused; its messages wait"),
        body: format!("{last_error}\nSaving the destination resumes it."),
        severity: Some(Severity::Error),
        status: Some(Status::Open),
        ..about(destination, now_ms)
    }
}

/// A destination is not paused any more.
pub(crate) fn resumed(destination: &Destination, now_ms: i64) -> IncomingEvent {
    IncomingEvent {
        summary: format!("destination {} is resumed", destination.name),
        status: Some(Status::Closed),
        ..about(destination, now_ms)
    }
}

fn about(destination: &Destination, now_ms: i64) -> IncomingEvent {
    let (name, dimensions) = pause_event(&destination.name);
    IncomingEvent {
        name: name.into(),
        kind: "destination-paused".into(),
        dimensions,
        metadata: BTreeMap::new(),
        summary: String::new(),
        body: String::new(),
        severity: None,
        status: None,
        acknowledged: None,
        timestamp_ms: now_ms,
    }
}
