//! Mail: a subject of one line, and a body as HTML and as plain text.

mod classify;
mod html;
mod message;
mod send;

use lettre::Address;
use serde_json::{Value, json};

use super::{AttemptContext, Checks, DestinationType, Ending};
use crate::{domain::destination::Email, limits::SETTING_BYTES_MAX, message::Facts};

/// The texts of a mail.
#[derive(Debug)]
pub(crate) struct Mail {
    /// One line, never empty.
    subject: String,
    /// The part for programs that show no HTML.
    text: String,
    html: String,
}

impl DestinationType for Email {
    type Message = Mail;

    fn check(&self, checks: &mut Checks<'_>) {
        if self.to.is_empty() {
            checks.add("to", "is required: one mail address");
        } else if self.to.len() > SETTING_BYTES_MAX || self.to.parse::<Address>().is_err() {
            checks.add("to", "is not one mail address, such as `ops@example.com`");
        }
    }

    fn templates(&self) -> Vec<(&'static str, &str)> {
        vec![("subject", &self.subject), ("body", &self.body)]
    }

    fn message(&self, facts: &mut Facts<'_>) -> Mail {
        message::mail(facts, self)
    }

    fn shown(mail: &Mail) -> Value {
        json!({"subject": mail.subject, "text": mail.text, "html": mail.html})
    }

    fn size_bytes(mail: &Mail) -> usize {
        mail.subject.len() + mail.text.len() + mail.html.len()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, mail: Mail) -> Ending {
        send::send(self, attempt, mail).await
    }
}
