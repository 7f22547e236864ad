//! What tells one thing of a sender from another: event ids, and keys for what is sent once.

use std::collections::BTreeMap;

use base64::{
    Engine as _,
    engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD},
};
use sha2::{Digest as _, Sha256};

/// Bytes of an event's identity.
const EVENT_ID_BYTES: usize = 20;

/// The id of the event with that name and those dimensions, as the service derives it: the beginning
/// of SHA-256 over the texts in order, each after its length in four bytes.
pub(super) fn event_id(name: &str, dimensions: &BTreeMap<String, String>) -> String {
    let pairs = dimensions.iter();
    let texts = pairs.flat_map(|(key, value)| [&**key, &**value]);
    URL_SAFE.encode(&hash([name].into_iter().chain(texts))[..EVENT_ID_BYTES])
}

/// An idempotency key for a request that these texts tell from every other one.
pub(super) fn once<'a>(dialect: &str, texts: impl IntoIterator<Item = &'a str>) -> String {
    format!("{dialect}-{}", URL_SAFE_NO_PAD.encode(hash(texts)))
}

fn hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in texts {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        hash.update(length.to_be_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().into()
}
