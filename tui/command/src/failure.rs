//! The failure of a command: one sentence and an exit code.

use std::{fmt, process::ExitCode};

use bellwether_proto::text;

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

    /// Returns the meaning, as in the manual page and `docs/commands.md`.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Negative => {
                "negative result or failure: differences, no results, a failing destination, \
                 refused events, a damaged store"
            }
            Self::Usage => "invalid usage, settings or files; the message describes the error",
            Self::Unreachable => "the service is unreachable",
            Self::NotAllowed => {
                "the key is missing, wrong, expired or revoked, or its role does not allow this"
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
}

impl Failure {
    fn with_status(status: ExitStatus, sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            status,
        }
    }

    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Negative, sentence)
    }

    pub(crate) fn unreachable(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Unreachable, sentence)
    }

    pub(crate) fn not_allowed(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::NotAllowed, sentence)
    }

    /// Returns a failure without a message, for a negative result that was already printed.
    pub(crate) fn silent() -> Self {
        Self::new("")
    }

    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Usage, sentence)
    }

    pub(crate) fn rejected(sentence: impl Into<String>) -> Self {
        Self::with_status(ExitStatus::Refused, sentence)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status.code())
    }
}

/// Text from a service may contain control characters, which must not be sent to the terminal.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&text::visible(&self.sentence, true))
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error.to_string())
    }
}

pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
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
