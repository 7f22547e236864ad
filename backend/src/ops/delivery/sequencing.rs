//! The order of messages about one occurrence, or one group: what tells that it changed or ended does not overtake
//! the first message about it while that is still being tried.

use std::collections::HashMap;

use crate::{
    domain::{Delivery, DeliveryState, RecordId},
    store::{Direction, EngineError, Index, Store, engine::Range, record::bytes::Key},
};

/// Deliveries of an event, newest first, that are looked at.
const LOOKED_AT_MAX: usize = 64;
/// How long a message waits at least for the one before it, in milliseconds.
const WAIT_MS: i64 = 250;

/// What went before a delivery: those of the same rule, destination and thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Before {
    /// When it may be looked at again, because an earlier one has not ended; none when nothing stands
    /// before it.
    pub(crate) held_until_ms: Option<i64>,
    /// The digest that tells of all that stands before it, where that waits for its first attempt.
    pub(crate) digest: Option<RecordId>,
    /// The first one that arrived, for a message that tells of a change of what that one told of.
    pub(crate) opening: Option<RecordId>,
}

/// Looks at what went before a delivery that is due.
pub(crate) async fn before(
    store: &Store,
    delivery: &Delivery,
    now_ms: i64,
) -> Result<Before, EngineError> {
    let (index, prefix) = match (&delivery.content.group, delivery.event) {
        (Some(group), _) if !group.is_first => (Index::DeliveryByGroup, Key::new().id(group.id)),
        (None, Some(event)) if delivery.content.clear => {
            (Index::DeliveryByEvent, Key::new().event(event))
        }
        _ => return Ok(Before::default()),
    };
    let range = Range::under(&prefix.build());
    let entries = store
        .engine()
        .entries(index, range, Direction::Descending, LOOKED_AT_MAX);
    let keys = entries.await?.into_iter().map(|(_, key)| key).collect();
    // What cannot be read stands before nobody.
    let (others, _) = store.get_readable::<Delivery>(keys).await?;
    let before = others.iter().flatten().map(|other| &other.value);
    let before: Vec<_> = before
        .filter(|other| stands_before(other, delivery))
        .collect();
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
    let openings = before
        .iter()
        .filter(|other| other.state == DeliveryState::Delivered && !other.content.clear);
    Ok(Before {
        held_until_ms: until.max().map(|until_ms| until_ms.max(now_ms) + WAIT_MS),
        digest,
        opening: openings.map(|other| other.id).min(),
    })
}

/// The digests that tell of some of these, by identity.
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

/// Whether a delivery has to end before another one begins. A first message waits for nobody, so
/// no two wait for each other.
fn stands_before(other: &Delivery, delivery: &Delivery) -> bool {
    let thread = |it: &Delivery| {
        let group = it.content.group.as_ref();
        let own = it.content.occurrence.key;
        let known_as = it.content.thread.map_or(own, |thread| thread.key);
        group.map_or(known_as, |group| group.id)
    };
    let about = |it: &Delivery| (it.rule, it.destination, thread(it));
    let place = |it: &Delivery| (it.create_ms, it.content.clear, it.id);
    !other.test && about(other) == about(delivery) && place(other) < place(delivery)
}
