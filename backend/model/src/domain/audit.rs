//! Audit entries, which record who changed what.

use std::net::IpAddr;

use crate::domain::AnyResource;

/// The effect of one call on one resource, or on several resources that are only counted.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The position in the chain, counted from 1.
    pub number: u64,
    pub time_ms: i64,
    /// The calling client; empty if the key was unknown.
    pub client: String,
    pub address: Option<IpAddr>,
    /// The name that the calling program gave itself; empty if none.
    pub agent: String,
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
    /// The hash of the previous entry; zeros for the first entry.
    pub previous: [u8; 32],
    /// The hash over this entry and all previous ones.
    pub hash: [u8; 32],
    /// Whether the hash was verified with a key of the service when read.
    pub is_proven: bool,
}

/// The action of an audit entry, with its numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditAction {
    Created = 1,
    Updated = 2,
    Deleted = 3,
    /// The whole store was exported.
    Read = 4,
    Refused = 5,
}
