//! The chain that entries of the audit log are part of, added to in the commits that they report
//! on.

use tokio::sync::Mutex;

use super::{Changes, Store, v1::audit::chained};
use crate::{
    audit::Audited,
    domain::AuditEntry,
    engine::{Applied, Direction, EngineError, Lane, Range},
};

/// Times that entries are put at the end again because another node did so at the same moment.
const TRIES_MAX: usize = 16;

/// The end of the chain, for the next writer: one at a time, so that no one's change conflicts over
/// it. Changes by people are rare.
#[derive(Debug, Default)]
pub(super) struct Chain(Mutex<Option<Link>>);

#[derive(Debug, Clone, Copy)]
struct Link {
    number: u64,
    hash: [u8; 32],
}

impl Store {
    /// Writes entries that stand for themselves.
    ///
    /// # Errors
    /// Those of the engine; nothing was written then, unless the outcome is not known.
    pub async fn write_audit(&self, entries: Vec<AuditEntry>) -> Result<(), EngineError> {
        let mut tries = 0;
        loop {
            let mut changes = self.changes();
            changes.audited = None;
            match self.chained(Lane::Admin, changes, entries.clone()).await {
                // Another node wrote down something at the same moment.
                Err(EngineError::Conflict(_)) if tries < TRIES_MAX => tries += 1,
                written => return written.map(drop),
            }
        }
    }

    pub(super) async fn apply_audited(
        &self,
        lane: Lane,
        changes: Changes,
        audited: Audited,
    ) -> Result<Applied, EngineError> {
        self.chained(lane, changes, audited.entries()).await
    }

    /// Applies changes together with their entries, at the end of the chain.
    async fn chained(
        &self,
        lane: Lane,
        mut changes: Changes,
        entries: Vec<AuditEntry>,
    ) -> Result<Applied, EngineError> {
        let mut end = self.chain.0.lock().await;
        // An interruption from here on leaves the next one to look.
        let mut link = match end.take() {
            Some(link) if !self.engine.is_shared() => link,
            _ => self.chain_end().await?,
        };
        for entry in entries {
            let entry = chained(entry, link.number + 1, link.hash);
            link = Link {
                number: entry.number,
                hash: entry.hash,
            };
            changes.insert(&entry);
        }
        let applied = self.apply_plain(lane, changes).await?;
        *end = Some(link);
        Ok(applied)
    }

    async fn chain_end(&self) -> Result<Link, EngineError> {
        let range = Range::under(&[]);
        let last = self.page::<AuditEntry>(range, Direction::Descending, 1);
        let last = last.await?.pop();
        Ok(last.map_or(
            Link {
                number: 0,
                hash: [0; 32],
            },
            |last| Link {
                number: last.value.number,
                hash: last.value.hash,
            },
        ))
    }
}
