//! Why an external monitor was not pinged.

use std::fmt;

use crate::limits::PING_TIMEOUT;

/// Why a monitor was not pinged. The address is in none of them: it may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PingFailure {
    /// This service is not healthy, which the monitor is to notice.
    Unhealthy(&'static str),
    /// The egress guard does not allow the address.
    Blocked,
    /// Nothing was sent.
    Unreachable,
    /// No response came in time.
    NoResponse,
    /// The response was no success.
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
    /// The words of all.
    pub const WORDS: [&str; 4] = ["unhealthy", "blocked", "unreachable", "rejected"];

    /// The word that counts it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unhealthy(_) => "unhealthy",
            Self::Blocked => "blocked",
            Self::Unreachable | Self::NoResponse => "unreachable",
            Self::Status(_) => "rejected",
        }
    }
}
