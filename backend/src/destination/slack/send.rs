//! Posts a message by `chat.postMessage`.

use http::{HeaderValue, header};
use serde_json::Value;

use super::classify::judge;
use crate::{
    destination::{AttemptContext, Ending, Verdict},
    domain::{Transcript, destination::Slack},
};

pub(super) async fn send(slack: &Slack, attempt: &AttemptContext<'_>, mut body: Value) -> Ending {
    body["channel"] = slack.channel.as_str().into();
    if let Some(thread) = attempt.thread {
        body["thread_ts"] = thread.into();
    }
    let base = attempt.outlets.providers.slack.trim_end_matches('/');
    let url = format!("{base}/api/chat.postMessage");
    let bearer = HeaderValue::try_from(format!("Bearer {}", slack.token.reveal()));
    let Ok(bearer) = bearer else {
        let verdict = Verdict::unreachable("the token cannot be sent in a header");
        return (verdict, Transcript::default());
    };
    let extra = Some((header::AUTHORIZATION, bearer));
    let (result, transcript) = attempt.post_json(url, extra, body.to_string()).await;
    let verdict = match &result {
        Ok(answer) if answer.status.is_success() => judge(attempt, answer),
        other => attempt.judge(other),
    };
    (verdict, transcript)
}
