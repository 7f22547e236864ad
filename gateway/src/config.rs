//! The gateway's settings.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use bellwether_process::listen::{Hosts, Origins, Proxies};

use crate::{dialect::Settings as SenderSettings, limits};

/// Settings of the gateway, validated when it is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Address to listen on; port 0 selects a free port.
    pub listen: SocketAddr,
    pub body_limit_bytes: usize,
    /// Maximum size of the request line and headers, in bytes; at most 64 KiB.
    pub header_limit_bytes: usize,
    /// Timeout of a request, from its headers to its response.
    pub deadline: Duration,
    /// Timeout for the headers of the first request.
    pub header_timeout: Duration,
    /// Time that requests in flight have to finish at shutdown.
    pub drain: Duration,
    /// Maximum concurrent connections, if the system allows that many. Above the limit, an
    /// unauthenticated connection is closed, or the new connection if all others are authenticated.
    pub max_connections: usize,
    /// Maximum concurrent requests. Further requests are rejected with 503.
    pub max_in_flight: usize,
    pub origins: Origins,
    /// Accepted host names of the gateway; an empty list accepts any host name.
    pub hosts: Hosts,
    /// Proxies that are trusted to forward client addresses.
    pub proxies: Proxies,
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} must be {wanted}")]
pub struct ConfigError {
    pub setting: &'static str,
    pub wanted: &'static str,
}

/// Maximum header size accepted while reading, in bytes.
pub(crate) const HEADER_BUFFER_BYTES: usize = 128 * 1024;

impl Config {
    pub fn validate(&self) -> Result<(), ConfigError> {
        let day = Duration::from_secs(24 * 60 * 60);
        let durations = [
            ("deadline", self.deadline),
            ("header_timeout", self.header_timeout),
            ("drain", self.drain),
        ];
        for (setting, value) in durations {
            if value.is_zero() || value > day {
                let wanted = "above zero and at most a day";
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
