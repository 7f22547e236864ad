//! What is written down of a change: who made it, when, and what was before and after it.

use std::net::IpAddr;

use crate::domain::AnyResource;

/// What one call did to one thing, or to several that are only counted.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// Its place in the chain, from 1.
    pub number: u64,
    /// When the call came in, in milliseconds since 1970.
    pub time_ms: i64,
    /// The client that called; empty for a call without a known key.
    pub client: String,
    /// The address that it called from, where that is known.
    pub address: Option<IpAddr>,
    /// The method, without the slash before it.
    pub method: String,
    /// What was done.
    pub action: AuditAction,
    /// The word for the kind of thing.
    pub kind: String,
    /// What it is called; some of several.
    pub names: Vec<String>,
    /// How many it stands for.
    pub count: u32,
    /// It as it was.
    pub before: Option<AnyResource>,
    /// It as it is.
    pub after: Option<AnyResource>,
    /// The secrets that were given or changed, as paths.
    pub changed_secrets: Vec<String>,
    /// Why a call was refused.
    pub reason: String,
    /// The hash of the entry before; zeros before the first.
    pub previous: [u8; 32],
    /// The hash of this one and all before it.
    pub hash: [u8; 32],
    /// Whether a key of the service proves the hash, as it was read.
    pub is_proven: bool,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditAction {
    /// It was made.
    Created,
    /// It was changed.
    Updated,
    /// It was deleted.
    Deleted,
    /// Everything was read.
    Read,
    /// The call was refused.
    Refused,
}
