//! Failures to ping an external monitor.

use std::fmt;

use crate::limits::PING_TIMEOUT;

/// The reason why a monitor was not pinged. Omits the URL, which may contain a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PingFailure {
    /// This service is unhealthy, which the monitor is supposed to notice.
    Unhealthy(&'static str),
    Blocked,
    Unreachable,
    NoResponse,
    Status(u16),
}

impl fmt::Display for PingFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unhealthy(why) => write!(to, "this service is not healthy: {why}"),
            Self::Blocked => to.write_str(
                "`heartbeat.url` is blocked; allow its network in `egress.allow` or its name in \
                 `egress.allow_names`",
            ),
            Self::Unreachable => to.write_str("the host of `heartbeat.url` is not reachable"),
            Self::NoResponse => write!(to, "no response within {} s", PING_TIMEOUT.as_secs()),
            Self::Status(status) => write!(to, "the response has the status {status}"),
        }
    }
}

impl PingFailure {
    pub const WORDS: [&str; 4] = ["unhealthy", "blocked", "unreachable", "rejected"];

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Unhealthy(_) => "unhealthy",
            Self::Blocked => "blocked",
            Self::Unreachable | Self::NoResponse => "unreachable",
            Self::Status(_) => "rejected",
        }
    }
}
