//! What an error of the database means for waiting callers.

use tokio_postgres::{Error, error::SqlState};

use crate::fault::EngineError;

/// What may be concluded from an error in a commit.
#[derive(Debug)]
pub(super) enum Meaning {
    /// Nothing was written: something is not as a set expects.
    Unexpected,
    /// Nothing was written, and the same may go through in a moment.
    Passing,
    /// The connection is gone; its request may be done or not.
    Lost,
    /// Nothing was written.
    Refused(EngineError),
}

/// What an error in a commit means.
pub(super) fn meaning(error: &Error) -> Meaning {
    let Some(state) = error.code() else {
        return Meaning::Lost;
    };
    match state.code() {
        "23505" | "22012" => Meaning::Unexpected,
        "40001" | "40P01" | "55P03" => Meaning::Passing,
        code if is_about_the_connection(code) => Meaning::Lost,
        _ => Meaning::Refused(refusal(error, state)),
    }
}

/// Whether nothing more can be asked over the connection, or no one can be asked at all now.
pub(super) fn is_lost(error: &Error) -> bool {
    error.is_closed()
        || error
            .code()
            .is_none_or(|state| is_about_the_connection(state.code()))
}

/// The end of a session or of the server, and a server that does not take writes (any more).
fn is_about_the_connection(code: &str) -> bool {
    code.starts_with("57P")
        || code.starts_with("08")
        || matches!(code, "53300" | "25006")
        || code == "25P03"
}

/// What a read says that failed.
pub(super) fn unread(error: &Error) -> EngineError {
    match error.code() {
        Some(state) => refusal(error, state),
        None => EngineError::Unavailable(sentence(error)),
    }
}

fn refusal(error: &Error, state: &SqlState) -> EngineError {
    match state.code() {
        "53100" => EngineError::Full(sentence(error)),
        "XX001" | "XX002" => EngineError::Corrupt(sentence(error)),
        _ => EngineError::Unavailable(sentence(error)),
    }
}

/// What happened, in words: the database's own where it has any.
pub(super) fn sentence(error: &Error) -> String {
    if let Some(said) = error.as_db_error() {
        let (message, code) = (said.message(), said.code().code());
        return format!("the database says: {message} ({code})");
    }
    let mut text = format!("the database cannot be reached: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
