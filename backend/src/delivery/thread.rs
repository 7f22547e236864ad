//! Which message of a chat a further one answers: the first one of its thread.

use crate::{
    destination::{self, ChatThread},
    domain::{Attempt, Delivery, DestinationKind, RecordId},
    ops::delivery::attempt::attempt_key,
    store::Store,
};

/// The first message as the chat knows it; none where there is no such message,
/// where it went elsewhere, and where its answer is not kept any more.
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
