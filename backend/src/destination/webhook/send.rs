//! Sends a webhook's request with its headers and its signature.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};

use super::{Body, address};
use crate::{
    destination::{AttemptContext, Ending, Verdict, http::HttpRequest, signature},
    domain::{
        Transcript,
        destination::{HeaderValue as Kept, Webhook, WebhookMethod},
    },
};

pub(super) async fn send(webhook: &Webhook, attempt: &AttemptContext<'_>, body: Body) -> Ending {
    let mut headers = attempt.headers(&body.content_type);
    let url = address::fill(&webhook.url, &mut attempt.facts());
    let url = url.unwrap_or_else(|| webhook.address().to_owned());
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
        method: match webhook.method {
            WebhookMethod::Post => Method::POST,
            WebhookMethod::Put => Method::PUT,
            WebhookMethod::Patch => Method::PATCH,
        },
        url,
        headers,
        body,
    };
    let (result, transcript) = attempt.exchange(request).await;
    (attempt.judge(&result), transcript)
}

fn unsendable(explanation: String) -> Ending {
    (Verdict::unreachable(explanation), Transcript::default())
}
