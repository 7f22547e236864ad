//! Audit entries, which record who changed what.

use std::net::IpAddr;

use crate::domain::AnyResource;

/// The effect of one call on one resource, or on several that are only counted.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The position in the chain, from 1.
    pub number: u64,
    pub time_ms: i64,
    /// The client that called; empty if the key was unknown.
    pub client: String,
    pub address: Option<IpAddr>,
    /// The method, without the leading slash.
    pub method: String,
    pub action: AuditAction,
    pub kind: String,
    /// The names of the resources; only some if there are many.
    pub names: Vec<String>,
    pub count: u32,
    pub before: Option<AnyResource>,
    pub after: Option<AnyResource>,
    pub changed_secrets: Vec<String>,
    pub reason: String,
    /// The hash of the previous entry; zeros for the first.
    pub previous: [u8; 32],
    /// The hash of this entry and all before it.
    pub hash: [u8; 32],
    /// Whether the hash was verified with a key of the service when read.
    pub is_proven: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditAction {
    Created,
    Updated,
    Deleted,
    /// Everything was exported.
    Read,
    Refused,
}
