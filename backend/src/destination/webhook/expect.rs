//! Checks a response against the expectations of a webhook.

use serde_json::Value;

use crate::{
    destination::{Advice, AttemptContext, Verdict, http::Answer},
    domain::destination::Expect,
    matching::{Document, DocumentQuery},
};

pub(super) fn judge(expect: &Expect, answer: &Answer, attempt: &AttemptContext<'_>) -> Verdict {
    let status = answer.status;
    let is_expected = match &*expect.statuses {
        [] => status.is_success(),
        expected => expected.contains(&status.as_u16()),
    };
    if !is_expected {
        // For error statuses, the status determines the advice.
        if !status.is_success() {
            return answer.verdict(&attempt.masker, attempt.start_ms);
        }
        let explanation = format!("the receiver returned {status}, which is not expected");
        return Verdict::rejected(explanation, Advice::FewMore);
    }
    match fault(expect, answer, attempt) {
        None => Verdict::delivered(format!("the receiver returned {status}, as expected")),
        Some(fault) => {
            let explanation = format!("the receiver returned {status}, but {fault}");
            Verdict::rejected(attempt.explain(&explanation), Advice::FewMore)
        }
    }
}

/// Returns the problem with the body of a response.
fn fault(expect: &Expect, answer: &Answer, attempt: &AttemptContext<'_>) -> Option<String> {
    let clause = expect.body.as_ref()?;
    let Ok(said) = serde_json::from_slice::<Value>(&answer.body) else {
        return Some("its body is not JSON".into());
    };
    let Ok(query) = DocumentQuery::compile(clause) else {
        return Some("the condition on its body cannot be evaluated".into());
    };
    let document = Document::new(&said, attempt.content.occurrence.clone());
    let is_met = query.matches(&document);
    (!is_met).then(|| format!("its body is not as expected: {said}"))
}
