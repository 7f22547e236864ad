//! Internal errors, and what they mean for callers.

use std::io::{self, ErrorKind};

use super::closed::Closed;
use crate::fault::EngineError;

/// A failed read or write.
#[derive(Debug)]
pub(super) enum Fault {
    /// Concerns only the request; the file is intact.
    Asked(EngineError),
    Closed(Closed),
    /// Concerns the file: it accepts no writes until it is reopened.
    File(redb::Error),
}

impl Fault {
    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Asked(error) => matches!(error, EngineError::Full(_)),
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

impl From<Fault> for EngineError {
    /// Valid for reads, and for writes whose commit was not started.
    fn from(fault: Fault) -> Self {
        let is_full = fault.is_full();
        match fault {
            Fault::Asked(error) => error,
            Fault::Closed(closed) => Self::from(&closed),
            Fault::File(error) if is_full => Self::Full(error.to_string()),
            Fault::File(redb::Error::Corrupted(why)) => Self::Corrupt(why),
            Fault::File(redb::Error::Io(error)) if error.kind() == ErrorKind::InvalidData => {
                Self::Corrupt(error.to_string())
            }
            Fault::File(redb::Error::PreviousIo | redb::Error::DatabaseClosed) => {
                Self::Unavailable("its file is being reopened after an error".into())
            }
            Fault::File(error) => Self::Unavailable(error.to_string()),
        }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self::Asked(error)
    }
}

impl From<Closed> for Fault {
    fn from(closed: Closed) -> Self {
        Self::Closed(closed)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::File(redb::Error::Io(error))
    }
}

impl From<redb::StorageError> for Fault {
    fn from(error: redb::StorageError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::TableError> for Fault {
    fn from(error: redb::TableError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::TransactionError> for Fault {
    fn from(error: redb::TransactionError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::CommitError> for Fault {
    fn from(error: redb::CommitError) -> Self {
        Self::File(error.into())
    }
}

impl From<redb::DatabaseError> for Fault {
    fn from(error: redb::DatabaseError) -> Self {
        Self::File(error.into())
    }
}
