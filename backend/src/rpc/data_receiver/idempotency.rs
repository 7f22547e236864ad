//! Idempotency keys: extraction from a request, and the fingerprint of the request.

use bellwether_proto::cloud::Events;
use prost::Message;
use sha2::{Digest, Sha256};
use tonic::metadata::MetadataMap;

use crate::{error::Error, limits::IDEMPOTENCY_KEY_CHARACTERS_MAX};

const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Metadata key that marks a response as the response to an earlier request.
pub(super) const REPLAYED: &str = "idempotent-replayed";

/// Returns the idempotency key of a request; `None` if it has none.
///
/// # Errors
///
/// Returns [`Error::Invalid`] for an invalid key, or for several keys.
pub(super) fn idempotency_key(metadata: &MetadataMap) -> Result<Option<String>, Error> {
    let refuse = |message: String| Error::invalid(IDEMPOTENCY_KEY, message);
    let mut values = metadata.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(refuse("is set more than once".into()));
    }
    let bytes = value.as_encoded_bytes();
    if !(1..=IDEMPOTENCY_KEY_CHARACTERS_MAX).contains(&bytes.len()) {
        let (found, most) = (bytes.len(), IDEMPOTENCY_KEY_CHARACTERS_MAX);
        return Err(refuse(format!(
            "has {found} characters; expected 1 to {most}"
        )));
    }
    let text = std::str::from_utf8(bytes).ok();
    let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    match text {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(refuse(
            "must contain only visible ASCII characters, no spaces".into(),
        )),
    }
}

pub(super) fn check_no_key(metadata: &MetadataMap) -> Result<(), Error> {
    if metadata.get(IDEMPOTENCY_KEY).is_none() {
        return Ok(());
    }
    Err(Error::invalid(
        IDEMPOTENCY_KEY,
        "a stream is ingested in parts and cannot be deduplicated; use PutEvents",
    ))
}

pub(super) fn fingerprint(request: &Events) -> [u8; 32] {
    Sha256::digest(request.encode_to_vec()).into()
}
