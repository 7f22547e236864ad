//! OAuth 2: tokens are asked for, kept while they are good, and asked for again.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::{
    Advice, AttemptContext, Ending, Verdict,
    http::{Answer, HttpRequest, SendFailure},
    tokens::Token,
    verdict::Fault,
};
use crate::domain::{Outcome, Transcript, secret::MASK};

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

/// What a token is asked for with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant<'a> {
    /// Where tokens come from.
    pub(super) token_url: &'a str,
    /// The client.
    pub(super) client_id: &'a str,
    /// What the client shows.
    pub(super) client_secret: &'a str,
    /// A refresh token; empty asks by the client credentials grant.
    pub(super) refresh_token: &'a str,
    /// What the token is to be good for; may be empty.
    pub(super) scope: &'a str,
    /// The audience of the token; may be empty.
    pub(super) audience: &'a str,
    /// Further parameters.
    pub(super) params: &'a BTreeMap<String, String>,
    /// How the client shows who it is.
    pub(super) client: ClientShown,
}

/// How a client shows who it is when it asks for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientShown {
    /// In the header `authorization`, which every server has to take, and in the body where one does not.
    Either,
    /// In the body.
    InBody,
}

/// Parameters of a request for a token that are not the author's to give.
pub(super) const OWN_PARAMS: [&str; 6] = [
    "audience",
    "client_id",
    "client_secret",
    "grant_type",
    "refresh_token",
    "scope",
];

/// Sends a request with a token, which is renewed once when it is refused; the ending when there is
/// none.
pub(super) async fn with_token(
    attempt: &mut AttemptContext<'_>,
    grant: Grant<'_>,
    request: &HttpRequest,
) -> Result<(Result<Answer, SendFailure>, Transcript), Box<Ending>> {
    let key = key_of(grant);
    let kept = attempt.outlets.tokens.get(key, attempt.start_ms);
    let was_kept = kept.is_some();
    let bearer = match kept {
        Some(bearer) => bearer,
        // Its place in the request.
        None if !attempt.sends => MASK.to_owned(),
        None => fetch(attempt, grant).await?,
    };
    let bearing = bearing_of(attempt, request, &bearer)?;
    let mut made = attempt.exchange(bearing).await;
    let refused = matches!(&made.0, Ok(answer) if answer.status == StatusCode::UNAUTHORIZED);
    if refused {
        attempt.outlets.tokens.drop_token(key);
    }
    if refused && was_kept {
        let bearer = fetch(attempt, grant).await?;
        let bearing = bearing_of(attempt, request, &bearer)?;
        made = attempt.exchange(bearing).await;
    }
    Ok(made)
}

/// The request with a token, which no one is to read in a transcript.
fn bearing_of(
    attempt: &mut AttemptContext<'_>,
    request: &HttpRequest,
    bearer: &str,
) -> Result<HttpRequest, Box<Ending>> {
    attempt.masker.add(bearer);
    let value = HeaderValue::try_from(format!("Bearer {bearer}")).map_err(|_control| {
        let verdict = Verdict::rejected("no token: the returned one cannot be sent", Advice::Mend);
        Box::new((verdict, Transcript::default()))
    })?;
    let mut request = request.clone();
    request.headers.insert(header::AUTHORIZATION, value);
    Ok(request)
}

/// A token for a receiver that is not spoken to over HTTP, kept or asked for; the ending when there is none.
pub(super) async fn bearer(
    attempt: &mut AttemptContext<'_>,
    grant: Grant<'_>,
) -> Result<String, Box<Ending>> {
    let kept = attempt.outlets.tokens.get(key_of(grant), attempt.start_ms);
    let bearer = match kept {
        Some(bearer) => bearer,
        None => fetch(attempt, grant).await?,
    };
    attempt.masker.add(&bearer);
    Ok(bearer)
}

/// Forgets a token that was refused, so that the next attempt asks for another one.
pub(super) fn forget(attempt: &AttemptContext<'_>, grant: Grant<'_>) {
    attempt.outlets.tokens.drop_token(key_of(grant));
}

/// Asks for a token; the ending when there is none.
async fn fetch(attempt: &mut AttemptContext<'_>, grant: Grant<'_>) -> Result<String, Box<Ending>> {
    let key = key_of(grant);
    let is_in_body = grant.client == ClientShown::InBody || attempt.outlets.tokens.is_in_body(key);
    let (mut result, mut transcript) = ask(attempt, grant, is_in_body).await;
    let refuses = |answer: &Answer| matches!(answer.status.as_u16(), 400 | 401 | 403);
    if !is_in_body && matches!(&result, Ok(answer) if refuses(answer)) {
        (result, transcript) = ask(attempt, grant, true).await;
        if matches!(&result, Ok(answer) if answer.status.is_success()) {
            attempt.outlets.tokens.note_in_body(key);
        }
    }
    // No one is to read in the log what an exchange of tokens answers.
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
        key,
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

/// Sends one request for a token.
async fn ask(
    attempt: &mut AttemptContext<'_>,
    grant: Grant<'_>,
    is_in_body: bool,
) -> (Result<Answer, SendFailure>, Transcript) {
    let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    let accept = HeaderValue::from_static("application/json");
    let mut headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, content_type),
        (header::ACCEPT, accept),
    ]);
    if !is_in_body {
        // Both are encoded as a form's before they are joined (RFC 6749, 2.3.1).
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
        body: token_form(grant, is_in_body).into(),
        compress: false,
        identity: None,
    };
    attempt.exchange(request).await
}

/// What a token is asked for with.
fn token_form(grant: Grant<'_>, is_in_body: bool) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    match grant.refresh_token {
        "" => form.append_pair("grant_type", "client_credentials"),
        refresh_token => form
            .append_pair("grant_type", "refresh_token")
            .append_pair("refresh_token", refresh_token),
    };
    if is_in_body {
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

/// What a token is kept under: all that it is asked for with.
fn key_of(grant: Grant<'_>) -> [u8; 32] {
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
