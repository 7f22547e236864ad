//! Finding occurrences by what callers know of them.

use crate::{
    domain::{EventId, Occurrence, OccurrenceId},
    store::{Direction, EngineError, Index, Store, Stored, engine::Range, record::bytes::Key},
};

/// The newest occurrence of an event.
///
/// # Errors
/// Those of the store.
pub async fn newest(store: &Store, event: EventId) -> Result<Option<Occurrence>, EngineError> {
    let range = Range::under(&event.to_bytes());
    let found = store
        .page_by::<Occurrence>(Index::OccurrenceByEvent, range, Direction::Descending, 1)
        .await?;
    Ok(found.into_iter().next().map(|(_, found)| found.value))
}

/// One occurrence.
///
/// # Errors
/// Those of the store.
pub async fn occurrence(
    store: &Store,
    id: OccurrenceId,
) -> Result<Option<Occurrence>, EngineError> {
    Ok(stored(store, id).await?.map(|stored| stored.value))
}

/// One occurrence as it is stored, to be changed.
///
/// # Errors
/// Those of the store.
pub async fn stored(
    store: &Store,
    id: OccurrenceId,
) -> Result<Option<Stored<Occurrence>>, EngineError> {
    let range = Range::under(&Key::new().event(id.event).number(id.number).build());
    let index = Index::OccurrenceByEvent;
    let found = store.page_by(index, range, Direction::Ascending, 1).await?;
    Ok(found.into_iter().next().map(|(_, stored)| stored))
}
