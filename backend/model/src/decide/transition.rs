//! What a step changed of an occurrence, as far as rules care.

use crate::domain::{LastNotified, Status};

/// What a step changed of an occurrence, as far as rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transition {
    /// The status before; none when the step opened the occurrence.
    pub from: Option<Status>,
    /// What receivers were notified of before, if they were notified; none when the step opened the
    /// occurrence.
    pub before: Option<LastNotified>,
    /// Whether the severity is another one.
    pub severity_changed: bool,
    /// Whether it is acknowledged and was not before, or the other way round.
    pub acknowledgement_changed: bool,
    /// Whether it is closed and was not before.
    pub closed: bool,
}
