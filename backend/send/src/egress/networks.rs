//! Networks that are denied unless the configuration allows them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

const fn v4(bytes: [u8; 4], prefix: u8) -> IpNet {
    let [a, b, c, d] = bytes;
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix)
}

const fn v6(first: [u16; 3], prefix: u8) -> IpNet {
    let [a, b, c] = first;
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), prefix)
}

/// The only public part of IPv6; everything outside it is denied.
const PUBLIC_V6: IpNet = v6([0x2000, 0, 0], 3);

/// Returns the network for which an address is denied, and the purpose of that network. A v4-mapped
/// address must be passed as the v4 address; networks that embed v4 addresses in other ways are
/// denied as a whole.
pub(super) fn denied_network(address: IpAddr) -> Option<(IpNet, &'static str)> {
    let named = DENIED.iter().find(|rule| rule.0.contains(&address));
    let beside = (v6([0, 0, 0], 0), "not public: only 2000::/3 is");
    let is_beside = address.is_ipv6() && !PUBLIC_V6.contains(&address);
    named.copied().or_else(|| is_beside.then_some(beside))
}

const DENIED: &[(IpNet, &str)] = &[
    (v4([0, 0, 0, 0], 8), "this host"),
    (v4([10, 0, 0, 0], 8), "private network"),
    (v4([100, 64, 0, 0], 10), "shared address space"),
    (v4([127, 0, 0, 0], 8), "loopback"),
    (v4([168, 63, 129, 16], 32), "cloud platform"),
    (
        v4([169, 254, 0, 0], 16),
        "link-local, including cloud metadata",
    ),
    (v4([172, 16, 0, 0], 12), "private network"),
    (v4([192, 0, 0, 0], 24), "protocol assignments"),
    (v4([192, 0, 2, 0], 24), "documentation"),
    (v4([192, 31, 196, 0], 24), "name servers for private zones"),
    (v4([192, 52, 193, 0], 24), "multicast tunnels"),
    (v4([192, 88, 99, 0], 24), "6to4 relays"),
    (v4([192, 168, 0, 0], 16), "private network"),
    (v4([192, 175, 48, 0], 24), "name servers for private zones"),
    (v4([198, 18, 0, 0], 15), "benchmarking"),
    (v4([198, 51, 100, 0], 24), "documentation"),
    (v4([203, 0, 113, 0], 24), "documentation"),
    (v4([224, 0, 0, 0], 4), "multicast"),
    (v4([240, 0, 0, 0], 4), "reserved, with broadcast"),
    (v6([0, 0, 0], 96), "unspecified, loopback and v4-compatible"),
    (v6([0x64, 0xff9b, 0], 96), "v4 by translation"),
    (v6([0x64, 0xff9b, 1], 48), "v4 by local translation"),
    (v6([0x100, 0, 0], 64), "discard"),
    (
        v6([0x2001, 0, 0], 23),
        "protocol assignments, including tunnels",
    ),
    (v6([0x2001, 0xdb8, 0], 32), "documentation"),
    (v6([0x2002, 0, 0], 16), "6to4"),
    (
        v6([0x2620, 0x4f, 0x8000], 48),
        "name servers for private zones",
    ),
    (v6([0x3fff, 0, 0], 20), "documentation"),
    (v6([0x5f00, 0, 0], 16), "segment routing"),
    (v6([0xfc00, 0, 0], 7), "private network"),
    (v6([0xfe80, 0, 0], 10), "link-local"),
    (v6([0xfec0, 0, 0], 10), "site-local"),
    (v6([0xff00, 0, 0], 8), "multicast"),
];
