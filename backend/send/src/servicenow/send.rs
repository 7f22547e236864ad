//! Creates a record, with a token that is renewed if it is refused.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::Value;

use crate::{
    AttemptContext, AttemptOutcome,
    domain::destination::ServiceNow,
    http::{HttpRequest, HttpResponse},
    oauth::{ClientAuth, Grant, with_token},
    verdict::Verdict,
};

pub(super) async fn send_request(
    servicenow: &ServiceNow,
    attempt: &mut AttemptContext<'_>,
    body: &Value,
) -> AttemptOutcome {
    let base = servicenow.instance_url.trim_end_matches('/');
    let own_token_url = format!("{base}/oauth_token.do");
    let grant = Grant {
        token_url: match servicenow.token_url.as_str() {
            "" => &own_token_url,
            other => other,
        },
        client_id: &servicenow.client_id,
        client_secret: servicenow.client_secret.reveal(),
        refresh_token: servicenow.refresh_token.reveal(),
        scope: "",
        audience: "",
        params: &BTreeMap::new(),
        client: ClientAuth::InBody,
    };
    let request = HttpRequest {
        method: Method::POST,
        url: format!("{base}/api/now/table/em_event"),
        headers: attempt.headers("application/json; charset=utf-8"),
        body: body.to_string().into(),
        compress: false,
        identity: None,
    };
    let made = with_token(attempt, grant, &request).await;
    let (result, transcript) = match made {
        Ok(made) => made,
        Err(ending) => return *ending,
    };
    let verdict = match &result {
        Ok(answer) if is_created(answer) => Verdict::new_delivered("ServiceNow accepted the event"),
        Ok(answer) => attempt.foreign_verdict(answer, "ServiceNow"),
        Err(_) => attempt.verdict_by_status(&result),
    };
    (verdict, transcript)
}

/// Whether the record was created: status 201, or a response that contains the record.
fn is_created(answer: &HttpResponse) -> bool {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let is_shown = answer.status.is_success() && said["result"].is_object();
    answer.status == StatusCode::CREATED || is_shown
}
