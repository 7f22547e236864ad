//! Drills: scheduled tests of the way from an event to the acknowledgement of the person paged.

use std::collections::BTreeMap;

use crate::domain::{Content, EventId, Name, Occurrence, RecordId, Severity};

/// The dimension that marks the events of drills. Senders cannot use it.
pub const DRILL: &str = "bellwether_drill";
/// Maximum number of runs stored with a drill.
pub const RUNS_MAX: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drill {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    /// The cron expression of the runs; empty if unused.
    pub cron: String,
    /// The time zone of the cron expression; empty for UTC.
    pub time_zone: String,
    /// Interval between runs, in milliseconds; 0 if unused.
    pub every_ms: i64,
    pub event: DrillEvent,
    /// Time within which a run must be acknowledged, in milliseconds of service time.
    pub acknowledge_ms: i64,
    /// Severity of the event about a failed run.
    pub failed_severity: Severity,
    /// Time of the next run, in milliseconds since 1970; `None` without a schedule.
    pub due_ms: Option<i64>,
    /// The last [`RUNS_MAX`] runs, oldest first.
    pub runs: Vec<DrillRun>,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

/// The content of the event that a run opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillEvent {
    pub name: String,
    pub kind: String,
    pub severity: Severity,
    /// The summary after the mark of a drill; if empty, the default.
    pub summary: String,
    /// Dimensions in addition to [`DRILL`].
    pub dimensions: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrillRun {
    pub due_ms: i64,
    pub result: DrillResult,
    /// Time of the start, in milliseconds since 1970; `None` if the run was skipped.
    pub start_ms: Option<i64>,
    pub event: Option<EventId>,
    /// Service time from which the acknowledgement is awaited; `None` until the leader has seen the
    /// run.
    pub since_service_ms: Option<i64>,
    /// The client or user that acknowledged the event; empty if there is none.
    pub acknowledged_by: String,
    /// Time from the opening to the acknowledgement, in milliseconds.
    pub acknowledged_after_ms: Option<i64>,
    pub reason: String,
}

/// The result of a run. The numbers are stored on disk and used on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrillResult {
    Running = 1,
    Acknowledged = 2,
    Missed = 3,
    /// No one was paged.
    NotRouted = 4,
    /// A hold other than a delay kept the notification back.
    Silenced = 5,
    Skipped = 6,
}

impl DrillRun {
    pub fn new(due_ms: i64, result: DrillResult, reason: &str) -> Self {
        Self {
            due_ms,
            result,
            start_ms: None,
            event: None,
            since_service_ms: None,
            acknowledged_by: String::new(),
            acknowledged_after_ms: None,
            reason: reason.to_owned(),
        }
    }
}

impl Drill {
    pub fn push_run(&mut self, run: DrillRun) {
        let too_many = (self.runs.len() + 1).saturating_sub(RUNS_MAX);
        self.runs.drain(..too_many);
        self.runs.push(run);
    }

    /// Returns the run in progress. A run that is due while another one is in progress is skipped,
    /// so the run in progress is not always the last one.
    pub fn running(&self) -> Option<&DrillRun> {
        let mut runs = self.runs.iter();
        runs.find(|it| it.result == DrillResult::Running)
    }

    pub fn running_mut(&mut self) -> Option<&mut DrillRun> {
        let mut runs = self.runs.iter_mut();
        runs.find(|it| it.result == DrillResult::Running)
    }
}

impl Occurrence {
    /// Whether a drill opened the event. Such events are not counted.
    pub fn is_drill(&self) -> bool {
        self.dimensions.contains_key(DRILL)
    }
}

impl Content {
    /// Whether the message reports only the event of a drill.
    pub fn is_drill(&self) -> bool {
        self.group.is_none() && self.digest.is_none() && self.occurrence.is_drill()
    }
}
