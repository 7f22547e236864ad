//! The egress guard, which restricts the addresses that messages may be sent to.

mod networks;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use ipnet::IpNet;
use url::{Host, Url};

use crate::config::EgressConfig;

/// A guard that decides whether messages may be sent to an address.
///
/// The addresses that are checked are the ones that are dialled, so that a name cannot resolve to
/// another address after the check.
#[derive(Debug, Default)]
pub struct EgressGuard {
    allow: Vec<IpNet>,
    allow_names: Vec<String>,
    own: Vec<SocketAddr>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the address is invalid: {0}")]
    Unreadable(String),
    #[error("the egress guard allows only `http` and `https`, not `{0}`")]
    Scheme(String),
    #[error("the egress guard refuses addresses with a user name or password")]
    UserInfo,
    #[error(
        "the egress guard refuses {address}: it is in {network} ({reason}), \
         which `egress.allow` does not list"
    )]
    Network {
        address: IpAddr,
        network: IpNet,
        reason: &'static str,
    },
    #[error("the egress guard refuses {0}: this service itself listens there")]
    OwnListener(SocketAddr),
}

impl EgressGuard {
    /// Creates a guard with the configured exceptions, for a service that listens on `own`.
    pub fn new(config: &EgressConfig, own: Vec<SocketAddr>) -> Self {
        Self {
            allow: config.allow.clone(),
            allow_names: config
                .allow_names
                .iter()
                .map(|name| normalize_name(name))
                .collect(),
            own,
        }
    }

    /// Checks everything about a URL that can be checked without resolving its host name.
    pub fn check_url(&self, text: &str) -> Result<Url, Refusal> {
        let url = Url::parse(text).map_err(|error| Refusal::Unreadable(error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme(url.scheme().into()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let port = url.port_or_known_default().unwrap_or(0);
        let literal: IpAddr = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            // These names refer to this machine, regardless of the resolver.
            Some(Host::Domain(name)) if is_local_host(name) => {
                self.check(name, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))?;
                return Ok(url);
            }
            Some(Host::Domain(_)) => return Ok(url),
            None => return Err(Refusal::Unreadable("no host name".into())),
        };
        self.check(&literal.to_string(), SocketAddr::new(literal, port))?;
        Ok(url)
    }

    /// Returns those of a host's addresses that may be dialled.
    ///
    /// # Errors
    /// Returns the first refusal if all addresses are refused.
    pub fn filter(
        &self,
        host: &str,
        addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let mut first_refusal = None;
        let mut permitted = Vec::with_capacity(addresses.len());
        for address in addresses {
            match self.check(host, address) {
                Ok(()) => permitted.push(address),
                Err(refusal) => first_refusal = first_refusal.or(Some(refusal)),
            }
        }
        match first_refusal {
            Some(refusal) if permitted.is_empty() => Err(refusal),
            _ => Ok(permitted),
        }
    }

    fn check(&self, host: &str, address: SocketAddr) -> Result<(), Refusal> {
        let canonical = address.ip().to_canonical();
        if self.is_own_listener(SocketAddr::new(canonical, address.port())) {
            return Err(Refusal::OwnListener(address));
        }
        let allowed = self.allow_names.contains(&normalize_name(host))
            || self
                .allow
                .iter()
                .any(|network| network.contains(&canonical));
        match networks::denied_network(canonical) {
            Some((network, reason)) if !allowed => Err(Refusal::Network {
                address: canonical,
                network,
                reason,
            }),
            _ => Ok(()),
        }
    }

    /// Whether the address is one of this service's listeners. A listener on the unspecified
    /// address is reachable at each address of this machine, and dialling the unspecified address
    /// also reaches this machine.
    fn is_own_listener(&self, address: SocketAddr) -> bool {
        let same_port = self.own.iter().filter(|own| own.port() == address.port());
        same_port.map(SocketAddr::ip).any(|own| {
            own.to_canonical() == address.ip()
                || (own.is_unspecified() || address.ip().is_unspecified())
                    && is_address_of_this_machine(address.ip())
        })
    }
}

fn is_local_host(name: &str) -> bool {
    let name = normalize_name(name);
    name == "localhost" || name.ends_with(".localhost")
}

/// Only addresses of this machine can be bound.
fn is_address_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

fn normalize_name(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}
