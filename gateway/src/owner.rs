//! Owners of shares of the gateway's resources.

use std::net::IpAddr;

use bellwether_process::listen::network_key;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A client whose key the backend knows: a hash of the key with a secret of this process.
    Key(u64),
    Address(IpAddr),
}

impl Owner {
    pub(crate) fn anonymous(peer: IpAddr) -> Self {
        Self::Address(network_key(peer))
    }
}
