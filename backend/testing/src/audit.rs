//! Samples of entries of the audit log.

use bellwether_backend_store::audit::Actor;
use bellwether_backend_store::record::chain_entry;

use crate::{
    domain::{AnyResource, AuditAction, AuditEntry},
    samples::trigger,
};

pub fn audit_entry() -> AuditEntry {
    let by = Actor {
        client: "jane".into(),
        address: Some([192, 0, 2, 7].into()),
        agent: String::new(),
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
        ..by.audit_entry(AuditAction::Updated)
    };
    chain_entry(entry, 1, [0; 32])
}
