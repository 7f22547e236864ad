//! What Slack's answer means, by what it says rather than by the HTTP status.

use serde_json::Value;

use crate::destination::{
    Advice, AttemptContext, Verdict,
    http::{Answer, BodyEnd},
};

/// Errors that pass by themselves.
const PASSING: [&str; 7] = [
    "fatal_error",
    "internal_error",
    "message_limit_exceeded",
    "rate_limited",
    "ratelimited",
    "request_timeout",
    "service_unavailable",
];

/// Errors that are about the token or the channel, whatever the message.
const WRONG_DESTINATION: [&str; 24] = [
    "access_denied",
    "accesslimited",
    "account_inactive",
    "channel_is_archived",
    "channel_not_found",
    "ekm_access_denied",
    "enterprise_is_restricted",
    "invalid_auth",
    "is_archived",
    "messages_tab_disabled",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "not_in_channel",
    "org_login_required",
    "posting_to_general_channel_denied",
    "restricted_action",
    "restricted_action_read_only_channel",
    "restricted_action_thread_only_channel",
    "team_access_not_granted",
    "token_expired",
    "token_revoked",
    "two_factor_setup_required",
];

/// Errors about the message that is answered, beside all that name a thread.
const WRONG_THREAD: [&str; 3] = [
    "cannot_reply_to_message",
    "message_not_found",
    "restricted_action_non_threadable_channel",
];

/// What Slack's answer begins with when it took the message.
const TAKEN: &[u8] = br#"{"ok":true,"#;

/// Whether an answer refuses the thread: the message can go to the channel.
pub(super) fn refuses_thread(answer: &Answer) -> bool {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let error = said["error"].as_str().unwrap_or_default();
    said["ok"] == false && (error.contains("thread") || WRONG_THREAD.contains(&error))
}

/// The verdict on an answer whose status means success.
pub(super) fn judge(attempt: &AttemptContext<'_>, answer: &Answer) -> Verdict {
    let taken = || Verdict::delivered("Slack accepted the message");
    let said: Value = match serde_json::from_slice(&answer.body) {
        Ok(said) => said,
        // Slack repeats the message in its answer, which can be more than is read.
        Err(_) if answer.body.starts_with(TAKEN) => return taken(),
        Err(_) if answer.end == BodyEnd::Broken => {
            return Verdict::unknown("the connection broke in the middle of Slack's answer");
        }
        Err(_) => return Verdict::rejected("the answer is not one of Slack's", Advice::Mend),
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
        answer.again(attempt.start_ms)
    } else if WRONG_DESTINATION.contains(&error) {
        Advice::Mend
    } else {
        Advice::FewMore
    };
    Verdict::rejected(
        attempt.explain(&format!("Slack refused the message: {error}{details}")),
        advice,
    )
}
