//! Rules: what joins triggers to destinations.

use crate::domain::{FlappingLimits, Name, RecordId, TemplateLanguage};

/// Seconds between repeats when a rule states none.
pub const REPEAT_INTERVAL_SECONDS_DEFAULT: u32 = 3600;

/// Joins triggers to destinations with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are independent of each other"
)]
pub struct Rule {
    /// Distinguishes it from an earlier rule of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// Whether it notifies.
    pub enabled: bool,
    /// The triggers, without repeats, in the author's order.
    pub trigger_names: Vec<Name>,
    /// The destinations, without repeats, in the author's order.
    pub destination_names: Vec<Name>,
    /// Who is notified beside them, and who next if no one acknowledges.
    pub escalation_policy: Option<Name>,
    /// The message's template; empty means the destination's default.
    pub message: String,
    /// The language of that template.
    pub template_language: TemplateLanguage,
    /// Whether later matches of the same occurrence notify again.
    pub repeat: bool,
    /// Seconds that must pass before a repeat; 0 means every match.
    pub repeat_interval_seconds: u32,
    /// Whether closing, acknowledging or a change of severity notifies again.
    pub send_updates: bool,
    /// How long it waits from the first match of an occurrence before it notifies, in milliseconds; 0
    /// for not at all.
    pub delay_ms: i64,
    /// How long it waits where the event mostly closes automatically within that time, in
    /// milliseconds; 0 for not at all.
    pub auto_pause_ms: i64,
    /// The calendar inside whose windows it notifies of openings; none for at any time.
    pub active_calendar: Option<Name>,
    /// How it gathers occurrences into one message; none for a message each.
    pub group: Option<Grouping>,
    /// When it takes an event for flapping; none for never.
    pub flapping: Option<FlappingLimits>,
    /// Whether it only records what it would send.
    pub shadow: bool,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// How a rule gathers occurrences into one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouping {
    /// The fields, named as in queries, whose values the occurrences of a group share.
    pub by: Vec<String>,
    /// How long the first message waits for more, in milliseconds.
    pub wait_ms: i64,
    /// How long after a message the next one goes out at the earliest, in milliseconds.
    pub interval_ms: i64,
}
