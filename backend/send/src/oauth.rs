//! OAuth 2 tokens: requested, cached while valid, and renewed.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::{
    AttemptContext, AttemptOutcome,
    http::{HttpRequest, HttpResponse, SendFailure},
    tokens::Token,
    verdict::{Advice, FailureCause, Verdict},
};
use crate::domain::{Outcome, Transcript, secret::MASK};

const RENEW_EARLY_MS: i64 = 60_000;
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
/// Lifetime of a token if the server does not state one.
const TOKEN_SECONDS_DEFAULT: i64 = 1_800;

#[derive(Debug, Clone, Copy)]
pub(super) struct Grant<'a> {
    pub(super) token_url: &'a str,
    pub(super) client_id: &'a str,
    pub(super) client_secret: &'a str,
    /// A refresh token; if empty, the client credentials grant is used.
    pub(super) refresh_token: &'a str,
    /// Requested scope; may be empty.
    pub(super) scope: &'a str,
    /// Audience of the token; may be empty.
    pub(super) audience: &'a str,
    pub(super) params: &'a BTreeMap<String, String>,
    pub(super) client: ClientAuth,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientAuth {
    /// In the `authorization` header, which every server must support. If that fails, in the body.
    Either,
    InBody,
}

/// Parameters of a token request that authors may not set.
pub(super) const OWN_PARAMS: [&str; 6] = [
    "audience",
    "client_id",
    "client_secret",
    "grant_type",
    "refresh_token",
    "scope",
];

/// Sends a request with a token, which is renewed once if it is refused. Returns the ending of the
/// attempt if there is no token.
pub(super) async fn with_token(
    attempt: &mut AttemptContext<'_>,
    grant: Grant<'_>,
    request: &HttpRequest,
) -> Result<(Result<HttpResponse, SendFailure>, Transcript), Box<AttemptOutcome>> {
    let key = cache_key(grant);
    let cached = attempt.outlets.tokens.get(key, attempt.start_ms);
    let was_cached = cached.is_some();
    let bearer = match cached {
        Some(bearer) => bearer,
        // A request that is only rendered contains a placeholder.
        None if !attempt.sends => MASK.to_owned(),
        None => fetch_token(attempt, grant).await?,
    };
    let bearing = with_bearer(attempt, request, &bearer)?;
    let mut made = attempt.exchange(bearing).await;
    let refused = matches!(&made.0, Ok(answer) if answer.status == StatusCode::UNAUTHORIZED);
    if refused {
        attempt.outlets.tokens.drop_token(key);
    }
    if refused && was_cached {
        let bearer = fetch_token(attempt, grant).await?;
        let bearing = with_bearer(attempt, request, &bearer)?;
        made = attempt.exchange(bearing).await;
    }
    Ok(made)
}

fn with_bearer(
    attempt: &mut AttemptContext<'_>,
    request: &HttpRequest,
    bearer: &str,
) -> Result<HttpRequest, Box<AttemptOutcome>> {
    attempt.masker.add(bearer);
    let value = HeaderValue::try_from(format!("Bearer {bearer}")).map_err(|_control| {
        let verdict = Verdict::new_rejected(
            "the returned token is not a valid header value",
            Advice::Fix,
        );
        Box::new((verdict, Transcript::default()))
    })?;
    let mut request = request.clone();
    request.headers.insert(header::AUTHORIZATION, value);
    Ok(request)
}

/// Returns a cached or new token for a receiver that does not use HTTP, or the ending of the
/// attempt if there is none.
pub(super) async fn bearer_token(
    attempt: &mut AttemptContext<'_>,
    grant: Grant<'_>,
) -> Result<String, Box<AttemptOutcome>> {
    let cached = attempt
        .outlets
        .tokens
        .get(cache_key(grant), attempt.start_ms);
    let bearer = match cached {
        Some(bearer) => bearer,
        None => fetch_token(attempt, grant).await?,
    };
    attempt.masker.add(&bearer);
    Ok(bearer)
}

/// Drops a refused token, so that the next attempt requests another one.
pub(super) fn forget_token(attempt: &AttemptContext<'_>, grant: Grant<'_>) {
    attempt.outlets.tokens.drop_token(cache_key(grant));
}

async fn fetch_token(
    attempt: &mut AttemptContext<'_>,
    grant: Grant<'_>,
) -> Result<String, Box<AttemptOutcome>> {
    let key = cache_key(grant);
    let requires_secret_in_body =
        grant.client == ClientAuth::InBody || attempt.outlets.tokens.requires_secret_in_body(key);
    let (mut result, mut transcript) = request_token(attempt, grant, requires_secret_in_body).await;
    let refuses = |answer: &HttpResponse| matches!(answer.status.as_u16(), 400 | 401 | 403);
    if !requires_secret_in_body && matches!(&result, Ok(answer) if refuses(answer)) {
        (result, transcript) = request_token(attempt, grant, true).await;
        if matches!(&result, Ok(answer) if answer.status.is_success()) {
            attempt.outlets.tokens.record_in_body(key);
        }
    }
    // The response may contain a token and must not be logged.
    transcript.response = None;
    let answer = match &result {
        Ok(answer) if answer.status.is_success() => answer,
        other => {
            let mut verdict = attempt.verdict_by_status(other);
            let said = match other {
                Ok(answer) => describe_refusal(answer),
                Err(_) => verdict.explanation,
            };
            verdict.explanation = attempt.mask_and_truncate(&format!("no token: {said}"));
            // The message itself was not sent.
            if verdict.outcome == Outcome::Unknown {
                verdict.outcome = Outcome::Unreachable;
            }
            if verdict.cause() == Some(FailureCause::Message) {
                verdict.advice = Advice::Fix;
            }
            return Err(Box::new((verdict, transcript)));
        }
    };
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Some(bearer) = said["access_token"]
        .as_str()
        .filter(|token| !token.is_empty())
    else {
        let verdict = Verdict::new_rejected("no token in the response", Advice::Fix);
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
        key,
        Token {
            bearer: bearer.into(),
            good_until_ms: attempt.start_ms.saturating_add(lives_ms - RENEW_EARLY_MS),
        },
    );
    Ok(bearer.into())
}

/// Describes a refusal by its status and OAuth error code only.
fn describe_refusal(answer: &HttpResponse) -> String {
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let word = said["error"].as_str().filter(|word| ERRORS.contains(word));
    let word = word.map_or_else(String::new, |word| format!(" ({word})"));
    format!("the receiver returned {}{word}", answer.status)
}

async fn request_token(
    attempt: &mut AttemptContext<'_>,
    grant: Grant<'_>,
    requires_secret_in_body: bool,
) -> (Result<HttpResponse, SendFailure>, Transcript) {
    let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    let accept = HeaderValue::from_static("application/json");
    let mut headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, content_type),
        (header::ACCEPT, accept),
    ]);
    if !requires_secret_in_body {
        // Client id and secret are form-encoded before they are joined (RFC 6749, 2.3.1).
        let encoded = [grant.client_id, grant.client_secret]
            .map(|text| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>());
        let pair = STANDARD.encode(encoded.join(":"));
        attempt.masker.add(&pair);
        let basic = HeaderValue::try_from(format!("Basic {pair}")).expect("base64");
        headers.insert(header::AUTHORIZATION, basic);
    }
    let request = HttpRequest {
        method: Method::POST,
        url: grant.token_url.to_owned(),
        headers,
        body: token_form(grant, requires_secret_in_body).into(),
        compress: false,
        identity: None,
    };
    attempt.exchange(request).await
}

fn token_form(grant: Grant<'_>, requires_secret_in_body: bool) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    match grant.refresh_token {
        "" => form.append_pair("grant_type", "client_credentials"),
        refresh_token => form
            .append_pair("grant_type", "refresh_token")
            .append_pair("refresh_token", refresh_token),
    };
    if requires_secret_in_body {
        form.append_pair("client_id", grant.client_id)
            .append_pair("client_secret", grant.client_secret);
    }
    for (name, value) in [("scope", grant.scope), ("audience", grant.audience)] {
        if !value.is_empty() {
            form.append_pair(name, value);
        }
    }
    form.extend_pairs(grant.params);
    form.finish()
}

/// Returns the cache key of a token: a hash of all its request parameters.
fn cache_key(grant: Grant<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    let params = grant.params.iter();
    let params = params.flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    for text in [
        grant.token_url,
        grant.client_id,
        grant.client_secret,
        grant.refresh_token,
        grant.scope,
        grant.audience,
    ]
    .into_iter()
    .chain(params)
    {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}
