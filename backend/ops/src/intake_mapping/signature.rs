//! Verification of webhook signatures.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use ring::signature::{ED25519, UnparsedPublicKey};
use sha2::Sha256;

use crate::{
    domain::{SignatureScheme, WebhookSignature},
    error::Error,
    limits::SIGNATURE_AGE_MAX,
};

const STANDARD_PREFIX: &str = "whsec_";
const PUBLIC_KEY_BYTES: usize = 32;

/// A scheme of signatures.
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
    /// HMAC-SHA256.
    Hex,
    /// HMAC-SHA256.
    Base64,
    /// The header contains the signed text itself.
    Plain,
    /// A signature with the private key of the sender, in hexadecimal digits.
    Ed25519,
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
        SignatureScheme::Discord => SchemeRules {
            header: "x-signature-ed25519",
            prefix: "",
            encoding: Encoding::Ed25519,
            timestamp: Some("x-signature-timestamp"),
            signed: &[Header("x-signature-timestamp"), Body],
            ..BODY_IN_HEX
        },
    }
}

/// Checks that a body is signed with the secret; header names are in lower case.
///
/// # Errors
/// Returns [`Error::PermissionDenied`], naming the header or secret that is missing or wrong, but
/// never the expected value. For Discord, which requires the status 401, it is
/// [`Error::Unauthenticated`].
pub fn verify(
    signature: &WebhookSignature,
    body: &[u8],
    headers: &BTreeMap<String, String>,
    now_ms: i64,
) -> Result<(), Error> {
    let refused = match signature.scheme {
        SignatureScheme::Discord => Error::Unauthenticated,
        _ => Error::PermissionDenied,
    };
    verify_signature(signature, body, headers, now_ms).map_err(refused)
}

/// Returns the reason if the signature is not valid.
fn verify_signature(
    signature: &WebhookSignature,
    body: &[u8],
    headers: &BTreeMap<String, String>,
    now_ms: i64,
) -> Result<(), String> {
    let rules = scheme_rules(signature.scheme);
    let header = |name: &str| {
        let missing = || format!("the header `{name}` is required");
        headers.get(name).map(|it| it.trim()).ok_or_else(missing)
    };
    let unusable = "the mapping's secret does not match its scheme; set it again";
    let key = key(signature).ok_or(unusable)?;
    let empty = Hmac::<Sha256>::new_from_slice(&key).ok().ok_or(unusable)?;
    let given = header(rules.header)?;
    if let Some(name) = rules.timestamp {
        let sent_s = header(name)?.parse::<i64>().unwrap_or_default();
        let apart = now_ms.saturating_sub(sent_s.saturating_mul(1_000));
        if u128::from(apart.unsigned_abs()) > SIGNATURE_AGE_MAX.as_millis() {
            return Err(format!("`{name}` is more than 5 min from now"));
        }
    }
    let parts = rules.signed.iter().map(|part| {
        Ok::<_, String>(match part {
            SignedPart::Text(text) => text.as_bytes(),
            SignedPart::Header(name) => header(name)?.as_bytes(),
            SignedPart::Body => body,
            SignedPart::Secret => signature.secret.reveal().as_bytes(),
        })
    });
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let mut mac = empty.clone();
    for part in &parts {
        mac.update(part);
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
            Encoding::Ed25519 => {
                let public = UnparsedPublicKey::new(&ED25519, &key);
                return public.verify(&parts.concat(), &decode_hex(code)?).ok();
            }
        };
        mac.clone().verify_slice(&code).ok()
    };
    given
        .split(rules.separator)
        .find_map(is_valid)
        .ok_or_else(|| {
            format!(
                "the signature in `{}` does not match this body and the mapping's secret",
                rules.header
            )
        })
}

/// Returns the signing key; `None` if the secret is empty or malformed.
pub(super) fn key(signature: &WebhookSignature) -> Option<Vec<u8>> {
    let secret = signature.secret.reveal();
    let key = match signature.scheme {
        SignatureScheme::StandardWebhooks => STANDARD
            .decode(secret.strip_prefix(STANDARD_PREFIX)?)
            .ok()?,
        SignatureScheme::Discord => decode_hex(secret).filter(|it| it.len() == PUBLIC_KEY_BYTES)?,
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
