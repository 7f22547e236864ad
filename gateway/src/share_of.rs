//! Whose share of the gateway a request takes.

use std::net::IpAddr;

use bellwether_process::listen::network_of;

/// Whose share of this gateway a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ShareOf {
    /// Clients whose key the backend knows: its hash under a secret of this process.
    Key(u64),
    /// Who has shown none, by address.
    Address(IpAddr),
}

impl ShareOf {
    /// No one in particular at that address.
    pub(crate) fn at(peer: IpAddr) -> Self {
        Self::Address(network_of(peer))
    }
}
