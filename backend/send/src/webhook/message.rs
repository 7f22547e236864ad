//! URL and body of a webhook: the standard document, or the author's templates.

use serde_json::Value;

use super::{
    Body, address,
    document::document,
    follow_up::{self, RequestKind},
    header,
};
use crate::{
    domain::{
        TemplateLanguage,
        destination::{HeaderValue, Webhook},
    },
    message::{Facts, is_blank, simplify},
    template::Escape,
};

const JSON: &str = "application/json";
const WHAT: &str = "the webhook's payload";

pub(super) fn body(facts: &mut Facts<'_>, webhook: &Webhook, is_reduced: bool) -> Body {
    facts.define_variables(&webhook.values);
    let request = follow_up::select(webhook, facts.content, facts.context.kept, is_reduced);
    // A preview shows the closing that would be skipped.
    let request = request.unwrap_or(RequestKind::Clear);
    let (own, payload) = match request.follow_up(webhook) {
        None => ("", &webhook.payload),
        Some(other) => (other.url.as_str(), &other.payload),
    };
    let url = address::render_url(&address::resolve(&webhook.url, own), facts);
    let headers = webhook.headers.iter();
    let headers = headers.filter_map(|it| Some((it, header::render_value(it, facts)?)));
    let headers = headers.filter(|(it, _)| matches!(it.value, HeaderValue::Plain(_)));
    let headers = headers
        .map(|(it, filled)| (it.name.clone(), filled))
        .collect();
    let (content_type, text) = content(facts, webhook, payload, is_reduced);
    Body {
        url,
        request,
        content_type,
        headers,
        text,
    }
}

fn content(
    facts: &mut Facts<'_>,
    webhook: &Webhook,
    payload: &str,
    is_reduced: bool,
) -> (String, String) {
    let standard = |mut document: Value| {
        if is_reduced {
            simplify(&mut document);
        }
        (JSON.to_owned(), document.to_string())
    };
    if payload.is_empty() {
        return standard(document(facts));
    }
    let content_type = content_type(webhook);
    let warned = facts.warnings.len();
    let place = escape(&content_type, facts.language);
    if !is_reduced {
        match facts.render(WHAT, payload, place) {
            Some(text) => match json_error(&content_type, &text) {
                None => return (content_type, text),
                Some(message) => facts.warn(WHAT, &message),
            },
            None => debug_assert!(facts.warnings.len() > warned, "a failed template warns"),
        }
    }
    let simple = facts.render_reduced(payload, place);
    let simple = simple.filter(|it| !is_blank(it) && json_error(&content_type, it).is_none());
    if let Some(text) = simple {
        if !is_reduced {
            facts.warn(WHAT, "sent in reduced form: short texts, no lists");
        }
        return (content_type, text);
    }
    let mut safe = document(facts);
    // Tell readers why they did not receive the requested document.
    safe["fallback"] = facts.warnings.last().cloned().into();
    standard(safe)
}

/// Returns the content type set by the author's headers; JSON by default.
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

fn media_type(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.to_ascii_lowercase()
}

/// Returns the escaping for values, so that none can break out of its position.
fn escape(content_type: &str, language: TemplateLanguage) -> Escape {
    match &*media_type(content_type) {
        "application/x-www-form-urlencoded" => Escape::Percent,
        "text/html" | "text/xml" | "application/xml" => Escape::Html,
        markup if markup.ends_with("+xml") => Escape::Html,
        "text/markdown" if language == TemplateLanguage::Jinja => Escape::Markdown,
        "text/plain" | "text/markdown" => Escape::None,
        _ => Escape::Json,
    }
}

pub(super) fn is_json(content_type: &str) -> bool {
    let essence = media_type(content_type);
    essence == JSON
        || essence == "text/json"
        || essence.ends_with("+json")
        || essence.starts_with("application/x-amz-json-")
}

fn json_error(content_type: &str, body: &str) -> Option<String> {
    if !is_json(content_type) {
        return None;
    }
    let parsed: Result<Value, _> = serde_json::from_str(body);
    let error = parsed.err()?;
    Some(format!("the rendered template is not JSON ({error})"))
}
