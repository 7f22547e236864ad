//! Sends the request of a webhook with its headers and signature.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};

use super::{
    Body, address,
    aws::{AccessKey, sign_request},
    expect,
    follow_up::RequestKind,
    header as own_header, is_template, keep,
};
use crate::{
    AttemptContext, AttemptOutcome, DestinationType as _, as_type,
    domain::{
        Outcome, Transcript,
        destination::{Auth, HeaderValue as StoredValue, Webhook, WebhookMethod},
    },
    error::Error,
    http::{HttpRequest, HttpResponse, SendFailure},
    message::Facts,
    oauth::{ClientAuth, Grant, with_token},
    run_off_runtime, signature,
    template::KEPT_VALUES,
    tls::Identity,
    verdict::{Advice, FailureCause, Verdict},
};

type SendResult = (Result<HttpResponse, SendFailure>, Transcript);

pub(super) async fn send_request(
    webhook: &Webhook,
    attempt: &mut AttemptContext<'_>,
    body: Body,
) -> AttemptOutcome {
    let settings: Option<&Webhook> = as_type(&attempt.content.destination_kind);
    let skipped = settings.and_then(|it| it.skip_reason(attempt.content, attempt.around.kept));
    if let Some(reason) = skipped {
        let verdict = Verdict::new_rejected(reason, Advice::GiveUp);
        return (verdict, Transcript::default());
    }
    let mut headers = attempt.headers(&body.content_type);
    let target = match render_target(webhook, attempt, body.request).await {
        Ok(target) => target,
        Err(error) => return unsendable_outcome(error.to_string()),
    };
    let (kind, is_json) = (body.request, body.is_json());
    let body = Bytes::from(body.text);
    // The content type comes from the message, which may not use the author's template.
    let is_content_type = |name: &str| name.eq_ignore_ascii_case(header::CONTENT_TYPE.as_str());
    for stored in webhook
        .headers
        .iter()
        .filter(|stored| !is_content_type(&stored.name))
    {
        let filled = target.headers.get(&stored.name).map(String::as_str);
        let text = own_header::header_text(stored);
        if let (Some(filled), StoredValue::Secret(_)) = (filled, &stored.value) {
            attempt.masker.add_rendered(text, filled);
        }
        let value = filled.unwrap_or(text);
        let (Ok(name), Ok(value)) = (
            HeaderName::try_from(stored.name.as_str()),
            HeaderValue::from_bytes(value.as_bytes()),
        ) else {
            return unsendable_outcome(format!(
                "the header `{}` is not a valid HTTP header",
                stored.name
            ));
        };
        headers.insert(name, value);
    }
    let secrets = &webhook.signing_secret;
    if !secrets.is_empty() {
        let signed =
            signature::sign_with_secrets(secrets, attempt.id, attempt.timestamp_seconds(), &body);
        match signed.map(HeaderValue::try_from) {
            Ok(Ok(signature)) if attempt.sends => headers.insert(signature::HEADER, signature),
            // A valid signature would let readers send the message.
            Ok(Ok(_)) => headers.insert(signature::HEADER, signature::SET_WHEN_SENT),
            Ok(Err(_)) => {
                return unsendable_outcome("the signature is not a valid header value".into());
            }
            Err(error) => return unsendable_outcome(error.to_string()),
        };
    }
    let request = HttpRequest {
        method: target.method,
        url: target.url,
        headers,
        body,
        compress: webhook.compress && !attempt.is_reduced,
        identity: None,
    };
    let made = match with_auth(webhook.auth.as_deref(), attempt, request).await {
        Ok(made) => made,
        Err(ending) => return *ending,
    };
    match made {
        (Ok(answer), transcript) => judge(webhook, attempt, &answer, transcript, (kind, is_json)),
        (result, transcript) => (attempt.verdict_by_status(&result), transcript),
    }
}

/// Returns the verdict on a response, with the values to keep.
fn judge(
    webhook: &Webhook,
    attempt: &mut AttemptContext<'_>,
    answer: &HttpResponse,
    mut transcript: Transcript,
    (kind, is_json): (RequestKind, bool),
) -> AttemptOutcome {
    let found = keep::find_values(&webhook.keep, answer, &attempt.masker);
    let secrets = found.values.iter().filter(|it| it.is_secret);
    let secrets: Vec<_> = secrets.map(|it| it.text.clone()).collect();
    for secret in &secrets {
        attempt.masker.add(secret.reveal());
    }
    if !secrets.is_empty() {
        transcript.response = Some(attempt.response_transcript(answer));
    }
    let follow_up = kind.follow_up(webhook);
    let is_about_item = follow_up.is_some_and(|it| it.url.contains(KEPT_VALUES));
    let sent = (is_json, is_about_item);
    let mut verdict = expect::classify_response(webhook.expect.as_deref(), answer, attempt, sent);
    let gone = follow_up.and_then(|it| it.gone.as_ref());
    let is_final = !matches!(verdict.cause(), None | Some(FailureCause::Receiver));
    if is_final && gone.is_some_and(|it| expect::matches(it, answer, attempt) == Some(true)) {
        verdict.advice = Advice::Reduce;
        let explanation = format!(
            "{}; the change is sent like the first message, because that one is gone",
            verdict.explanation
        );
        verdict.explanation = attempt.mask_and_truncate(&explanation);
    }
    if verdict.outcome != Outcome::Delivered || attempt.content.digest.is_some() {
        return (verdict, transcript);
    }
    if kind == RequestKind::Main && !found.missing.is_empty() {
        let missing = found.missing.join(", ");
        let explanation = format!("{}; not kept: {missing}", verdict.explanation);
        verdict.explanation = attempt.mask_and_truncate(&explanation);
    }
    let origin = address::origin(webhook.address());
    let kept = keep::merge(webhook, attempt.around.kept, found.values, origin);
    if !kept.values.is_empty() && attempt.around.kept != Some(&kept) {
        verdict.kept = kept;
    }
    (verdict, transcript)
}

/// The parts of a request determined by the current settings.
struct Target {
    url: String,
    method: Method,
    headers: BTreeMap<String, String>,
}

/// Returns the target of the message; later messages of a thread may have a different one.
async fn render_target(
    webhook: &Webhook,
    attempt: &mut AttemptContext<'_>,
    request: RequestKind,
) -> Result<Target, Error> {
    let follow_up = request.follow_up(webhook);
    let method = match follow_up.map_or(webhook.method, |it| it.method) {
        WebhookMethod::Post => Method::POST,
        WebhookMethod::Put => Method::PUT,
        WebhookMethod::Patch => Method::PATCH,
        WebhookMethod::Delete => Method::DELETE,
    };
    let own = follow_up.map_or("", |it| it.url.as_str());
    let address = address::resolve(webhook.address(), own).into_owned();
    let is_secret = !webhook.secret_url.is_empty() && (own.is_empty() || address::is_relative(own));
    if is_secret {
        attempt.masker.add_rendered(&address, &address);
    }
    let mut headers = webhook.headers.iter();
    if !is_template(&address) && !headers.any(|it| is_template(own_header::header_text(it))) {
        return Ok(Target {
            url: address,
            method,
            headers: BTreeMap::new(),
        });
    }
    let (template, language) = (address.clone(), attempt.template_language);
    let content = (attempt.content, &attempt.around);
    let filled = run_off_runtime(
        &attempt.outlets.renderers,
        webhook,
        content,
        move |webhook, content, around| {
            let mut facts = Facts::new(content, around);
            facts.language = language;
            facts.define_variables(&webhook.values);
            let headers = webhook.headers.iter();
            let headers = headers.filter_map(|it| {
                Some((it.name.clone(), own_header::render_value(it, &mut facts)?))
            });
            let headers = headers.collect();
            (address::render_url(&template, &mut facts), headers)
        },
    );
    let (filled, headers) = filled.await?;
    if let Some(filled) = filled.as_ref().filter(|_| is_secret) {
        attempt.masker.add_rendered(&address, filled);
    }
    Ok(Target {
        url: filled.unwrap_or(address),
        method,
        headers,
    })
}

async fn with_auth(
    auth: Option<&Auth>,
    attempt: &mut AttemptContext<'_>,
    mut request: HttpRequest,
) -> Result<SendResult, Box<AttemptOutcome>> {
    let header = match auth {
        None => return Ok(attempt.exchange(request).await),
        Some(Auth::OAuth2 {
            token_url,
            client_id,
            client_secret,
            scope,
            audience,
            params,
        }) => {
            let grant = Grant {
                token_url,
                client_id,
                client_secret: client_secret.reveal(),
                refresh_token: "",
                scope,
                audience,
                params,
                client: ClientAuth::Either,
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
        Some(Auth::Aws {
            access_key_id: id,
            secret_access_key: secret,
            region,
            service,
        }) => {
            let key = AccessKey {
                id,
                secret,
                region,
                service,
            };
            sign_request(&key, attempt, &mut request).map_err(|error| {
                Box::new(unsendable_outcome(format!(
                    "failed to sign the request: {error}"
                )))
            })?;
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
        Err(_control) => Err(Box::new(unsendable_outcome(
            "`auth` is not a valid header value".into(),
        ))),
    }
}

fn unsendable_outcome(explanation: String) -> AttemptOutcome {
    (Verdict::new_unreachable(explanation), Transcript::default())
}
