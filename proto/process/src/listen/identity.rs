//! The request id and the host header of a request, checked before its content.

use std::net::IpAddr;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Version, header, uri::Authority};

/// The header that identifies a request from its first hop to the last log line.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const REQUEST_ID_CHARACTERS: usize = 128;

/// Returns the client's request id if it is 1 to 128 visible ASCII characters, otherwise a new
/// request id.
pub fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_usable = |value: &&HeaderValue| {
        (1..=REQUEST_ID_CHARACTERS).contains(&value.len())
            && value.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    let theirs = headers.get(REQUEST_ID).filter(is_usable).cloned();
    theirs.unwrap_or_else(|| {
        let made = HeaderValue::try_from(format!("{:032x}", rand::random::<u128>()));
        // Cannot fail, because hexadecimal digits are valid in a header.
        made.unwrap_or(HeaderValue::from_static("unnamed"))
    })
}

/// The host names of a service. A page that makes its own name resolve to this machine (DNS
/// rebinding) sends another host name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// Accepts these names, without ports; `*.example.net` matches each name directly below it. An
    /// empty list matches every host.
    ///
    /// # Errors
    /// Returns the first invalid name.
    pub fn new(names: Vec<String>) -> Result<Self, String> {
        let is_name = |name: &str| {
            let name = name.strip_prefix("*.").unwrap_or(name);
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            !name.is_empty() && name.chars().all(allowed)
        };
        match names.iter().find(|name| !is_name(name)) {
            Some(name) => Err(name.clone()),
            None => Ok(Self(names)),
        }
    }

    /// Whether a request addresses this service. A request to an IP address or `localhost` always
    /// does, because DNS rebinding requires a name of the attacker.
    pub fn contains_host<B>(&self, request: &Request<B>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let header = || request.headers().get(header::HOST)?.to_str().ok();
        let named = request
            .uri()
            .authority()
            .map(Authority::as_str)
            .or_else(header);
        let Some(host) = named.and_then(|it| it.parse::<Authority>().ok()) else {
            return false;
        };
        let host = host.host();
        let literal = host.trim_start_matches('[').trim_end_matches(']');
        literal.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|name| matches_host_name(host, name))
    }
}

fn matches_host_name(host: &str, name: &str) -> bool {
    match name.strip_prefix("*.") {
        None => host.eq_ignore_ascii_case(name),
        Some(above) => host
            .split_once('.')
            .is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(above)),
    }
}

/// Returns the error in a host header; `None` if the header is valid. HTTP/1.1 requires exactly one
/// `host`: with several, two parsers could choose different hosts.
pub fn host_error<B>(request: &Request<B>) -> Option<&'static str> {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    match (request.version(), hosts) {
        (Version::HTTP_11, 0) => Some("the request has no `host` header, which HTTP/1.1 requires"),
        (_, 0 | 1) => None,
        _ => Some("the request has more than one `host` header; send one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_request_id_is_retained_and_otherwise_generated() {
        let id = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(
                REQUEST_ID,
                HeaderValue::from_bytes(text.as_bytes()).unwrap(),
            );
            request_id(&headers)
        };
        assert_eq!(id("a-b_1"), "a-b_1");
        for bad in ["", "a b", "\u{e9}", &"x".repeat(129)] {
            assert_eq!(id(bad).len(), 32, "{bad}");
        }
        assert_ne!(request_id(&HeaderMap::new()), request_id(&HeaderMap::new()));
    }

    #[test]
    fn configured_host_names_and_ip_addresses_are_accepted() {
        let hosts = Hosts::new(vec!["ops.example.net".into(), "*.lan".into()]).unwrap();
        let holds = |hosts: &Hosts, host: &str| {
            let request = Request::builder().header("host", host).body(()).unwrap();
            hosts.contains_host(&request)
        };
        let good = [
            "ops.example.net",
            "OPS.example.net:8480",
            "a.lan",
            "localhost:8480",
            "127.0.0.1:8480",
            "[::1]:8480",
        ];
        for host in good {
            assert!(holds(&hosts, host), "{host}");
        }
        for host in [
            "evil.example",
            "lan",
            "a.b.lan",
            "ops.example.net.evil.example",
            "",
        ] {
            assert!(!holds(&hosts, host), "{host}");
            assert!(holds(&Hosts::default(), host), "{host}");
        }
        let by_target = Request::builder().uri("http://ops.example.net/v1").body(());
        assert!(hosts.contains_host(&by_target.unwrap()));
        assert_eq!(Hosts::new(vec!["a:1".into()]), Err("a:1".into()));
    }

    #[test]
    fn request_must_have_exactly_one_host() {
        let error = |version, hosts: usize| {
            let mut request = Request::builder().version(version);
            for _ in 0..hosts {
                request = request.header("host", "a");
            }
            host_error(&request.body(()).unwrap())
        };
        let table = [
            (Version::HTTP_11, [true, false, true]),
            (Version::HTTP_10, [false, false, true]),
            (Version::HTTP_2, [false, false, true]),
        ];
        for (version, expected) in table {
            let found = [0, 1, 2].map(|hosts| error(version, hosts).is_some());
            assert_eq!(found, expected, "{version:?}");
        }
    }
}
