//! What PagerDuty's answer means.

use http::StatusCode;
use serde_json::Value;

use crate::destination::{Advice, AttemptContext, Verdict, http::Answer};

/// The verdict on an answer.
pub(super) fn judge(attempt: &AttemptContext<'_>, answer: &Answer) -> Verdict {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let taken = match said["status"].as_str() {
        Some(status) => status == "success",
        None => answer.status == StatusCode::ACCEPTED,
    };
    if answer.status.is_success() && taken {
        return Verdict::delivered("PagerDuty took the event");
    }
    let Some(message) = said["message"].as_str() else {
        return attempt.judge_foreign(answer, "PagerDuty");
    };
    let errors = said["errors"].as_array().into_iter().flatten();
    let errors = errors
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("; ");
    let explanation = format!(
        "PagerDuty answered {}: {message}{}{errors}",
        answer.status,
        if errors.is_empty() { "" } else { ": " }
    );
    let advice = if answer.status.is_success() {
        Advice::FewMore
    } else if errors.contains("routing_key") {
        Advice::Mend
    } else {
        answer.advice(attempt.start_ms)
    };
    Verdict::rejected(attempt.explain(&explanation), advice)
}
