//! Why an engine did not do what it was asked.

use super::{index::Index, kind::Kind};

/// A record, by its kind and key.
pub type RecordName = (Kind, Vec<u8>);

/// Why an engine did not do what it was asked, by what the caller may conclude.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// An expectation did not hold; nothing was written. Read again and re-evaluate. Names the
    /// records of the set that are not as it expected, or whose entries are taken; none where that
    /// is not known, or where what the set rests on was changed.
    #[error("a record was changed concurrently")]
    Conflict(Vec<RecordName>),
    /// Nothing was written. The queue is full or the engine is closed.
    #[error("the store cannot write now: {0}")]
    Unavailable(String),
    /// Nothing was written. The disk is full; deletes and small changes may still go through.
    #[error("the disk is full: {0}")]
    Full(String),
    /// It may or may not have been written.
    #[error("the outcome of a write is not known")]
    Indeterminate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What is stored is damaged.
    #[error("the store is damaged: {0}")]
    Corrupt(String),
    /// A part of what is stored is missing, with what was answered last.
    #[error("the store is incomplete: {0}")]
    Incomplete(String),
    /// Nothing was written: the client may not make the change.
    #[error("{0}")]
    Forbidden(String),
}

impl EngineError {
    /// An entry that a change removes does not lead to the record it should.
    pub(super) fn missing(index: Index) -> Self {
        Self::Corrupt(format!("an entry of {index:?} is missing"))
    }

    /// An entry leads to a record that is not there.
    pub(super) fn leads_nowhere(index: Index) -> Self {
        Self::Corrupt(format!("an entry of {index:?} leads to no record"))
    }

    /// A conflict of which no one says with which records.
    pub fn conflict() -> Self {
        Self::Conflict(Vec::new())
    }

    /// The same error for another caller.
    #[must_use]
    pub fn again(&self) -> Self {
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
