//! Why the command ends without success: one sentence, and the exit code that goes with it.

use std::{fmt, process::ExitCode};

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

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentence)
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
        let told = cause.to_string();
        if !sentence.contains(&told) {
            sentence = format!("{sentence}: {told}");
        }
        source = cause.source();
    }
    sentence
}
