//! Webhooks: an HTTP request of the author's making, signed.

mod address;
mod check;
mod document;
mod expect;
mod message;
mod send;

use serde_json::{Value, json};

use super::{AttemptContext, Checks, DestinationType, Ending};
use crate::{
    domain::destination::{Auth, Webhook},
    message::Facts,
};

pub use check::{is_plain_header, is_secret_header};

/// What is sent, and where.
#[derive(Debug)]
pub(crate) struct Body {
    /// The address for a look, when it is made of a template. It is made anew for each attempt, since
    /// messages go where the destination leads then.
    url: Option<String>,
    /// Its `content-type`.
    content_type: String,
    text: String,
}

impl DestinationType for Webhook {
    type Message = Body;

    fn check(&self, checks: &mut Checks<'_>) {
        check::check(self, checks);
    }

    fn templates(&self) -> Vec<(&'static str, &str)> {
        let mut templates = vec![("payload", self.payload.as_str())];
        let mut address = |field, url| {
            if address::is_template(url) {
                templates.push((field, url));
            }
        };
        address("url", &self.url);
        if let Some(on_clear) = &self.on_clear {
            address("onClear.url", &on_clear.url);
            templates.push(("onClear.payload", &on_clear.payload));
        }
        templates
    }

    fn receivers(&self) -> Vec<(&'static str, &str)> {
        let on_clear = self.on_clear.as_ref().map(|it| it.url.as_str());
        let on_clear = on_clear.filter(|url| !url.is_empty());
        let mut receivers = vec![("url", self.address())];
        receivers.extend(on_clear.map(|url| ("onClear.url", url)));
        if let Some(Auth::OAuth2 { token_url, .. }) = self.auth.as_deref() {
            receivers.push(("auth.oauth2.tokenUrl", token_url));
        }
        receivers
    }

    fn message(&self, facts: &mut Facts<'_>) -> Body {
        message::body(facts, self)
    }

    fn shown(body: &Body) -> Value {
        let mut shown = json!({"contentType": body.content_type, "body": body.text});
        if let Some(url) = &body.url {
            shown["url"] = url.as_str().into();
        }
        shown
    }

    fn size_bytes(body: &Body) -> usize {
        body.text.len()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, body: Body) -> Ending {
        send::send(self, attempt, body).await
    }
}
