//! What was answered to a request that may come again.

use crate::domain::RecordId;

/// The answer to a request with an idempotency key, kept so that it can be given again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Whose key it is: two clients may use the same one.
    pub client: RecordId,
    /// The idempotency key.
    pub key: String,
    /// SHA-256 of the request, to distinguish it from another one under the same key.
    pub fingerprint: [u8; 32],
    /// When the request was carried out, in milliseconds since 1970.
    pub create_ms: i64,
    /// The events that were not accepted, in the order of their places.
    pub refused: Vec<Refusal>,
}

/// Why one event of a list was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The event's place in the list, from 0.
    pub place: usize,
    /// The error, for people.
    pub reason: String,
}
