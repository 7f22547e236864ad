//! Verdicts on PagerDuty's responses.

use http::StatusCode;
use serde_json::Value;

use crate::{
    AttemptContext,
    http::HttpResponse,
    verdict::{Advice, Verdict},
};

/// Words by which PagerDuty refers to an invalid part of an event. A 400 without any of them is
/// about the integration key, for which PagerDuty has several wordings.
const PARTS: [&str; 10] = [
    "payload",
    "summary",
    "source",
    "severity",
    "timestamp",
    "custom_details",
    "dedup_key",
    "event_action",
    "images",
    "links",
];

pub(super) fn classify_response(attempt: &AttemptContext<'_>, answer: &HttpResponse) -> Verdict {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let is_accepted = match said["status"].as_str() {
        Some(status) => status == "success",
        None => answer.status == StatusCode::ACCEPTED,
    };
    if answer.status.is_success() && is_accepted {
        return Verdict::new_delivered("PagerDuty accepted the event");
    }
    let Some(message) = said["message"].as_str() else {
        return match answer.status {
            StatusCode::BAD_REQUEST => Verdict {
                advice: Advice::Fix,
                ..attempt.foreign_verdict(answer, "PagerDuty")
            },
            _ => attempt.foreign_verdict(answer, "PagerDuty"),
        };
    };
    let errors = said["errors"].as_array().into_iter().flatten();
    let errors = errors
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join("; ");
    let explanation = format!(
        "PagerDuty returned {}: {message}{}{errors}",
        answer.status,
        if errors.is_empty() { "" } else { ": " }
    );
    let advice = if answer.status.is_success() {
        Advice::FewMore
    } else if answer.status == StatusCode::BAD_REQUEST && !is_about_event(&explanation) {
        Advice::Fix
    } else {
        answer.advice(attempt.start_ms)
    };
    Verdict::new_rejected(attempt.mask_and_truncate(&explanation), advice)
}

fn is_about_event(said: &str) -> bool {
    let said = said.to_lowercase();
    let is_key = [
        "routing_key",
        "routing key",
        "integration key",
        "service_key",
        "service key",
    ];
    let mut words = said.split(|c: char| !c.is_ascii_alphabetic() && c != '_');
    words.any(|word| PARTS.contains(&word)) && !is_key.iter().any(|key| said.contains(key))
}
