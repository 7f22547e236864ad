//! Where a call comes from, by what its connection shows or the gateway in this process says.

use std::{net::IpAddr, sync::Arc};

use bellwether_process::listen::{FORWARDED_FOR, Peer, Proxies};
use http::HeaderMap;

use crate::domain::CertificateName;

/// Where a gateway in this process shows what certificate its client proved; what comes from a
/// socket says nothing by it that is believed.
const CLIENT_CERTIFICATE: &str = "x-client-certificate";

/// Where a call comes from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The address, as far as it is known.
    pub(super) address: Option<IpAddr>,
    /// The address of a separate connection; none for what a gateway in this process passes on.
    pub(super) connected: Option<IpAddr>,
    /// Of a separate connection.
    certificate: Option<Arc<[String]>>,
}

impl Origin {
    /// By the other end of the connection, or by what a gateway in this process says.
    pub(super) fn of(headers: &HeaderMap, peer: Option<&Peer>, proxies: &Proxies) -> Self {
        let connected = peer.map(|peer| proxies.client(peer.address, headers));
        Self {
            address: connected.or_else(|| headers.get(FORWARDED_FOR)?.to_str().ok()?.parse().ok()),
            connected,
            certificate: peer.map(|peer| Arc::clone(&peer.certificate)),
        }
    }

    /// What the certificate that was proved says of its holder.
    pub(super) fn certificate(&self, headers: &HeaderMap) -> Vec<CertificateName> {
        let parse = |text: &str| CertificateName::parse(text).ok();
        if let Some(names) = &self.certificate {
            return names.iter().filter_map(|it| parse(it)).collect();
        }
        let said = headers.get_all(CLIENT_CERTIFICATE).iter();
        said.filter_map(|it| parse(it.to_str().ok()?)).collect()
    }
}
