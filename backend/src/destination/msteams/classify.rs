//! What the answer of a Teams incoming webhook means.

use http::{HeaderValue, header};

use crate::destination::{Advice, AttemptContext, Verdict, http::Answer};

/// How an incoming webhook says with status 200 that it failed.
const FAILED: &str = "endpoint returned HTTP error";

/// The verdict on an answer whose status means success.
pub(super) fn judge(attempt: &AttemptContext<'_>, answer: &Answer) -> Verdict {
    let said = String::from_utf8_lossy(&answer.body);
    if said.contains(FAILED) {
        let said = attempt.explain(&format!("Teams refused the message: {said}"));
        return Verdict::rejected(said, Advice::Again);
    }
    // Workflows may answer what they like, but not with a page for people.
    let content_type = answer.headers.get(header::CONTENT_TYPE);
    let content_type = content_type.map_or(&[][..], HeaderValue::as_bytes);
    if content_type.starts_with(b"text/html") && said.trim_start().starts_with('<') {
        return attempt.judge_foreign(answer, "Teams");
    }
    Verdict::delivered("Teams took the message")
}
