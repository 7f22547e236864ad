//! How bad an event is, from the words and numbers that senders have for it.

use bellwether_proto::{cloud, severity};

/// How bad an event is, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Of interest to developers only.
    Debug = 1,
    /// Worth knowing, nothing to do.
    Info = 2,
    /// May become a problem.
    Warning = 3,
    /// Something does not work.
    Error = 4,
    /// Something important does not work.
    Critical = 5,
}

impl Severity {
    /// All of them, in rising order.
    pub const ALL: [Self; 5] = [
        Self::Debug,
        Self::Info,
        Self::Warning,
        Self::Error,
        Self::Critical,
    ];

    /// Its word: `critical`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }

    /// The severity with that word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// The number on the wire.
    pub(super) fn number(self) -> i32 {
        cloud::Severity::from(self).into()
    }

    /// What a word of any sender says.
    pub(super) fn of_any_word(word: &str) -> Option<Self> {
        let known = severity::of_word(word)?;
        Self::ALL
            .into_iter()
            .find(|it| cloud::Severity::from(*it) == known)
    }

    /// What a severity number of OpenTelemetry says.
    pub(super) fn of_otel_number(number: i64) -> Option<Self> {
        Some(match number {
            1..=8 => Self::Debug,
            9..=12 => Self::Info,
            13..=16 => Self::Warning,
            17..=20 => Self::Error,
            21..=24 => Self::Critical,
            _ => return None,
        })
    }
}

impl From<Severity> for cloud::Severity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Debug => Self::Debug,
            Severity::Info => Self::Info,
            Severity::Warning => Self::Warning,
            Severity::Error => Self::Error,
            Severity::Critical => Self::Critical,
        }
    }
}
