//! Checks a response against the expectations of a webhook.

use serde_json::{Value, json};

use crate::{
    AttemptContext,
    domain::{Clause, destination::Expect},
    http::HttpResponse,
    matching::{Document, DocumentQuery},
    verdict::{Advice, Verdict},
};

/// Returns the verdict on a response. `is_json` states whether the request had a JSON body, and
/// `is_about_item` whether its address names an issue or message, which may be gone.
pub(super) fn classify_response(
    expect: Option<&Expect>,
    answer: &HttpResponse,
    attempt: &AttemptContext<'_>,
    (is_json, is_about_item): (bool, bool),
) -> Verdict {
    let verdict = judge_accepted(expect, answer, attempt, is_json);
    let clause = expect.and_then(|it| it.destination.as_ref());
    let is_wrong = match (verdict.cause(), verdict.advice) {
        (None, _) | (_, Advice::Limited(_)) => false,
        _ => clause.is_some_and(|it| matches(it, answer, attempt) == Some(true)),
    };
    Verdict {
        advice: match (is_wrong, answer.status.as_u16()) {
            (true, _) => Advice::Fix,
            (false, 404 | 410) if is_about_item && verdict.cause().is_some() => Advice::FewMore,
            _ => verdict.advice,
        },
        ..verdict
    }
}

/// Returns the verdict without checking the condition for a misconfigured destination.
fn judge_accepted(
    expect: Option<&Expect>,
    answer: &HttpResponse,
    attempt: &AttemptContext<'_>,
    is_json: bool,
) -> Verdict {
    let status = answer.status;
    let is_expected = match expect.map_or(&[][..], |it| &it.statuses) {
        [] => status.is_success(),
        expected => expected.contains(&status.as_u16()),
    };
    let clause = expect.and_then(|it| it.body.as_ref());
    let is_met = clause.map(|it| matches(it, answer, attempt));
    if !status.is_success() && !is_expected {
        // For error statuses, the status determines the advice.
        return answer.verdict(&attempt.masker, attempt.start_ms);
    }
    let is_checked = expect.is_some() || is_json;
    if status.is_success() && is_checked && is_met != Some(Some(true)) && answer.is_web_page() {
        let explanation = format!(
            "the receiver returned {status} with a web page, such as a sign-in page: another server \
             is using this address"
        );
        return Verdict::new_rejected(explanation, Advice::Fix);
    }
    if !is_expected {
        let explanation = format!("the receiver returned {status}, which was not expected");
        return Verdict::new_rejected(explanation, Advice::FewMore);
    }
    let reason = match is_met {
        Some(None) => "the condition on the response body cannot be evaluated".to_owned(),
        Some(Some(false)) => {
            let body = String::from_utf8_lossy(&answer.body);
            format!("the response body does not match: {}", body.trim())
        }
        None if expect.is_none() => {
            return answer.verdict(&attempt.masker, attempt.start_ms);
        }
        None | Some(Some(true)) => {
            let explanation = format!("the receiver returned {status}, as expected");
            return Verdict::new_delivered(explanation);
        }
    };
    let explanation = format!("the receiver returned {status}, but {reason}");
    Verdict::new_rejected(attempt.mask_and_truncate(&explanation), Advice::FewMore)
}

/// Whether a response meets a condition; `None` if it cannot be evaluated.
pub(super) fn matches(
    clause: &Clause,
    answer: &HttpResponse,
    attempt: &AttemptContext<'_>,
) -> Option<bool> {
    let query = DocumentQuery::compile(clause).ok()?;
    let said = if let Ok(said @ Value::Object(_)) = serde_json::from_slice(&answer.body) {
        said
    } else {
        let body = String::from_utf8_lossy(&answer.body);
        json!({"status": answer.status.as_u16(), "body": body.trim()})
    };
    let document = Document::new(&said, attempt.content.occurrence.clone());
    Some(query.matches(&document))
}
