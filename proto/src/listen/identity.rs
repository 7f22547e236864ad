//! What a request says of itself before anybody looks at what it asks for: its id, and the host it
//! is meant for.

use http::{HeaderMap, HeaderName, HeaderValue, Request, Version, header};

/// Names a request from its first hop to the last log line.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Characters of a request id that is taken over from a client.
const REQUEST_ID_CHARACTERS: usize = 128;

/// The client's request id if it is 1 to 128 visible ASCII characters, else a new one.
pub fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_usable = |value: &&HeaderValue| {
        (1..=REQUEST_ID_CHARACTERS).contains(&value.len())
            && value.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    let theirs = headers.get(REQUEST_ID).filter(is_usable).cloned();
    theirs.unwrap_or_else(|| {
        let made = HeaderValue::try_from(format!("{:032x}", rand::random::<u128>()));
        // Hexadecimal digits can stand in a header.
        made.unwrap_or(HeaderValue::from_static("unnamed"))
    })
}

/// What is wrong with the host that a request names, as a sentence; none when nothing is. HTTP/1.1
/// asks for exactly one `host`, and two readers of a request with two might not mean the same.
pub fn host_fault<B>(request: &Request<B>) -> Option<&'static str> {
    let hosts = request.headers().get_all(header::HOST).iter().count();
    match (request.version(), hosts) {
        (Version::HTTP_11, 0) => Some("the request has no header `host`; HTTP/1.1 needs one"),
        (_, 0 | 1) => None,
        _ => Some("the request has more than one header `host`; send one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_id_is_taken_over_when_it_can_be_and_made_when_not() {
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
    fn one_host_is_named() {
        let fault = |version, hosts: usize| {
            let mut request = Request::builder().version(version);
            for _ in 0..hosts {
                request = request.header("host", "a");
            }
            host_fault(&request.body(()).unwrap())
        };
        let table = [
            (Version::HTTP_11, [true, false, true]),
            (Version::HTTP_10, [false, false, true]),
            (Version::HTTP_2, [false, false, true]),
        ];
        for (version, faults) in table {
            let found = [0, 1, 2].map(|hosts| fault(version, hosts).is_some());
            assert_eq!(found, faults, "{version:?}");
        }
    }
}
