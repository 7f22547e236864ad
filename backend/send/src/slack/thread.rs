//! Identifies a thread's first message from the response of `chat.postMessage`.

use serde_json::Value;

use crate::ChatThread;

/// Reads `ts` and `channel`, even if the response is truncated because it repeats a long message.
pub(super) fn thread(response: &str) -> Option<ChatThread> {
    let whole: Option<Value> = serde_json::from_str(response).ok();
    let stated = |member: &str| match &whole {
        Some(whole) => whole[member].as_str(),
        None => response
            .split_once(&format!("\"{member}\":\""))
            .and_then(|(_, rest)| Some(rest.split_once('"')?.0)),
    };
    let is_name = |it: &&str| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit() || c == '.');
    Some(ChatThread {
        ts: stated("ts").filter(is_name)?.to_owned(),
        channel: stated("channel").unwrap_or_default().to_owned(),
    })
}
