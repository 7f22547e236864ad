//! The hash chain of the audit log, extended by the commits that it records.

use tokio::sync::Mutex;

use super::{Changes, Store, v1::audit::chain_entry};
use crate::{
    audit::ChangeAudit,
    domain::AuditEntry,
    engine::{ApplyResult, Direction, EngineError, Lane, Range},
};

/// Maximum number of retries when another node extends the chain concurrently.
const TRIES_MAX: usize = 16;

/// The end of the chain. Locked by the writer, so that changes within this process do not conflict.
/// Changes by users are rare, so the lock is rarely contended.
#[derive(Debug, Default)]
pub(super) struct Chain(Mutex<Option<ChainLink>>);

#[derive(Debug, Clone, Copy)]
struct ChainLink {
    number: u64,
    hash: [u8; 32],
}

impl Store {
    /// Writes standalone audit entries.
    ///
    /// # Errors
    /// Returns any error of the engine. Unless the outcome is unknown, the set was not written.
    pub async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), EngineError> {
        let mut tries = 0;
        loop {
            let mut changes = self.new_changes();
            changes.audited = None;
            match self
                .append_audit(Lane::Admin, changes, entries.clone())
                .await
            {
                Err(EngineError::Conflict(_)) if tries < TRIES_MAX => tries += 1,
                written => return written.map(drop),
            }
        }
    }

    pub(super) async fn apply_audited(
        &self,
        lane: Lane,
        changes: Changes,
        audited: ChangeAudit,
    ) -> Result<ApplyResult, EngineError> {
        self.append_audit(lane, changes, audited.entries()).await
    }

    async fn append_audit(
        &self,
        lane: Lane,
        mut changes: Changes,
        entries: Vec<AuditEntry>,
    ) -> Result<ApplyResult, EngineError> {
        let mut end = self.chain.0.lock().await;
        // If interrupted from here on, the next writer reads the end from the store.
        let mut link = match end.take() {
            Some(link) if !self.engine.is_shared() => link,
            _ => self.chain_end().await?,
        };
        for entry in entries {
            let entry = chain_entry(entry, link.number + 1, link.hash);
            link = ChainLink {
                number: entry.number,
                hash: entry.hash,
            };
            changes.insert(&entry);
        }
        let applied = self.apply_plain(lane, changes).await?;
        *end = Some(link);
        Ok(applied)
    }

    async fn chain_end(&self) -> Result<ChainLink, EngineError> {
        let range = Range::with_prefix(&[]);
        let last = self.page::<AuditEntry>(range, Direction::Descending, 1);
        let last = last.await?.pop();
        Ok(last.map_or(
            ChainLink {
                number: 0,
                hash: [0; 32],
            },
            |last| ChainLink {
                number: last.value.number,
                hash: last.value.hash,
            },
        ))
    }
}
