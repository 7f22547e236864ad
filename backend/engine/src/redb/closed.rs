//! The reason why no tree is open.

use crate::error::EngineError;

#[derive(Debug, Clone)]
pub(super) struct Closed {
    why: String,
    is_damaged: bool,
    /// Whether the store is about to be reopened.
    pub(super) is_passing: bool,
}

impl Closed {
    pub(super) fn while_reopening() -> Self {
        Self {
            why: "reopening its file after an error".into(),
            is_damaged: false,
            is_passing: true,
        }
    }

    pub(super) fn after_close() -> Self {
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

impl From<&Closed> for EngineError {
    fn from(closed: &Closed) -> Self {
        if closed.is_damaged {
            Self::Corrupt(closed.why.clone())
        } else {
            Self::Unavailable(closed.why.clone())
        }
    }
}
