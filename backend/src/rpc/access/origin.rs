//! The origin of a call, from its connection or from the gateway in this process.

use std::{net::IpAddr, sync::Arc};

use bellwether_process::listen::{FORWARDED_FOR, Peer, Proxies};
use bellwether_proto::AGENT_KEY;
use http::HeaderMap;

use crate::{domain::CertificateName, limits::AGENT_CHARS_MAX};

/// Header with the names of the client certificate from a gateway in this process; ignored on calls
/// from a socket.
const CLIENT_CERTIFICATE: &str = "x-client-certificate";

#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) address: Option<IpAddr>,
    /// Address of the client on its own connection; `None` for calls from a gateway in this
    /// process.
    pub(super) connected: Option<IpAddr>,
    certificate: Option<Arc<[String]>>,
    /// The name that the calling program gave itself, without control characters; empty if none.
    pub(super) agent: String,
}

impl Origin {
    /// Determines the origin from the connection, or from the headers of a gateway in this process.
    pub(super) fn determine(headers: &HeaderMap, peer: Option<&Peer>, proxies: &Proxies) -> Self {
        let connected = peer.map(|peer| proxies.client_address(peer.address, headers));
        Self {
            address: connected.or_else(|| headers.get(FORWARDED_FOR)?.to_str().ok()?.parse().ok()),
            connected,
            certificate: peer.map(|peer| Arc::clone(&peer.certificate)),
            agent: agent_name(headers),
        }
    }

    pub(super) fn certificate(&self, headers: &HeaderMap) -> Vec<CertificateName> {
        let parse = |text: &str| CertificateName::parse(text).ok();
        if let Some(names) = &self.certificate {
            return names.iter().filter_map(|it| parse(it)).collect();
        }
        let said = headers.get_all(CLIENT_CERTIFICATE).iter();
        said.filter_map(|it| parse(it.to_str().ok()?)).collect()
    }
}

fn agent_name(headers: &HeaderMap) -> String {
    let name = headers.get(AGENT_KEY).and_then(|it| it.to_str().ok());
    let name = name.unwrap_or_default().chars();
    let printable = name.filter(|it| !it.is_control());
    printable.take(AGENT_CHARS_MAX).collect()
}
