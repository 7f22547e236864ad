//! Groups as decisions see them.

use crate::{
    decide::GroupAt,
    domain::{Group, GroupKey, GroupRef, RecordId},
    store::{
        Direction, EngineError, Index, Membership, Store, Stored, engine::Range, record::bytes::Key,
    },
};

/// The range of the index in which occurrences stand so to a group, or to a key.
pub fn standing(how: Membership, id: RecordId) -> Range {
    Range::under(&Key::new().byte(how as u8).id(id).build())
}

/// Whether any occurrence stands so.
async fn any(store: &Store, how: Membership, id: RecordId) -> Result<bool, EngineError> {
    let index = Index::OccurrenceByGroup;
    let range = standing(how, id);
    let found = store
        .engine()
        .entries(index, range, Direction::Ascending, 1);
    Ok(!found.await?.is_empty())
}

/// The group that occurrences join which share that.
///
/// # Errors
/// Those of the store.
pub async fn joined(store: &Store, key: GroupKey) -> Result<Option<Stored<Group>>, EngineError> {
    let range = Range::under(&key.to_bytes());
    let found = store.page_by::<Group>(Index::GroupByKey, range, Direction::Descending, 1);
    Ok(found.await?.pop().map(|(_, it)| it))
}

/// A group as decisions see it; none where there is none, or none to join.
///
/// # Errors
/// Those of the store.
pub async fn at(store: &Store, ask: GroupRef) -> Result<Option<GroupAt>, EngineError> {
    let found = match ask {
        GroupRef::Key(key) => joined(store, key).await?,
        GroupRef::Id(id) => store.get::<Group>(id.to_bytes().into()).await?,
    };
    let Some(group) = found.map(|it| it.value) else {
        return Ok(None);
    };
    let is_notified_open = any(store, Membership::Open, group.id).await?;
    if matches!(ask, GroupRef::Key(_))
        && !is_notified_open
        && !any(store, Membership::News, group.id).await?
    {
        // Nothing of it is open, and no one is to be notified of that: it is over.
        return Ok(None);
    }
    let joins = group.takes_members();
    let is_open = is_notified_open || joins && any(store, Membership::Joining, group.key).await?;
    Ok(Some(GroupAt {
        notified_ms: group.notified_ms,
        next_ms: group.last_ms.saturating_add(group.interval_ms),
        is_open,
        is_over: group.end_ms.is_some(),
    }))
}
