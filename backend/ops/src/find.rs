//! Lookups of occurrences.

use crate::{
    domain::{EventId, IncomingEvent, Occurrence, OccurrenceId, Status},
    store::{Direction, EngineError, Index, Store, Stored, engine::Range, record::bytes::Key},
};

pub async fn newest_occurrence(
    store: &Store,
    event: EventId,
) -> Result<Option<Occurrence>, EngineError> {
    let (index, prefixes) = (Index::OccurrenceByEvent, [event.to_bytes().into()]);
    let found = store.last_with_prefix::<Occurrence>(index, &prefixes);
    Ok(found.await?.into_iter().flatten().next().map(|it| it.value))
}

pub async fn is_event_open(store: &Store, event: EventId) -> Result<bool, EngineError> {
    let newest = newest_occurrence(store, event).await?;
    Ok(newest.is_some_and(|it| it.status != Status::Closed))
}

/// Whether an event opens, or closes an occurrence that is open.
pub async fn has_effect(store: &Store, event: &IncomingEvent) -> Result<bool, EngineError> {
    let closes = event.status == Some(Status::Closed);
    Ok(!closes || is_event_open(store, event.id()).await?)
}

pub async fn find_occurrence(
    store: &Store,
    id: OccurrenceId,
) -> Result<Option<Occurrence>, EngineError> {
    Ok(find_stored(store, id).await?.map(|stored| stored.value))
}

pub async fn find_stored(
    store: &Store,
    id: OccurrenceId,
) -> Result<Option<Stored<Occurrence>>, EngineError> {
    let range = Range::with_prefix(&Key::new().event(id.event).number(id.number).build());
    let index = Index::OccurrenceByEvent;
    let found = store
        .page_by_index(index, range, Direction::Ascending, 1)
        .await?;
    Ok(found.into_iter().next().map(|(_, stored)| stored))
}
