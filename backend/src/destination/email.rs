//! Mail: a subject of one line, and a body as HTML and as plain text.

mod classify;
mod html;
mod message;
mod send;

use lettre::Address;
use serde_json::{Value, json};

use super::{AttemptContext, Checks, DestinationType, Ending};
use crate::{
    domain::destination::Email,
    limits::{MAIL_ADDRESSES_MAX, SETTING_BYTES_MAX},
    message::Facts,
};

/// The addresses in a text, which are parted by commas.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let each = text.split(',').map(str::trim);
    each.filter(move |it| !it.is_empty() || text.contains(','))
}

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
        if self.to.trim().is_empty() {
            checks.add(
                "to",
                "is required: a mail address, or several parted by commas",
            );
        }
        for (field, text) in [("to", &self.to), ("cc", &self.cc)] {
            let wrong = addresses(text).find(|it| it.parse::<Address>().is_err());
            if text.len() > SETTING_BYTES_MAX || (wrong.is_some() && !text.trim().is_empty()) {
                checks.add(
                    field,
                    "is not one mail address, such as `ops@example.com`, or several parted by commas",
                );
            }
        }
        let count = addresses(&self.to).chain(addresses(&self.cc)).count();
        if count > MAIL_ADDRESSES_MAX {
            checks.add(
                "to",
                format!(
                    "holds {count} addresses with `cc`; at most {MAIL_ADDRESSES_MAX} are taken"
                ),
            );
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
