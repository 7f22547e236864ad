//! Verifies that the audit log is a chain, and that the keys authenticate its end.

use super::{PAGE, Verifier, key_after};
use crate::{
    domain::AuditEntry,
    engine::{Direction, EngineError, Kind, Range},
};

impl Verifier<'_> {
    /// Follows the chain from the oldest stored entry. Unreadable entries have already been
    /// reported.
    pub(super) async fn check_audit_log(&mut self) -> Result<(), EngineError> {
        let mut range = Range::with_prefix(b"");
        let mut last: Option<AuditEntry> = None;
        loop {
            let engine = self.store.engine();
            let page = engine.read_page(Kind::Audit, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((key, _)) = page.last() else {
                break;
            };
            range.start = key_after(key);
            for (_, row) in page {
                let Ok(entry) = self.store.decode::<AuditEntry>(&row.value) else {
                    continue;
                };
                if let Some(last) = &last {
                    self.check_link(last, &entry);
                }
                last = Some(entry);
            }
        }
        if let Some(last) = last.filter(|last| !last.is_proven) {
            let number = last.number;
            let message = "was not written by this service, or was written with another key";
            self.findings
                .add_error(format!("audit entry {number}, the newest, {message}"));
        }
        Ok(())
    }

    fn check_link(&mut self, last: &AuditEntry, next: &AuditEntry) {
        let (from, to) = (last.number, next.number);
        if from.checked_add(1) != Some(to) {
            self.findings
                .add_error(format!("audit entries between {from} and {to} are missing"));
        } else if next.previous != last.hash {
            self.findings.add_error(format!(
                "audit entry {to} does not follow from {from}: one of them was modified"
            ));
        }
    }
}
