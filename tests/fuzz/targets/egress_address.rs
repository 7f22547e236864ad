//! The guard allows no address of this machine, of a private network or for documentation, however
//! the address is written. The standard library's classification is the reference.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bellwether_backend::{config::EgressConfig, send::EgressGuard};
use libfuzzer_sys::fuzz_target;

fn inside_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_broadcast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && (b & 0xfe) == 18)
}

fn inside(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V4(address) => return inside_v4(address),
        IpAddr::V6(address) => address,
    };
    let parts = address.segments();
    address.to_ipv4_mapped().is_some_and(inside_v4)
        || address.is_multicast()
        || address.is_unique_local()
        || address.is_unicast_link_local()
        || parts[..6] == [0; 6]
        || parts[0] & 0xffc0 == 0xfec0
        || parts[0] == 0x2002
        || parts[0] == 0x5f00
        || parts[..2] == [0x2001, 0xdb8]
        || parts[..4] == [0x100, 0, 0, 0]
        || parts[..6] == [0x64, 0xff9b, 0, 0, 0, 0]
        || parts[..3] == [0x64, 0xff9b, 1]
}

fuzz_target!(|input: &[u8]| {
    let own: SocketAddr = (Ipv4Addr::new(8, 8, 8, 8), 8480).into();
    let guard = EgressGuard::new(&EgressConfig::default(), vec![own]);
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(url) = guard.check_url(text)
    {
        assert!(matches!(url.scheme(), "http" | "https"), "{url}");
        assert!(
            url.username().is_empty() && url.password().is_none(),
            "{url}"
        );
        let host = url.host_str().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            assert!(!inside(address), "{url}");
        }
        // The addresses of a host name are checked when the service connects.
        assert!(
            guard
                .filter(host, vec![(Ipv4Addr::LOCALHOST, 80).into()])
                .is_err()
        );
    }
    if let Some((octets, _)) = input.split_first_chunk::<16>() {
        let v6 = IpAddr::from(Ipv6Addr::from(*octets));
        let v4 = IpAddr::from(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]));
        for address in [v6, v4] {
            let socket = SocketAddr::new(address, 80);
            assert_eq!(
                guard.filter("host", vec![socket]).is_err(),
                inside(address),
                "{address}"
            );
        }
        assert!(guard.filter("host", vec![own]).is_err());
    }
});
