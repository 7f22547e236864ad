//! Audit entries, which record who changed what.

use std::net::IpAddr;

use crate::domain::AnyResource;

/// The effect of one call on one resource, or on several that are only counted.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    /// The position in the chain, from 1.
    pub number: u64,
    /// Time of the call, in milliseconds since 1970.
    pub time_ms: i64,
    /// The client that called; empty if the key was unknown.
    pub client: String,
    /// The address of the client, if known.
    pub address: Option<IpAddr>,
    /// The method, without the leading slash.
    pub method: String,
    /// The action.
    pub action: AuditAction,
    /// The name of the resource kind.
    pub kind: String,
    /// The names of the resources; only some if there are many.
    pub names: Vec<String>,
    /// Number of resources it covers.
    pub count: u32,
    /// The resource before the change.
    pub before: Option<AnyResource>,
    /// The resource after the change.
    pub after: Option<AnyResource>,
    /// The paths of the secrets that were set or changed.
    pub changed_secrets: Vec<String>,
    /// The reason a call was refused.
    pub reason: String,
    /// The hash of the previous entry; zeros for the first.
    pub previous: [u8; 32],
    /// The hash of this entry and all before it.
    pub hash: [u8; 32],
    /// Whether the hash was verified with a key of the service when read.
    pub is_proven: bool,
}

/// An audited action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AuditAction {
    /// A resource was created.
    Created,
    /// A resource was updated.
    Updated,
    /// A resource was deleted.
    Deleted,
    /// Everything was exported.
    Read,
    /// The call was refused.
    Refused,
}
