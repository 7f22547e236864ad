//! ServiceNow: `em_event` records through the table API, behind an OAuth token.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::mission::{Ending, Mission};
use crate::{
    delivery::{
        http::{Answer, Failure, HttpRequest},
        verdict::{Advice, Verdict},
    },
    domain::{Outcome, Transcript, destination::ServiceNow},
};

/// Tokens that are kept; beyond that the cache starts anew.
const TOKENS_MAX: usize = 1_000;
/// A token is renewed so long before it ends.
const RENEW_EARLY_MS: i64 = 60_000;
/// How long a token lives when the server does not say.
const TOKEN_SECONDS_DEFAULT: i64 = 1_800;

/// Tokens that were given out, by what they were asked with.
#[derive(Debug, Default)]
pub(super) struct Tokens(Mutex<HashMap<[u8; 32], Token>>);

#[derive(Clone)]
struct Token {
    bearer: String,
    good_until_ms: i64,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Token(good until {})", self.good_until_ms)
    }
}

impl Tokens {
    fn get(&self, key: [u8; 32], now_ms: i64) -> Option<String> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let token = tokens.get(&key)?;
        (now_ms < token.good_until_ms).then(|| token.bearer.clone())
    }

    fn put(&self, key: [u8; 32], token: Token) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS_MAX {
            tokens.clear();
        }
        tokens.insert(key, token);
    }

    fn drop_token(&self, key: [u8; 32]) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.remove(&key);
    }
}

pub(super) async fn send(
    mission: &mut Mission<'_>,
    tokens: &Tokens,
    servicenow: &ServiceNow,
    body: &Value,
) -> Ending {
    let key = key_of(servicenow);
    let kept = tokens.get(key, mission.start_ms);
    let was_kept = kept.is_some();
    let mut bearer = match kept {
        Some(bearer) => bearer,
        None => match fetch(mission, tokens, servicenow).await {
            Ok(bearer) => bearer,
            Err(ending) => return *ending,
        },
    };
    let (mut result, mut transcript) = post(mission, servicenow, &bearer, body).await;
    let refused = matches!(&result, Ok(answer) if answer.status == StatusCode::UNAUTHORIZED);
    if refused {
        tokens.drop_token(key);
    }
    if refused && was_kept {
        bearer = match fetch(mission, tokens, servicenow).await {
            Ok(bearer) => bearer,
            Err(ending) => return *ending,
        };
        (result, transcript) = post(mission, servicenow, &bearer, body).await;
    }
    let verdict = match &result {
        Ok(answer) if is_taken(answer) => Verdict::delivered("ServiceNow took the event"),
        Ok(answer) => mission.judge_foreign(answer, "ServiceNow"),
        Err(_) => mission.judge(&result),
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
    mission: &mut Mission<'_>,
    servicenow: &ServiceNow,
    bearer: &str,
    body: &Value,
) -> (Result<Answer, Failure>, Transcript) {
    mission.masker.add(bearer);
    let base = servicenow.instance_url.trim_end_matches('/');
    let authorization = HeaderValue::try_from(format!("Bearer {bearer}"));
    let extra = authorization
        .ok()
        .map(|value| (header::AUTHORIZATION, value));
    mission
        .post_json(
            format!("{base}/api/now/table/em_event"),
            extra,
            body.to_string(),
        )
        .await
}

/// Asks for a token; the ending when there is none.
async fn fetch(
    mission: &Mission<'_>,
    tokens: &Tokens,
    servicenow: &ServiceNow,
) -> Result<String, Box<Ending>> {
    let content_type = HeaderValue::from_static("application/x-www-form-urlencoded");
    let request = HttpRequest {
        method: Method::POST,
        url: token_url(servicenow),
        headers: HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]),
        body: token_form(servicenow).into(),
    };
    let (result, transcript) = mission.exchange(request).await;
    let answer = match &result {
        Ok(answer) if answer.status.is_success() => answer,
        other => {
            let mut verdict = mission.judge(other);
            verdict.explanation = mission.explain(&format!("no token: {}", verdict.explanation));
            // What broke was not the message.
            if verdict.outcome == Outcome::Unknown {
                verdict.outcome = Outcome::Unreachable;
            }
            return Err(Box::new((verdict, transcript)));
        }
    };
    let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let Some(bearer) = said["access_token"]
        .as_str()
        .filter(|token| !token.is_empty())
    else {
        let verdict = Verdict::rejected("no token: the answer holds none", Advice::FewMore);
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
    tokens.put(
        key_of(servicenow),
        Token {
            bearer: bearer.into(),
            good_until_ms: mission.start_ms.saturating_add(lives_ms - RENEW_EARLY_MS),
        },
    );
    Ok(bearer.into())
}

/// What a token is asked for with.
fn token_form(servicenow: &ServiceNow) -> String {
    let mut form = form_urlencoded::Serializer::new(String::new());
    match &servicenow.refresh_token {
        Some(refresh_token) => form
            .append_pair("grant_type", "refresh_token")
            .append_pair("refresh_token", refresh_token.reveal()),
        None => form.append_pair("grant_type", "client_credentials"),
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

fn key_of(servicenow: &ServiceNow) -> [u8; 32] {
    let mut hash = Sha256::new();
    let refresh_token = servicenow
        .refresh_token
        .as_ref()
        .map_or("", |secret| secret.reveal());
    for text in [
        &token_url(servicenow),
        &servicenow.client_id,
        servicenow.client_secret.reveal(),
        refresh_token,
    ] {
        hash.update(text.len().to_be_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}
