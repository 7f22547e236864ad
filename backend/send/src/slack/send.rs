//! Posts a message with `chat.postMessage`.

use http::{HeaderValue, header};
use serde_json::Value;

use super::{
    classify::{classify_response, refuses_thread},
    message,
};
use crate::{
    AttemptContext, AttemptOutcome,
    domain::{Outcome, Transcript, destination::Slack},
    verdict::Verdict,
};

const POST: &str = "chat.postMessage";
const UPDATE: &str = "chat.update";

#[expect(clippy::too_many_lines, reason = "one conversation")]
pub(super) async fn post_message(
    slack: &Slack,
    attempt: &AttemptContext<'_>,
    mut body: Value,
) -> AttemptOutcome {
    body["channel"] = slack.channel.as_str().into();
    if let Some(thread) = attempt.thread {
        body["thread_ts"] = thread.ts.as_str().into();
        if slack.broadcast_replies {
            body["reply_broadcast"] = true.into();
        }
    }
    let base = attempt.outlets.providers.slack.trim_end_matches('/');
    let url = |method: &str| format!("{base}/api/{method}");
    let bearer = HeaderValue::try_from(format!("Bearer {}", slack.token.reveal()));
    let Ok(bearer) = bearer else {
        let verdict = Verdict::new_unreachable("the token is not a valid header value");
        return (verdict, Transcript::default());
    };
    let extra = Some((header::AUTHORIZATION, bearer));
    let post = async |method: &str, body: &Value| {
        let (url, extra) = (url(method), extra.clone());
        attempt.post_json(url, extra, body.to_string()).await
    };
    let (mut result, mut transcript) = post(POST, &body).await;
    let mut is_in_thread = attempt.thread.is_some();
    if is_in_thread && matches!(&result, Ok(answer) if refuses_thread(answer)) {
        // The thread was deleted or locked: send the message to the channel instead.
        if let Some(message) = body.as_object_mut() {
            message.remove("thread_ts");
            message.remove("reply_broadcast");
        }
        (result, transcript) = post(POST, &body).await;
        is_in_thread = false;
    }
    let mut verdict = match &result {
        Ok(answer) if answer.status.is_success() => classify_response(attempt, answer),
        other => attempt.verdict_by_status(other),
    };
    if attempt.thread.is_some() && !is_in_thread {
        verdict
            .explanation
            .push_str("; its thread accepts no replies, so it was sent to the channel");
    }
    if verdict.outcome == Outcome::Delivered
        && slack.update_first
        && let Some(first) = attempt.thread.filter(|first| !first.channel.is_empty())
    {
        for member in [
            "thread_ts",
            "reply_broadcast",
            "unfurl_links",
            "unfurl_media",
        ] {
            body.as_object_mut().map(|message| message.remove(member));
        }
        if let Some(text) = body["text"].as_str() {
            body["text"] = message::truncate_update(text).into();
        }
        body["channel"] = first.channel.as_str().into();
        body["ts"] = first.ts.as_str().into();
        let (result, _transcript) = post(UPDATE, &body).await;
        let updated = match &result {
            Ok(answer) if answer.status.is_success() => classify_response(attempt, answer),
            other => attempt.verdict_by_status(other),
        };
        if updated.outcome != Outcome::Delivered {
            let why = updated.explanation;
            let said = format!(
                "{}; the first message was not edited: {why}",
                verdict.explanation
            );
            verdict.explanation = attempt.mask_and_truncate(&said);
        }
    }
    (verdict, transcript)
}
