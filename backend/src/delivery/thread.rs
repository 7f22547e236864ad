//! The earlier messages of a thread. Chat messages reply to the first one, mails have its subject,
//! and webhooks use values of the responses.

use crate::{
    domain::{Attempt, Content, Delivery, DestinationKind, RecordId, destination::KeptValues},
    ops::delivery::{attempt::attempt_key, sequencing},
    send::{self as destination, ChatThread},
    store::{EngineError, Store},
};

/// The earlier messages of a thread, as far as further messages refer to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadContext {
    /// The id of the message in the chat.
    pub(crate) chat: Option<ChatThread>,
    /// The content of the message. Only set for mail, where later messages have the same subject so
    /// that mail programs show one conversation.
    pub(crate) opening: Option<Box<Content>>,
    /// The values kept for the thread; `None` if no message of it was delivered.
    pub(crate) kept: Option<KeptValues>,
}

/// Reads the earlier messages of a thread. They are missing if they were sent to another
/// destination or are no longer stored.
pub(super) async fn read_thread(
    store: &Store,
    delivery: &Delivery,
    opening: Option<RecordId>,
    kind: &DestinationKind,
) -> Result<ThreadContext, EngineError> {
    let kept = if delivery.content.destination_kind.follows_up() {
        sequencing::kept_values(store, delivery).await?
    } else {
        None
    };
    Ok(ThreadContext {
        chat: chat_thread(store, opening, kind).await,
        opening: opening_content(store, opening, kind).await,
        kept: kept
            .filter(|it| destination::accepts_kept(kind, it))
            .or_else(|| opening.map(|_delivered| KeptValues::default())),
    })
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
