//! The error of an import.

use thiserror::Error;

/// A field with the wrong type or an invalid value; names its path.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ImportError(String);

impl ImportError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}
