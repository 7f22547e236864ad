//! Webhooks: an HTTP request of the author's making, signed.

mod check;
mod document;
mod message;
mod send;

use serde_json::{Value, json};

use super::{AttemptContext, Checks, DestinationType, Ending};
use crate::{domain::destination::Webhook, message::Facts};

pub use check::{is_plain_header, is_secret_header};

/// The body of a request.
#[derive(Debug)]
pub(crate) struct Body {
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
        vec![("payload", &self.payload)]
    }

    fn receivers(&self) -> Vec<(&'static str, &str)> {
        vec![("url", &self.url)]
    }

    fn message(&self, facts: &mut Facts<'_>) -> Body {
        message::body(facts, self)
    }

    fn shown(body: &Body) -> Value {
        json!({"contentType": body.content_type, "body": body.text})
    }

    fn size_bytes(body: &Body) -> usize {
        body.text.len()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, body: Body) -> Ending {
        send::send(self, attempt, body).await
    }
}
