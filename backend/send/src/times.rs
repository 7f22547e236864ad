//! Durations of the parts of an HTTP exchange.

use std::time::Duration;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DialTimes {
    /// Name resolution; `None` if a proxy does it.
    pub(crate) resolve: Option<Duration>,
    /// Connecting, after name resolution.
    pub(crate) connect: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// Name resolution; `None` through a proxy or over a reused connection.
    pub resolve: Option<Duration>,
    /// Connecting, after name resolution; `None` over a reused connection.
    pub connect: Option<Duration>,
    /// TLS handshake, after connecting; `None` without TLS or over a reused connection.
    pub tls: Option<Duration>,
    /// Time from the start to the first byte of the response.
    pub first_byte: Duration,
    /// Time from the start to the end of the response.
    pub total: Duration,
}

impl ExchangeTimes {
    /// Records the times of a connection opened for the exchange. `secured` is the time from the
    /// start until TLS was established.
    pub(super) fn record_connection(&mut self, dialed: DialTimes, secured: Option<Duration>) {
        (self.resolve, self.connect) = (dialed.resolve, Some(dialed.connect));
        let before = dialed.resolve.unwrap_or_default() + dialed.connect;
        self.tls = secured.map(|secured| secured.saturating_sub(before));
    }
}
