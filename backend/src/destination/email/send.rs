//! Sends a mail: one SMTP conversation, behind the egress guard.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use lettre::{
    Address, Message,
    message::{
        Mailbox, MessageBuilder, MultiPart,
        header::{Header, HeaderName, HeaderValue},
    },
    transport::smtp::{
        authentication::{Credentials, Mechanism},
        client::AsyncSmtpConnection,
        commands::{Data, Mail as MailFrom, Rcpt},
        extension::{ClientId, Extension, MailParameter},
        response::Response,
    },
};

use super::{
    Mail, addresses,
    classify::{self, Broken, said},
};
use crate::{
    config::{SmtpConfig, SmtpSecurity},
    destination::{
        Advice, AttemptContext, Ending, Verdict, dial::Dialer, mail_server::MailServer,
        transcript::BODY_BYTES_MAX,
    },
    domain::{RecordId, Transcript, delivery, destination::Email},
};

pub(super) async fn send(email: &Email, attempt: &mut AttemptContext<'_>, mail: Mail) -> Ending {
    let Some(server) = &attempt.outlets.mail_server else {
        let verdict = Verdict::unreachable("no mail server is configured: set `smtp.host`");
        return (verdict, Transcript::default());
    };
    if let Some((_, password)) = &server.config.credentials {
        attempt.masker.add(password.reveal());
    }
    let dialer = &attempt.outlets.dialer;
    let (message, request) = match compose(attempt, &server.config, email, mail) {
        Ok(composed) => composed,
        Err(explanation) => {
            let verdict = Verdict::rejected(attempt.explain(&explanation), Advice::FewMore);
            return (verdict, Transcript::default());
        }
    };
    let (met, sent) = (AtomicBool::new(false), AtomicBool::new(false));
    let conversation = async {
        let connection = connect(dialer, server).await?;
        met.store(true, Ordering::SeqCst);
        converse(connection, &server.config, &message, &sent).await
    };
    let result = tokio::time::timeout(attempt.timeout, conversation).await;
    let verdict = match &result {
        Ok(Ok(_taken)) => Verdict::delivered("the mail server took the mail"),
        Ok(Err(broken)) => classify::judge(attempt, broken, sent.load(Ordering::SeqCst)),
        Err(_elapsed) => Verdict::unreachable(format!(
            "the mail server did not end within {:?}",
            attempt.timeout
        )),
    };
    let transcript = Transcript {
        request: met.load(Ordering::SeqCst).then_some(request),
        response: result.ok().and_then(|ended| reply_of(attempt, &ended)),
    };
    (verdict, transcript)
}

/// Tells mail programs that a machine wrote this, so that nobody's absence note answers.
#[derive(Debug, Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".into())
    }
}

fn compose(
    attempt: &AttemptContext<'_>,
    smtp: &SmtpConfig,
    email: &Email,
    mail: Mail,
) -> Result<(Message, delivery::Request), String> {
    let from: Mailbox = smtp
        .from
        .parse()
        .map_err(|error| format!("the sender `{}` is no mail address: {error}", smtp.from))?;
    let mailboxes = |text: &str| {
        let each = addresses(text).map(|it| {
            it.parse::<Mailbox>()
                .map_err(|error| format!("`{it}` is no mail address: {error}"))
        });
        each.collect::<Result<Vec<_>, _>>()
    };
    let (to, cc) = (mailboxes(&email.to)?, mailboxes(&email.cc)?);
    let shown = |all: &[Mailbox]| {
        let each: Vec<_> = all.iter().map(ToString::to_string).collect();
        each.join(", ")
    };
    // The same over all attempts, so that a mail program shows one mail.
    let id_of = |delivery: RecordId| format!("<{delivery}@{}>", from.email.domain());
    let message_id = id_of(attempt.id);
    let opening = attempt.opening.map(id_of);
    let headers = [
        ("from", from.to_string()),
        ("to", shown(&to)),
        ("cc", shown(&cc)),
        ("subject", mail.subject.clone()),
        ("message-id", message_id.clone()),
    ];
    let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
    let headers = headers.map(|(name, value)| (name.to_owned(), attempt.masker.mask(&value, 1024)));
    let request = delivery::Request {
        method: "SMTP".into(),
        url: format!("smtp://{}:{}", smtp.host, smtp.port),
        headers: headers.collect(),
        body: attempt.masker.mask(&mail.text, BODY_BYTES_MAX),
    };
    let mut message = Message::builder();
    if let Some(opening) = opening {
        // Mail programs show what belongs together as one conversation.
        message = message.in_reply_to(opening.clone()).references(opening);
    }
    message = to.into_iter().fold(message, MessageBuilder::to);
    message = cc.into_iter().fold(message, MessageBuilder::cc);
    let message = message
        .from(from)
        .subject(mail.subject)
        .message_id(Some(message_id))
        .header(AutoSubmitted)
        .multipart(MultiPart::alternative_plain_html(mail.text, mail.html))
        .map_err(|error| format!("the mail cannot be made: {error}"))?;
    Ok((message, request))
}

async fn converse(
    mut connection: AsyncSmtpConnection,
    smtp: &SmtpConfig,
    message: &Message,
    sent: &AtomicBool,
) -> Result<Response, Broken> {
    if let Some((user, password)) = &smtp.credentials {
        let credentials = Credentials::new(user.clone(), password.reveal().into());
        connection
            .auth(&[Mechanism::Plain, Mechanism::Login], &credentials)
            .await?;
    }
    let envelope = message.envelope();
    let mut options = Vec::new();
    let mut addresses = envelope.from().into_iter().chain(envelope.to());
    if !addresses.all(|address| AsRef::<str>::as_ref(address).is_ascii()) {
        if !connection
            .server_info()
            .supports_feature(Extension::SmtpUtfEight)
        {
            return Err(Broken::NoUnicode);
        }
        options.push(MailParameter::SmtpUtfEight);
    }
    let from: Option<Address> = envelope.from().cloned();
    connection.command(MailFrom::new(from, options)).await?;
    for to in envelope.to() {
        connection
            .command(Rcpt::new(to.clone(), Vec::new()))
            .await?;
    }
    connection.command(Data).await?;
    sent.store(true, Ordering::SeqCst);
    let taken = connection.message(&message.formatted()).await?;
    // The mail is taken; how the farewell goes does not matter.
    let _farewell = connection.quit().await;
    Ok(taken)
}

/// Connects to the first checked address that answers; the name in the certificate is the host's.
async fn connect(dialer: &Dialer, server: &MailServer) -> Result<AsyncSmtpConnection, Broken> {
    let hello = ClientId::default();
    let MailServer { config, tls } = server;
    let (implicit, later) = match config.security {
        SmtpSecurity::StartTls => (None, tls.clone()),
        SmtpSecurity::Tls | SmtpSecurity::None => (tls.clone(), None),
    };
    let mut last = None;
    for address in dialer.addresses(&config.host, config.port).await? {
        let limit = Some(dialer.limit());
        let connected =
            AsyncSmtpConnection::connect_tokio1(address, limit, &hello, implicit.clone(), None);
        match connected.await {
            Ok(mut connection) => {
                if let Some(tls) = later {
                    if !connection.can_starttls() {
                        return Err(Broken::NoStartTls);
                    }
                    let secured = connection.starttls(tls, &hello).await;
                    secured.map_err(Broken::NoConversation)?;
                }
                return Ok(connection);
            }
            Err(error) => last = Some(error),
        }
    }
    let last = last.expect("the dialer gives at least one address");
    Err(Broken::NoConversation(last))
}

fn reply_of(
    attempt: &AttemptContext<'_>,
    ended: &Result<Response, Broken>,
) -> Option<delivery::Response> {
    let (code, text) = match ended {
        Ok(taken) => (taken.code(), taken.message().collect::<Vec<_>>().join("\n")),
        Err(Broken::Smtp(error) | Broken::NoConversation(error)) => (error.status()?, said(error)),
        Err(_) => return None,
    };
    Some(delivery::Response {
        status: code.into(),
        headers: BTreeMap::new(),
        body: attempt.masker.mask_body(text.as_bytes()),
    })
}
