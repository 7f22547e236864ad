//! Mail: a single-line subject, and a body as HTML and as plain text.

mod classify;
mod compose;
mod conversation;
mod html;
mod message;
mod send;

use std::borrow::Cow;

use bellwether_proto::v1;
use serde_json::{Value, json};

use super::{
    AttemptContext, AttemptOutcome, DestinationType, SettingsChecker, outlets::AttemptResources,
};
use crate::{
    config::parse_mailboxes,
    domain::{
        TemplateLanguage,
        destination::{Email, MailPriority},
    },
    error::Violation,
    limits::{MAIL_ADDRESSES_MAX, MAIL_LIST_ID_CHARACTERS_MAX, SETTING_BYTES_MAX},
    message::Facts,
    wire::{name_of, parse_name},
};

/// Returns the addresses that a mail is sent to, without duplicates. Invalid texts were rejected
/// when the destination was saved.
pub(super) fn recipients(email: &Email) -> Vec<String> {
    let mut addresses = Vec::new();
    for text in [&email.to, &email.cc, &email.bcc] {
        let read = parse_mailboxes(text).unwrap_or_default();
        for address in read.into_iter().map(|it| it.email.to_string()) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
    }
    addresses
}

#[derive(Debug)]
pub(crate) struct Mail {
    /// A single line, never empty.
    subject: String,
    text: String,
    html: String,
}

fn check_addresses(checks: &mut SettingsChecker<'_>, field: &str, text: &str) -> usize {
    if text.len() > SETTING_BYTES_MAX {
        checks.check_one_line(field, text);
        return 0;
    }
    match parse_mailboxes(text) {
        Ok(read) => read.len(),
        Err(wrong) => {
            checks.add(field, wrong);
            0
        }
    }
}

/// Names on the wire; the first is the default.
const PRIORITIES: [(&str, MailPriority); 4] = [
    ("NORMAL", MailPriority::Normal),
    ("HIGH", MailPriority::High),
    ("LOW", MailPriority::Low),
    ("SEVERITY", MailPriority::BySeverity),
];

impl DestinationType for Email {
    type Wire = v1::Email;
    type Message = Mail;

    fn from_wire(wire: v1::Email, violations: &mut Vec<Violation>) -> Self {
        let field = "type.email.priority".into();
        let priority = parse_name(&PRIORITIES, &wire.priority, field, violations);
        Self {
            to: wire.to,
            cc: wire.cc,
            bcc: wire.bcc,
            from: wire.from,
            reply_to: wire.reply_to,
            list_id: wire.list_id,
            priority,
            subject: wire.subject,
            body: wire.body,
        }
    }

    fn to_wire(self) -> v1::Email {
        v1::Email {
            to: self.to,
            cc: self.cc,
            bcc: self.bcc,
            from: self.from,
            reply_to: self.reply_to,
            list_id: self.list_id,
            // The default has no name.
            priority: name_of(&PRIORITIES[1..], self.priority),
            subject: self.subject,
            body: self.body,
        }
    }

    fn server(&self, outlets: &AttemptResources) -> Option<String> {
        let config = &outlets.mail_server.as_ref()?.config;
        Some(format!("smtp://{}:{}", config.host, config.port))
    }

    fn check(&self, checks: &mut SettingsChecker<'_>) {
        if self.to.trim().is_empty() {
            checks.add(
                "to",
                "is required: an email address, or several separated by commas",
            );
        }
        let mut count = 0;
        for (field, text) in [("to", &self.to), ("cc", &self.cc), ("bcc", &self.bcc)] {
            count += check_addresses(checks, field, text);
        }
        if count > MAIL_ADDRESSES_MAX {
            let message = format!(
                "has {count} addresses including `cc` and `bcc`; the limit is {MAIL_ADDRESSES_MAX}"
            );
            checks.add("to", message);
        }
        let count = check_addresses(checks, "replyTo", &self.reply_to);
        if count > MAIL_ADDRESSES_MAX {
            let message = format!("has {count} addresses; the limit is {MAIL_ADDRESSES_MAX}");
            checks.add("replyTo", message);
        }
        if check_addresses(checks, "from", &self.from) > 1 {
            checks.add("from", "has several addresses; expected one sender");
        }
        if !self.list_id.is_empty() && compose::list_id(&self.list_id).is_none() {
            checks.add(
                "listId",
                format!(
                    "must have the form `alerts.example.com` or `Alerts <alerts.example.com>` \
                     with at most {MAIL_LIST_ID_CHARACTERS_MAX} characters"
                ),
            );
        }
    }

    fn templates(&self) -> Vec<(Cow<'static, str>, &str)> {
        vec![
            ("subject".into(), &self.subject),
            ("body".into(), &self.body),
        ]
    }

    fn receivers(&self, _secret: &str, _language: TemplateLanguage) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn message(&self, facts: &mut Facts<'_>) -> Mail {
        message::build_mail(facts, self)
    }

    fn reduced_message(&self, facts: &mut Facts<'_>) -> Mail {
        message::reduced_message(facts, self)
    }

    fn to_display(mail: &Mail) -> Value {
        json!({"subject": mail.subject, "text": mail.text, "html": mail.html})
    }

    fn size_bytes(mail: &Mail) -> usize {
        mail.subject.len() + mail.text.len() + mail.html.len()
    }

    async fn send(&self, attempt: &mut AttemptContext<'_>, mail: Mail) -> AttemptOutcome {
        send::send_mail(self, attempt, mail).await
    }
}
