//! The message of a chat that a further one replies to: the first one of its thread.

use crate::{
    destination::{self, ChatThread},
    domain::{Attempt, Delivery, DestinationKind, RecordId},
    ops::delivery::attempt::attempt_key,
    store::Store,
};

/// Returns the chat's id of the first message; `None` if there is none, it went to another
/// destination, or its response is no longer stored.
pub(super) async fn thread(
    store: &Store,
    opening: Option<RecordId>,
    kind: &DestinationKind,
) -> Option<ChatThread> {
    let opening = opening.filter(|_| destination::has_threads(kind))?;
    let key = opening.to_bytes().into();
    let first = store.get::<Delivery>(key).await.ok()??.value;
    if !destination::continues(kind, &first.content.destination_kind) {
        return None;
    }
    let key = attempt_key(opening, first.attempts);
    let attempt = store.get::<Attempt>(key).await.ok()??.value;
    destination::thread(kind, &attempt.transcript.response?.body)
}
