//! OAuth tokens: asked for, kept while they are good, and asked for anew.

use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use crate::{
    destination::{
        Advice, AttemptContext, Ending, Verdict,
        http::{Answer, HttpRequest},
        tokens::Token,
        verdict::Fault,
    },
    domain::{Outcome, destination::ServiceNow},
};

/// A token is renewed so long before it ends.
const RENEW_EARLY_MS: i64 = 60_000;
/// The words by which OAuth refuses a token.
const ERRORS: [&str; 9] = [
    "access_denied",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
];
/// How long a token lives when the server does not say.
const TOKEN_SECONDS_DEFAULT: i64 = 1_800;

/// Asks for a token; the ending when there is none.
pub(super) async fn fetch(
    attempt: &AttemptContext<'_>,
    servicenow: &ServiceNow,
) -> Result<String, Box<Ending>> {
    let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    let request = HttpRequest {
        method: Method::POST,
        url: token_url(servicenow),
        headers: HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]),
        body: token_form(servicenow).into(),
    };
    let (result, mut transcript) = attempt.exchange(request).await;
    // Nobody is to read in the log what an exchange of tokens answers.
    transcript.response = None;
    let answer = match &result {
        Ok(answer) if answer.status.is_success() => answer,
        other => {
            let mut verdict = attempt.judge(other);
            let said = match other {
                Ok(answer) => refusal(answer),
                Err(_) => verdict.explanation,
            };
            verdict.explanation = attempt.explain(&format!("no token: {said}"));
            // What broke was not the message.
            if verdict.outcome == Outcome::Unknown {
                verdict.outcome = Outcome::Unreachable;
            }
            if verdict.fault() == Some(Fault::Message) {
                verdict.advice = Advice::Mend;
            }
            return Err(Box::new((verdict, transcript)));
        }
    };
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Some(bearer) = said["access_token"]
        .as_str()
        .filter(|token| !token.is_empty())
    else {
        let verdict = Verdict::rejected("no token: the answer holds none", Advice::Mend);
        return Err(Box::new((verdict, transcript)));
    };
    let seconds = match &said["expires_in"] {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    let lives_ms = seconds
        .unwrap_or(TOKEN_SECONDS_DEFAULT)
        .saturating_mul(1000);
    attempt.outlets.tokens.put(
        key_of(servicenow),
        Token {
            bearer: bearer.into(),
            good_until_ms: attempt.start_ms.saturating_add(lives_ms - RENEW_EARLY_MS),
        },
    );
    Ok(bearer.into())
}

/// What a refusal may tell: the status, and the word that OAuth has for it.
fn refusal(answer: &Answer) -> String {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let word = said["error"].as_str().filter(|word| ERRORS.contains(word));
    let word = word.map_or_else(String::new, |word| format!(" ({word})"));
    format!("the receiver answered {}{word}", answer.status)
}

/// What a token is asked for with.
fn token_form(servicenow: &ServiceNow) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    match servicenow.refresh_token.reveal() {
        "" => form.append_pair("grant_type", "client_credentials"),
        refresh_token => form
            .append_pair("grant_type", "refresh_token")
            .append_pair("refresh_token", refresh_token),
    };
    form.append_pair("client_id", &servicenow.client_id)
        .append_pair("client_secret", servicenow.client_secret.reveal());
    form.finish()
}

fn token_url(servicenow: &ServiceNow) -> String {
    if servicenow.token_url.is_empty() {
        format!(
            "{}/oauth_token.do",
            servicenow.instance_url.trim_end_matches('/')
        )
    } else {
        servicenow.token_url.clone()
    }
}

/// What a token is kept under: all that it is asked for with.
pub(super) fn key_of(servicenow: &ServiceNow) -> [u8; 32] {
    let mut hash = Sha256::new();
    for text in [
        &token_url(servicenow),
        &servicenow.client_id,
        servicenow.client_secret.reveal(),
        servicenow.refresh_token.reveal(),
    ] {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}
