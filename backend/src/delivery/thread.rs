//! The first message of a thread. Later chat messages reply to it, and later mails have its
//! subject.

use crate::{
    destination::{self, ChatThread},
    domain::{Attempt, Content, Delivery, DestinationKind, RecordId},
    ops::delivery::attempt::attempt_key,
    store::Store,
};

/// The properties of a thread's first message that later messages refer to.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadContext {
    /// The id of the message in the chat.
    pub(crate) chat: Option<ChatThread>,
    /// The content of the message. Only set for mail, where later messages have the same subject so
    /// that mail programs show one conversation.
    pub(crate) opening: Option<Box<Content>>,
}

/// Reads the first message of a thread. It is missing if it was sent to another destination or is
/// no longer stored.
pub(super) async fn read_thread(
    store: &Store,
    opening: Option<RecordId>,
    kind: &DestinationKind,
) -> ThreadContext {
    ThreadContext {
        chat: chat_thread(store, opening, kind).await,
        opening: opening_content(store, opening, kind).await,
    }
}

async fn chat_thread(
    store: &Store,
    opening: Option<RecordId>,
    kind: &DestinationKind,
) -> Option<ChatThread> {
    let opening = opening.filter(|_| destination::has_threads(kind))?;
    let key = opening.to_bytes().into();
    let first = store.get::<Delivery>(key).await.ok()??.value;
    if !destination::can_reply_to(kind, &first.content.destination_kind) {
        return None;
    }
    let key = attempt_key(opening, first.attempts);
    let attempt = store.get::<Attempt>(key).await.ok()??.value;
    destination::thread(kind, &attempt.transcript.response?.body)
}

async fn opening_content(
    store: &Store,
    opening: Option<RecordId>,
    kind: &DestinationKind,
) -> Option<Box<Content>> {
    let opening = opening.filter(|_| matches!(kind, DestinationKind::Email(_)))?;
    let first = store
        .get::<Delivery>(opening.to_bytes().into())
        .await
        .ok()??;
    Some(Box::new(first.value.content))
}
