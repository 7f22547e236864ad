//! Webhooks: an HTTP request of the author's making, signed.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, header};

use super::mission::{Ending, Mission};
use crate::{
    delivery::{http::HttpRequest, signature, verdict::Verdict},
    domain::{
        Transcript,
        destination::{HeaderValue as Kept, Webhook, WebhookMethod},
    },
};

pub(super) async fn send(
    mission: &Mission<'_>,
    webhook: &Webhook,
    content_type: &str,
    body: Bytes,
) -> Ending {
    let mut headers = mission.headers(content_type);
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
    if let Some(secrets) = &webhook.signing_secret {
        let signed = signature::sign(secrets, mission.id, mission.timestamp_seconds(), &body);
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
        url: webhook.url.clone(),
        headers,
        body,
    };
    let (result, transcript) = mission.exchange(request).await;
    (mission.judge(&result), transcript)
}

fn unsendable(explanation: String) -> Ending {
    (Verdict::unreachable(explanation), Transcript::default())
}
