//! Heartbeats: signals that are expected to repeat, and their state.

use std::collections::BTreeMap;

use crate::domain::{EventId, Name, Query, RecordId, Severity, hold::SharedValue};

/// Minimum interval between stored beats of a heartbeat with windows.
const STORED_APART_IN_WINDOWS_MS: i64 = 5_000;
/// Interval between flushes of beats that are not yet stored, in milliseconds.
pub const FLUSHED_EVERY_MS: i64 = 1_000;
pub const OUTAGES_MAX: usize = 32;
/// The identity of the service record, which stores the service time.
pub const SERVICE: RecordId = RecordId::from_bytes([0; 16]);
/// Maximum number of intervals between beats stored for an expectation.
pub const GAPS_MAX: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub struct Heartbeat {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    /// The query that selects the events that count as beats; `None` if only calls count.
    pub query: Option<Query>,
    /// The fields whose values distinguish expectations.
    pub by: Vec<String>,
    /// Maximum interval between beats, in milliseconds; 0 with a calendar or a cron expression.
    pub every_ms: i64,
    /// The calendar, in each window of which a beat is expected.
    pub calendar: Option<Name>,
    /// The cron expression of the times after which a beat is expected; empty if unused.
    pub cron: String,
    /// The time zone of the cron expression; empty for UTC.
    pub time_zone: String,
    /// Maximum duration of a run, in milliseconds; `None` means unlimited.
    pub max_run_ms: Option<i64>,
    pub grace_ms: i64,
    /// Time since the last beat after which a set of values is forgotten, in milliseconds.
    pub forget_ms: i64,
    pub event: HeartbeatEvent,
    /// The number of the current key of the URL; 0 before the first one.
    pub key_number: u32,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

/// The content of the event that a missing beat opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatEvent {
    /// The name; if empty, the name of the heartbeat.
    pub name: String,
    pub severity: Severity,
    /// A one-line summary; if empty, the default.
    pub summary: String,
    /// Dimensions in addition to `heartbeat` and the values.
    pub dimensions: BTreeMap<String, String>,
}

/// Durations returned by these methods are in milliseconds of service time: time during which the
/// service accepted events.
impl Heartbeat {
    /// Returns the time without a beat after which the heartbeat is late.
    pub fn allowed_silence_ms(&self) -> i64 {
        self.every_ms.saturating_add(self.grace_ms)
    }

    /// Returns the minimum interval between stored beats. Including the interval between flushes, a
    /// beat is stored within a tenth of `every` and half of `grace`, which bounds the loss in a
    /// crash.
    pub fn min_store_interval_ms(&self) -> i64 {
        let within_ms = if self.has_windows() {
            STORED_APART_IN_WINDOWS_MS
        } else {
            self.every_ms / 10
        };
        (within_ms.min(self.grace_ms / 2) - FLUSHED_EVERY_MS).max(0)
    }

    pub fn has_windows(&self) -> bool {
        self.calendar.is_some() || !self.cron.is_empty()
    }
}

/// A set of values for which beats are expected.
///
/// Times are stored both as wall-clock time for display and as service time: the milliseconds
/// during which the service has accepted events since its store was created. Service time is not
/// affected by outages or clock steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    pub heartbeat: RecordId,
    /// A digest of the heartbeat and the values.
    pub key: RecordId,
    pub values: Vec<SharedValue>,
    /// Time of the last beat, in milliseconds since 1970; `None` before the first beat.
    pub last_ms: Option<i64>,
    /// Service time of the last beat; before the first beat, the service time since which a beat is
    /// expected.
    pub beat_service_ms: i64,
    pub has_failed: bool,
    pub open: Option<OpenAlarm>,
    pub run: Option<HeartbeatRun>,
    /// Duration of the last completed run, in milliseconds of service time.
    pub run_ms: Option<i64>,
    /// The last intervals between stored beats, in milliseconds of service time, oldest first.
    pub gaps_ms: Vec<i64>,
    /// The window in which a beat is expected; only in the record of a whole heartbeat.
    pub window: Option<ExpectedWindow>,
    /// The newest outages of the service, oldest first; only in the service record.
    pub outages: Vec<Outage>,
}

/// A period during which the service accepted no events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Service time of the outage, in milliseconds.
    pub service_ms: i64,
    /// Length of the outage, in milliseconds; [`i64::MAX`] if unknown.
    pub down_ms: i64,
}

/// A run that was started and has not ended.
#[expect(clippy::struct_field_names, reason = "a name ends with its unit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeartbeatRun {
    /// Service time of the first start without an end, so that a run that keeps restarting becomes
    /// late.
    pub since_service_ms: i64,
    pub start_service_ms: i64,
    /// Time of the last start, in milliseconds since 1970.
    pub start_ms: i64,
}

/// A window that has started, and in which a beat is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedWindow {
    pub start_ms: i64,
    pub length_ms: i64,
    /// Service time at which the start was noticed.
    pub service_ms: i64,
    /// Extension at both ends after a recent clock step, in milliseconds.
    pub slack_ms: i64,
    /// Whether the late expectations of the window have been determined.
    pub is_over: bool,
}

impl ExpectedWindow {
    /// Returns the service time from which beats count.
    pub fn first_service_ms(&self) -> i64 {
        self.service_ms.saturating_sub(self.slack_ms)
    }

    pub fn end_service_ms(&self) -> i64 {
        let length_ms = self.length_ms.saturating_add(self.slack_ms);
        self.service_ms.saturating_add(length_ms)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenAlarm {
    pub event: EventId,
    /// Service time at which the event was opened.
    pub service_ms: i64,
    pub is_failure: bool,
    /// Whether the event has been opened, which must happen before any other change to it.
    pub is_reported: bool,
}

/// The state of an expectation, stored as the first byte of its key in the index of beats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectationState {
    /// The event is to be opened or closed.
    Unreported = 1,
    /// The expectation is late or has failed, and its event is open.
    Late = 2,
    Awaited = 3,
}

impl Expectation {
    /// Whether this is the service record, whose `beat_service_ms` is the service time stored at
    /// `last_ms`.
    pub fn is_service_record(&self) -> bool {
        self.heartbeat == SERVICE && self.key == SERVICE
    }

    /// Returns the state, without the parts that depend on the current time.
    pub fn static_state(&self) -> ExpectationState {
        match self.open {
            None if self.has_failed => ExpectationState::Unreported,
            None => ExpectationState::Awaited,
            Some(open) if open.is_reported && !self.is_resolved(open) => ExpectationState::Late,
            Some(_) => ExpectationState::Unreported,
        }
    }

    /// Whether a beat without a failure was received after the event was opened.
    pub fn is_resolved(&self, open: OpenAlarm) -> bool {
        !self.has_failed && (open.is_failure || self.beat_service_ms > open.service_ms)
    }

    /// Returns the expectation after a beat, which ends the last run. A beat received while the
    /// event is open counts as later than its opening, since the service time of another node may
    /// lag by some seconds.
    #[must_use]
    pub fn with_beat(&self, now_ms: i64, service_ms: i64, has_failed: bool) -> Self {
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

    /// Returns the expectation after the start of a run, which does not count as a beat.
    #[must_use]
    pub fn with_start(&self, now_ms: i64, service_ms: i64) -> Self {
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

    /// Returns the run in progress, whose start may make the expectation late. `None` if the
    /// expectation is already late or failed.
    pub fn run_in_progress(&self) -> Option<HeartbeatRun> {
        self.run
            .filter(|_| self.static_state() == ExpectationState::Awaited)
    }
}
