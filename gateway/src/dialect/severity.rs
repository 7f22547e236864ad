//! How bad an event is, from the words and numbers that senders have for it.

use bellwether_proto::cloud;

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

    /// The severity of its own word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.word() == word)
    }

    /// The number on the wire.
    pub(super) fn number(self) -> i32 {
        match self {
            Self::Debug => cloud::Severity::Debug.into(),
            Self::Info => cloud::Severity::Info.into(),
            Self::Warning => cloud::Severity::Warning.into(),
            Self::Error => cloud::Severity::Error.into(),
            Self::Critical => cloud::Severity::Critical.into(),
        }
    }

    /// What the label `severity` of an alert of Prometheus says.
    pub(super) fn of_label(label: &str) -> Option<Self> {
        Some(match label.to_ascii_lowercase().as_str() {
            "critical" => Self::Critical,
            "error" | "major" | "high" => Self::Error,
            "warning" | "minor" => Self::Warning,
            "info" => Self::Info,
            "debug" | "none" => Self::Debug,
            _ => return None,
        })
    }

    /// What a word says that comes from anywhere.
    pub(super) fn of_any_word(word: &str) -> Option<Self> {
        Self::of_label(word).or_else(|| {
            Some(match word.to_ascii_lowercase().as_str() {
                "fatal" | "emergency" | "alert" | "panic" => Self::Critical,
                "err" => Self::Error,
                "warn" => Self::Warning,
                "information" | "informational" | "notice" => Self::Info,
                "trace" => Self::Debug,
                _ => return None,
            })
        })
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
