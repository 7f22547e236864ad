//! Verdicts on the responses of Teams incoming webhooks and workflows.

use http::StatusCode;
use serde_json::Value;
use url::Url;

use crate::{
    AttemptContext,
    http::HttpResponse,
    verdict::{Advice, FailureCause, Verdict},
};

/// Body with which an incoming webhook accepts a message.
const ACCEPTED: &[u8] = b"1";
/// Text with which an incoming webhook reports an error of Teams despite status 200, followed by
/// the status.
const FAILED: &str = "endpoint returned HTTP error ";
/// Error code of a workflow for a message that does not match its schema.
const MISMATCH: &str = "TriggerInputSchemaMismatch";

pub(super) fn classify_response(
    attempt: &AttemptContext<'_>,
    answer: &HttpResponse,
    url: &str,
) -> Verdict {
    if answer.status.is_success() {
        return classify_success(attempt, answer, url);
    }
    let verdict = answer.verdict(&attempt.masker, attempt.start_ms);
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match said["error"]["code"].as_str() {
        // A workflow accepts any card, so other errors mean that it is disabled, suspended or
        // deleted.
        Some(code) if code != MISMATCH && verdict.cause() == Some(FailureCause::Message) => {
            Verdict {
                advice: Advice::Fix,
                ..verdict
            }
        }
        _ => verdict,
    }
}

fn classify_success(attempt: &AttemptContext<'_>, answer: &HttpResponse, url: &str) -> Verdict {
    let accepted = || Verdict::new_delivered("Teams accepted the message");
    let said = String::from_utf8_lossy(&answer.body);
    // Workflows may return any body, but not an HTML page.
    if answer.is_web_page() {
        return attempt.foreign_verdict(answer, "Teams");
    }
    let is_workflow = is_workflow(url) || (answer.status != StatusCode::OK && !is_connector(url));
    if !said.contains(FAILED) && (is_workflow || answer.body.trim_ascii() == ACCEPTED) {
        return accepted();
    }
    let explanation = format!("Teams rejected the message: {}", said.trim());
    Verdict::new_rejected(
        attempt.mask_and_truncate(&explanation),
        failure_advice(attempt, answer, &said),
    )
}

/// Returns the advice after a failure with status 200; the text contains the status of Teams
/// itself.
fn failure_advice(attempt: &AttemptContext<'_>, answer: &HttpResponse, said: &str) -> Advice {
    let status = said.split(FAILED).nth(1).unwrap_or_default();
    let status = status.split(|c: char| !c.is_ascii_digit()).next();
    match status.unwrap_or_default() {
        "400" | "413" | "415" | "422" => Advice::Reduce,
        "401" | "403" | "404" | "410" => Advice::Fix,
        "429" => answer.rate_limit_advice(attempt.start_ms),
        _ => answer.retry_advice(attempt.start_ms),
    }
}

fn is_workflow(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.path().contains("/workflows/"))
}

fn is_connector(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.path().starts_with("/webhook"))
}
