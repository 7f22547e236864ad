//! The changes of a step that matter to rules.

use crate::domain::Status;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transition {
    /// The previous status; `None` if the step opened the occurrence.
    pub from: Option<Status>,
    pub closed: bool,
}
