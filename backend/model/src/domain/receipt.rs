//! Receipts: stored responses to requests that may be repeated.

use crate::domain::RecordId;

/// The response to a request with an idempotency key, stored so that it can be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The client that owns the key; different clients may use the same key.
    pub client: RecordId,
    pub key: String,
    /// SHA-256 of the request, to detect a different request with the same key.
    pub fingerprint: [u8; 32],
    pub create_ms: i64,
    /// The rejected events, in order of their index.
    pub refused: Vec<Refusal>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub place: usize,
    pub reason: String,
}
