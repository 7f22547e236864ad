//! Writes a record, with a token that is renewed when it is refused.

use http::{HeaderValue, StatusCode, header};
use serde_json::Value;

use super::token::{fetch, key_of};
use crate::{
    destination::{
        AttemptContext, Ending, Verdict,
        http::{Answer, Failure},
    },
    domain::{Transcript, destination::ServiceNow},
};

pub(super) async fn send(
    servicenow: &ServiceNow,
    attempt: &mut AttemptContext<'_>,
    body: &Value,
) -> Ending {
    let tokens = &attempt.outlets.tokens;
    let key = key_of(servicenow);
    let kept = tokens.get(key, attempt.start_ms);
    let was_kept = kept.is_some();
    let mut bearer = match kept {
        Some(bearer) => bearer,
        None => match fetch(attempt, servicenow).await {
            Ok(bearer) => bearer,
            Err(ending) => return *ending,
        },
    };
    let (mut result, mut transcript) = post(attempt, servicenow, &bearer, body).await;
    let refused = matches!(&result, Ok(answer) if answer.status == StatusCode::UNAUTHORIZED);
    if refused {
        tokens.drop_token(key);
    }
    if refused && was_kept {
        bearer = match fetch(attempt, servicenow).await {
            Ok(bearer) => bearer,
            Err(ending) => return *ending,
        };
        (result, transcript) = post(attempt, servicenow, &bearer, body).await;
    }
    let verdict = match &result {
        Ok(answer) if is_taken(answer) => Verdict::delivered("ServiceNow took the event"),
        Ok(answer) => attempt.judge_foreign(answer, "ServiceNow"),
        Err(_) => attempt.judge(&result),
    };
    (verdict, transcript)
}

/// A record that was made is answered with 201, and shown unless it is asked not to be.
fn is_taken(answer: &Answer) -> bool {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let is_shown = answer.status.is_success() && said["result"].is_object();
    answer.status == StatusCode::CREATED || is_shown
}

async fn post(
    attempt: &mut AttemptContext<'_>,
    servicenow: &ServiceNow,
    bearer: &str,
    body: &Value,
) -> (Result<Answer, Failure>, Transcript) {
    attempt.masker.add(bearer);
    let base = servicenow.instance_url.trim_end_matches('/');
    let authorization = HeaderValue::try_from(format!("Bearer {bearer}"));
    let extra = authorization
        .ok()
        .map(|value| (header::AUTHORIZATION, value));
    attempt
        .post_json(
            format!("{base}/api/now/table/em_event"),
            extra,
            body.to_string(),
        )
        .await
}
