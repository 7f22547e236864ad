//! Verifies that the audit log is a chain whose end is proven by the keys.

use super::{Check, PAGE, after};
use crate::{
    domain::AuditEntry,
    engine::{Direction, EngineError, Kind, Range},
};

impl Check<'_> {
    /// Follows the chain from the oldest stored entry. Unreadable ones have already been reported.
    pub(super) async fn audit_log(&mut self) -> Result<(), EngineError> {
        let mut range = Range::under(b"");
        let mut last: Option<AuditEntry> = None;
        loop {
            let engine = self.store.engine();
            let page = engine.page(Kind::Audit, range.clone(), Direction::Ascending, PAGE);
            let page = page.await?;
            let Some((key, _)) = page.last() else {
                break;
            };
            range.start = after(key);
            for (_, row) in page {
                let Ok(entry) = self.store.decode::<AuditEntry>(&row.value) else {
                    continue;
                };
                if let Some(last) = &last {
                    self.follows(last, &entry);
                }
                last = Some(entry);
            }
        }
        if let Some(last) = last.filter(|last| !last.is_proven) {
            let number = last.number;
            let fault = "was not written by this service, or was written with another key";
            self.findings
                .tell(format!("audit entry {number}, the newest, {fault}"));
        }
        Ok(())
    }

    fn follows(&mut self, last: &AuditEntry, next: &AuditEntry) {
        let (from, to) = (last.number, next.number);
        if from.checked_add(1) != Some(to) {
            self.findings
                .tell(format!("audit entries between {from} and {to} are missing"));
        } else if next.previous != last.hash {
            self.findings.tell(format!(
                "audit entry {to} does not follow from {from}: one of them was changed"
            ));
        }
    }
}
