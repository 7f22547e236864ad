//! Groups: occurrences that a rule reports together in one message.

pub mod list;
pub mod notify;
pub mod respond;

use crate::{
    decision_context::DecisionContext,
    domain::Group,
    error::Error,
    limits::PAGE_SIZE_MAX,
    store::{Direction, Index, Lane, engine::Range, record::bytes::Key},
};

/// Deletes groups that have been over for longer than the retention of closed occurrences.
pub async fn delete_expired(deciding: &DecisionContext) -> Result<(), Error> {
    let snapshot = deciding.ruleset.refresh().await?;
    let retention = snapshot.settings().event_retention;
    if retention.is_zero() {
        return Ok(());
    }
    let retention_ms = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    let before_ms = deciding.clock.now_ms().saturating_sub(retention_ms);
    let store = &deciding.store;
    loop {
        let range = Range {
            start: Vec::new(),
            end: Some(Key::new().time_ms(before_ms).build()),
        };
        let (index, ascending) = (Index::GroupByEnd, Direction::Ascending);
        let found = store.page_by_index::<Group>(index, range, ascending, PAGE_SIZE_MAX);
        let found = found.await?;
        if found.is_empty() {
            return Ok(());
        }
        let mut changes = store.new_changes();
        changes.depend_on(&snapshot);
        for (_, stored) in &found {
            changes.delete(stored);
        }
        store.apply(Lane::Bulk, changes).await?;
    }
}

#[cfg(test)]
mod tests;
