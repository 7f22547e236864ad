//! Ended uses: overrides, layers and silences that have ended do not prevent the deletion of what
//! they refer to.

use super::{references::References, revision};
use crate::{
    decide::{Calendars, LoadedSchedule},
    domain::{Name, RevisedResource, Schedule, Silence},
    error::Error,
    store::{Changes, Kind, Record as _, Store},
};

/// Returns the current users of a calendar or contact. If all uses by one of them have ended,
/// removes them as part of `changes`; earlier revisions keep them.
pub(super) async fn users_in_force(
    store: &Store,
    (kind, name): (Kind, &Name),
    now_ms: i64,
    changes: &mut Changes,
) -> Result<References, Error> {
    let mut users = References::find(store, kind, name).await?;
    for (word, user) in users.take_references() {
        let is_in_use = if word == Kind::Schedule.as_str() {
            is_used_by_schedule(store, (kind, name), &user, now_ms, changes).await?
        } else if word == Kind::Silence.as_str() {
            is_used_by_silence(store, &user, now_ms, changes).await?
        } else {
            true
        };
        if is_in_use {
            users.add(word, user);
        }
    }
    Ok(users)
}

async fn is_used_by_schedule(
    store: &Store,
    used: (Kind, &Name),
    user: &Name,
    now_ms: i64,
    changes: &mut Changes,
) -> Result<bool, Error> {
    let Some(stored) = store.get::<Schedule>(user.as_str().into()).await? else {
        return Ok(false);
    };
    let next = prune_ended(&stored.value, used, now_ms);
    if next
        .references()
        .iter()
        .any(|it| (it.kind, it.name) == used)
    {
        return Ok(true);
    }
    let next = Schedule {
        revision: stored.value.revision + 1,
        update_ms: now_ms,
        ..next
    };
    let was = RevisedResource::Schedule(stored.value.clone());
    revision::store_revision(store, was, now_ms, false, changes).await?;
    changes.update(&stored, &next);
    Ok(false)
}

/// Removes a contact or calendar from the ended overrides and layers of a schedule.
fn prune_ended(schedule: &Schedule, (kind, name): (Kind, &Name), now_ms: i64) -> Schedule {
    let mut next = schedule.clone();
    let loaded = LoadedSchedule::new(schedule.clone(), &Calendars::default()).ok();
    let has_ended = |at| loaded.as_ref().is_some_and(|it| it.has_ended(at, now_ms));
    let layers = next.layers.iter_mut().enumerate();
    for (_, layer) in layers.filter(|(at, _)| has_ended(*at)) {
        match kind {
            Kind::Contact => {
                for slot in &mut layer.slots {
                    slot.contacts.retain(|it| it != name);
                }
            }
            _ => layer.calendar = layer.calendar.take().filter(|it| it != name),
        }
    }
    if kind == Kind::Contact {
        let is_current = |contacts: &[Name], end_ms| end_ms > now_ms || !contacts.contains(name);
        next.overrides
            .retain(|it| is_current(&it.contacts, it.end_ms));
    }
    next
}

async fn is_used_by_silence(
    store: &Store,
    user: &Name,
    now_ms: i64,
    changes: &mut Changes,
) -> Result<bool, Error> {
    let Some(stored) = store.get::<Silence>(user.as_str().into()).await? else {
        return Ok(false);
    };
    if stored.value.end_ms > now_ms {
        return Ok(true);
    }
    let next = Silence {
        calendar: None,
        revision: stored.value.revision + 1,
        update_ms: now_ms,
        ..stored.value.clone()
    };
    let was = RevisedResource::Silence(stored.value.clone());
    revision::store_revision(store, was, now_ms, false, changes).await?;
    changes.update(&stored, &next);
    Ok(false)
}
