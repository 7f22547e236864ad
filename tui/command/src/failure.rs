//! The failure of a command: one sentence, an exit code, and the code of the error in
//! `docs/troubleshooting.md`.

use std::{borrow::Cow, error::Error, fmt, io, process::ExitCode};

use bellwether_backend::store::OpenError;
use bellwether_language::text;
use bellwether_process::cause;
use bellwether_tui::api::{CallError, CallErrorKind};
use tonic::Status;

use crate::config::ConfigError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    Success,
    Negative,
    Usage,
    Unreachable,
    NotAllowed,
    Refused,
}

impl ExitStatus {
    pub(crate) const ALL: [Self; 6] = [
        Self::Success,
        Self::Negative,
        Self::Usage,
        Self::Unreachable,
        Self::NotAllowed,
        Self::Refused,
    ];

    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// Returns the meaning of the exit code, as in the manual page and `docs/commands.md`.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Negative => {
                "negative result or failure: differences, no results, a failing destination, \
                 refused events, a damaged store"
            }
            Self::Usage => "invalid usage, settings or files; see the message",
            Self::Unreachable => "the service is unreachable",
            Self::NotAllowed => {
                "the key is missing, invalid, expired or revoked, or lacks the required role"
            }
            Self::Refused => {
                "the service refused the request: it is invalid, names an object that does not \
                 exist, or conflicts with the stored state"
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Failure {
    sentence: String,
    status: ExitStatus,
    /// Empty if `docs/troubleshooting.md` does not explain the error.
    code: Cow<'static, str>,
}

impl Failure {
    fn with_status(status: ExitStatus, sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            status,
            code: Cow::Borrowed(""),
        }
    }

    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Negative, sentence)
    }

    pub(crate) fn unreachable(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Unreachable, sentence).with_code("SERVICE_UNREACHABLE")
    }

    pub(crate) fn permission_denied(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::NotAllowed, sentence)
    }

    /// Returns a failure without a message, for a negative result that was already printed.
    pub(crate) fn without_message() -> Self {
        Self::new("")
    }

    pub(crate) fn usage_error(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Usage, sentence)
    }

    pub(crate) fn rejected(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Refused, sentence)
    }

    pub(crate) fn from_error(error: &(dyn Error + 'static)) -> Self {
        let io = cause::find_cause::<io::Error>(error).map(io::Error::kind);
        let code = match (cause::find_cause::<OpenError>(error), io) {
            (Some(OpenError::InUse(_)), _) => "FOLDER_IN_USE",
            (Some(OpenError::Incomplete { .. }), _) => "STORE_INCOMPLETE",
            (Some(OpenError::Key { .. }), _) => "SECRET_KEY_WRONG",
            (_, Some(io::ErrorKind::AddrInUse)) => "ADDRESS_IN_USE",
            (Some(OpenError::Owner { .. }), _) | (_, Some(io::ErrorKind::PermissionDenied)) => {
                "FILE_DENIED"
            }
            _ => "",
        };
        Self::new(to_sentence(error)).with_code(code)
    }

    pub(crate) fn with_clause(self, clause: &str) -> Self {
        let sentence = format!("{}; {clause}", self.sentence);
        Self { sentence, ..self }
    }

    pub(crate) fn with_code(self, code: impl Into<Cow<'static, str>>) -> Self {
        let code = code.into();
        Self { code, ..self }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status.code())
    }
}

/// Text from a service may contain control characters, which must not be sent to the terminal.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, rest) = match self.sentence.split_once('\n') {
            Some((first, rest)) => (first, Some(rest)),
            None => (self.sentence.as_str(), None),
        };
        formatter.write_str(&text::escape_invisible(first, true))?;
        if !self.code.is_empty() {
            write!(
                formatter,
                " [{}]",
                text::escape_invisible(&self.code, false)
            )?;
        }
        match rest {
            Some(rest) => write!(formatter, "\n{}", text::escape_invisible(rest, true)),
            None => Ok(()),
        }
    }
}

/// Adds the invalid fields that the message does not contain, one per line.
impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let mut lines = vec![error.message];
        for (field, why) in &error.fields {
            if error.fields.len() > 1 || !lines[0].contains(why) {
                lines.push(format!("{field}: {why}"));
            }
        }
        let sentence = lines.join("\n");
        let failure = match error.kind {
            CallErrorKind::Unreachable => Self::unreachable(sentence),
            CallErrorKind::NotAllowed => Self::permission_denied(sentence),
            CallErrorKind::NotFound | CallErrorKind::Conflict | CallErrorKind::Refused => {
                Self::rejected(sentence)
            }
            CallErrorKind::Failed => Self::new(sentence),
        };
        failure.with_code(error.code)
    }
}

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        CallError::from(status).into()
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage_error(error.to_string()).with_code("SETTING_INVALID")
    }
}

pub(crate) fn to_sentence(error: &dyn Error) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !sentence.contains(&message) {
            sentence = format!("{sentence}: {message}");
        }
        source = cause.source();
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_sequences_from_the_service_are_escaped() {
        let said = "no rule `\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{3164}`\nand more";
        let shown = Failure::new(said).to_string();
        let obeyed = shown.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(obeyed, None, "{shown:?}");
        assert!(!shown.contains(['\u{202e}', '\u{3164}']), "{shown:?}");
        assert!(shown.starts_with("no rule `\\u{1b}]52;c;eA=="), "{shown}");
        assert!(shown.ends_with("\nand more"), "{shown}");
    }
}
