//! The first message of a thread. Chat messages reply to it, and mails have its subject.

use crate::{
    destination::{self, ChatThread},
    domain::{Attempt, Content, Delivery, DestinationKind, RecordId},
    ops::delivery::attempt::attempt_key,
    store::Store,
};

/// Returns the chat's id of the first message. `None` if there is no first message, it was sent to
/// another destination, or its response is no longer stored.
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

/// Returns the content of the first message of a thread, if mail programs show further messages
/// with its subject as one conversation.
pub(super) async fn opening_content(
    store: &Store,
    opening: Option<RecordId>,
    kind: &DestinationKind,
) -> Option<Content> {
    let opening = opening.filter(|_| matches!(kind, DestinationKind::Email(_)))?;
    let first = store
        .get::<Delivery>(opening.to_bytes().into())
        .await
        .ok()??;
    Some(first.value.content)
}
