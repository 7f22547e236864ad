//! Heartbeats: signals that are expected to repeat, and what is known of each.

use std::collections::BTreeMap;

use crate::domain::{EventId, Name, Query, RecordId, Severity, hold::SharedValue};

/// The least time between two beats that are stored of a heartbeat with a calendar, in milliseconds.
const STORED_APART_IN_WINDOWS_MS: i64 = 5_000;
/// Time between two flushes of beats that are not stored yet, in milliseconds.
pub const FLUSHED_EVERY_MS: i64 = 1_000;
/// Outages of which the record of the time of service has a note.
pub const OUTAGES_MAX: usize = 32;
/// The identity under which the time of service is stored, beside what heartbeats expect.
pub const SERVICE: RecordId = RecordId::from_bytes([0; 16]);
/// Times between beats that are kept of an expectation.
pub const GAPS_MAX: usize = 20;

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
    /// The longest time between two beats, in milliseconds; 0 with a calendar or a cron expression.
    pub every_ms: i64,
    /// The calendar in each window of which a beat is expected.
    pub calendar: Option<Name>,
    /// The cron expression of the times after which a beat is expected; empty if there is none.
    pub cron: String,
    /// The time zone of the cron expression; empty for UTC.
    pub time_zone: String,
    /// The longest time between the start of a run and its end, in milliseconds; none for any.
    pub max_run_ms: Option<i64>,
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
    /// Time of the last edit, in milliseconds since 1970.
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

    /// The least time between two beats that are stored: with the time until the next flush, a beat is stored
    /// within a tenth of the time between two and half of the grace. A crash loses no more.
    pub fn stored_apart_ms(&self) -> i64 {
        let within_ms = if self.has_windows() {
            STORED_APART_IN_WINDOWS_MS
        } else {
            self.every_ms / 10
        };
        (within_ms.min(self.grace_ms / 2) - FLUSHED_EVERY_MS).max(0)
    }

    /// Whether beats are expected in windows: of a calendar, or of a cron expression.
    pub fn has_windows(&self) -> bool {
        self.calendar.is_some() || !self.cron.is_empty()
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
    /// What was started and has not ended.
    pub run: Option<HeartbeatRun>,
    /// How long the last run took that ended, in milliseconds of service.
    pub run_ms: Option<i64>,
    /// The last times between two stored beats, in milliseconds of service, the oldest first.
    pub gaps_ms: Vec<i64>,
    /// The window in which a beat is expected; of what belongs to a whole heartbeat.
    pub window: Option<ExpectedWindow>,
    /// The newest outages of the service, the oldest first; of the record of the time of service.
    pub outages: Vec<Outage>,
}

/// A time in which the service accepted no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// The time of service at which it began and ended, in milliseconds.
    pub service_ms: i64,
    /// Its length, in milliseconds; [`i64::MAX`] if not known.
    pub away_ms: i64,
}

/// A run that was started and has not ended. Its times are those of service.
#[expect(clippy::struct_field_names, reason = "a name ends with its unit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatRun {
    /// When the first start was that no end followed: a run that never ends is late from then on.
    pub since_service_ms: i64,
    /// When the last start was, in time of service.
    pub start_service_ms: i64,
    /// The same, in milliseconds since 1970.
    pub start_ms: i64,
}

/// A window of a calendar that began, and in which a beat is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedWindow {
    /// Its start, in milliseconds since 1970.
    pub start_ms: i64,
    /// How long it is, in milliseconds.
    pub length_ms: i64,
    /// When its start was noticed, in time of service.
    pub service_ms: i64,
    /// By how much it is wider at both ends, since the clock was set shortly before.
    pub slack_ms: i64,
    /// Whether it was decided who is late in it.
    pub is_over: bool,
}

impl ExpectedWindow {
    /// Beats from then on count, in time of service.
    pub fn first_service_ms(&self) -> i64 {
        self.service_ms.saturating_sub(self.slack_ms)
    }

    /// When it ends, in time of service.
    pub fn end_service_ms(&self) -> i64 {
        let length_ms = self.length_ms.saturating_add(self.slack_ms);
        self.service_ms.saturating_add(length_ms)
    }
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
    /// Whether it is the record of the time of service: `beat_service_ms` was stored at `last_ms`.
    pub fn is_of_service(&self) -> bool {
        self.heartbeat == SERVICE && self.key == SERVICE
    }

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

    /// The same after a beat, which ends the run that was started last. One that comes while the event is
    /// open came after that was opened: another node may know a time of service that is some seconds behind.
    #[must_use]
    pub fn beaten(&self, now_ms: i64, service_ms: i64, has_failed: bool) -> Self {
        let mut next = self.clone();
        let gap_ms = service_ms.saturating_sub(self.beat_service_ms);
        if self.last_ms.is_some() && gap_ms > 0 {
            let more = (next.gaps_ms.len() + 1).saturating_sub(GAPS_MAX);
            next.gaps_ms.drain(..more);
            next.gaps_ms.push(gap_ms);
        }
        if let Some(run) = next.run.take() {
            next.run_ms = Some(service_ms.saturating_sub(run.start_service_ms).max(0));
        }
        next.last_ms = Some(now_ms);
        let opened_ms = self.open.map_or(i64::MIN, |open| open.service_ms);
        let least_ms = self.beat_service_ms.max(opened_ms.saturating_add(1));
        next.beat_service_ms = least_ms.max(service_ms);
        next.has_failed = has_failed;
        next
    }

    /// The same after the start of a run, which is no beat.
    #[must_use]
    pub fn started(&self, now_ms: i64, service_ms: i64) -> Self {
        let since_service_ms = self.run.map_or(service_ms, |it| it.since_service_ms);
        Self {
            run: Some(HeartbeatRun {
                since_service_ms,
                start_service_ms: service_ms,
                start_ms: now_ms,
            }),
            ..self.clone()
        }
    }

    /// What has just begun to run, and is late by its start; none while something is wrong already.
    pub fn running(&self) -> Option<HeartbeatRun> {
        self.run.filter(|_| self.standing() == Standing::Awaited)
    }
}
