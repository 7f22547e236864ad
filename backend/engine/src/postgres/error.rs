//! Classification of database errors.

use tokio_postgres::{Error, error::SqlState};

use crate::error::EngineError;

#[derive(Debug)]
pub(super) enum CommitErrorKind {
    /// The set was not written, because an expectation was not met.
    Unexpected,
    /// The set was not written; a retry may succeed.
    Passing,
    /// The connection was lost; the request may have been carried out.
    Lost,
    Refused(EngineError),
}

pub(super) fn classify(error: &Error) -> CommitErrorKind {
    let Some(state) = error.code() else {
        return CommitErrorKind::Lost;
    };
    match state.code() {
        "23505" | "22012" => CommitErrorKind::Unexpected,
        "40001" | "40P01" | "55P03" => CommitErrorKind::Passing,
        code if is_about_the_connection(code) => CommitErrorKind::Lost,
        _ => CommitErrorKind::Refused(rejection_error(error, state)),
    }
}

/// Whether the connection is unusable, or the database currently accepts no connections.
pub(super) fn is_connection_lost(error: &Error) -> bool {
    error.is_closed()
        || error
            .code()
            .is_none_or(|state| is_about_the_connection(state.code()))
}

/// Whether the session or the server ended, or the server is read-only.
fn is_about_the_connection(code: &str) -> bool {
    code.starts_with("57P")
        || code.starts_with("08")
        || matches!(code, "53300" | "25006")
        || code == "25P03"
}

pub(super) fn read_error(error: &Error) -> EngineError {
    match error.code() {
        Some(state) => rejection_error(error, state),
        None => EngineError::Unavailable(describe(error)),
    }
}

fn rejection_error(error: &Error, state: &SqlState) -> EngineError {
    match state.code() {
        "53100" => EngineError::Full(describe(error)),
        "XX001" | "XX002" => EngineError::Corrupt(describe(error)),
        _ => EngineError::Unavailable(describe(error)),
    }
}

pub(super) fn describe(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        let (message, code) = (said.message(), said.code().code());
        return format!("database error: {message} ({code})");
    }
    let mut text = format!("the database is unreachable: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
