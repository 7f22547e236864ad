//! Slack: `chat.postMessage`, judged by what Slack says rather than by the HTTP status.

use http::{HeaderValue, header};
use serde_json::Value;

use super::mission::{Ending, Mission};
use crate::{
    delivery::{
        http::{Answer, End},
        verdict::{Advice, Verdict},
    },
    domain::destination::Slack,
};

/// Errors that pass by themselves.
const PASSING: [&str; 6] = [
    "fatal_error",
    "internal_error",
    "rate_limited",
    "ratelimited",
    "request_timeout",
    "service_unavailable",
];

/// What Slack's answer begins with when it took the message.
const TAKEN: &[u8] = br#"{"ok":true,"#;

pub(super) async fn send(
    mission: &Mission<'_>,
    base: &str,
    slack: &Slack,
    mut body: Value,
) -> Ending {
    body["channel"] = slack.channel.as_str().into();
    let url = format!("{}/api/chat.postMessage", base.trim_end_matches('/'));
    let bearer = HeaderValue::try_from(format!("Bearer {}", slack.token.reveal()));
    let Ok(bearer) = bearer else {
        let verdict = Verdict::unreachable("the token cannot be sent in a header");
        return (verdict, crate::domain::Transcript::default());
    };
    let extra = Some((header::AUTHORIZATION, bearer));
    let (result, transcript) = mission.post_json(url, extra, body.to_string()).await;
    let verdict = match &result {
        Ok(answer) if answer.status.is_success() => judge(mission, answer),
        other => mission.judge(other),
    };
    (verdict, transcript)
}

fn judge(mission: &Mission<'_>, answer: &Answer) -> Verdict {
    let taken = || Verdict::delivered("Slack took the message");
    let said: Value = match serde_json::from_slice(&answer.body) {
        Ok(said) => said,
        // Slack repeats the message in its answer, which can be more than is read.
        Err(_) if answer.body.starts_with(TAKEN) => return taken(),
        Err(_) if answer.end == End::Broken => {
            return Verdict::unknown("the connection broke in the middle of Slack's answer");
        }
        Err(_) => return Verdict::rejected("the answer is not one of Slack's", Advice::Again),
    };
    if said["ok"] == true {
        return taken();
    }
    let error = said["error"].as_str().unwrap_or("no reason given");
    let details = said["response_metadata"]["messages"].as_array();
    let details: String = details
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .flat_map(|detail| ["; ", detail])
        .collect();
    let advice = if PASSING.contains(&error) {
        answer.again(mission.start_ms)
    } else {
        Advice::FewMore
    };
    Verdict::rejected(
        mission.explain(&format!("Slack refused the message: {error}{details}")),
        advice,
    )
}
