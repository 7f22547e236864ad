//! A webhook receiver that verifies signatures, written from the Standard Webhooks specification
//! 1.0.0.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use super::{Answer, Rules};
use crate::receiver::Received;

/// Maximum clock difference of a message's timestamp, in seconds.
const TOLERANCE_SECONDS: i64 = 5 * 60;

/// A receiver that accepts only messages signed with one of its secrets.
#[derive(Debug)]
pub struct Verifier {
    /// Secrets of the form `whsec_…`.
    pub secrets: Vec<String>,
}

impl Rules for Verifier {
    fn judge(&mut self, request: &Received) -> Answer {
        let now = jiff::Timestamp::now().as_second();
        let wrong: Vec<_> = self
            .secrets
            .iter()
            .map_while(|secret| verify(request, secret, now).err())
            .collect();
        if wrong.len() < self.secrets.len() {
            return Answer::accepted(204, "");
        }
        Answer::refused(401, "no matching signature", wrong)
    }
}

/// Verifies a message according to the specification: the signature of `id.timestamp.body`, in
/// constant time, and the timestamp against the clock.
///
/// # Errors
/// Returns a description of the fault if verification fails.
///
/// # Panics
/// Never panics, because HMAC accepts keys of any length.
pub fn verify(request: &Received, secret: &str, now_seconds: i64) -> Result<(), String> {
    let header = |name: &str| {
        request
            .headers
            .get(name)
            .ok_or(format!("{name} is missing"))
    };
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    if id.is_empty() || id.contains('.') {
        return Err(format!("the id {id:?} cannot be part of what is signed"));
    }
    let seconds: i64 = timestamp
        .parse()
        .ok()
        .ok_or("the timestamp is not a number")?;
    if (now_seconds - seconds).abs() > TOLERANCE_SECONDS {
        return Err(format!("the timestamp {seconds} is not of now"));
    }
    let key = secret
        .strip_prefix("whsec_")
        .ok_or("not a symmetric secret")?;
    let key = STANDARD
        .decode(key)
        .ok()
        .ok_or("the secret is not base64")?;
    let signatures = header("webhook-signature")?.split(' ');
    let signed_by = |signature: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes keys of any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(&request.body);
        mac.verify_slice(signature).is_ok()
    };
    let matches = signatures
        .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
        .any(|signature| signed_by(&signature));
    if matches {
        Ok(())
    } else {
        Err("no signature matches".into())
    }
}
