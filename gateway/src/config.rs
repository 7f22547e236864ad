//! The gateway's settings.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bellwether_process::listen::{Hosts, Origins, Proxies};

use crate::{dialect::Settings as SenderSettings, limits};

/// The gateway's settings, checked when the gateway is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The largest body accepted, in bytes.
    pub body_limit_bytes: usize,
    /// The largest request line and headers accepted, in bytes; at most 64 KiB.
    pub header_limit_bytes: usize,
    /// How long a request may take, from its headers to its answer.
    pub deadline: Duration,
    /// How long a client may take to send its first request's headers.
    pub header_timeout: Duration,
    /// How long requests under way may continue after a shutdown began.
    pub drain: Duration,
    /// How many connections are open concurrently, if the system has as many. Above it one that has
    /// shown no key is closed, or else the new one.
    pub max_connections: usize,
    /// How many requests are under way concurrently; further ones are turned away with 503.
    pub max_in_flight: usize,
    /// Whose pages may call in addition to this gateway's own.
    pub origins: Origins,
    /// The names that the gateway is called by; none are all.
    pub hosts: Hosts,
    /// The proxies that are believed about the address of their clients.
    pub proxies: Proxies,
    /// What is to be known about senders that speak another dialect.
    pub senders: SenderSettings,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8480)),
            body_limit_bytes: limits::BODY_BYTES,
            header_limit_bytes: 16 * 1024,
            deadline: Duration::from_secs(30),
            header_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(10),
            max_connections: 4_096,
            max_in_flight: 1_024,
            origins: Origins::None,
            hosts: Hosts::default(),
            proxies: Proxies::default(),
            senders: SenderSettings::default(),
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} has to be {wanted}")]
pub struct ConfigError {
    /// The setting's name.
    pub setting: &'static str,
    /// What would be right.
    pub wanted: &'static str,
}

/// The largest header block that a connection accepts.
pub(crate) const HEADER_BUFFER_BYTES: usize = 128 * 1024;

impl Config {
    /// Checks that every setting can be used.
    ///
    /// # Errors
    /// With the first setting that cannot.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let day = Duration::from_secs(24 * 60 * 60);
        let durations = [
            ("deadline", self.deadline),
            ("header_timeout", self.header_timeout),
            ("drain", self.drain),
        ];
        for (setting, value) in durations {
            if value.is_zero() || value > day {
                let wanted = "longer than nothing and at most a day";
                return Err(ConfigError { setting, wanted });
            }
        }
        let most = tokio::sync::Semaphore::MAX_PERMITS;
        let counts = [
            (
                "body_limit_bytes",
                self.body_limit_bytes,
                1,
                1 << 30,
                "from 1 byte to 1 GiB",
            ),
            (
                "header_limit_bytes",
                self.header_limit_bytes,
                1,
                1 << 16,
                "from 1 byte to 64 KiB",
            ),
            (
                "max_connections",
                self.max_connections,
                1,
                most,
                "at least 1",
            ),
            ("max_in_flight", self.max_in_flight, 1, most, "at least 1"),
        ];
        for (setting, value, least, most, wanted) in counts {
            if !(least..=most).contains(&value) {
                return Err(ConfigError { setting, wanted });
            }
        }
        Ok(())
    }
}
