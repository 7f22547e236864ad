//! The reason why no tree is open.

use crate::error::EngineError;

#[derive(Debug, Clone)]
pub(super) struct ClosedReason {
    why: String,
    is_damaged: bool,
    /// Whether the store is about to be reopened.
    pub(super) is_passing: bool,
}

impl ClosedReason {
    pub(super) fn reopening() -> Self {
        Self {
            why: "reopening its file after an error".into(),
            is_damaged: false,
            is_passing: true,
        }
    }

    pub(super) fn closed() -> Self {
        Self {
            why: "it is closed".into(),
            is_damaged: false,
            is_passing: false,
        }
    }

    pub(super) fn from_error(error: EngineError) -> Self {
        let is_damaged = matches!(error, EngineError::Corrupt(_));
        let why = match error {
            EngineError::Corrupt(why) | EngineError::Unavailable(why) => why,
            other => other.to_string(),
        };
        Self {
            why,
            is_damaged,
            is_passing: false,
        }
    }
}

impl From<&ClosedReason> for EngineError {
    fn from(closed: &ClosedReason) -> Self {
        if closed.is_damaged {
            Self::Corrupt(closed.why.clone())
        } else {
            Self::Unavailable(closed.why.clone())
        }
    }
}
