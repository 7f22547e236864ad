//! Records with every field set, as [`bellwether_backend_model::samples`] has them, and an entry of the audit log.

use super::{audit::By, record};
use crate::domain::{AnyResource, AuditAction, AuditEntry};

pub use bellwether_backend_model::samples::*;

/// An entry as the log stores it: with its number, after one with that hash.
pub fn chained(entry: AuditEntry, number: u64, previous: [u8; 32]) -> AuditEntry {
    record::chained(entry, number, previous)
}

/// An entry of the audit log, at the beginning of a chain.
pub fn audit_entry() -> AuditEntry {
    let by = By {
        client: "jane".into(),
        address: Some([192, 0, 2, 7].into()),
        method: "/bellwether.v1.TriggerService/UpdateTrigger",
        time_ms: 1_800_000_000_000,
        scope: std::sync::Arc::default(),
    };
    let mut after = trigger("disk");
    after.description = "disks that are full".into();
    let entry = AuditEntry {
        kind: "trigger".into(),
        names: vec!["disk".into()],
        before: Some(AnyResource::Trigger(trigger("disk"))),
        after: Some(AnyResource::Trigger(after)),
        changed_secrets: vec!["webhook.signingSecret".into()],
        reason: "because".into(),
        ..by.entry(AuditAction::Updated)
    };
    chained(entry, 1, [0; 32])
}
