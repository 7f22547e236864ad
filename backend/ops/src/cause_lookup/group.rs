//! Groups as seen by decisions.

use crate::{
    decide::GroupAt,
    domain::{Group, GroupKey, GroupRef, RecordId},
    store::{
        Direction, EngineError, Index, Membership, Store, Stored, engine::Range, record::bytes::Key,
    },
};

pub fn membership_range(how: Membership, id: RecordId) -> Range {
    Range::with_prefix(&Key::new().byte(how as u8).id(id).build())
}

async fn has_any_member(store: &Store, how: Membership, id: RecordId) -> Result<bool, EngineError> {
    let index = Index::OccurrenceByGroup;
    let range = membership_range(how, id);
    let found = store
        .engine()
        .entries(index, range, Direction::Ascending, 1);
    Ok(!found.await?.is_empty())
}

pub async fn joinable_group(
    store: &Store,
    key: GroupKey,
) -> Result<Option<Stored<Group>>, EngineError> {
    let range = Range::with_prefix(&key.to_bytes());
    let found = store.page_by_index::<Group>(Index::GroupByKey, range, Direction::Descending, 1);
    Ok(found.await?.pop().map(|(_, it)| it))
}

/// Returns a group as seen by decisions; `None` if there is no group, or no group to join.
pub async fn read_group(store: &Store, ask: GroupRef) -> Result<Option<GroupAt>, EngineError> {
    let found = match ask {
        GroupRef::Key(key) => joinable_group(store, key).await?,
        GroupRef::Id(id) => store.get::<Group>(id.to_bytes().into()).await?,
    };
    let Some(group) = found.map(|it| it.value) else {
        return Ok(None);
    };
    let is_notified_open = has_any_member(store, Membership::Open, group.id).await?;
    if matches!(ask, GroupRef::Key(_))
        && !is_notified_open
        && !has_any_member(store, Membership::Updated, group.id).await?
    {
        // No member is open and no one is to be notified: the group has ended.
        return Ok(None);
    }
    let joins = group.accepts_members();
    let is_open =
        is_notified_open || joins && has_any_member(store, Membership::Joining, group.key).await?;
    Ok(Some(GroupAt {
        notified_ms: group.notified_ms,
        next_ms: group.last_ms.saturating_add(group.interval_ms),
        is_open,
        is_over: group.end_ms.is_some(),
    }))
}
