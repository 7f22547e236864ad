//! Silences: what they cover is held back for a while.

use std::collections::BTreeMap;

use crate::domain::{EventId, Name, Query, RecordId, own_dimensions};

/// Holds back what rules would send of the events it covers.
#[derive(Debug, Clone, PartialEq)]
pub struct Silence {
    /// Distinguishes it from an earlier silence of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Why there is quiet.
    pub reason: String,
    /// The events it covers; none means all that its rules match.
    pub query: Option<Query>,
    /// The rules it covers; none means all. Not both are empty.
    pub rule_names: Vec<Name>,
    /// The calendar inside whose windows it holds, within its bounds; none for all the time.
    pub calendar: Option<Name>,
    /// The first moment at which it holds, in milliseconds since 1970.
    pub start_ms: i64,
    /// The first moment at which it does not any more, in milliseconds since 1970; [`NEVER_MS`] when
    /// no time ends it.
    pub end_ms: i64,
    /// Ends early when it covered something open and then nothing for that long, in milliseconds.
    pub expire_when_idle_ms: Option<i64>,
    /// How long before its end it warns, in milliseconds; none means the default.
    pub warn_before_ms: Option<i64>,
    /// Notes, oldest first.
    pub comments: Vec<Comment>,
    /// The event it was made from.
    pub from_event: Option<EventId>,
    /// The client that made it.
    pub author: Name,
    /// The client that edited it last.
    pub last_editor: Name,
    /// What the service has done about it; no part of its revision.
    pub progress: Progress,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// A note on a silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// The client that wrote it.
    pub author: Name,
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The text.
    pub text: String,
}

/// What the service has done about a silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// What its own event says.
    pub stage: Stage,
    /// The revision for which everything open was scanned; 0 for none.
    pub counted_revision: u64,
    /// Whether it has covered something open.
    pub has_covered: bool,
    /// Since when it covers nothing that is open, having covered something, in milliseconds since
    /// 1970.
    pub idle_since_ms: Option<i64>,
}

/// How far the event that reports on a silence is. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Stage {
    /// Nothing was reported yet.
    #[default]
    Unsaid = 0,
    /// It is in force.
    InForce = 1,
    /// It is in force, and ends soon.
    EndsSoon = 2,
    /// It is over.
    Over = 3,
}

impl Stage {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Unsaid, Self::InForce, Self::EndsSoon, Self::Over];
}

/// Where a silence stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilenceState {
    /// It has not begun.
    Scheduled,
    /// It holds.
    Active,
    /// It is over for good.
    Expired,
}

/// The end of what no time ends.
pub const NEVER_MS: i64 = i64::MAX;

/// The longest time before its end at which a silence warns automatically.
const WARN_BEFORE_MAX_MS: i64 = 15 * 60_000;

impl Silence {
    /// Where it stands at a moment.
    pub fn state(&self, now_ms: i64) -> SilenceState {
        if now_ms >= self.end_ms || self.progress.stage == Stage::Over {
            SilenceState::Expired
        } else if now_ms < self.start_ms {
            SilenceState::Scheduled
        } else {
            SilenceState::Active
        }
    }

    /// When it ends, in milliseconds since 1970; none when no time ends it.
    pub fn ends_ms(&self) -> Option<i64> {
        (self.end_ms != NEVER_MS).then_some(self.end_ms)
    }

    /// When it warns of its end, in milliseconds since 1970; none when it does not.
    pub fn warns_ms(&self) -> Option<i64> {
        if self.calendar.is_some() {
            return None;
        }
        let length_ms = self.end_ms.saturating_sub(self.start_ms);
        let default_ms = WARN_BEFORE_MAX_MS.min(length_ms / 4);
        let before_ms = self.warn_before_ms.unwrap_or(default_ms);
        (before_ms > 0).then(|| self.end_ms.saturating_sub(before_ms))
    }

    /// When it ends for having covered nothing for long enough, in milliseconds since 1970; none
    /// while it covers something, or when it does not end so.
    pub fn idle_ends_ms(&self) -> Option<i64> {
        let since_ms = self.progress.idle_since_ms?;
        Some(since_ms.saturating_add(self.expire_when_idle_ms?))
    }
}

/// Name and kind of the service's own events that report on silences.
pub const SILENCE_KIND: &str = "silence";

/// Name and dimensions of the service's own event that reports on a silence.
pub fn own_event(silence: &Name) -> (&'static str, BTreeMap<String, String>) {
    let dimensions = own_dimensions([("silence", silence.as_str())]);
    (SILENCE_KIND, dimensions)
}
