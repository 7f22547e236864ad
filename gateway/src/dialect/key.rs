//! Finds a sender's key in any of the usual headers.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};

const ROUTING_KEY: &str = "x-routing-key";
const API_KEY: &str = "zenoss-api-key";

/// Returns the key in `authorization` (`Bearer KEY`, `GenieKey KEY`, or `Basic` with the key as the
/// password, or as the user without a password), in `x-routing-key` or in `zenoss-api-key`.
pub(crate) fn find_in_headers(headers: &HeaderMap) -> Option<String> {
    let authorization = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, rest) = value.to_str().ok()?.trim().split_once(' ')?;
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") || scheme.eq_ignore_ascii_case("geniekey") {
            return Some(rest.to_owned());
        }
        scheme
            .eq_ignore_ascii_case("basic")
            .then(|| decode_basic(rest))?
    });
    let plain = |name| headers.get(name)?.to_str().ok().map(str::trim);
    authorization
        .or_else(|| {
            plain(ROUTING_KEY)
                .or_else(|| plain(API_KEY))
                .map(str::to_owned)
        })
        .filter(|key| !key.is_empty())
}

fn decode_basic(encoded: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    let key = if password.is_empty() { user } else { password };
    Some(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_read_from_every_supported_header() {
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        let table = [
            ("authorization", "Bearer k1".to_owned(), Some("k1")),
            ("authorization", "bearer  k1 ".to_owned(), Some("k1")),
            ("authorization", "GenieKey k1".to_owned(), Some("k1")),
            ("authorization", basic("prometheus:k1"), Some("k1")),
            ("authorization", basic("any:k:1"), Some("k:1")),
            ("authorization", basic("k1:"), Some("k1")),
            ("authorization", basic("k1"), None),
            ("authorization", "Basic %%%".to_owned(), None),
            ("authorization", "Bearer ".to_owned(), None),
            ("authorization", "k1".to_owned(), None),
            ("zenoss-api-key", "k1".to_owned(), Some("k1")),
            ("x-routing-key", " k1 ".to_owned(), Some("k1")),
            ("x-other", "k1".to_owned(), None),
        ];
        for (name, value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(
                find_in_headers(&headers).as_deref(),
                expected,
                "{name}: {value}"
            );
        }
    }
}
