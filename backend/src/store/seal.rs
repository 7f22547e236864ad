//! Secrets at rest: sealed with a key that lives outside the store.

/// Seals and opens secret fields.
#[derive(Debug)]
pub struct Sealer {}
