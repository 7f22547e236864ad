//! Earlier revisions of definitions. A revision is stored when its definition is edited or deleted.
//! It is kept as long as occurrences may have been evaluated with it.

use crate::{
    clock::to_millis,
    commit::commit,
    decide::{NeededRevisions, PastDefinitions, Snapshot},
    domain::{Name, Occurrence, RecordId, RevisedResource, Revision, RevisionKind},
    error::Error,
    limits::{
        EVENT_AHEAD_MAX, REVISIONS_MAX, REVISIONS_OF_ONE_MAX, REVISIONS_STEP, SHIFTS_TIME_MAX,
    },
    store::{
        Changes, Direction, EngineError, Index, Lane, Store,
        engine::Range,
        record::bytes::{Key, read_time_ms},
    },
};

/// Stores the definition that `changes` replace at `until_ms` or, with `deleted`, delete. Also
/// deletes the oldest revision beyond [`REVISIONS_OF_ONE_MAX`].
pub async fn store_revision(
    store: &Store,
    was: RevisedResource,
    until_ms: i64,
    deleted: bool,
    changes: &mut Changes,
) -> Result<(), EngineError> {
    let replaced = Revision {
        was,
        until_ms,
        deleted,
    };
    let mut oldest = replaced.id();
    changes.insert(&replaced);
    if let Some(revision) = oldest.revision.checked_sub(REVISIONS_OF_ONE_MAX) {
        oldest.revision = revision;
        let key = Key::new().revision(replaced.kind(), &oldest).build();
        if let Some(stored) = store.get::<Revision>(key).await? {
            changes.delete(&stored);
        }
    }
    Ok(())
}

/// Reads all stored revisions of a name, including those of earlier definitions with the same name,
/// oldest first.
pub async fn stored_revisions(
    store: &Store,
    of: RevisionKind,
    name: &Name,
) -> Result<Vec<Revision>, EngineError> {
    let prefix = Key::new().byte(of as u8).name(name.as_str()).build();
    let found = store.page::<Revision>(
        Range::with_prefix(&prefix),
        Direction::Ascending,
        REVISIONS_MAX,
    );
    Ok(found
        .await?
        .into_iter()
        .map(|stored| stored.value)
        .collect())
}

/// Returns the time of the newest edit or deletion with a stored revision, in milliseconds since
/// the epoch.
pub async fn newest_end_ms(store: &Store) -> Result<Option<i64>, EngineError> {
    let all = Range::with_prefix(&[]);
    let engine = store.engine();
    let newest = engine.entries(Index::RevisionByEnd, all, Direction::Descending, 1);
    Ok(newest
        .await?
        .first()
        .and_then(|(key, _)| read_time_ms(key, 0)))
}

/// Deletes revisions that ended before the oldest stored occurrence was opened, and the oldest ones
/// beyond [`REVISIONS_MAX`]. Revisions of schedules are kept for the time over which shifts are
/// listed.
///
/// # Errors
/// Returns an error if the store fails; earlier deletions remain in effect.
pub async fn delete_unused(store: &Store, now_ms: i64) -> Result<(), Error> {
    let engine = store.engine();
    let all = || Range::with_prefix(&[]);
    let listed_ms = now_ms.saturating_sub(to_millis(SHIFTS_TIME_MAX));
    let mut rest = all();
    loop {
        let first = engine.entries(Index::OccurrenceByStart, all(), Direction::Ascending, 1);
        let first = first.await?;
        let opened_ms = first.first().and_then(|(key, _)| read_time_ms(key, 0));
        // The clock of a sender may be ahead by this amount.
        let ahead_ms = i64::try_from(EVENT_AHEAD_MAX.as_millis()).unwrap_or(i64::MAX);
        let needed_ms = opened_ms.map_or(i64::MAX, |at_ms| at_ms.saturating_sub(ahead_ms));
        let count = engine.count(Index::RevisionByEnd, all(), REVISIONS_MAX + REVISIONS_STEP);
        let excess = count.await?.saturating_sub(REVISIONS_MAX);
        let decide = async || {
            let range = rest.clone();
            let oldest = store
                .page_by_index::<Revision>(
                    Index::RevisionByEnd,
                    range,
                    Direction::Ascending,
                    REVISIONS_STEP,
                )
                .await?;
            let mut changes = store.new_changes();
            for (at, (_, stored)) in oldest.iter().enumerate() {
                let needed_ms = match stored.value.was {
                    RevisedResource::Schedule(_) => needed_ms.min(listed_ms),
                    _ => needed_ms,
                };
                if at < excess || stored.value.until_ms < needed_ms {
                    changes.delete(stored);
                }
            }
            let last = oldest.last().filter(|(_, last)| {
                oldest.len() == REVISIONS_STEP && last.value.until_ms < needed_ms
            });
            let is_excess = excess > REVISIONS_STEP;
            let last = last.or_else(|| oldest.last().filter(|_| is_excess));
            Ok((changes, last.map(|(key, _)| key.clone())))
        };
        match commit(store, Lane::Bulk, decide).await?.0 {
            Some(last) => rest.exclude_through(&last),
            None => return Ok(()),
        }
    }
}

/// Reads the definitions that are no longer in force but that updates about these occurrences may
/// have to report.
pub async fn read_past_definitions(
    store: &Store,
    snapshot: &Snapshot,
    occurrences: impl Iterator<Item = &Occurrence>,
) -> Result<PastDefinitions, EngineError> {
    let wanted = NeededRevisions::collect(snapshot, occurrences);
    let mut past = PastDefinitions::default();
    let revisions = wanted.revisions.iter();
    let mut keys: Vec<_> = revisions
        .map(|(of, id)| Key::new().revision(*of, id).build())
        .collect();
    if !keys.is_empty() {
        keys.sort_unstable();
        keys.dedup();
        let found = store.get_many::<Revision>(keys).await?;
        for stored in found.into_iter().flatten() {
            past.add(stored.value);
        }
    }
    for (name, id) in &wanted.deleted {
        if past.deleted_rule(*id).is_none()
            && let Some(last) = newest_revision(store, RevisionKind::Rule, name, *id).await?
        {
            past.add(last);
        }
    }
    Ok(past)
}

/// Reads the newest stored revision of a definition that is no longer in force.
pub async fn newest_revision(
    store: &Store,
    of: RevisionKind,
    name: &Name,
    id: RecordId,
) -> Result<Option<Revision>, EngineError> {
    let prefix = Key::new().byte(of as u8).name(name.as_str()).id(id).build();
    let range = Range::with_prefix(&prefix);
    let mut found = store
        .page::<Revision>(range, Direction::Descending, 1)
        .await?;
    Ok(found.pop().map(|stored| stored.value))
}

#[cfg(test)]
mod tests;
