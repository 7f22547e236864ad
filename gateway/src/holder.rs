//! Owners of shares of the gateway's resources.

use std::net::IpAddr;

use bellwether_process::listen::network_of;

/// The owner of a share of the gateway's resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// A client whose key the backend accepted: hash of the key with a secret of this process.
    Key(u64),
    Address(IpAddr),
}

impl Holder {
    pub(crate) fn at(peer: IpAddr) -> Self {
        Self::Address(network_of(peer))
    }
}
