//! Heartbeats: signals that are expected to repeat, and what is known of each.

use std::collections::BTreeMap;

use crate::domain::{EventId, Name, Query, RecordId, Severity, hold::SharedValue};

/// A signal that is expected to repeat.
#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    /// Distinguishes it from an earlier heartbeat of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Whether beats are expected.
    pub enabled: bool,
    /// The events that are beats; none where only calls are.
    pub query: Option<Query>,
    /// The fields whose values distinguish beats.
    pub by: Vec<String>,
    /// The longest time between two beats, in milliseconds.
    pub every_ms: i64,
    /// How much later a beat may be, in milliseconds.
    pub grace_ms: i64,
    /// How long after its last beat a set of values is expected, in milliseconds.
    pub forget_ms: i64,
    /// The event that a missing beat opens.
    pub event: HeartbeatEvent,
    /// Which of the keys that were made for its address is current; 0 before the first.
    pub key_number: u32,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// When it was edited last, in milliseconds since 1970.
    pub update_ms: i64,
}

/// What the event of a missing beat holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatEvent {
    /// Its name; empty for that of the heartbeat.
    pub name: String,
    /// How bad it is.
    pub severity: Severity,
    /// One line for people; empty for a sentence of the service's.
    pub summary: String,
    /// Dimensions beside `heartbeat` and the values.
    pub dimensions: BTreeMap<String, String>,
}

/// How long a heartbeat may be silent, in milliseconds of the time in which the service accepted events.
impl Heartbeat {
    /// Time without a beat after which it is late.
    pub fn silence_ms(&self) -> i64 {
        self.every_ms.saturating_add(self.grace_ms)
    }

    /// The least time between two beats that are stored.
    pub fn stored_apart_ms(&self) -> i64 {
        self.every_ms / 10
    }
}

/// A set of values of which beats are expected.
///
/// Its times are read twice: for people, and in the milliseconds in which the service accepted events
/// since its store was made, which neither an outage nor a step of the clock moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// The heartbeat, by identity.
    pub heartbeat: RecordId,
    /// A digest of the heartbeat and the values.
    pub key: RecordId,
    /// What the fields of the heartbeat held.
    pub values: Vec<SharedValue>,
    /// When the last beat was, in milliseconds since 1970; none before the first.
    pub last_ms: Option<i64>,
    /// The same in time of service, or when it was first expected.
    pub beat_service_ms: i64,
    /// Whether the last beat reported a failure.
    pub has_failed: bool,
    /// The event that is open about it.
    pub open: Option<OpenAlarm>,
}

/// That an event is open about a missing beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenAlarm {
    /// The event.
    pub event: EventId,
    /// When it was opened, in time of service.
    pub service_ms: i64,
    /// Whether a failure opened it.
    pub is_failure: bool,
    /// Whether the event was opened; it is to be before anything else happens to it.
    pub is_reported: bool,
}

/// How an expectation stands: the first byte of its place in the order of beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// An event is to be opened or closed.
    Unreported = 1,
    /// It is late or has failed, and its event is open.
    Late = 2,
    /// A beat is awaited.
    Awaited = 3,
}

impl Expectation {
    /// How it stands, as far as that does not follow from the time.
    pub fn standing(&self) -> Standing {
        match self.open {
            None if self.has_failed => Standing::Unreported,
            None => Standing::Awaited,
            Some(open) if open.is_reported && !self.is_resolved(open) => Standing::Late,
            Some(_) => Standing::Unreported,
        }
    }

    /// Whether a beat without a failure came after its event was opened.
    pub fn is_resolved(&self, open: OpenAlarm) -> bool {
        !self.has_failed && (open.is_failure || self.beat_service_ms > open.service_ms)
    }

    /// The same after a beat.
    #[must_use]
    pub fn beaten(&self, now_ms: i64, service_ms: i64, has_failed: bool) -> Self {
        Self {
            last_ms: Some(now_ms),
            beat_service_ms: self.beat_service_ms.max(service_ms),
            has_failed,
            ..self.clone()
        }
    }
}
