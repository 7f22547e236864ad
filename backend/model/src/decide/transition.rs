//! What a step changed of an occurrence, as far as rules care.

use crate::domain::Status;

/// What a step changed of an occurrence, as far as rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transition {
    /// The status before; none when the step opened the occurrence.
    pub from: Option<Status>,
    /// Whether it is closed and was not before.
    pub closed: bool,
}
