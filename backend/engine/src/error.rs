//! Errors of engines.

use super::{index::Index, kind::Kind};

pub type RecordName = (Kind, Vec<u8>);

/// An error of an engine, classified by what the caller may conclude.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An expectation was not met, and the set was not written. The caller should read and decide
    /// again. The list names the records that were not as expected, or whose index entries already
    /// exist. It is empty if they are unknown, or if a definition that the set depends on was
    /// changed.
    #[error("a record was changed concurrently")]
    Conflict(Vec<RecordName>),
    /// The set was not written, because the queue is full or the engine is closed.
    #[error("the store is currently not writable: {0}")]
    Unavailable(String),
    /// The set was not written, because the disk is full. Deletes and small changes may still
    /// succeed.
    #[error("the disk is full: {0}")]
    Full(String),
    #[error("the outcome of a write is unknown")]
    Indeterminate(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A part of the stored data is missing, including the latest confirmed writes.
    #[error("the store is incomplete: {0}")]
    Incomplete(String),
    /// The set was not written, because the client is not allowed to make the change.
    #[error("{0}")]
    Forbidden(String),
}

impl EngineError {
    pub(super) fn missing_entry(index: Index) -> Self {
        Self::Corrupt(format!("an entry of {index:?} is missing"))
    }

    pub(super) fn dangling_entry(index: Index) -> Self {
        Self::Corrupt(format!("an entry of {index:?} refers to a missing record"))
    }

    pub fn conflict() -> Self {
        Self::Conflict(Vec::new())
    }

    #[must_use]
    pub fn copy_for_caller(&self) -> Self {
        match self {
            Self::Conflict(records) => Self::Conflict(records.clone()),
            Self::Unavailable(text) => Self::Unavailable(text.clone()),
            Self::Full(text) => Self::Full(text.clone()),
            Self::Indeterminate(source) => Self::Indeterminate(source.to_string().into()),
            Self::Corrupt(text) => Self::Corrupt(text.clone()),
            Self::Incomplete(text) => Self::Incomplete(text.clone()),
            Self::Forbidden(text) => Self::Forbidden(text.clone()),
        }
    }
}
