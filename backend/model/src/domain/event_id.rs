//! The identity of an event.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use sha2::{Digest, Sha256};

/// The identity of an event: 20 bytes, written as 28 characters of URL-safe base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId([u8; 20]);

pub const NO_EVENT_ID: &str = "is not an event id; expected 28 letters, digits, `-` and `_`, \
                               ending in `=`, such as `srA3uT2yyyhRjLndgql5Q9qCwjE=`; a search \
                               finds the id by a name";

impl EventId {
    /// The identity is the first 20 bytes of a SHA-256 over the strings, each prefixed with its
    /// length as four bytes, so that different lists of strings never produce the same input.
    pub fn derive(name: &str, dimensions: &BTreeMap<String, String>) -> Self {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
            hash.update(length.to_be_bytes());
            hash.update(text.as_bytes());
        };
        add(name);
        for (key, value) in dimensions {
            add(key);
            add(value);
        }
        let digest = hash.finalize();
        let mut bytes = [0; 20];
        bytes.copy_from_slice(&digest[..20]);
        Self(bytes)
    }

    pub fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE.decode(text).ok()?;
        Some(Self(bytes.try_into().ok()?))
    }

    pub fn to_bytes(self) -> [u8; 20] {
        self.0
    }

    /// Returns the first ten characters as a number that sorts like the text. With 60 bits of a
    /// hash, two events practically never have the same number.
    pub fn sort_prefix(self) -> u64 {
        let (first, _) = self.0.split_at(8);
        let first = first
            .iter()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        (0..10).fold(0, |order, at| {
            let value = (first >> (58 - 6 * at)) & 63;
            // In ASCII, `-` sorts before digits, capitals, `_` and small letters.
            let rank = match value {
                0..=25 => value + 11,
                26..=51 => value + 12,
                52..=61 => value - 51,
                62 => 0,
                _ => 37,
            };
            order << 6 | rank
        })
    }

    pub fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&URL_SAFE.encode(self.0))
    }
}
