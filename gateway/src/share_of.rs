//! Owners of shares of the gateway's resources.

use std::net::IpAddr;

use bellwether_process::listen::network_of;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ShareOf {
    /// Clients whose key the backend knows; contains a hash of the key under a secret of this
    /// process.
    Key(u64),
    Address(IpAddr),
}

impl ShareOf {
    pub(crate) fn at(peer: IpAddr) -> Self {
        Self::Address(network_of(peer))
    }
}
