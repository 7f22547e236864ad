//! Rules, which connect triggers to destinations.

use crate::domain::{FlappingLimits, Name, RecordId, TemplateLanguage};

pub const REPEAT_INTERVAL_SECONDS_DEFAULT: u32 = 3600;

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct Rule {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub enabled: bool,
    /// The triggers, without duplicates, in the author's order.
    pub trigger_names: Vec<Name>,
    /// The destinations, without duplicates, in the author's order.
    pub destination_names: Vec<Name>,
    /// The policy that notifies further receivers until someone acknowledges.
    pub escalation_policy: Option<Name>,
    /// The template of the message; empty means the default of the destination.
    pub message: String,
    pub template_language: TemplateLanguage,
    /// Whether later matches of the same occurrence notify again.
    pub repeat: bool,
    /// Minimum number of seconds between repeats; 0 means every match.
    pub repeat_interval_seconds: u32,
    /// Whether a close, an acknowledgement or a change of severity notifies again.
    pub send_updates: bool,
    /// Delay from the first match of an occurrence to its notification, in milliseconds; 0 means
    /// none.
    pub delay_ms: i64,
    /// Delay for events that usually close without action within this time, in milliseconds; 0
    /// means none.
    pub auto_pause_ms: i64,
    /// The calendar in whose windows the rule sends openings; `None` means always.
    pub active_calendar: Option<Name>,
    /// Grouping of occurrences into one message; `None` means a message for each.
    pub group: Option<Grouping>,
    /// The limits above which an event is flapping; `None` disables detection.
    pub flapping: Option<FlappingLimits>,
    /// Whether the rule only records the messages that it would send.
    pub shadow: bool,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grouping {
    /// The fields, named as in queries, whose values the occurrences of a group share.
    pub by: Vec<String>,
    /// Delay of the first message, to collect occurrences, in milliseconds.
    pub wait_ms: i64,
    /// Minimum interval between messages, in milliseconds.
    pub interval_ms: i64,
}
