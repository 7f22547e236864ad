//! Secrets at rest, sealed with keys outside the store. The keys also authenticate records.

use std::fmt;

use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use hmac::{Hmac, Mac};
use rand::RngCore;
use sha2::Sha256;
use zeroize::Zeroize as _;

use crate::domain::{RecordId, Secret};

/// Format version of sealed data: version, key number (4 bytes), nonce (24 bytes), sealed text.
const LAYOUT: u8 = 1;
const NONCE_AT: usize = 5;
const SEALED_AT: usize = NONCE_AT + 24;

pub const KEY_BYTES: usize = 32;

/// Context for deriving the authentication key, because each key has a single use.
const PROOF: &[u8] = b"bellwether proof 1";
/// Bytes of a proof: key number and authentication code.
pub const PROOF_BYTES: usize = 4 + 32;

/// The context of a sealed text. A text moved to another context cannot be decrypted.
#[derive(Debug, Clone, Copy)]
pub struct SealContext<'a> {
    pub record: RecordId,
    /// Name of the field, such as `webhook.signing_secret`.
    pub field: &'a str,
}

impl SealContext<'_> {
    fn to_bytes(self) -> Vec<u8> {
        [&self.record.to_bytes(), self.field.as_bytes()].concat()
    }
}

/// A ring of keys that encrypts and decrypts secret fields with XChaCha20-Poly1305. The newest key
/// encrypts; all keys can decrypt.
pub struct Sealer {
    newest: u32,
    keys: Vec<RingKey>,
}

struct RingKey {
    number: u32,
    cipher: XChaCha20Poly1305,
    /// The authenticator, whose key is derived from this key.
    proof: Hmac<Sha256>,
}

/// A sealed text that cannot be decrypted: the key is not in the ring, or the bytes were modified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret cannot be decrypted with the keys in `secret.key`")]
pub struct SealError;

impl Sealer {
    /// Creates a ring of numbered keys; the highest number is the newest key.
    ///
    /// # Panics
    /// Panics if there is no key.
    pub fn new(keys: &[(u32, [u8; KEY_BYTES])]) -> Self {
        let newest = keys.iter().map(|(number, _)| *number).max();
        let ready = |(number, key): &(u32, [u8; KEY_BYTES])| RingKey {
            number: *number,
            cipher: XChaCha20Poly1305::new(Key::from_slice(key)),
            proof: new_mac(&new_mac(key).chain_update(PROOF).finalize().into_bytes()),
        };
        Self {
            newest: newest.expect("a ring has at least one key"),
            keys: keys.iter().map(ready).collect(),
        }
    }

    pub fn newest_number(&self) -> u32 {
        self.newest
    }

    /// Creates a ring with a random key, for stores that do not outlive the process.
    pub fn with_random_key() -> Self {
        Self::new(&[(1, random_key())])
    }

    /// Seals a text for its context.
    ///
    /// # Panics
    /// Never in practice: the cipher rejects only plaintexts of more than 256 GiB.
    pub fn seal(&self, context: SealContext<'_>, secret: &Secret) -> Vec<u8> {
        let mut nonce = [0; 24];
        rand::rng().fill_bytes(&mut nonce);
        let aad = context.to_bytes();
        let payload = Payload {
            msg: secret.reveal().as_bytes(),
            aad: &aad,
        };
        let sealed = self
            .find_key(self.newest)
            .and_then(|key| {
                let nonce = XNonce::from_slice(&nonce);
                key.cipher.encrypt(nonce, payload).ok()
            })
            .expect("the newest key is in the ring and the text is short");
        [&[LAYOUT][..], &self.newest.to_be_bytes(), &nonce, &sealed].concat()
    }

    /// Decrypts the result of [`Sealer::seal`] for the same context.
    ///
    /// # Errors
    /// Returns an error if no key of the ring can decrypt it.
    pub fn open(&self, context: SealContext<'_>, sealed: &[u8]) -> Result<Secret, SealError> {
        if sealed.len() < SEALED_AT || sealed[0] != LAYOUT {
            return Err(SealError);
        }
        let number = Self::key_number(sealed).ok_or(SealError)?;
        let nonce = XNonce::from_slice(&sealed[NONCE_AT..SEALED_AT]);
        let aad = context.to_bytes();
        let payload = Payload {
            msg: &sealed[SEALED_AT..],
            aad: &aad,
        };
        let key = self.find_key(number).ok_or(SealError)?;
        let text = key.cipher.decrypt(nonce, payload).or(Err(SealError))?;
        let text = String::from_utf8(text).map_err(|other| {
            other.into_bytes().zeroize();
            SealError
        });
        text.map(Secret::new)
    }

    pub fn key_number(sealed: &[u8]) -> Option<u32> {
        let number = sealed.get(1..NONCE_AT)?;
        Some(u32::from_be_bytes(number.try_into().ok()?))
    }

    /// Creates an authentication code with the newest key. It proves, for one purpose, that the
    /// bytes were written by an owner of the key.
    ///
    /// # Panics
    /// Never: the newest key is in the ring.
    pub fn compute_proof(&self, purpose: &str, parts: &[&[u8]]) -> [u8; PROOF_BYTES] {
        let key = self
            .find_key(self.newest)
            .expect("the newest key is in the ring");
        let mut proof = [0; PROOF_BYTES];
        let (number, code) = proof.split_at_mut(4);
        number.copy_from_slice(&self.newest.to_be_bytes());
        code.copy_from_slice(&compute_mac(key, purpose, parts).finalize().into_bytes());
        proof
    }

    /// Whether the proof was made by [`Sealer::compute_proof`] with a key of the ring for the same
    /// bytes.
    pub fn is_proven(&self, purpose: &str, parts: &[&[u8]], proof: &[u8]) -> bool {
        let Some((number, code)) = proof.split_first_chunk() else {
            return false;
        };
        self.find_key(u32::from_be_bytes(*number))
            .is_some_and(|key| compute_mac(key, purpose, parts).verify_slice(code).is_ok())
    }

    fn find_key(&self, number: u32) -> Option<&RingKey> {
        self.keys.iter().find(|key| key.number == number)
    }
}

fn compute_mac(key: &RingKey, purpose: &str, parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut code = key.proof.clone();
    for part in std::iter::once(purpose.as_bytes()).chain(parts.iter().copied()) {
        code.update(&(part.len() as u64).to_be_bytes());
        code.update(part);
    }
    code
}

fn new_mac(key: &[u8]) -> Hmac<Sha256> {
    <Hmac<Sha256> as Mac>::new_from_slice(key).expect("a key may have any length")
}

pub fn random_key() -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    rand::rng().fill_bytes(&mut key);
    key
}

impl fmt::Debug for Sealer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.keys.iter().map(|key| key.number).collect();
        formatter
            .debug_struct("Sealer")
            .field("keys", &numbers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT: SealContext<'_> = SealContext {
        record: RecordId::from_bytes([7; 16]),
        field: "slack.token",
    };

    #[test]
    fn sealed_text_opens_only_in_its_context() {
        let sealer = Sealer::with_random_key();
        let bytes = sealer.seal(CONTEXT, &Secret::new("xoxb-1"));
        assert!(!bytes.windows(6).any(|window| window == b"xoxb-1"));
        assert_eq!(sealer.open(CONTEXT, &bytes).unwrap().reveal(), "xoxb-1");
        let elsewhere = SealContext {
            field: "slack.other",
            ..CONTEXT
        };
        assert_eq!(sealer.open(elsewhere, &bytes), Err(SealError));
        assert_eq!(
            Sealer::with_random_key().open(CONTEXT, &bytes),
            Err(SealError)
        );
    }

    #[test]
    fn old_keys_open_and_newest_key_seals() {
        let (old, new) = (random_key(), random_key());
        let bytes = Sealer::new(&[(1, old)]).seal(CONTEXT, &Secret::new("before"));
        let ring = Sealer::new(&[(1, old), (2, new)]);
        assert_eq!(ring.open(CONTEXT, &bytes).unwrap().reveal(), "before");
        let bytes = ring.seal(CONTEXT, &Secret::new("after"));
        assert_eq!(
            Sealer::new(&[(2, new)])
                .open(CONTEXT, &bytes)
                .unwrap()
                .reveal(),
            "after"
        );
    }

    #[test]
    fn proof_is_bound_to_bytes_purpose_and_key() {
        let (old, new) = ((1, random_key()), (2, random_key()));
        let proof = Sealer::new(&[old]).compute_proof("record", &[b"ab", b"c"]);
        let ring = Sealer::new(&[old, new]);
        assert!(ring.is_proven("record", &[b"ab", b"c"], &proof));
        assert!(!ring.is_proven("record", &[b"a", b"bc"], &proof));
        assert!(!ring.is_proven("step", &[b"ab", b"c"], &proof));
        assert!(!Sealer::new(&[new]).is_proven("record", &[b"ab", b"c"], &proof));
        for at in 0..proof.len() {
            let mut changed = proof;
            changed[at] ^= 1;
            assert!(!ring.is_proven("record", &[b"ab", b"c"], &changed), "{at}");
        }
        assert!(!ring.is_proven("record", &[b"ab", b"c"], &[]));
    }

    #[test]
    fn changed_bytes_do_not_open() {
        let sealer = Sealer::with_random_key();
        let bytes = sealer.seal(CONTEXT, &Secret::new("text"));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(sealer.open(CONTEXT, &changed), Err(SealError), "byte {at}");
        }
        assert_eq!(sealer.open(CONTEXT, &[]), Err(SealError));
    }
}
