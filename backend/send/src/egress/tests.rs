//! Tests of the guard, case by case and over arbitrary addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;

use super::{EgressGuard, Refusal};
use crate::config::EgressConfig;

fn guard(allow: &[&str], allow_names: &[&str], own: &[&str]) -> EgressGuard {
    let config = EgressConfig {
        allow: allow.iter().map(|text| text.parse().unwrap()).collect(),
        allow_names: allow_names.iter().map(ToString::to_string).collect(),
        ..EgressConfig::default()
    };
    EgressGuard::new(
        &config,
        own.iter().map(|text| text.parse().unwrap()).collect(),
    )
}

fn refuses(guard: &EgressGuard, address: IpAddr) -> bool {
    guard
        .filter("example.com", vec![SocketAddr::new(address, 443)])
        .is_err()
}

#[test]
fn first_and_last_address_of_denied_networks_are_refused() {
    let guard = guard(&[], &[], &[]);
    let cases = [
        ("0.0.0.0", "0.255.255.255"),
        ("10.0.0.0", "10.255.255.255"),
        ("100.64.0.0", "100.127.255.255"),
        ("127.0.0.0", "127.255.255.255"),
        ("168.63.129.16", "168.63.129.16"),
        ("169.254.0.0", "169.254.169.254"),
        ("172.16.0.0", "172.31.255.255"),
        ("192.0.0.0", "192.0.0.255"),
        ("192.0.2.0", "192.0.2.255"),
        ("192.31.196.0", "192.31.196.255"),
        ("192.52.193.0", "192.52.193.255"),
        ("192.88.99.0", "192.88.99.255"),
        ("192.168.0.0", "192.168.255.255"),
        ("192.175.48.0", "192.175.48.255"),
        ("198.18.0.0", "198.19.255.255"),
        ("198.51.100.0", "198.51.100.255"),
        ("203.0.113.0", "203.0.113.255"),
        ("224.0.0.0", "239.255.255.255"),
        ("240.0.0.0", "255.255.255.255"),
        ("::", "::1"),
        ("::127.0.0.1", "::10.0.0.1"),
        ("fc00::", "fdff:ffff::1"),
        ("fe80::1", "febf::1"),
        ("fec0::1", "feff::1"),
        ("ff00::", "ff02::1"),
        ("2001:db8::", "2001:db8:ffff::1"),
        ("100::", "100::ffff"),
        ("64:ff9b::", "64:ff9b::8.8.8.8"),
        ("64:ff9b:1::", "64:ff9b:1:ffff::1"),
        ("2002::", "2002:808:808::1"),
        ("5f00::", "5f00:ffff::1"),
        // Teredo, and the rest of the block for protocol assignments.
        ("2001::1", "2001:1ff:ffff::1"),
        ("2620:4f:8000::", "2620:4f:8000:ffff::1"),
        ("3fff::", "3fff:fff:ffff::1"),
        // Unassigned so far.
        ("1::", "1fff:ffff::1"),
        ("4000::", "bfff::1"),
        ("c000::", "fbff::1"),
        ("::ffff:127.0.0.1", "::ffff:10.1.2.3"),
    ];
    for (first, last) in cases {
        for text in [first, last] {
            assert!(refuses(&guard, text.parse().unwrap()), "{text} was allowed");
        }
    }
}

#[test]
fn addresses_next_to_denied_networks_are_allowed() {
    let guard = guard(&[], &[], &[]);
    let cases = [
        "1.0.0.0",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "168.63.129.15",
        "168.63.129.17",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2000::1",
        "2001:200::1",
        "2606:4700::1",
        "3ffe:ffff::1",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
    ];
    for text in cases {
        assert!(
            !refuses(&guard, text.parse().unwrap()),
            "{text} was rejected"
        );
    }
}

#[test]
fn literal_addresses_are_checked_without_resolving() {
    let guard = guard(&[], &[], &[]);
    let refused = [
        ("http://127.0.0.1/", "127.0.0.0/8"),
        ("http://2130706433/", "127.0.0.0/8"),
        ("http://0x7f.1/", "127.0.0.0/8"),
        ("http://0177.0.0.1/", "127.0.0.0/8"),
        ("http://127.1:8080/", "127.0.0.0/8"),
        ("http://%31%32%37.0.0.1/", "127.0.0.0/8"),
        ("http://[::1]/", "::/96"),
        ("http://[::ffff:7f00:1]/", "127.0.0.0/8"),
        ("http://[::ffff:169.254.169.254]/", "169.254.0.0/16"),
        ("http://\u{ff11}27.0.0.1/", "127.0.0.0/8"),
        ("http://localhost/", "127.0.0.0/8"),
        ("http://db.LOCALHOST.:80/", "127.0.0.0/8"),
        ("http://[4000::1]/", "::/0"),
        ("file:///etc/passwd", "`file`"),
        ("ftp://example.com/", "`ftp`"),
        ("gopher://example.com/", "`gopher`"),
        ("https://user@example.com/", "user name"),
        ("https://:secret@example.com/", "user name"),
        ("https://", "is invalid"),
        ("example.com", "is invalid"),
    ];
    for (text, rule) in refused {
        let refusal = guard.check_url(text).expect_err(text).to_string();
        assert!(refusal.contains(rule), "{text}: {refusal}");
    }
    for text in [
        "http://example.com/",
        "https://example.com:8443/x?y=z",
        "https://8.8.8.8/",
    ] {
        assert!(guard.check_url(text).is_ok(), "{text}");
    }
}

#[test]
fn configured_networks_and_names_are_allowed() {
    let guard = guard(&["10.1.0.0/16", "fd00::/8"], &["Hooks.internal."], &[]);
    assert!(!refuses(&guard, "10.1.2.3".parse().unwrap()));
    assert!(!refuses(&guard, "::ffff:10.1.2.3".parse().unwrap()));
    assert!(!refuses(&guard, "fd00::1".parse().unwrap()));
    assert!(refuses(&guard, "10.2.0.1".parse().unwrap()));
    let private = vec!["192.168.1.1:80".parse().unwrap()];
    assert_eq!(
        guard.filter("hooks.INTERNAL", private.clone()),
        Ok(private.clone())
    );
    assert!(guard.filter("evil.hooks.internal", private).is_err());
}

#[test]
fn denied_addresses_are_filtered_out() {
    let guard = guard(&[], &[], &[]);
    let addresses = vec![
        "127.0.0.1:443".parse().unwrap(),
        "8.8.8.8:443".parse().unwrap(),
    ];
    assert_eq!(
        guard.filter("example.com", addresses),
        Ok(vec!["8.8.8.8:443".parse().unwrap()])
    );
}

#[test]
fn own_listeners_are_always_refused() {
    let own = ["127.0.0.1:8481", "0.0.0.0:8480"];
    let guard = guard(&["0.0.0.0/0", "::/0"], &["localhost"], &own);
    let cases = [
        "127.0.0.1:8481",
        "[::ffff:127.0.0.1]:8481",
        "0.0.0.0:8481",
        "127.0.0.1:8480",
    ];
    for text in cases {
        let refused = guard.filter("localhost", vec![text.parse().unwrap()]);
        assert!(matches!(refused, Err(Refusal::OwnListener(_))), "{text}");
    }
    let other_ports = ["127.0.0.1:8482", "8.8.8.8:8480"];
    for text in other_ports {
        assert!(
            guard
                .filter("localhost", vec![text.parse().unwrap()])
                .is_ok(),
            "{text}"
        );
    }
}

/// Whether the standard library considers an address internal, as a source independent of our
/// table.
fn leads_inwards(address: IpAddr) -> bool {
    let v4_leads = |v4: Ipv4Addr| {
        v4.is_loopback()
            || v4.is_private()
            || v4.is_link_local()
            || v4.is_unspecified()
            || v4.is_broadcast()
            || v4.is_multicast()
            || v4.is_documentation()
    };
    match address {
        IpAddr::V4(v4) => v4_leads(v4),
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.to_ipv4().is_some_and(v4_leads)
        }
    }
}

proptest! {
    #[test]
    fn no_spelling_of_an_internal_ipv4_address_is_allowed(bits: u32, form in 0_u8..6) {
        let v4 = Ipv4Addr::from_bits(bits);
        let text = match form {
            0 => format!("http://{v4}/"),
            1 => format!("http://{bits}/"),
            2 => format!("http://0x{bits:x}/"),
            3 => format!("http://0{bits:o}/"),
            4 => format!("http://[{}]/", v4.to_ipv6_mapped()),
            _ => format!("http://[::{v4}]/"),
        };
        let permitted = guard(&[], &[], &[]).check_url(&text).is_ok();
        prop_assert!(!permitted || !leads_inwards(v4.into()), "{text}");
    }

    #[test]
    fn no_internal_ipv6_address_is_allowed(high in prop_oneof![
        Just(0_u128), Just(0xffff << 32), Just(0xfe80 << 112), Just(0xfc00 << 112),
        Just(0xff02 << 112), any::<u128>()
    ], low: u32) {
        let address = IpAddr::V6(Ipv6Addr::from_bits(high | u128::from(low)));
        let guard = guard(&[], &[], &[]);
        prop_assert!(refuses(&guard, address) || !leads_inwards(address), "{address}");
    }

    #[test]
    fn guard_never_panics(text in ".{0,80}") {
        let _judged = guard(&[], &[], &[]).check_url(&text);
    }
}
