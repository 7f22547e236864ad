//! Event ids and idempotency keys for senders.

use std::collections::BTreeMap;

use base64::{
    Engine as _,
    engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD},
};
use sha2::{Digest as _, Sha256};

const EVENT_ID_BYTES: usize = 20;

/// Returns the id of an event, derived as in the backend: a prefix of SHA-256 over the name and the
/// sorted dimensions, each text preceded by its length in four bytes.
pub(super) fn event_id(name: &str, dimensions: &BTreeMap<String, String>) -> String {
    let pairs = dimensions.iter();
    let texts = pairs.flat_map(|(key, value)| [&**key, &**value]);
    URL_SAFE.encode(&hash([name].into_iter().chain(texts))[..EVENT_ID_BYTES])
}

pub(super) fn idempotency_key<'a>(
    dialect: &str,
    texts: impl IntoIterator<Item = &'a str>,
) -> String {
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
