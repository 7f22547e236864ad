//! What a webhook must be set to.

use std::{collections::HashSet, ops::RangeInclusive};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue as WireValue, header::CONTENT_TYPE};

use crate::{
    destination::{Checks, webhook::address},
    domain::{
        Secret,
        destination::{Header, HeaderValue, Webhook},
    },
    limits::{HEADER_VALUE_BYTES_MAX, HEADERS_MAX},
};

/// Bytes of a signing secret.
const SIGNING_KEY_BYTES: RangeInclusive<usize> = 24..=64;
/// Signing secrets at once, while one takes over from the other.
const SIGNING_SECRETS_MAX: usize = 2;

/// Headers that the service or its HTTP client sets itself.
const FORBIDDEN_HEADERS: [&str; 13] = [
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// What the names of further such headers begin with.
const FORBIDDEN_PREFIX: &str = "webhook-";

/// Checks a webhook's settings.
pub(super) fn check(webhook: &Webhook, checks: &mut Checks<'_>) {
    match (webhook.url.is_empty(), webhook.secret_url.is_empty()) {
        (true, false) => checks.url("secretUrl", webhook.secret_url.reveal()),
        (false, false) => checks.add("secretUrl", "is given beside `url`; one of them is enough"),
        (_, true) => address::check(&webhook.url, checks),
    }
    if webhook.headers.len() > HEADERS_MAX {
        let count = webhook.headers.len();
        checks.add(
            "headers",
            format!("holds {count} headers; at most {HEADERS_MAX} are sent"),
        );
    }
    let mut seen = HashSet::new();
    for header in webhook.headers.iter().take(HEADERS_MAX) {
        check_header(header, checks);
        if !seen.insert(header.name.to_ascii_lowercase()) {
            checks.add(
                &header_path(header),
                "is given twice, in different letter case",
            );
        }
    }
    if !webhook.signing_secret.is_empty() && !is_signing_secret(&webhook.signing_secret) {
        checks.add(
            "signingSecret",
            "is not `whsec_` and base64 of 24 to 64 bytes, or two of these parted by a space",
        );
    }
}

fn header_path(header: &Header) -> String {
    let name: String = header.name.chars().take(100).collect();
    format!("headers[{name}]")
}

fn check_header(header: &Header, checks: &mut Checks<'_>) {
    let path = header_path(header);
    let Ok(name) = HeaderName::try_from(header.name.as_str()) else {
        return checks.add(&path, "is not the name of an HTTP header");
    };
    if FORBIDDEN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(FORBIDDEN_PREFIX) {
        return checks.add(&path, "is set by the service itself");
    }
    let value = match &header.value {
        HeaderValue::Plain(text) => text,
        HeaderValue::Secret(secret) if secret.reveal().is_empty() => {
            return checks.add(&path, "has no value, and none is stored that could be kept");
        }
        HeaderValue::Secret(secret) => secret.reveal(),
    };
    if header.name.len() + value.len() > HEADER_VALUE_BYTES_MAX {
        checks.add(
            &path,
            format!("is larger than {HEADER_VALUE_BYTES_MAX} bytes"),
        );
    } else if WireValue::try_from(value).is_err() || value.trim() != value {
        checks.add(
            &path,
            "has a value with control characters, or white space around it",
        );
    }
}

/// Whether the value of a header of that name is never secret: it says what the body is.
pub fn is_plain_header(name: &str) -> bool {
    name.eq_ignore_ascii_case(CONTENT_TYPE.as_str())
}

/// Whether headers of that name carry a secret, whatever anybody says.
pub fn is_secret_header(name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "authorization",
        "authentication",
        "cookie",
        "token",
        "secret",
        "password",
        "passwd",
        "credential",
        "signature",
    ];
    let name = name.to_ascii_lowercase();
    let is_key = |word: &str| matches!(word, "key" | "apikey" | "auth");
    PARTS.iter().any(|part| name.contains(part)) || name.split(['-', '_', '.']).any(is_key)
}

fn is_signing_secret(secrets: &Secret) -> bool {
    let secrets: Vec<_> = secrets.reveal().split(' ').collect();
    let is_one = |secret: &str| {
        let key = secret.strip_prefix("whsec_");
        key.and_then(|key| STANDARD.decode(key).ok())
            .is_some_and(|key| SIGNING_KEY_BYTES.contains(&key.len()))
    };
    secrets.len() <= SIGNING_SECRETS_MAX && secrets.into_iter().all(is_one)
}
