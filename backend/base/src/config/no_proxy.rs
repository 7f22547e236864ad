//! Hosts that are reached without the proxy.

use std::{net::IpAddr, str::FromStr};

use ipnet::IpNet;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoProxy(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    /// `None` means any port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    Name(String),
    Network(IpNet),
}

impl NoProxy {
    /// Parses entries in the syntax of `NO_PROXY`: a host name, which includes its subdomains, an
    /// address or a network, each with an optional port, or `*` for all.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let entries = entries.into_iter().map(Entry::parse);
        entries.collect::<Result<_, _>>().map(Self)
    }

    pub fn bypasses_proxy_for(&self, host: &str, port: u16) -> bool {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        let address: Option<IpAddr> = host.parse().ok();
        self.0.iter().any(|entry| {
            let is_meant = match (&entry.hosts, address) {
                (Hosts::All, _) => true,
                (Hosts::Network(network), Some(address)) => network.contains(&address),
                (Hosts::Name(name), None) => host
                    .strip_suffix(name.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.')),
                _ => false,
            };
            is_meant && entry.port.is_none_or(|of| of == port)
        })
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected a host name, an address or a network, such as \"corp.example\", \
                 \"10.0.0.0/8\" or \"host.example:8080\", found \"{text}\""
            )
        };
        let whole = text.trim();
        if whole == "*" {
            return Ok(Self {
                hosts: Hosts::All,
                port: None,
            });
        }
        if let Some(network) = parse_network(whole) {
            return Ok(Self {
                hosts: Hosts::Network(network),
                port: None,
            });
        }
        let (host, port) = match whole.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_not| wrong())?)),
            None => (whole, None),
        };
        if let Some(network) = parse_network(host) {
            let hosts = Hosts::Network(network);
            return Ok(Self { hosts, port });
        }
        let name = host.trim_start_matches("*.").trim_matches('.');
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(wrong());
        }
        let hosts = Hosts::Name(name.to_ascii_lowercase());
        Ok(Self { hosts, port })
    }
}

fn parse_network(text: &str) -> Option<IpNet> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    IpNet::from_str(bare)
        .ok()
        .or_else(|| bare.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_cover_subdomains_and_network_addresses() {
        let entries = [
            "corp.example",
            ".intern.example",
            "*.Deep.example",
            "10.0.0.0/8",
            "192.0.2.7",
            "fd00::/8",
            "[2001:db8::1]:8443",
            "hooks.example:8080",
        ];
        let no_proxy = NoProxy::parse(entries).unwrap();
        let cases = [
            ("corp.example", 443, true),
            ("a.b.CORP.example.", 80, true),
            ("notcorp.example", 80, false),
            ("intern.example", 80, true),
            ("x.deep.example", 80, true),
            ("10.1.2.3", 80, true),
            ("192.0.2.7", 80, true),
            ("192.0.2.8", 80, false),
            ("[fd00::5]", 80, true),
            ("2001:db8::1", 8443, true),
            ("2001:db8::1", 443, false),
            ("hooks.example", 8080, true),
            ("hooks.example", 443, false),
            ("elsewhere.example", 443, false),
        ];
        for (host, port, is_covered) in cases {
            assert_eq!(
                no_proxy.bypasses_proxy_for(host, port),
                is_covered,
                "{host}:{port}"
            );
        }
        let all = NoProxy::parse(["*"]).unwrap();
        assert!(all.bypasses_proxy_for("anything.example", 1) && all.bypasses_proxy_for("::1", 1));
        assert!(!NoProxy::default().bypasses_proxy_for("anything.example", 1));
        for wrong in [
            "",
            " ",
            "a b",
            "http://corp.example",
            "corp.example:x",
            "10.0.0.0/33",
        ] {
            assert!(NoProxy::parse([wrong]).is_err(), "{wrong:?}");
        }
    }
}
