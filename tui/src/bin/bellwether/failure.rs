//! Why the command ends without success: one sentence, and the exit code that goes with it.

use std::{fmt, process::ExitCode};

use bellwether_proto::text;

use crate::config::ConfigError;

/// Why the command ends without success.
#[derive(Debug)]
pub(crate) struct Failure {
    sentence: String,
    code: u8,
}

impl Failure {
    /// Something that is not the configuration's fault: exit code 1.
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            code: 1,
        }
    }

    /// The service is away: exit code 3.
    pub(crate) fn away(sentence: impl Into<String>) -> Self {
        Self {
            code: 3,
            ..Self::new(sentence)
        }
    }

    /// The service does not take the key, or its role is too low: exit code 4.
    pub(crate) fn not_allowed(sentence: impl Into<String>) -> Self {
        Self {
            code: 4,
            ..Self::new(sentence)
        }
    }

    /// The answer is no, and was given already: exit code 1 without a word.
    pub(crate) fn silent() -> Self {
        Self::new("")
    }

    /// What was asked for cannot be read: exit code 2.
    pub(crate) fn usage(sentence: impl Into<String>) -> Self {
        Self {
            code: 2,
            ..Self::new(sentence)
        }
    }

    /// The service refuses what was asked for: exit code 5.
    pub(crate) fn refused(sentence: impl Into<String>) -> Self {
        Self {
            code: 5,
            ..Self::new(sentence)
        }
    }

    /// The exit code.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

/// What a service said may hold anything: a terminal gets nothing that it obeys.
impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&text::visible(&self.sentence, true))
    }
}

/// A setting that cannot be used: exit code 2.
impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self {
            sentence: error.to_string(),
            code: 2,
        }
    }
}

/// An error and what caused it, as one sentence.
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
    fn a_terminal_obeys_nothing_that_a_service_says() {
        let said = "no rule `\u{1b}]52;c;eA==\u{7}\u{1b}[2J\u{9b}31m\u{202e}\u{3164}`\nand more";
        let shown = Failure::new(said).to_string();
        let obeyed = shown.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(obeyed, None, "{shown:?}");
        assert!(!shown.contains(['\u{202e}', '\u{3164}']), "{shown:?}");
        assert!(shown.starts_with("no rule `\\u{1b}]52;c;eA=="), "{shown}");
        assert!(shown.ends_with("\nand more"), "{shown}");
    }
}
