//! Builds a mail: its envelope, headers and parts.

use lettre::{
    Message, address,
    message::{
        Mailbox, MultiPart,
        header::{self, HeaderName, HeaderValue, Headers},
    },
};

use super::Mail;
use crate::{
    AttemptContext,
    config::{SmtpConfig, parse_mailbox, parse_mailboxes},
    domain::{
        Content, RecordId, Severity, Status, delivery,
        destination::{Email, MailPriority},
    },
    limits::MAIL_LIST_ID_CHARACTERS_MAX,
    transcript::BODY_BYTES_MAX,
};

pub(super) struct ComposedMail {
    pub(super) envelope: Envelope,
    pub(super) request: delivery::Request,
}

pub(super) struct Envelope {
    pub(super) from: Mailbox,
    /// Addresses without duplicates and without those that already have the mail.
    pub(super) to: Vec<String>,
    head: MailHead,
    mail: Mail,
}

struct MailHead {
    to: Vec<Mailbox>,
    cc: Vec<Mailbox>,
    reply_to: Vec<Mailbox>,
    message_id: String,
    opening: Option<String>,
    list_id: Option<String>,
    priority: MailPriority,
}

pub(super) fn compose(
    attempt: &AttemptContext<'_>,
    smtp: &SmtpConfig,
    email: &Email,
    mail: Mail,
) -> Result<ComposedMail, String> {
    let mail = Mail {
        subject: without_nul(mail.subject),
        text: without_nul(mail.text),
        html: without_nul(mail.html),
    };
    let sender = match email.from.trim() {
        "" => smtp.from.clone(),
        from => parse_mailbox(from)?,
    };
    // The id is the same in all attempts, so that mail programs show one mail. It does not depend
    // on the destination's sender, so that related mails stay in one conversation.
    let id_of = |delivery: RecordId| format!("<{delivery}@{}>", smtp.from.email.domain());
    let head = MailHead {
        to: parse_mailboxes(&email.to)?,
        cc: parse_mailboxes(&email.cc)?,
        reply_to: parse_mailboxes(&email.reply_to)?,
        message_id: id_of(attempt.id),
        opening: attempt.opening.map(id_of),
        list_id: list_id(&email.list_id),
        priority: effective_priority(email.priority, attempt.content),
    };
    let shown = |all: &[Mailbox]| {
        let each: Vec<_> = all.iter().map(ToString::to_string).collect();
        each.join(", ")
    };
    let named = [
        ("from", sender.to_string()),
        ("to", shown(&head.to)),
        ("cc", shown(&head.cc)),
        ("reply-to", shown(&head.reply_to)),
        ("subject", mail.subject.clone()),
        ("message-id", head.message_id.clone()),
    ];
    let named = named.into_iter().filter(|(_, value)| !value.is_empty());
    let named = named.map(|(name, value)| (name.to_owned(), attempt.masker.mask(&value, 1024)));
    let request = delivery::Request {
        method: "SMTP".into(),
        url: format!("smtp://{}:{}", smtp.host, smtp.port),
        headers: named.collect(),
        body: attempt.masker.mask(&mail.text, BODY_BYTES_MAX),
    };
    let mut addresses = super::recipients(email);
    addresses.retain(|it| attempt.recipients.is_open(it));
    let envelope = Envelope {
        from: sender,
        to: addresses,
        head,
        mail,
    };
    Ok(ComposedMail { envelope, request })
}

/// Replaces NUL, which no part of a mail may contain (RFC 5321, 4.5.2).
fn without_nul(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// Returns the value of the `List-Id` header (RFC 2919); `None` if the text is not a valid list
/// name.
pub(super) fn list_id(text: &str) -> Option<String> {
    let text = text.trim();
    let (phrase, id) = match text.split_once('<') {
        None => ("", text),
        Some((phrase, rest)) => (phrase.trim(), rest.strip_suffix('>')?),
    };
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut labels = id.split('.');
    let is_id = id.contains('.') && labels.all(|it| !it.is_empty() && it.chars().all(is_letter));
    let is_phrase = !phrase.contains(|c: char| c.is_control() || matches!(c, '"' | '<' | '>'));
    if !is_id || !is_phrase || text.chars().count() > MAIL_LIST_ID_CHARACTERS_MAX {
        return None;
    }
    Some(match phrase {
        "" => format!("<{id}>"),
        phrase => format!("{phrase} <{id}>"),
    })
}

fn effective_priority(set: MailPriority, content: &Content) -> MailPriority {
    let occurrence = &content.occurrence;
    match set {
        MailPriority::BySeverity
            if occurrence.severity >= Severity::Error && occurrence.status != Status::Closed =>
        {
            MailPriority::High
        }
        MailPriority::BySeverity => MailPriority::Normal,
        set => set,
    }
}

fn header(name: &'static str, text: &str) -> HeaderValue {
    HeaderValue::new(HeaderName::new_from_ascii_str(name), text.to_owned())
}

/// Returns a header with one mailbox per line; the library would put all of them on one line.
fn mailbox_header(name: &'static str, mailboxes: &[&Mailbox]) -> HeaderValue {
    let encoded = |mailbox: &&Mailbox| {
        let mut alone = Headers::new();
        alone.set(header::Sender::from((*mailbox).clone()));
        let line = alone.to_string();
        let (_, value) = line.split_once(": ").unwrap_or_default();
        value.trim_end().to_owned()
    };
    let raw: Vec<_> = mailboxes.iter().map(ToString::to_string).collect();
    let encoded: Vec<_> = mailboxes.iter().map(encoded).collect();
    HeaderValue::dangerous_new_pre_encoded(
        HeaderName::new_from_ascii_str(name),
        raw.join(", "),
        encoded.join(",\r\n "),
    )
}

impl Envelope {
    /// Returns the text of the mail. Its headers name only the mailboxes for which `is_shown`
    /// holds.
    pub(super) fn format_text(&self, is_shown: impl Fn(&Mailbox) -> bool) -> Vec<u8> {
        let Self { head, mail, .. } = self;
        let mut message = Message::builder()
            .from(self.from.clone())
            .subject(mail.subject.clone())
            .message_id(Some(head.message_id.clone()))
            // Prevents out-of-office replies.
            .raw_header(header("Auto-Submitted", "auto-generated"));
        let named = [
            ("To", &head.to),
            ("Cc", &head.cc),
            ("Reply-To", &head.reply_to),
        ];
        for (name, mailboxes) in named {
            let shown: Vec<_> = mailboxes.iter().filter(|it| is_shown(it)).collect();
            if !shown.is_empty() {
                message = message.raw_header(mailbox_header(name, &shown));
            }
        }
        if let Some(opening) = &head.opening {
            // Mail programs show such mails as one conversation.
            message = message
                .in_reply_to(opening.clone())
                .references(opening.clone());
        }
        if let Some(list_id) = &head.list_id {
            message = message.raw_header(header("List-Id", list_id));
        }
        let urgency = match head.priority {
            MailPriority::High => Some(("1 (Highest)", "high")),
            MailPriority::Low => Some(("5 (Lowest)", "low")),
            MailPriority::Normal | MailPriority::BySeverity => None,
        };
        if let Some((number, word)) = urgency {
            message = message
                .raw_header(header("X-Priority", number))
                .raw_header(header("Importance", word));
        }
        // The library requires an envelope, but the conversation uses its own addresses.
        let stated = address::Envelope::new(None, vec![self.from.email.clone()]);
        message
            .envelope(stated.expect("an address is given"))
            .multipart(MultiPart::alternative_plain_html(
                mail.text.clone(),
                mail.html.clone(),
            ))
            .expect("a sender and an envelope are given")
            .formatted()
    }
}
