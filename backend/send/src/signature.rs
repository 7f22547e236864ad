//! Signatures according to Standard Webhooks 1.0.0.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use http::{HeaderName, HeaderValue};
use sha2::Sha256;

use crate::domain::{RecordId, Secret};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("webhook-signature");
/// Value of the signature header in a request that is shown but not sent.
pub(crate) const SET_WHEN_SENT: HeaderValue = HeaderValue::from_static("(set when sent)");
const SECRET_PREFIX: &str = "whsec_";

#[derive(Debug, thiserror::Error)]
#[error("the signing secret is not `whsec_` followed by base64")]
pub(crate) struct SecretError;

/// Returns the value of `webhook-signature`: one signature per secret, separated by spaces.
pub(crate) fn sign_with_secrets(
    secrets: &Secret,
    id: RecordId,
    timestamp_seconds: i64,
    body: &[u8],
) -> Result<String, SecretError> {
    let signatures = secrets
        .reveal()
        .split_whitespace()
        .map(|secret| sign_with_secret(secret, &id.to_string(), timestamp_seconds, body));
    Ok(signatures.collect::<Result<Vec<_>, _>>()?.join(" "))
}

fn sign_with_secret(
    secret: &str,
    id: &str,
    timestamp_seconds: i64,
    body: &[u8],
) -> Result<String, SecretError> {
    let key = secret.strip_prefix(SECRET_PREFIX).ok_or(SecretError)?;
    let key = STANDARD.decode(key).map_err(|_not_base64| SecretError)?;
    if key.is_empty() {
        return Err(SecretError);
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
    mac.update(format!("{id}.{timestamp_seconds}.").as_bytes());
    mac.update(body);
    Ok(format!(
        "v1,{}",
        STANDARD.encode(mac.finalize().into_bytes())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_matches_the_published_example() {
        let signature = sign_with_secret(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            br#"{"test": 2432232314}"#,
        );
        assert_eq!(
            signature.unwrap(),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn each_secret_adds_a_signature() {
        let id = RecordId::from_parts(1, 2);
        let one = |secret| sign_with_secrets(&Secret::new(secret), id, 7, b"body").unwrap();
        assert_eq!(
            one("whsec_AAAA whsec_BBBB"),
            format!("{} {}", one("whsec_AAAA"), one("whsec_BBBB"))
        );
    }

    #[test]
    fn invalid_secrets_are_rejected() {
        for secret in ["AAAA", "whsec_", "whsec_?", "whsec_AAAA other"] {
            let signed =
                sign_with_secrets(&Secret::new(secret), RecordId::from_parts(1, 2), 7, b"body");
            assert!(signed.is_err(), "{secret}");
        }
    }
}
