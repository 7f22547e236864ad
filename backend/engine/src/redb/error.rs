//! Internal errors, and their meaning for callers.

use std::io::{self, ErrorKind};

use super::closed::ClosedReason;
use crate::error::EngineError;

#[derive(Debug)]
pub(super) enum Failure {
    /// Concerns only the request; the file is intact.
    Request(EngineError),
    Closed(ClosedReason),
    /// Concerns the file: it accepts no writes until it is reopened.
    File(redb::Error),
}

impl Failure {
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Request(error) => matches!(error, EngineError::Full(_)),
            Self::File(redb::Error::Io(error)) => {
                matches!(
                    error.kind(),
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded
                )
            }
            _ => false,
        }
    }
}

impl From<Failure> for EngineError {
    /// Valid for reads, and for writes whose commit was not started.
    fn from(failure: Failure) -> Self {
        let is_full = failure.is_full();
        match failure {
            Failure::Request(error) => error,
            Failure::Closed(closed) => Self::from(&closed),
            Failure::File(error) if is_full => Self::Full(error.to_string()),
            Failure::File(redb::Error::Corrupted(why)) => Self::Corrupt(why),
            Failure::File(redb::Error::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                Self::Corrupt(error.to_string())
            }
            Failure::File(redb::Error::PreviousIo | redb::Error::DatabaseClosed) => {
                Self::Unavailable("reopening its file after an error".into())
            }
            Failure::File(error) => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Request(error)
    }
}

impl From<ClosedReason> for Failure {
    fn from(closed: ClosedReason) -> Self {
        Self::Closed(closed)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::File(redb::Error::Io(error))
    }
}

impl From<redb::StorageError> for Failure {
    fn from(error: redb::StorageError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::TableError> for Failure {
    fn from(error: redb::TableError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::TransactionError> for Failure {
    fn from(error: redb::TransactionError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::CommitError> for Failure {
    fn from(error: redb::CommitError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::DatabaseError> for Failure {
    fn from(error: redb::DatabaseError) -> Self {
        Self::File(error.into())
    }
}
