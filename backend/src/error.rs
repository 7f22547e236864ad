//! What can go wrong with an operation, by what the caller should do about it.

mod failure_log;

use std::time::Duration;

use bellwether_backend_engine::EngineError;
pub use bellwether_backend_model::violation::Violation;

pub use self::failure_log::log_failure;

/// Why an operation was not carried out. The message of each kind is for people.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is wrong: fix the fields and send it again.
    #[error("{}", first_violation(.0))]
    Invalid(Vec<Violation>),
    /// What is asked for does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The name is taken.
    #[error("{0}")]
    AlreadyExists(String),
    /// The idempotency key was used for another request: take a new one.
    #[error(
        "the idempotency key was used for a request with another body; use a new key for each \
         request"
    )]
    KeyUsed,
    /// The state does not allow it: change that first.
    #[error("{0}")]
    FailedPrecondition(String),
    /// The state does not allow it, for a reason that callers tell from others.
    #[error("{message}")]
    Refused {
        /// Which reason.
        reason: Reason,
        /// A message for people.
        message: String,
    },
    /// Another client changed it meanwhile: read it again and re-evaluate.
    #[error("{0}")]
    Aborted(String),
    /// No key, or a wrong one.
    #[error("{0}")]
    Unauthenticated(String),
    /// The key's role does not allow it.
    #[error("{0}")]
    PermissionDenied(String),
    /// A limit is reached: come back later.
    #[error("{message}")]
    Exhausted {
        /// What is exhausted.
        message: String,
        /// When to come back; none when waiting does not help.
        retry_after: Option<Duration>,
    },
    /// The service cannot do it now; nothing was changed.
    #[error("{0}")]
    Unavailable(String),
    /// The store failed while it wrote: whether it was carried out is not known.
    #[error(
        "the store failed while writing, so it is unknown whether this was done; check before you \
         retry"
    )]
    Indeterminate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The service does not do this.
    #[error("{0}")]
    Unimplemented(String),
    /// The fault is the service's; the chain of sources goes to the log, not to the caller.
    #[error("the service has an internal fault")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Why the state does not allow something, where callers have to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The silence covers more than is likely to be meant.
    SilenceTooBroad,
    /// The silence is over.
    SilenceExpired,
    /// Something uses it.
    InUse,
}

impl Error {
    /// One wrong field.
    pub fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation::new(field, description)])
    }
}

fn first_violation(violations: &[Violation]) -> String {
    match violations {
        [] => "the request is not valid".into(),
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

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Conflict(_) => {
                Self::Aborted("it was changed concurrently; try again".into())
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
