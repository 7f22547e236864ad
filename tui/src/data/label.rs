//! Words for the enumerations of the API, as shown and typed.

use bellwether_proto::{
    cloud::{Severity, Status},
    v1::{
        NotificationOutcome, Outcome, Role, audit_entry::Action as AuditAction,
        delivery::State as DeliveryState, destination_health::State as HealthState,
    },
};

pub(crate) trait Label: Copy {
    fn label(self) -> &'static str;
}

/// A value with a symbol that distinguishes it without colour.
pub(crate) trait Sign: Copy {
    fn symbol(self) -> &'static str;
}

impl Sign for Severity {
    fn symbol(self) -> &'static str {
        match self {
            Self::Critical => "▲",
            Self::Error => "●",
            Self::Warning => "◐",
            Self::Info => "○",
            Self::Debug | Self::Default => "·",
        }
    }
}

macro_rules! labels {
    ($($type:ty { $($value:ident $word:literal),+ })+) => {
        $(impl Label for $type {
            fn label(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        })+
    };
}

labels! {
    Severity {
        Default "unknown", Debug "debug", Info "info", Warning "warning", Error "error",
        Critical "critical"
    }
    Status { Default "unknown", Open "open", Suppressed "suppressed", Closed "closed" }
    HealthState {
        Unspecified "unknown", Healthy "healthy", Failing "failing", Paused "paused",
        Untried "untried", Slow "slow", Behind "behind"
    }
    DeliveryState {
        Unspecified "unknown", Pending "pending", Leased "sending", Retry "retry",
        Delivered "delivered", Dead "dead", Cancelled "cancelled", Folded "folded",
        Shadowed "shadowed"
    }
    AuditAction {
        Unspecified "unknown", Created "created", Updated "updated", Deleted "deleted",
        Read "read", Refused "was refused"
    }
    Outcome {
        Unspecified "in progress", Delivered "delivered", Rejected "rejected",
        Unreachable "unreachable", Blocked "blocked", Unknown "unknown"
    }
    Role {
        Unspecified "unknown", Ingest "ingest", Viewer "viewer", Operator "operator",
        Editor "editor", Admin "admin"
    }
}

pub(crate) const WORST_FIRST: [Severity; 5] = [
    Severity::Critical,
    Severity::Error,
    Severity::Warning,
    Severity::Info,
    Severity::Debug,
];

pub(crate) const HEALTH_WORST_FIRST: [HealthState; 7] = [
    HealthState::Failing,
    HealthState::Paused,
    HealthState::Behind,
    HealthState::Slow,
    HealthState::Unspecified,
    HealthState::Untried,
    HealthState::Healthy,
];

pub(crate) fn urgency_rank(state: HealthState) -> usize {
    let at = HEALTH_WORST_FIRST.iter().position(|other| *other == state);
    at.unwrap_or(HEALTH_WORST_FIRST.len())
}

/// Whether a role includes another. An unknown role includes every role, so that the service
/// decides.
pub(crate) fn role_includes(own: Role, needed: Role) -> bool {
    own == Role::Unspecified || own >= needed
}

/// Returns the symbol for the outcome of a notification, as shown by every client.
pub fn outcome_mark(outcome: NotificationOutcome) -> &'static str {
    match outcome {
        NotificationOutcome::Sent => "✓",
        NotificationOutcome::Waiting => "◐",
        NotificationOutcome::Recorded => "○",
        NotificationOutcome::NotSent => "✗",
        NotificationOutcome::Unknown | NotificationOutcome::Unspecified => "?",
    }
}
