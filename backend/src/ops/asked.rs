//! Reads the sources of inhibitions and the groups that decisions ask for.

pub mod group;

use crate::{
    decide::{Asked, Causes},
    domain::Occurrence,
    error::Error,
    limits::INHIBITION_SOURCES_MAX,
    store::{Direction, EngineError, Index, Store, engine::Range, record::bytes::Key},
};

/// Makes a decision until it knows everything that it asks the causes for; answers the last one.
///
/// # Errors
/// Those of `decide` and of the store.
pub async fn settled<T, F>(
    store: &Store,
    causes: &Causes,
    decide: impl Fn() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    loop {
        let decided = decide().await?;
        if settle(store, causes).await? {
            return Ok(decided);
        }
    }
}

/// Reads what a decision asked for and did not know; whether it knew everything. If not, it is to be
/// made again.
///
/// # Errors
/// Those of the store.
pub async fn settle(store: &Store, causes: &Causes) -> Result<bool, EngineError> {
    let wanted = causes.begin_again();
    let is_settled = wanted == Asked::default();
    for ask in wanted.groups {
        causes.learn_group(ask, group::at(store, ask).await?);
    }
    let under = |prefixes: Vec<Vec<u8>>| prefixes.iter().map(|it| Range::under(it)).collect();
    let inhibitions = wanted.inhibitions.iter().map(|it| it.to_bytes().into());
    let first = entries(store, under(inhibitions.collect()), 1).await?;
    for (inhibition, first) in wanted.inhibitions.into_iter().zip(first) {
        causes.learn_of(inhibition, !first.is_empty());
    }
    let keys = wanted.keys.iter();
    let keys = keys.map(|(inhibition, values)| Key::new().id(*inhibition).rest(values).build());
    let found = entries(store, under(keys.collect()), INHIBITION_SOURCES_MAX).await?;
    for (key, found) in wanted.keys.into_iter().zip(found) {
        let records = found.into_iter().map(|(_, record)| record).collect();
        let found = store.get_many::<Occurrence>(records).await?;
        let found = found.into_iter().flatten().map(|it| it.value).collect();
        causes.learn(key, found);
    }
    Ok(is_settled)
}

/// The first entries of sources in each of the ranges.
async fn entries(
    store: &Store,
    ranges: Vec<Range>,
    limit: usize,
) -> Result<Vec<Vec<(Vec<u8>, Vec<u8>)>>, EngineError> {
    if ranges.is_empty() {
        return Ok(Vec::new());
    }
    let (index, ascending) = (Index::OccurrenceByCause, Direction::Ascending);
    let engine = store.engine();
    engine.entries_in(index, &ranges, ascending, limit).await
}
