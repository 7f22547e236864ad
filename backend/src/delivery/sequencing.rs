//! The order of messages about one occurrence: what tells that it changed or ended does not overtake
//! what told of it first and is still being tried.

use crate::{
    domain::{Delivery, DeliveryState},
    store::{Direction, EngineError, Index, Store, engine::Range, record::bytes::Key},
};

/// Deliveries of an event, newest first, that are looked at.
const LOOKED_AT_MAX: usize = 64;
/// How long a message waits at least for the one before it, in milliseconds.
const WAIT_MS: i64 = 250;

/// When a delivery that is due may be looked at again, because an earlier one of the same rule,
/// destination and occurrence has not ended; none when nothing stands before it.
pub(crate) async fn held_until(
    store: &Store,
    delivery: &Delivery,
    now_ms: i64,
) -> Result<Option<i64>, EngineError> {
    let Some(event) = delivery.event.filter(|_| delivery.content.clear) else {
        return Ok(None);
    };
    let range = Range::under(&Key::new().event(event).build());
    let entries = store.engine().entries(
        Index::DeliveryByEvent,
        range,
        Direction::Descending,
        LOOKED_AT_MAX,
    );
    let keys = entries.await?.into_iter().map(|(_, key)| key).collect();
    // What cannot be read stands before nobody.
    let (others, _) = store.get_readable::<Delivery>(keys).await?;
    let before = others.iter().flatten().map(|other| &other.value);
    let before = before.filter(|other| stands_before(other, delivery));
    let until = before.filter_map(|other| match other.state {
        DeliveryState::Leased { .. } => Some(now_ms),
        state => state.due_ms(),
    });
    Ok(until.max().map(|until_ms| until_ms.max(now_ms) + WAIT_MS))
}

/// Whether a delivery has to end before another one begins. A first message waits for nobody, so
/// no two wait for each other.
fn stands_before(other: &Delivery, delivery: &Delivery) -> bool {
    let about = |it: &Delivery| (it.rule, it.destination, it.content.occurrence.key);
    let place = |it: &Delivery| (it.create_ms, it.content.clear, it.id);
    !other.test && about(other) == about(delivery) && place(other) < place(delivery)
}
