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
    let header = |name: &str| {
        let missing = || Error::PermissionDenied(format!("the header `{name}` is required"));
        headers.get(name).map(|it| it.trim()).ok_or_else(missing)
    };
    let wrong = |name: &str| {
        Error::PermissionDenied(format!(
            "the signature in `{name}` does not match this body and the mapping's secret"
        ))
    };
    let mac = key(signature).and_then(|key| Hmac::<Sha256>::new_from_slice(&key).ok());
    let unusable = "the mapping's secret does not match its scheme; set it again";
    let mut mac = mac.ok_or_else(|| Error::PermissionDenied(unusable.into()))?;
    match signature.scheme {
        SignatureScheme::HubSha256 | SignatureScheme::Sentry => {
            let (name, prefix) = match signature.scheme {
                SignatureScheme::HubSha256 => ("x-hub-signature-256", "sha256="),
                _ => ("sentry-hook-signature", ""),
            };
            mac.update(body);
            let given = header(name)?.strip_prefix(prefix).and_then(decode_hex);
            let given = given.ok_or_else(|| wrong(name))?;
            mac.verify_slice(&given).map_err(|_other| wrong(name))
        }
        SignatureScheme::StandardWebhooks => {
            let (id, stamp) = (header("webhook-id")?, header("webhook-timestamp")?);
            let name = "webhook-signature";
            let given = header(name)?;
            let sent_ms = stamp
                .parse::<i64>()
                .unwrap_or_default()
                .saturating_mul(1_000);
            let apart = now_ms.saturating_sub(sent_ms).unsigned_abs();
            if u128::from(apart) > SIGNATURE_AGE_MAX.as_millis() {
                return Err(Error::PermissionDenied(
                    "`webhook-timestamp` is more than 5 min from now".into(),
                ));
            }
            mac.update(format!("{id}.{stamp}.").as_bytes());
            mac.update(body);
            let is_one = |one: &str| {
                let code = one.strip_prefix("v1,")?;
                let code = STANDARD.decode(code).ok()?;
                mac.clone().verify_slice(&code).ok()
            };
            let mut all = given.split(' ');
            all.find_map(is_one).ok_or_else(|| wrong(name))
        }
    }
}

/// Returns the signing key; `None` if the secret is empty or malformed.
pub(super) fn key(signature: &WebhookSignature) -> Option<Vec<u8>> {
    let secret = signature.secret.reveal();
    let key = match signature.scheme {
        SignatureScheme::HubSha256 | SignatureScheme::Sentry => secret.into(),
        SignatureScheme::StandardWebhooks => STANDARD
            .decode(secret.strip_prefix(STANDARD_PREFIX)?)
            .ok()?,
    };
    (!key.is_empty()).then_some(key)
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<_>> = text.chars().map(|it| it.to_digit(16)).collect();
    let digits = digits.filter(|it| it.len() % 2 == 0)?;
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).ok();
    digits.chunks(2).map(byte).collect()
}
