//! Silences, which hold notifications temporarily.

use std::collections::BTreeMap;

use crate::domain::{EventId, Name, Query, RecordId};

#[derive(Debug, Clone, PartialEq)]
pub struct Silence {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub reason: String,
    /// The query that selects the covered events; `None` means all events that its rules match.
    pub query: Option<Query>,
    /// The rules to which the silence applies; empty means all. At least one of `rule_names` and
    /// `query` is set.
    pub rule_names: Vec<Name>,
    /// The destinations whose messages it holds; empty means all receivers.
    pub destination_names: Vec<Name>,
    /// Key-value pairs of its author, without meaning for the service.
    pub annotations: BTreeMap<String, String>,
    /// The calendar in whose windows the silence is active, between start and end; `None` means
    /// always.
    pub calendar: Option<Name>,
    pub start_ms: i64,
    /// The exclusive end, in milliseconds since 1970; [`NEVER_MS`] if there is none.
    pub end_ms: i64,
    /// Time after which the silence ends early if no open event is covered, in milliseconds. The
    /// time counts only after the silence has covered an event.
    pub expire_when_idle_ms: Option<i64>,
    /// Time before the end at which to warn, in milliseconds; `None` means the default.
    pub warn_before_ms: Option<i64>,
    /// The comments, oldest first.
    pub comments: Vec<Comment>,
    pub from_event: Option<EventId>,
    pub author: Name,
    pub last_editor: Name,
    /// The service's progress with the silence; not part of the revision.
    pub progress: Progress,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    pub author: Name,
    pub at_ms: i64,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The stage that the silence's own event reports.
    pub stage: Stage,
    /// The newest revision for which all open occurrences were scanned; 0 before the first scan.
    pub counted_revision: u64,
    pub has_covered: bool,
    /// Time since which the silence covers no open occurrence, after it has covered one, in
    /// milliseconds since 1970.
    pub idle_since_ms: Option<i64>,
}

/// The stage of a silence as reported by its event. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Stage {
    #[default]
    Unreported = 0,
    InForce = 1,
    EndsSoon = 2,
    Over = 3,
}

impl Stage {
    pub const ALL: [Self; 4] = [Self::Unreported, Self::InForce, Self::EndsSoon, Self::Over];
}

/// The state of a silence, with its numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceState {
    Scheduled = 1,
    Active = 2,
    Expired = 3,
}

/// The end of a silence that does not end.
pub const NEVER_MS: i64 = i64::MAX;

/// Upper limit of the default time before its end at which a silence warns, in milliseconds.
const WARN_BEFORE_MAX_MS: i64 = 15 * 60_000;

impl Silence {
    pub fn state_at(&self, now_ms: i64) -> SilenceState {
        if now_ms >= self.end_ms || self.progress.stage == Stage::Over {
            SilenceState::Expired
        } else if now_ms < self.start_ms {
            SilenceState::Scheduled
        } else {
            SilenceState::Active
        }
    }

    pub fn ends_ms(&self) -> Option<i64> {
        (self.end_ms != NEVER_MS).then_some(self.end_ms)
    }

    /// Returns the time at which to warn, in milliseconds since 1970; `None` if there is no
    /// warning.
    pub fn warning_ms(&self) -> Option<i64> {
        if self.calendar.is_some() {
            return None;
        }
        let length_ms = self.end_ms.saturating_sub(self.start_ms);
        let default_ms = WARN_BEFORE_MAX_MS.min(length_ms / 4);
        let before_ms = self.warn_before_ms.unwrap_or(default_ms);
        (before_ms > 0).then(|| self.end_ms.saturating_sub(before_ms))
    }

    /// Returns the time at which the silence ends for being idle, in milliseconds since 1970;
    /// `None` while it covers an open event, or if it does not end early.
    pub fn idle_ends_ms(&self) -> Option<i64> {
        let since_ms = self.progress.idle_since_ms?;
        Some(since_ms.saturating_add(self.expire_when_idle_ms?))
    }
}
