//! The other end of a connection, and the clients behind a proxy.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;

/// The addresses on whose behalf the request was forwarded, nearest last.
pub const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

const HOPS_MAX: usize = 32;
const NAMES_MAX: usize = 32;

#[derive(Debug, Clone)]
pub struct Peer {
    pub address: IpAddr,
    /// Names of the verified client certificate: `dns:NAME`, `email:ADDRESS`, `uri:URI`, and
    /// `sha256:FINGERPRINT` last. Empty without a certificate.
    pub certificate: Arc<[String]>,
}

impl Peer {
    pub(super) fn new(address: SocketAddr, certificate: Option<&CertificateDer<'_>>) -> Self {
        Self {
            address: address.ip().to_canonical(),
            certificate: certificate
                .map(alternative_names)
                .unwrap_or_default()
                .into(),
        }
    }
}

/// Returns the subject alternative names of a certificate. The common name is ignored, as its type
/// is undefined.
fn alternative_names(certificate: &CertificateDer<'_>) -> Vec<String> {
    let mut names = Vec::new();
    if let Ok((_, read)) = x509_parser::parse_x509_certificate(certificate)
        && let Ok(Some(alternative)) = read.subject_alternative_name()
    {
        let said = alternative.value.general_names.iter();
        names.extend(said.take(NAMES_MAX).filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(format!("dns:{}", name.to_ascii_lowercase())),
            GeneralName::RFC822Name(name) => Some(format!("email:{name}")),
            GeneralName::URI(name) => Some(format!("uri:{name}")),
            _ => None,
        }));
    }
    names.push(fingerprint(certificate));
    names
}

fn fingerprint(certificate: &CertificateDer<'_>) -> String {
    format!("sha256:{:x}", Sha256::digest(certificate.as_ref()))
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Proxies(pub Vec<IpNet>);

impl Proxies {
    /// Returns the address of the client: the address of the connection, or the address forwarded
    /// by a trusted proxy.
    pub fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.contains(peer) {
            return peer;
        }
        let lists = headers.get_all(FORWARDED_FOR).iter().rev();
        let hops = lists.flat_map(|list| list.to_str().unwrap_or_default().rsplit(','));
        let mut client = peer;
        for hop in hops.take(HOPS_MAX) {
            // Stops at an invalid address: a trusted proxy did not write the entries before it.
            let Ok(address) = hop.trim().parse::<IpAddr>() else {
                break;
            };
            client = address.to_canonical();
            if !self.contains(client) {
                break;
            }
        }
        client
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_address(networks: &[&str], peer: &str, lists: &[&str]) -> String {
        let proxies = Proxies(networks.iter().map(|it| it.parse().unwrap()).collect());
        let mut headers = HeaderMap::new();
        for list in lists {
            headers.append(FORWARDED_FOR, list.parse().unwrap());
        }
        proxies
            .client_address(peer.parse().unwrap(), &headers)
            .to_string()
    }

    #[test]
    fn forwarded_address_is_trusted_only_from_proxies() {
        let ours: &[&str] = &["10.0.0.0/8"];
        let cases: [(&[&str], &str, &[&str], &str); 8] = [
            (&[], "10.0.0.1", &["192.0.2.7"], "10.0.0.1"),
            (ours, "192.0.2.1", &["192.0.2.7"], "192.0.2.1"),
            (ours, "10.0.0.1", &["192.0.2.7"], "192.0.2.7"),
            (ours, "::ffff:10.0.0.1", &["192.0.2.7"], "192.0.2.7"),
            // Entries that the client sent itself come before those that the proxy added.
            (ours, "10.0.0.1", &["192.0.2.9, 192.0.2.7"], "192.0.2.7"),
            (
                ours,
                "10.0.0.1",
                &["192.0.2.9", "192.0.2.7, 10.0.0.2"],
                "192.0.2.7",
            ),
            (
                ours,
                "10.0.0.1",
                &["192.0.2.9, nobody, 10.0.0.2"],
                "10.0.0.2",
            ),
            (ours, "10.0.0.1", &[], "10.0.0.1"),
        ];
        for (networks, peer, lists, expected) in cases {
            assert_eq!(client_address(networks, peer, lists), expected, "{lists:?}");
        }
    }

    #[test]
    fn invalid_certificate_is_named_by_fingerprint_only() {
        let found = alternative_names(&CertificateDer::from(vec![1, 2, 3]));
        let digits = "039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81";
        assert_eq!(found, [format!("sha256:{digits}")]);
    }
}
