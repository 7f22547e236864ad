//! How long the parts of an exchange over HTTP took.

use std::time::Duration;

/// How long a connection took to be opened.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Dialed {
    /// Resolving the name; none where a proxy does.
    pub(crate) resolve: Option<Duration>,
    /// Connecting, after that.
    pub(crate) connect: Duration,
}

/// How long the parts of an exchange took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExchangeTimes {
    /// Resolving the name; none through a proxy and over a kept connection.
    pub resolve: Option<Duration>,
    /// Connecting, after that; none over a kept connection.
    pub connect: Option<Duration>,
    /// The TLS handshake, after that; none without TLS and over a kept connection.
    pub tls: Option<Duration>,
    /// Until the first byte of the answer, from the start.
    pub first_byte: Duration,
    /// Until the end of the answer, from the start.
    pub total: Duration,
}

impl ExchangeTimes {
    /// Notes how long the connection took that was opened for it, and with TLS until when.
    pub(super) fn open(&mut self, dialed: Dialed, secured: Option<Duration>) {
        (self.resolve, self.connect) = (dialed.resolve, Some(dialed.connect));
        let before = dialed.resolve.unwrap_or_default() + dialed.connect;
        self.tls = secured.map(|secured| secured.saturating_sub(before));
    }
}
