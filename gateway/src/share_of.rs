//! Owners of shares of the gateway's resources.

use std::net::IpAddr;

use bellwether_process::listen::network_of;

/// The owner of a share of the gateway's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ShareOf {
    /// Clients whose key the backend knows: its hash under a secret of this process.
    Key(u64),
    Address(IpAddr),
}

impl ShareOf {
    /// No one in particular at that address.
    pub(crate) fn at(peer: IpAddr) -> Self {
        Self::Address(network_of(peer))
    }
}
