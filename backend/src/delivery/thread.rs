//! Where a message in a chat answers: the first one, by what the chat said of it.

use serde_json::Value;

use crate::{
    destination::ChatThread,
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
    let (Some(opening), DestinationKind::Slack(slack)) = (opening, kind) else {
        return None;
    };
    let key = opening.to_bytes().into();
    let delivery = store.get::<Delivery>(key).await.ok()??.value;
    let is_there = matches!(
        &delivery.content.destination_kind,
        DestinationKind::Slack(was) if was.channel == slack.channel
    );
    if !is_there {
        return None;
    }
    let key = attempt_key(opening, delivery.attempts);
    let attempt = store.get::<Attempt>(key).await.ok()??.value;
    let answer = attempt.transcript.response?.body;
    let said: Option<Value> = serde_json::from_str(&answer).ok();
    let stated = |member: &str| match &said {
        Some(said) => said[member].as_str(),
        // A long message is repeated in the answer, of which the beginning is kept.
        None => answer
            .split_once(&format!("\"{member}\":\""))
            .and_then(|(_, rest)| Some(rest.split_once('"')?.0)),
    };
    let is_name = |it: &&str| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit() || c == '.');
    Some(ChatThread {
        ts: stated("ts").filter(is_name)?.to_owned(),
        channel: stated("channel").unwrap_or_default().to_owned(),
    })
}
