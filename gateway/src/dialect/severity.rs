//! Severities, parsed from the names and numbers of other products.

use bellwether_proto::{cloud, severity};

/// Severity of an event, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Debug = 1,
    Info = 2,
    Warning = 3,
    Error = 4,
    Critical = 5,
}

impl Severity {
    pub const ALL: [Self; 5] = [
        Self::Debug,
        Self::Info,
        Self::Warning,
        Self::Error,
        Self::Critical,
    ];

    pub fn as_str(self) -> &'static str {
        severity::severity_word(self.into())
    }

    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }

    pub(super) fn number(self) -> i32 {
        cloud::Severity::from(self).into()
    }

    pub(super) fn from_known_name(word: &str) -> Option<Self> {
        let known = severity::from_name(word)?;
        Self::ALL
            .into_iter()
            .find(|it| cloud::Severity::from(*it) == known)
    }

    pub(super) fn from_otel_number(number: i64) -> Option<Self> {
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
