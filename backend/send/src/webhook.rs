//! Webhooks: a configurable, signed HTTP request.

mod address;
mod aws;
mod check;
mod document;
mod expect;
mod follow_up;
mod header;
mod keep;
mod message;
mod send;
mod wire;

use std::{borrow::Cow, collections::BTreeMap};

use bellwether_proto::v1;
use serde_json::{Value, json};

use super::{
    AttemptContext, AttemptOutcome, DestinationType, SettingsChecker, normalized_address,
    outlets::AttemptResources,
};
use crate::{
    domain::{
        Content, TemplateLanguage,
        destination::{Auth, KeptValues, Webhook},
    },
    error::Violation,
    message::Facts,
};
use follow_up::RequestKind;

pub use check::is_credential;

#[derive(Debug)]
pub(crate) struct Body {
    /// The URL for previews, if it is a template. Attempts render it again with the current
    /// settings of the destination.
    url: Option<String>,
    request: RequestKind,
    content_type: String,
    /// For previews, like the URL: non-secret headers rendered from templates.
    headers: BTreeMap<String, String>,
    text: String,
}

impl Body {
    fn is_json(&self) -> bool {
        message::is_json(&self.content_type)
    }
}

/// Variables with which a receiver can identify an incident.
const KEYS: [&str; 3] = ["thread_id", "labels", "occurrence_id"];

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

impl DestinationType for Webhook {
    type Wire = v1::Webhook;
    type Message = Body;

    fn from_wire(wire: v1::Webhook, violations: &mut Vec<Violation>) -> Self {
        wire::from_wire(wire, violations)
    }

    fn to_wire(self) -> v1::Webhook {
        wire::to_wire(self)
    }

    /// Whether the receiver keeps state: closings have a different request, or templates use a key
    /// and `is_over` and do not support digests.
    fn keeps_state(&self) -> bool {
        let texts = [&self.payload, &self.url, self.secret_url.reveal()];
        let asks = |word: &str| {
            texts
                .iter()
                .any(|text| is_template(text) && text.contains(word))
        };
        let has_key = KEYS.iter().any(|key| asks(key));
        self.on_clear.is_some() || has_key && asks("is_over") && !asks("digest")
    }

    fn keeps(&self, name: &str) -> bool {
        self.keep.contains_key(name)
    }

    fn accepts_kept(&self, kept: &KeptValues) -> bool {
        address::origin(self.address()) == kept.origin
    }

    fn skip_reason(&self, content: &Content, kept: Option<&KeptValues>) -> Option<String> {
        let name = follow_up::select(self, content, kept, false).err()?;
        Some(format!(
            "skipped: no response to an earlier message of the thread had the value `{name}`, which \
             `onClear` uses"
        ))
    }

    fn lasting_effect(&self) -> &str {
        match &*self.test_effect {
            "" if self.keeps_state() => "an alert at the receiver",
            effect => effect,
        }
    }

    fn server(&self, _outlets: &AttemptResources) -> Option<String> {
        let address = match &*self.url {
            "" => self.secret_url.reveal(),
            url => url,
        };
        // The address is known up to the first variable, which cannot precede the path.
        address.split("{{").next().map(str::to_owned)
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        check::check(self, checks);
    }

    fn templates(&self) -> Vec<(Cow<'static, str>, &str)> {
        let mut templates = vec![("payload".into(), self.payload.as_str())];
        // Without braces these are arbitrary texts, not templates.
        let mut if_template = |field, text| {
            if is_template(text) {
                templates.push((field, text));
            }
        };
        if_template("url".into(), &self.url);
        if_template("secretUrl".into(), self.secret_url.reveal());
        for header in &self.headers {
            if_template(
                header::header_path(header).into(),
                header::header_text(header),
            );
        }
        for (name, follow_up) in self.follow_ups() {
            if_template(format!("{name}.url").into(), &follow_up.url);
        }
        for (name, follow_up) in self.follow_ups() {
            templates.push((format!("{name}.payload").into(), &follow_up.payload));
        }
        templates
    }

    fn receivers(&self, secret: &str, language: TemplateLanguage) -> Vec<(&'static str, String)> {
        let leads_to = |url| address::target_key(url, language, self);
        let mut receivers = match secret {
            "secret_url" => return Vec::new(),
            _ if self.url.is_empty() => vec![("secretUrl", leads_to(self.secret_url.reveal()))],
            _ => vec![("url", leads_to(&self.url))],
        };
        for (name, follow_up) in self.follow_ups() {
            if !follow_up.url.is_empty() {
                let field = match name {
                    "onClear" => "onClear.url",
                    _ => "onUpdate.url",
                };
                receivers.push((field, leads_to(&follow_up.url)));
            }
        }
        if let (Some(Auth::OAuth2 { token_url, .. }), "auth.oauth2.client_secret") =
            (self.auth.as_deref(), secret)
        {
            receivers.push(("auth.oauth2.tokenUrl", normalized_address(token_url)));
        }
        receivers
    }

    fn message(&self, facts: &mut Facts<'_>) -> Body {
        message::body(facts, self, false)
    }

    fn reduced_message(&self, facts: &mut Facts<'_>) -> Body {
        message::body(facts, self, true)
    }

    fn to_display(body: &Body) -> Value {
        let mut shown = json!({"contentType": body.content_type, "body": body.text});
        if let Some(url) = &body.url {
            shown["url"] = url.as_str().into();
        }
        if !body.headers.is_empty() {
            shown["headers"] = json!(body.headers);
        }
        shown
    }

    fn size_bytes(body: &Body) -> usize {
        body.text.len()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, body: Body) -> AttemptOutcome {
        send::send_request(self, attempt, body).await
    }
}
