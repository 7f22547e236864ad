//! What the answer of a Teams incoming webhook or workflow means.

use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use url::Url;

use crate::destination::{Advice, AttemptContext, Verdict, http::Answer, verdict::Fault};

/// How an incoming webhook says with status 200 that it took the message.
const TAKEN: &[u8] = b"1";
/// How it says with status 200 that Teams refused the message, before the status.
const FAILED: &str = "endpoint returned HTTP error ";
/// How a workflow says that a message is not what its author made it take.
const MISMATCH: &str = "TriggerInputSchemaMismatch";

/// The verdict on an answer of that address.
pub(super) fn judge(attempt: &AttemptContext<'_>, answer: &Answer, url: &str) -> Verdict {
    if answer.status.is_success() {
        return judge_success(attempt, answer, url);
    }
    let verdict = answer.verdict(&attempt.masker, attempt.start_ms);
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    match said["error"]["code"].as_str() {
        // A workflow takes any card: what it refuses is that it is disabled, suspended or gone.
        Some(code) if code != MISMATCH && verdict.fault() == Some(Fault::Message) => Verdict {
            advice: Advice::Mend,
            ..verdict
        },
        _ => verdict,
    }
}

fn judge_success(attempt: &AttemptContext<'_>, answer: &Answer, url: &str) -> Verdict {
    let taken = || Verdict::delivered("Teams accepted the message");
    let said = String::from_utf8_lossy(&answer.body);
    // Workflows may answer what they like, but not with a page for people.
    let content_type = answer.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.map_or(&[][..], HeaderValue::as_bytes);
    if content_type.starts_with(b"text/html") && said.trim_start().starts_with('<') {
        return attempt.judge_foreign(answer, "Teams");
    }
    let is_workflow = is_workflow(url) || (answer.status != StatusCode::OK && !is_connector(url));
    if !said.contains(FAILED) && (is_workflow || answer.body.trim_ascii() == TAKEN) {
        return taken();
    }
    let explanation = format!("Teams did not accept the message: {}", said.trim());
    Verdict::rejected(
        attempt.explain(&explanation),
        advice(attempt, answer, &said),
    )
}

/// What to do after a failure that came with status 200: the status of Teams itself is in the text.
fn advice(attempt: &AttemptContext<'_>, answer: &Answer, said: &str) -> Advice {
    let status = said.split(FAILED).nth(1).unwrap_or_default();
    let status = status.split(|c: char| !c.is_ascii_digit()).next();
    match status.unwrap_or_default() {
        "400" | "413" | "415" | "422" => Advice::GiveUp,
        "401" | "403" | "404" | "410" => Advice::Mend,
        _ => answer.again(attempt.start_ms),
    }
}

/// Whether an address is that of a workflow rather than of an incoming webhook.
fn is_workflow(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.path().contains("/workflows/"))
}

/// Whether an address is that of an incoming webhook.
fn is_connector(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| url.path().starts_with("/webhook"))
}
