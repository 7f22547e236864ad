//! Verification of webhook signatures.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::{
    domain::{SignatureScheme, WebhookSignature},
    error::Error,
    limits::SIGNATURE_AGE_MAX,
};

const STANDARD_PREFIX: &str = "whsec_";

/// A scheme of signatures with HMAC-SHA256.
struct SchemeRules {
    /// The header with the signatures.
    header: &'static str,
    /// The separator of several signatures.
    separator: char,
    /// The beginning of each signature of the supported version.
    prefix: &'static str,
    encoding: Encoding,
    /// The header with the time of the request, in seconds; `None` if it is not signed.
    timestamp: Option<&'static str>,
    /// The signed text.
    signed: &'static [SignedPart],
}

enum Encoding {
    Hex,
    Base64,
    /// The header contains the signed text itself.
    Plain,
}

enum SignedPart {
    Text(&'static str),
    Header(&'static str),
    Body,
    Secret,
}

const BODY_IN_HEX: SchemeRules = SchemeRules {
    header: "x-hub-signature-256",
    separator: ',',
    prefix: "sha256=",
    encoding: Encoding::Hex,
    timestamp: None,
    signed: &[SignedPart::Body],
};

fn scheme_rules(scheme: SignatureScheme) -> SchemeRules {
    use SignedPart::{Body, Header, Secret, Text};
    match scheme {
        SignatureScheme::HubSha256 => BODY_IN_HEX,
        SignatureScheme::Sentry => SchemeRules {
            header: "sentry-hook-signature",
            prefix: "",
            ..BODY_IN_HEX
        },
        SignatureScheme::PagerDuty => SchemeRules {
            header: "x-pagerduty-signature",
            prefix: "v1=",
            ..BODY_IN_HEX
        },
        SignatureScheme::Jira => SchemeRules {
            header: "x-hub-signature",
            ..BODY_IN_HEX
        },
        SignatureScheme::Slack => SchemeRules {
            header: "x-slack-signature",
            prefix: "v0=",
            timestamp: Some("x-slack-request-timestamp"),
            signed: &[
                Text("v0:"),
                Header("x-slack-request-timestamp"),
                Text(":"),
                Body,
            ],
            ..BODY_IN_HEX
        },
        SignatureScheme::StandardWebhooks => SchemeRules {
            header: "webhook-signature",
            separator: ' ',
            prefix: "v1,",
            encoding: Encoding::Base64,
            timestamp: Some("webhook-timestamp"),
            signed: &[
                Header("webhook-id"),
                Text("."),
                Header("webhook-timestamp"),
                Text("."),
                Body,
            ],
        },
        SignatureScheme::Telegram => SchemeRules {
            header: "x-telegram-bot-api-secret-token",
            prefix: "",
            encoding: Encoding::Plain,
            signed: &[Secret],
            ..BODY_IN_HEX
        },
    }
}

/// Checks that a body is signed with the secret; header names are in lower case.
///
/// # Errors
/// Returns [`Error::PermissionDenied`], naming the header or secret that is missing or wrong, but
/// never the expected value.
pub fn verify(
    signature: &WebhookSignature,
    body: &[u8],
    headers: &BTreeMap<String, String>,
    now_ms: i64,
) -> Result<(), Error> {
    let rules = scheme_rules(signature.scheme);
    let header = |name: &str| {
        let missing = || Error::PermissionDenied(format!("the header `{name}` is required"));
        headers.get(name).map(|it| it.trim()).ok_or_else(missing)
    };
    let empty = key(signature).and_then(|key| Hmac::<Sha256>::new_from_slice(&key).ok());
    let unusable = "the mapping's secret does not match its scheme; set it again";
    let empty = empty.ok_or_else(|| Error::PermissionDenied(unusable.into()))?;
    let given = header(rules.header)?;
    if let Some(name) = rules.timestamp {
        let sent_s = header(name)?.parse::<i64>().unwrap_or_default();
        let apart = now_ms.saturating_sub(sent_s.saturating_mul(1_000));
        if u128::from(apart.unsigned_abs()) > SIGNATURE_AGE_MAX.as_millis() {
            return Err(Error::PermissionDenied(format!(
                "`{name}` is more than 5 min from now"
            )));
        }
    }
    let mut mac = empty.clone();
    for part in rules.signed {
        match part {
            SignedPart::Text(text) => mac.update(text.as_bytes()),
            SignedPart::Header(name) => mac.update(header(name)?.as_bytes()),
            SignedPart::Body => mac.update(body),
            SignedPart::Secret => mac.update(signature.secret.reveal().as_bytes()),
        }
    }
    let is_valid = |one: &str| {
        let code = one.trim().strip_prefix(rules.prefix)?;
        let code = match rules.encoding {
            Encoding::Hex => decode_hex(code)?,
            Encoding::Base64 => STANDARD.decode(code).ok()?,
            // The codes are compared instead of the texts, in constant time.
            Encoding::Plain => empty
                .clone()
                .chain_update(code)
                .finalize()
                .into_bytes()
                .to_vec(),
        };
        mac.clone().verify_slice(&code).ok()
    };
    given
        .split(rules.separator)
        .find_map(is_valid)
        .ok_or_else(|| {
            Error::PermissionDenied(format!(
                "the signature in `{}` does not match this body and the mapping's secret",
                rules.header
            ))
        })
}

/// Returns the signing key; `None` if the secret is empty or malformed.
pub(super) fn key(signature: &WebhookSignature) -> Option<Vec<u8>> {
    let secret = signature.secret.reveal();
    let key = match signature.scheme {
        SignatureScheme::StandardWebhooks => STANDARD
            .decode(secret.strip_prefix(STANDARD_PREFIX)?)
            .ok()?,
        _ => secret.into(),
    };
    (!key.is_empty()).then_some(key)
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|it| it.to_digit(16)).collect();
    let digits = digits.filter(|it| it.len() % 2 == 0)?;
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).ok();
    digits.chunks(2).map(byte).collect()
}
