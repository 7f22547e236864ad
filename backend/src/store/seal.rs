//! Secrets at rest: sealed with keys that live outside the store.

use std::fmt;

use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use rand::RngCore;

use crate::domain::{RecordId, Secret};

/// Version of the layout: version, key number (4 bytes), nonce (24 bytes), sealed text.
const LAYOUT: u8 = 1;
const NONCE_AT: usize = 5;
const SEALED_AT: usize = NONCE_AT + 24;

/// A key of 256 bits.
pub const KEY_BYTES: usize = 32;

/// What a sealed text belongs to; a text moved to another place does not open there.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The record that holds it.
    pub record: RecordId,
    /// The field, such as `webhook.signing_secret`.
    pub field: &'a str,
}

impl Place<'_> {
    fn to_bytes(self) -> Vec<u8> {
        [&self.record.to_bytes(), self.field.as_bytes()].concat()
    }
}

/// Seals and opens secret fields with XChaCha20-Poly1305.
///
/// It holds a ring of keys: the newest seals, every one opens.
pub struct Sealer {
    newest: u32,
    keys: Vec<(u32, XChaCha20Poly1305)>,
}

/// A sealed text that does not open: the key is not in the ring, or the bytes were changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a sealed secret does not open with the keys in `secret.key`")]
pub struct SealError;

impl Sealer {
    /// Takes keys with their numbers; the highest number is the newest key.
    ///
    /// # Panics
    /// When there is no key.
    pub fn new(keys: &[(u32, [u8; KEY_BYTES])]) -> Self {
        let newest = keys.iter().map(|(number, _)| *number).max();
        let cipher = |(number, key): &(u32, [u8; KEY_BYTES])| {
            (*number, XChaCha20Poly1305::new(Key::from_slice(key)))
        };
        Self {
            newest: newest.expect("a ring holds at least one key"),
            keys: keys.iter().map(cipher).collect(),
        }
    }

    /// The number of the key that seals.
    pub fn newest(&self) -> u32 {
        self.newest
    }

    /// A ring with one key made on the spot, for stores that do not outlive the process.
    pub fn ephemeral() -> Self {
        Self::new(&[(1, random_key())])
    }

    /// Seals a text for its place.
    ///
    /// # Panics
    /// Never in practice: the cipher refuses only texts of more than 256 GiB.
    pub fn seal(&self, place: Place<'_>, secret: &Secret) -> Vec<u8> {
        let mut nonce = [0; 24];
        rand::rng().fill_bytes(&mut nonce);
        let aad = place.to_bytes();
        let payload = Payload {
            msg: secret.reveal().as_bytes(),
            aad: &aad,
        };
        let sealed = self
            .cipher(self.newest)
            .and_then(|cipher| cipher.encrypt(XNonce::from_slice(&nonce), payload).ok())
            .expect("the newest key is in the ring and the text is short");
        [&[LAYOUT][..], &self.newest.to_be_bytes(), &nonce, &sealed].concat()
    }

    /// Opens what [`Sealer::seal`] made for the same place.
    ///
    /// # Errors
    /// When no key of the ring opens it.
    pub fn open(&self, place: Place<'_>, sealed: &[u8]) -> Result<Secret, SealError> {
        if sealed.len() < SEALED_AT || sealed[0] != LAYOUT {
            return Err(SealError);
        }
        let number: [u8; 4] = sealed[1..NONCE_AT].try_into().or(Err(SealError))?;
        let nonce = XNonce::from_slice(&sealed[NONCE_AT..SEALED_AT]);
        let aad = place.to_bytes();
        let payload = Payload {
            msg: &sealed[SEALED_AT..],
            aad: &aad,
        };
        let cipher = self.cipher(u32::from_be_bytes(number)).ok_or(SealError)?;
        let text = cipher.decrypt(nonce, payload).or(Err(SealError))?;
        Ok(Secret::new(String::from_utf8(text).or(Err(SealError))?))
    }

    fn cipher(&self, number: u32) -> Option<&XChaCha20Poly1305> {
        self.keys
            .iter()
            .find(|(other, _)| *other == number)
            .map(|(_, cipher)| cipher)
    }
}

/// A key from the system's random source.
pub fn random_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    rand::rng().fill_bytes(&mut key);
    key
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.keys.iter().map(|(number, _)| number).collect();
        formatter
            .debug_struct("Sealer")
            .field("keys", &numbers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place {
        record: RecordId::from_bytes([7; 16]),
        field: "slack.token",
    };

    #[test]
    fn a_sealed_text_opens_at_its_place_and_nowhere_else() {
        let sealer = Sealer::ephemeral();
        let bytes = sealer.seal(PLACE, &Secret::new("xoxb-1"));
        assert!(!bytes.windows(6).any(|window| window == b"xoxb-1"));
        assert_eq!(sealer.open(PLACE, &bytes).unwrap().reveal(), "xoxb-1");
        let elsewhere = Place {
            field: "slack.other",
            ..PLACE
        };
        assert_eq!(sealer.open(elsewhere, &bytes), Err(SealError));
        assert_eq!(Sealer::ephemeral().open(PLACE, &bytes), Err(SealError));
    }

    #[test]
    fn old_keys_open_and_the_newest_seals() {
        let (old, new) = (random_key(), random_key());
        let bytes = Sealer::new(&[(1, old)]).seal(PLACE, &Secret::new("before"));
        let ring = Sealer::new(&[(1, old), (2, new)]);
        assert_eq!(ring.open(PLACE, &bytes).unwrap().reveal(), "before");
        let bytes = ring.seal(PLACE, &Secret::new("after"));
        assert_eq!(
            Sealer::new(&[(2, new)])
                .open(PLACE, &bytes)
                .unwrap()
                .reveal(),
            "after"
        );
    }

    #[test]
    fn changed_bytes_do_not_open() {
        let sealer = Sealer::ephemeral();
        let bytes = sealer.seal(PLACE, &Secret::new("text"));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(sealer.open(PLACE, &changed), Err(SealError), "byte {at}");
        }
        assert_eq!(sealer.open(PLACE, &[]), Err(SealError));
    }
}
