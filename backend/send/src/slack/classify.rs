//! Verdicts on Slack's responses, by their content rather than the HTTP status.

use serde_json::Value;

use crate::{
    AttemptContext,
    http::{BodyEnd, HttpResponse},
    verdict::{Advice, Verdict},
};

const LIMITED: [&str; 3] = ["message_limit_exceeded", "rate_limited", "ratelimited"];

const PASSING: [&str; 4] = [
    "fatal_error",
    "internal_error",
    "request_timeout",
    "service_unavailable",
];

/// Errors about the token or the channel, independent of the message.
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

/// Errors about the content of a message, which the reduced form avoids.
const WRONG_CONTENT: [&str; 12] = [
    "attachment_payload_limit_exceeded",
    "block_mismatch",
    "duplicate_block_id",
    "invalid_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "markdown_text_conflict",
    "metadata_too_large",
    "msg_blocks_too_long",
    "msg_too_long",
    "no_text",
    "too_many_attachments",
];

/// Errors about the message replied to, in addition to those that contain `thread`.
const WRONG_THREAD: [&str; 3] = [
    "cannot_reply_to_message",
    "message_not_found",
    "restricted_action_non_threadable_channel",
];

/// Start of Slack's response if it accepted the message.
const ACCEPTED: &[u8] = br#"{"ok":true,"#;

/// Whether a response refuses the thread, so that the message can still go to the channel.
pub(super) fn refuses_thread(answer: &HttpResponse) -> bool {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let error = said["error"].as_str().unwrap_or_default();
    said["ok"] == false && (error.contains("thread") || WRONG_THREAD.contains(&error))
}

pub(super) fn classify_response(attempt: &AttemptContext<'_>, answer: &HttpResponse) -> Verdict {
    let accepted = || Verdict::new_delivered("Slack accepted the message");
    let said: Value = match serde_json::from_slice(&answer.body) {
        Ok(said) => said,
        // Slack's response repeats the message, which may exceed the bytes read.
        Err(_) if answer.body.starts_with(ACCEPTED) => return accepted(),
        Err(_) if answer.end == BodyEnd::Broken => {
            return Verdict::new_unknown("connection lost during Slack's response");
        }
        Err(_) => return Verdict::new_rejected("the response is not from Slack", Advice::Fix),
    };
    if said["ok"] == true {
        return accepted();
    }
    let error = said["error"].as_str().unwrap_or("no reason given");
    let details = said["response_metadata"]["messages"].as_array();
    let details: String = details
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .flat_map(|detail| ["; ", detail])
        .collect();
    let advice = if LIMITED.contains(&error) {
        answer.rate_limit_advice(attempt.start_ms)
    } else if PASSING.contains(&error) {
        answer.retry_advice(attempt.start_ms)
    } else if WRONG_CONTENT.contains(&error) {
        Advice::Reduce
    } else if WRONG_DESTINATION.contains(&error) {
        Advice::Fix
    } else {
        Advice::FewMore
    };
    Verdict::new_rejected(
        attempt.mask_and_truncate(&format!("Slack rejected the message: {error}{details}")),
        advice,
    )
}
