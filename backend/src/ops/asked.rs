//! Reads the sources of inhibitions and the groups that decisions ask for.

pub mod group;

use crate::{
    decide::Causes,
    domain::Occurrence,
    limits::INHIBITION_SOURCES_MAX,
    store::{Direction, EngineError, Index, Store, engine::Range, record::bytes::Key},
};

/// Reads what a decision asked for and did not know; whether it knew everything. If not, it is to be
/// made again.
///
/// # Errors
/// Those of the store.
pub async fn settle(store: &Store, causes: &Causes) -> Result<bool, EngineError> {
    let (wanted, groups) = causes.begin_again();
    let is_settled = wanted.is_empty() && groups.is_empty();
    for ask in groups {
        causes.learn_group(ask, group::at(store, ask).await?);
    }
    for key in wanted {
        let (inhibition, values) = key;
        let prefix = Key::new().id(inhibition).rest(&values).build();
        let found = store
            .page_by::<Occurrence>(
                Index::OccurrenceByCause,
                Range::under(&prefix),
                Direction::Ascending,
                INHIBITION_SOURCES_MAX,
            )
            .await?;
        let found = found.into_iter().map(|(_, it)| it.value).collect();
        causes.learn(key, found);
    }
    Ok(is_settled)
}
