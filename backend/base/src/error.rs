//! Errors of operations, classified by the appropriate reaction of the caller.

mod failure_log;
mod status;

use std::time::Duration;

use bellwether_backend_engine::EngineError;
pub use bellwether_backend_model::violation::Violation;
use bellwether_backend_store::backup::BackupError;

pub use self::failure_log::log_failure;

/// The reason why an operation failed. The messages are for users.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{}", first_violation(.0))]
    Invalid(Vec<Violation>),
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    AlreadyExists(String),
    #[error(
        "the idempotency key was used for a request with another body; use a new key for each \
         request"
    )]
    KeyUsed,
    /// The state does not allow the operation; change the state first.
    #[error("{0}")]
    FailedPrecondition(String),
    /// The state does not allow the operation, for a reason that callers can distinguish.
    #[error("{message}")]
    Refused { reason: Reason, message: String },
    /// The resource was changed by another client; read it again and retry.
    #[error("{0}")]
    Aborted(String),
    #[error("{0}")]
    Unauthenticated(String),
    #[error("{0}")]
    PermissionDenied(String),
    #[error("{message}")]
    Exhausted {
        message: String,
        /// Time to wait before a retry; `None` if a retry cannot succeed.
        retry_after: Option<Duration>,
    },
    /// The service is temporarily unable to perform the operation, and made no change.
    #[error("{0}")]
    Unavailable(String),
    #[error(
        "the store failed while writing, so it is unknown whether the change was made; check \
         before you retry"
    )]
    Indeterminate(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("{0}")]
    Unimplemented(String),
    /// An internal error; the chain of sources is logged and not sent to the caller.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A machine-readable reason why the state does not allow an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The silence covers more than the author probably intended.
    SilenceTooBroad,
    SilenceExpired,
    InUse,
}

impl Error {
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation::new(field, description)])
    }
}

fn first_violation(violations: &[Violation]) -> String {
    match violations {
        [] => "the request is invalid".into(),
        [only] => format!("{}: {}", only.field, only.description),
        [first, rest @ ..] => {
            format!(
                "{}: {} (and {} more)",
                first.field,
                first.description,
                rest.len()
            )
        }
    }
}

impl From<BackupError> for Error {
    fn from(error: BackupError) -> Self {
        match error {
            BackupError::Store(error) => error.into(),
            BackupError::Overtaken => Self::Aborted(error.to_string()),
            BackupError::Foreign => Self::FailedPrecondition(error.to_string()),
            other => Self::Internal(Box::new(other)),
        }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Conflict(_) => {
                Self::Aborted("the resource was changed concurrently; try again".into())
            }
            EngineError::Unavailable(_) | EngineError::Full(_) => {
                Self::Unavailable(error.to_string())
            }
            EngineError::Indeterminate(_) => Self::Indeterminate(Box::new(error)),
            EngineError::Corrupt(_) | EngineError::Incomplete(_) => Self::Internal(Box::new(error)),
            EngineError::Forbidden(why) => Self::PermissionDenied(why),
        }
    }
}
