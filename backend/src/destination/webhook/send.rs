//! Sends a webhook's request with its headers and its signature.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};

use super::{Body, address, expect};
use crate::{
    destination::{
        AttemptContext, Ending, Verdict,
        http::{Answer, HttpRequest, SendFailure},
        oauth::{Grant, with_token},
        signature,
        tls::Identity,
    },
    domain::{
        Transcript,
        destination::{Auth, HeaderValue as Kept, Webhook, WebhookMethod},
    },
};

/// What became of a request, and what is kept of it.
type Made = (Result<Answer, SendFailure>, Transcript);

pub(super) async fn send(
    webhook: &Webhook,
    attempt: &mut AttemptContext<'_>,
    body: Body,
) -> Ending {
    let mut headers = attempt.headers(&body.content_type);
    let (url, method) = target(webhook, attempt);
    let body = Bytes::from(body.text);
    // What the body is, the message knows: it may not be the author's.
    let is_content_type = |name: &str| name.eq_ignore_ascii_case(header::CONTENT_TYPE.as_str());
    for kept in webhook
        .headers
        .iter()
        .filter(|kept| !is_content_type(&kept.name))
    {
        let value = match &kept.value {
            Kept::Plain(text) => text,
            Kept::Secret(secret) => secret.reveal(),
        };
        let (Ok(name), Ok(value)) = (
            HeaderName::try_from(kept.name.as_str()),
            HeaderValue::try_from(value),
        ) else {
            return unsendable(format!("the header `{}` cannot be sent", kept.name));
        };
        headers.insert(name, value);
    }
    let secrets = &webhook.signing_secret;
    if !secrets.is_empty() {
        let signed = signature::sign(secrets, attempt.id, attempt.timestamp_seconds(), &body);
        match signed.map(HeaderValue::try_from) {
            Ok(Ok(signature)) => headers.insert("webhook-signature", signature),
            Ok(Err(_)) => return unsendable("the signature cannot be sent".into()),
            Err(error) => return unsendable(error.to_string()),
        };
    }
    let request = HttpRequest {
        method,
        url,
        headers,
        body,
        compress: webhook.compress,
        identity: None,
    };
    let (result, transcript) = match with_auth(webhook.auth.as_deref(), attempt, request).await {
        Ok(made) => made,
        Err(ending) => return *ending,
    };
    let verdict = match (&webhook.expect, &result) {
        (Some(expect), Ok(answer)) => expect::judge(expect, answer, attempt),
        _ => attempt.judge(&result),
    };
    (verdict, transcript)
}

/// Where the message goes and how: a closing may go elsewhere.
fn target(webhook: &Webhook, attempt: &AttemptContext<'_>) -> (String, Method) {
    let mut facts = attempt.facts();
    facts.define(&webhook.values);
    let on_clear = webhook.on_clear.as_ref().filter(|_| facts.is_closing());
    let method = match on_clear.map_or(webhook.method, |it| it.method) {
        WebhookMethod::Post => Method::POST,
        WebhookMethod::Put => Method::PUT,
        WebhookMethod::Patch => Method::PATCH,
        WebhookMethod::Delete => Method::DELETE,
    };
    let own = on_clear.map(|it| it.url.as_str());
    let own = own.filter(|url| !url.is_empty());
    let filled = address::fill(own.unwrap_or(&webhook.url), &mut facts);
    let fixed = own.unwrap_or_else(|| webhook.address());
    (filled.unwrap_or_else(|| fixed.to_owned()), method)
}

/// Sends the request with what shows who sends it.
async fn with_auth(
    auth: Option<&Auth>,
    attempt: &mut AttemptContext<'_>,
    mut request: HttpRequest,
) -> Result<Made, Box<Ending>> {
    let header = match auth {
        None => return Ok(attempt.exchange(request).await),
        Some(Auth::OAuth2 {
            token_url,
            client_id,
            client_secret,
            scope,
        }) => {
            let grant = Grant {
                token_url,
                client_id,
                client_secret: client_secret.reveal(),
                refresh_token: "",
                scope,
            };
            return with_token(attempt, grant, &request).await;
        }
        Some(Auth::Mtls {
            certificate,
            private_key,
        }) => {
            request.identity = Some(Identity {
                certificate: certificate.clone(),
                private_key: private_key.clone(),
            });
            return Ok(attempt.exchange(request).await);
        }
        Some(Auth::Bearer { token }) => format!("Bearer {}", token.reveal()),
        Some(Auth::Basic { username, password }) => {
            let pair = STANDARD.encode(format!("{username}:{}", password.reveal()));
            attempt.masker.add(&pair);
            format!("Basic {pair}")
        }
    };
    match HeaderValue::try_from(header) {
        Ok(value) => {
            request.headers.insert(header::AUTHORIZATION, value);
            Ok(attempt.exchange(request).await)
        }
        Err(_control) => Err(Box::new(unsendable("`auth` cannot be sent".into()))),
    }
}

fn unsendable(explanation: String) -> Ending {
    (Verdict::unreachable(explanation), Transcript::default())
}
