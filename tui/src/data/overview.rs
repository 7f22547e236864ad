//! The service at a glance, its clients, and who is calling.

use super::{Health, Severity};

/// The state of the service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Overview {
    /// Open or suppressed occurrences, worst first; every known severity has an entry.
    pub(crate) open_by_severity: Vec<(Severity, i32)>,
    pub(crate) acknowledged_count: i32,
    /// The last 60 minutes, oldest first.
    pub(crate) events_per_minute: Vec<i32>,
    pub(crate) destinations: Vec<DestinationTraffic>,
    pub(crate) oldest_undelivered_ms: Option<i64>,
    pub(crate) start_ms: Option<i64>,
    pub(crate) version: String,
    pub(crate) trigger_count: i32,
    pub(crate) destination_count: i32,
    pub(crate) rule_count: i32,
    pub(crate) enabled_rule_count: i32,
}

impl Overview {
    /// Whether any event is known to have come: one that is open, or one of the last hour.
    pub(crate) fn has_seen_events(&self) -> bool {
        let mut counts = self.open_by_severity.iter().map(|(_, count)| *count);
        counts.any(|count| count > 0) || self.events_per_minute.iter().any(|count| *count > 0)
    }
}

/// How one destination's deliveries fare.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DestinationTraffic {
    pub(crate) name: String,
    pub(crate) health: Health,
    pub(crate) waiting: i32,
    pub(crate) dead: i32,
    pub(crate) delivered: i32,
}

/// A named API key with a role.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) create_ms: Option<i64>,
    pub(crate) last_used_ms: Option<i64>,
}

/// A client to be made. A rate of zero is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewClient {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) requests_per_second: u32,
    pub(crate) events_per_second: u32,
}

/// Whose key the console carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) name: String,
    pub(crate) role: Role,
}

/// What a client may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    #[default]
    Unknown,
    Ingest,
    Viewer,
    Operator,
    Editor,
    Admin,
}

impl Role {
    /// The roles a client can be given, weakest first.
    pub(crate) const ALL: [Self; 5] = [
        Self::Ingest,
        Self::Viewer,
        Self::Operator,
        Self::Editor,
        Self::Admin,
    ];

    /// The word of the API.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Ingest => "ingest",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }

    /// Whether this role may do what needs `other`. A role this console does not know may try.
    pub(crate) fn covers(self, other: Self) -> bool {
        let rank = |role| match role {
            Self::Ingest => 1,
            Self::Viewer => 2,
            Self::Operator => 3,
            Self::Editor => 4,
            Self::Admin | Self::Unknown => 5,
        };
        rank(self) >= rank(other)
    }
}
