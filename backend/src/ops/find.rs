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
    let range = Range::under(&Key::new().event(id.event).number(id.number).build());
    let found: Vec<(_, Stored<Occurrence>)> = store
        .page_by(Index::OccurrenceByEvent, range, Direction::Ascending, 1)
        .await?;
    Ok(found.into_iter().next().map(|(_, found)| found.value))
}
