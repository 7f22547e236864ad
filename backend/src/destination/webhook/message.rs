//! A webhook's body: the standard document, or what its author's template makes.

use serde_json::Value;

use super::{Body, document::document};
use crate::{
    domain::destination::{HeaderValue, Webhook},
    message::Facts,
    template::Escape,
};

const JSON: &str = "application/json";
const WHAT: &str = "the webhook's payload";

pub(super) fn body(facts: &mut Facts<'_>, webhook: &Webhook) -> Body {
    if webhook.payload.is_empty() {
        return standard(&document(facts));
    }
    let content_type = content_type(webhook);
    let warned = facts.warnings.len();
    match facts.fill(WHAT, &webhook.payload, Escape::Json) {
        Some(text) => match fault(&content_type, &text) {
            None => return Body { content_type, text },
            Some(fault) => facts.warn(WHAT, &fault),
        },
        None => debug_assert!(facts.warnings.len() > warned, "a failed template warns"),
    }
    let mut safe = document(facts);
    // So that a reader knows why this is not what the author asked for.
    safe["fallback"] = facts.warnings.last().cloned().into();
    standard(&safe)
}

fn standard(document: &Value) -> Body {
    Body {
        content_type: JSON.into(),
        text: document.to_string(),
    }
}

/// The type that the author's headers give the body; JSON when they give none.
fn content_type(webhook: &Webhook) -> String {
    let mut headers = webhook.headers.iter();
    let given = headers.find_map(|header| match &header.value {
        HeaderValue::Plain(value) if header.name.eq_ignore_ascii_case("content-type") => {
            Some(value)
        }
        _ => None,
    });
    given.map_or(JSON, String::as_str).to_owned()
}

/// What is wrong with a body that claims to be JSON.
fn fault(content_type: &str, body: &str) -> Option<String> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    if essence != JSON && essence != "text/json" && !essence.ends_with("+json") {
        return None;
    }
    let parsed: Result<Value, _> = serde_json::from_str(body);
    let error = parsed.err()?;
    Some(format!(
        "what it makes is not JSON ({error}); the standard document is sent in its place"
    ))
}
