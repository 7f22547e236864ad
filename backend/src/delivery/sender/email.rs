//! Mail: one SMTP conversation a message, behind the egress guard.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart,
        header::{Header, HeaderName, HeaderValue},
    },
    transport::smtp::{
        authentication::{Credentials, Mechanism},
        client::{AsyncSmtpConnection, Certificate, TlsParameters},
        commands::{Data, Mail, Rcpt},
        extension::{ClientId, Extension, MailParameter},
        response::Response,
    },
};

use super::mission::{Ending, Mission};
use crate::{
    config::{Authorities, SmtpConfig, SmtpSecurity},
    delivery::{
        dial::{DialError, Dialer},
        http::fault,
        transcript::BODY_BYTES_MAX,
        verdict::{Advice, Verdict},
    },
    domain::{Transcript, delivery},
};

/// The mail server, and how to know it.
pub(super) struct MailServer {
    pub(super) config: SmtpConfig,
    /// None where the conversation is in clear.
    tls: Option<TlsParameters>,
}

impl std::fmt::Debug for MailServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(formatter)
    }
}

impl MailServer {
    /// Reads once what the machine trusts, and adds these authorities to it.
    pub(super) fn new(config: SmtpConfig, authorities: &Authorities) -> Self {
        let tls = (config.security != SmtpSecurity::None).then(|| {
            let mut builder = TlsParameters::builder(config.host.clone());
            for certificate in authorities.certificates() {
                let certificate = Certificate::from_der(certificate.to_vec());
                builder = builder.add_root_certificate(certificate.expect("DER is kept as it is"));
            }
            let tls = builder.build_rustls();
            tls.expect("authorities are checked when they are read")
        });
        Self { config, tls }
    }
}

/// The parts of a mail.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
}

/// Why a conversation did not end with a taken mail.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Dial(#[from] DialError),
    /// Before the server was ready for a mail.
    #[error(transparent)]
    NoConversation(lettre::transport::smtp::Error),
    #[error(transparent)]
    Smtp(#[from] lettre::transport::smtp::Error),
    #[error("the mail server does not offer STARTTLS")]
    NoStartTls,
    #[error("the mail server cannot take addresses with letters beyond ASCII")]
    NoUnicode,
}

pub(super) async fn send(
    mission: &Mission<'_>,
    dialer: &Dialer,
    server: Option<&MailServer>,
    to: &str,
    parts: Parts,
) -> Ending {
    let Some(server) = server else {
        let verdict = Verdict::unreachable("no mail server is configured: set `smtp.host`");
        return (verdict, Transcript::default());
    };
    let (message, request) = match compose(mission, &server.config, to, parts) {
        Ok(composed) => composed,
        Err(explanation) => {
            let verdict = Verdict::rejected(mission.explain(&explanation), Advice::FewMore);
            return (verdict, Transcript::default());
        }
    };
    let (met, sent) = (AtomicBool::new(false), AtomicBool::new(false));
    let conversation = async {
        let connection = connect(dialer, server).await?;
        met.store(true, Ordering::SeqCst);
        converse(connection, &server.config, &message, &sent).await
    };
    let result = tokio::time::timeout(mission.timeout, conversation).await;
    let verdict = match &result {
        Ok(Ok(_taken)) => Verdict::delivered("the mail server took the mail"),
        Ok(Err(broken)) => judge(mission, broken, sent.load(Ordering::SeqCst)),
        Err(_elapsed) => Verdict::unreachable(format!(
            "the mail server did not end within {:?}",
            mission.timeout
        )),
    };
    let transcript = Transcript {
        request: met.load(Ordering::SeqCst).then_some(request),
        response: result.ok().and_then(|ended| reply_of(mission, &ended)),
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
    mission: &Mission<'_>,
    smtp: &SmtpConfig,
    to: &str,
    parts: Parts,
) -> Result<(Message, delivery::Request), String> {
    let from: Mailbox = smtp
        .from
        .parse()
        .map_err(|error| format!("the sender `{}` is no mail address: {error}", smtp.from))?;
    let to: Mailbox = to
        .parse()
        .map_err(|error| format!("`{to}` is no mail address: {error}"))?;
    // The same over all attempts, so that a mail program shows one mail.
    let message_id = format!("<{}@{}>", mission.id, from.email.domain());
    let headers = [
        ("from", from.to_string()),
        ("to", to.to_string()),
        ("subject", parts.subject.clone()),
        ("message-id", message_id.clone()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), mission.masker.mask(&value, 1024)));
    let request = delivery::Request {
        method: "SMTP".into(),
        url: format!("smtp://{}:{}", smtp.host, smtp.port),
        headers: BTreeMap::from(headers),
        body: mission.masker.mask(&parts.text, BODY_BYTES_MAX),
    };
    let message = Message::builder()
        .from(from)
        .to(to)
        .subject(parts.subject)
        .message_id(Some(message_id))
        .header(AutoSubmitted)
        .multipart(MultiPart::alternative_plain_html(parts.text, parts.html))
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
    connection.command(Mail::new(from, options)).await?;
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

fn judge(mission: &Mission<'_>, broken: &Broken, sent: bool) -> Verdict {
    let (Broken::Smtp(error) | Broken::NoConversation(error)) = broken else {
        let explanation = mission.explain(&broken.to_string());
        return match broken {
            Broken::Dial(DialError::Blocked(_)) => Verdict::blocked(explanation),
            Broken::NoUnicode => Verdict::rejected(explanation, Advice::FewMore),
            _ => Verdict::unreachable(explanation),
        };
    };
    if let Some(code) = error.status() {
        let explanation =
            mission.explain(&format!("the mail server answered {code}: {}", said(error)));
        let advice = if error.is_transient() {
            Advice::Again
        } else {
            Advice::FewMore
        };
        return Verdict::rejected(explanation, advice);
    }
    let explanation = mission.explain(&fault::reason(error));
    if sent {
        return Verdict::unknown(format!(
            "the mail was sent, and no answer came: {explanation}"
        ));
    }
    Verdict::unreachable(format!("cannot talk to the mail server: {explanation}"))
}

fn reply_of(mission: &Mission<'_>, ended: &Result<Response, Broken>) -> Option<delivery::Response> {
    let (code, text) = match ended {
        Ok(taken) => (taken.code(), taken.message().collect::<Vec<_>>().join("\n")),
        Err(Broken::Smtp(error) | Broken::NoConversation(error)) => (error.status()?, said(error)),
        Err(_) => return None,
    };
    Some(delivery::Response {
        status: code.into(),
        headers: BTreeMap::new(),
        body: mission.masker.mask_body(text.as_bytes()),
    })
}

/// The text of a refusal.
fn said(error: &lettre::transport::smtp::Error) -> String {
    let text = std::error::Error::source(error).map(ToString::to_string);
    text.unwrap_or_default()
}
