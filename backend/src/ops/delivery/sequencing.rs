//! The order of the messages of a thread, which is about one occurrence or one group: what reports
//! on a change or an end does not overtake an earlier message that is still to be tried, and the
//! last word is the newest one, also when an earlier message is sent again.

use std::{collections::HashMap, time::Duration};

use crate::{
    clock::millis,
    domain::{Delivery, DeliveryState, RecordId, ThreadStanding},
    limits::THREAD_LOOKED_AT_MAX,
    store::{
        Direction, EngineError, Index, Store, Stored,
        engine::Range,
        record::{
            bytes::{Key, id_at},
            in_thread,
        },
    },
};

/// Deliveries that are read at a time.
const PAGE: usize = 64;
/// How long a message waits at least for the one before it, in milliseconds.
const WAIT_MS: i64 = 250;
/// How far a clock may have been set back since a thread began.
const SET_BACK_MAX: Duration = Duration::from_secs(24 * 3_600);

/// What went before a delivery: those of the same rule, destination and thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Before {
    /// When it may be looked at again, because an earlier one has not ended; none when nothing stands
    /// before it.
    pub(crate) held_until_ms: Option<i64>,
    /// The digest that includes all that stands before it, where that waits for its first attempt.
    pub(crate) digest: Option<RecordId>,
    /// The first one that arrived, for a message that reports on a change of what that one
    /// reported.
    pub(crate) opening: Option<RecordId>,
}

/// Reads what went before a delivery that is due.
pub(crate) async fn before(
    store: &Store,
    delivery: &Delivery,
    now_ms: i64,
) -> Result<Before, EngineError> {
    if is_first(delivery) {
        return Ok(Before::default());
    }
    let before = standing(store, delivery).await?;
    let before: Vec<_> = before.iter().collect();
    let digests = digests(store, &before).await?;
    let standing = before.iter().filter_map(|other| {
        let digest = other.folding.digest().and_then(|it| digests.get(&it));
        let state = digest.map_or(other.state, |it| it.state);
        let until_ms = match state {
            DeliveryState::Leased { .. } => now_ms,
            state => state.due_ms()?,
        };
        let digest = digest.filter(|_| matches!(state, DeliveryState::Pending { .. }));
        Some((until_ms, digest.map(|it| it.id)))
    });
    let standing: Vec<_> = standing.collect();
    let until = standing.iter().map(|(until_ms, _)| *until_ms);
    let digest = standing.first().and_then(|(_, digest)| *digest);
    let digest = digest.filter(|_| standing.iter().all(|(_, other)| *other == digest));
    let held_until_ms = until.max().map(|until_ms| until_ms.max(now_ms) + WAIT_MS);
    let tells_of_change = delivery.content.clear || delivery.content.group.is_some();
    let opening = if held_until_ms.is_none() && tells_of_change {
        opening(store, delivery).await?
    } else {
        None
    };
    Ok(Before {
        held_until_ms,
        digest,
        opening,
    })
}

/// The deliveries that have to end before another one of their thread begins, each or by the digest that includes
/// it. Of very many, the first ones: while there is any, it does not begin.
async fn standing(store: &Store, delivery: &Delivery) -> Result<Vec<Delivery>, EngineError> {
    use ThreadStanding::{Closing, Folded, Waiting};
    let mut keys = Vec::new();
    for (how, direction) in [
        (Closing, Direction::Ascending),
        (Waiting, Direction::Ascending),
        // Digests are sent in their order.
        (Folded, Direction::Descending),
    ] {
        if how != Waiting || waits_for_all(delivery) {
            let range = earlier(delivery, how);
            let engine = store.engine();
            let found = engine.entries(Index::DeliveryByThread, range, direction, PAGE);
            keys.extend(found.await?.into_iter().map(|(_, key)| key));
        }
    }
    let (found, _) = store.get_readable::<Delivery>(keys).await?;
    let found = found.into_iter().flatten().map(|it| it.value);
    Ok(found.filter(|it| stands_before(it, delivery)).collect())
}

/// Returns the range of the deliveries before this one in its thread that have a standing.
fn earlier(delivery: &Delivery, how: ThreadStanding) -> Range {
    let (origin, id) = delivery.place();
    let end = in_thread(delivery, how).id(origin).id(id);
    Range {
        end: Some(end.build()),
        ..Range::under(&in_thread(delivery, how).build())
    }
}

/// The first message that arrived of those which a delivery reports changes of.
async fn opening(store: &Store, delivery: &Delivery) -> Result<Option<RecordId>, EngineError> {
    let range = earlier(delivery, ThreadStanding::Arrived);
    let (index, ascending) = (Index::DeliveryByThread, Direction::Ascending);
    let first = store.engine().entries(index, range, ascending, 1).await?;
    if let Some(id) = first.first().and_then(|(_, key)| id_at(key, 0)) {
        return Ok(Some(id));
    }
    // What an earlier version sent is found by the event.
    let thread = thread(store, delivery).await?;
    let thread = thread.iter().map(|other| &other.value);
    let openings = thread.filter(|other| {
        let is_before = other.place() < delivery.place();
        is_before && other.state == DeliveryState::Delivered && !other.content.clear
    });
    Ok(openings.map(|other| other.id).min())
}

/// The newest message of the thread of a delivery, where that came after it and tells otherwise of
/// whether the thread is over: it has to be the last word when the delivery is sent again.
pub(super) async fn last_word(
    store: &Store,
    delivery: &Delivery,
) -> Result<Option<Stored<Delivery>>, EngineError> {
    let mut all = thread(store, delivery).await?;
    all.retain(|it| it.value.place() > delivery.place());
    let last = all.into_iter().max_by_key(|it| it.value.place());
    Ok(last.filter(|it| it.value.is_closing() != delivery.is_closing()))
}

/// Whether nothing can have gone before a message in its thread.
fn is_first(delivery: &Delivery) -> bool {
    if let Some(group) = &delivery.content.group {
        return group.is_first;
    }
    // A first decision finds no earlier one.
    let is_opening = !delivery.content.clear && delivery.content.thread.is_none();
    is_opening && delivery.content.occurrence.evaluation.is_none()
}

/// The messages of the thread of a delivery that went by the same rule to the same destination, newest
/// first. What cannot be read stands before nothing.
async fn thread(store: &Store, delivery: &Delivery) -> Result<Vec<Stored<Delivery>>, EngineError> {
    let (index, prefix) = match (&delivery.content.group, delivery.event) {
        (Some(group), _) => (Index::DeliveryByGroup, Key::new().id(group.id).build()),
        (None, Some(event)) => (Index::DeliveryByEvent, Key::new().event(event).build()),
        (None, None) => return Ok(Vec::new()),
    };
    let mut range = Range::under(&prefix);
    let set_back_ms = u64::try_from(millis(SET_BACK_MAX)).unwrap_or_default();
    let since = delivery.thread().time_ms().saturating_sub(set_back_ms);
    range.start = [&prefix[..], &RecordId::first_at(since).to_bytes()].concat();
    let about = |it: &Delivery| (it.rule, it.destination, it.thread());
    let mut found = Vec::new();
    for _ in 0..THREAD_LOOKED_AT_MAX.div_ceil(PAGE) {
        let (engine, descending) = (store.engine(), Direction::Descending);
        let entries = engine.entries(index, range.clone(), descending, PAGE);
        let entries = entries.await?;
        let is_end = entries.len() < PAGE;
        range.end = entries.last().map(|(entry, _)| entry.clone());
        let keys = entries.into_iter().map(|(_, key)| key).collect();
        let (others, _) = store.get_readable::<Delivery>(keys).await?;
        let others = others.into_iter().flatten();
        found.extend(others.filter(|it| !it.value.test && about(&it.value) == about(delivery)));
        if is_end {
            break;
        }
    }
    Ok(found)
}

/// The digests that include some of these, by identity.
async fn digests(
    store: &Store,
    before: &[&Delivery],
) -> Result<HashMap<RecordId, Delivery>, EngineError> {
    let folded = before.iter().filter_map(|it| it.folding.digest());
    let mut keys: Vec<Vec<u8>> = folded.map(|it| it.to_bytes().into()).collect();
    keys.sort_unstable();
    keys.dedup();
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let (found, _) = store.get_readable::<Delivery>(keys).await?;
    let found = found.into_iter().flatten().map(|it| it.value);
    Ok(found.map(|it| (it.id, it)).collect())
}

/// Whether a delivery has to end before another one of its thread begins. What opens or repeats waits
/// for an earlier closing alone: it says the same as an earlier opening.
fn stands_before(other: &Delivery, delivery: &Delivery) -> bool {
    other.place() < delivery.place() && (waits_for_all(delivery) || other.is_closing())
}

/// Whether a delivery waits for every earlier one of its thread, not only for closings.
pub(crate) fn waits_for_all(delivery: &Delivery) -> bool {
    delivery.content.clear || delivery.content.group.is_some()
}
