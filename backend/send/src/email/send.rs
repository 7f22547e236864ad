//! Sends a mail in one SMTP conversation, behind the egress guard.

use std::{collections::BTreeMap, net::IpAddr};

use lettre::message::Mailbox;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

use super::{
    Mail, classify,
    compose::{Envelope, compose},
    conversation::{
        Conversation, ConversationError, Login, Phase, Reply, Timeouts, upgrade_to_tls,
        with_timeout,
    },
};
use crate::{
    AttemptContext, AttemptOutcome,
    config::{SmtpConfig, SmtpLogin, SmtpSecurity},
    dial::Dialer,
    domain::{Transcript, delivery, destination::Email},
    http::SendFailure,
    mail_server::MailServer,
    message::cut,
    oauth::{self, ClientAuth, Grant},
    verdict::{Advice, RecipientAnswer, Verdict},
};

static NO_PARAMS: BTreeMap<String, String> = BTreeMap::new();
const NO_SERVER: &str = "no mail server is configured: set `smtp.host`";
const UNSET_SENDER: &str = "smtp.from@unset.invalid";
/// Maximum bytes of a server's reply about one address in an explanation.
const ANSWER_BYTES_MAX: usize = 120;

pub(super) async fn send_mail(
    email: &Email,
    attempt: &mut AttemptContext<'_>,
    mail: Mail,
) -> AttemptOutcome {
    let server = attempt.outlets.mail_server.as_ref();
    if !attempt.sends {
        return render_only(email, attempt, server.map(|it| &it.config), mail);
    }
    let Some(server) = server else {
        return (Verdict::new_unreachable(NO_SERVER), Transcript::default());
    };
    let token;
    let login = match &server.config.login {
        None => None,
        Some(SmtpLogin::Password { user, password }) => {
            attempt.masker.add(password.reveal());
            Some(Login::Password(user, password.reveal()))
        }
        Some(SmtpLogin::OAuth2 { user, .. }) => {
            token = match fetch_token(attempt, &server.config).await {
                Ok(token) => token,
                Err(ending) => return *ending,
            };
            Some(Login::Token(user, &token))
        }
    };
    let composed = match compose(attempt, &server.config, email, mail) {
        Ok(composed) => composed,
        Err(explanation) => {
            let verdict =
                Verdict::new_rejected(attempt.mask_and_truncate(&explanation), Advice::FewMore);
            return (verdict, Transcript::default());
        }
    };
    if composed.envelope.to.is_empty() {
        let verdict = Verdict::new_delivered("the mail was already sent to every address");
        return (verdict, Transcript::default());
    }
    let mut course = ConversationProgress::default();
    let deadline = attempt.begun + attempt.timeout;
    let timeouts = Timeouts {
        command: attempt.timeout,
        answer: attempt.outlets.mail_answer_timeout,
    };
    let dialer = &attempt.outlets.dialer;
    let to = (dialer, server, login);
    let result = run_conversation(to, &composed.envelope, &mut course, (deadline, timeouts)).await;
    if let (Err(ConversationEnd::Broken(ConversationError::Refused(Phase::Auth, _))), Some(grant)) =
        (&result, token_request(&server.config))
    {
        oauth::forget_token(attempt, grant);
    }
    let verdict = match &result {
        Ok(_) => course.verdict(attempt),
        Err(ConversationEnd::Broken(broken)) => {
            classify::classify_failure(attempt, broken, course.phase)
        }
        Err(ConversationEnd::Late) => {
            let late_verdict = ConversationError::Late(attempt.timeout);
            classify::classify_failure(attempt, &late_verdict, course.phase)
        }
    };
    let transcript = Transcript {
        request: course.met.then_some(composed.request),
        response: course.last_reply(attempt, &result),
    };
    (
        verdict.with_recipients(course.recipient_answers(attempt)),
        transcript,
    )
}

/// Renders a mail without sending it. If no mail server is configured, placeholders replace its
/// settings.
fn render_only(
    email: &Email,
    attempt: &AttemptContext<'_>,
    config: Option<&SmtpConfig>,
    mail: Mail,
) -> AttemptOutcome {
    let unset;
    let (config, verdict) = if let Some(config) = config {
        (config, SendFailure::OnlyRendered.verdict(&attempt.masker))
    } else {
        unset = SmtpConfig {
            host: "smtp.host".to_owned(),
            port: 25,
            security: SmtpSecurity::StartTls,
            from: UNSET_SENDER.parse().expect("it is an address"),
            hello: String::new(),
            login: None,
        };
        (&unset, Verdict::new_unreachable(NO_SERVER))
    };
    match compose(attempt, config, email, mail) {
        Ok(composed) => {
            let transcript = Transcript {
                request: Some(composed.request),
                response: None,
            };
            (verdict, transcript)
        }
        Err(explanation) => {
            let verdict =
                Verdict::new_rejected(attempt.mask_and_truncate(&explanation), Advice::FewMore);
            (verdict, Transcript::default())
        }
    }
}

/// Returns the token request for the mail server; `None` if a password is set.
fn token_request(smtp: &SmtpConfig) -> Option<Grant<'_>> {
    let Some(SmtpLogin::OAuth2 {
        token_url,
        client_id,
        client_secret,
        refresh_token,
        scope,
        ..
    }) = &smtp.login
    else {
        return None;
    };
    Some(Grant {
        token_url,
        client_id,
        client_secret: client_secret.reveal(),
        refresh_token: refresh_token.reveal(),
        scope,
        audience: "",
        params: &NO_PARAMS,
        client: ClientAuth::Either,
    })
}

/// Returns a token for the mail server, or the ending of the attempt if there is none.
async fn fetch_token(
    attempt: &mut AttemptContext<'_>,
    smtp: &SmtpConfig,
) -> Result<String, Box<AttemptOutcome>> {
    let Some(grant) = token_request(smtp) else {
        return Ok(String::new());
    };
    attempt.masker.add(grant.client_secret);
    attempt.masker.add(grant.refresh_token);
    oauth::bearer_token(attempt, grant).await
}

#[derive(Default)]
struct ConversationProgress {
    /// Whether a connection to the server was established.
    met: bool,
    phase: Phase,
    accepted: Vec<String>,
    refused: Vec<(String, Reply)>,
}

enum ConversationEnd {
    Broken(ConversationError),
    Late,
}

impl From<ConversationError> for ConversationEnd {
    fn from(broken: ConversationError) -> Self {
        Self::Broken(broken)
    }
}

/// Runs the conversation up to the end of the text within the deadline, then waits for the reply
/// with its own timeout: servers scan mails before they reply, and resending a mail too early would
/// deliver it twice. Addresses in excess of the server's limit (452 4.5.3) get another mail in the
/// same conversation. Returns the last reply to a text; `None` if no address was accepted.
async fn run_conversation(
    (dialer, server, login): (&Dialer, &MailServer, Option<Login<'_>>),
    envelope: &Envelope,
    course: &mut ConversationProgress,
    (deadline, timeouts): (Instant, Timeouts),
) -> Result<Option<Reply>, ConversationEnd> {
    let ConversationProgress {
        met,
        phase,
        accepted,
        refused,
    } = course;
    let beginning = async {
        let mut conversation = connect_to_server((dialer, timeouts), server, met, phase).await?;
        if let Some(login) = login {
            conversation.authenticate(login).await?;
        }
        Ok(conversation)
    };
    let begun: Result<_, ConversationError> = timeout_at(deadline, beginning)
        .await
        .map_err(|_elapsed| ConversationEnd::Late)?;
    let mut conversation = begun?;
    let mut answer = None;
    let mut waiting = envelope.to.clone();
    while !waiting.is_empty() {
        let named = send_envelope(&mut conversation, envelope, &waiting);
        let named = timeout_at(deadline, named)
            .await
            .map_err(|_elapsed| ConversationEnd::Late)??;
        refused.extend(named.refused);
        if named.accepted.is_empty() {
            break;
        }
        answer = Some(conversation.end_text().await?);
        accepted.extend(named.accepted);
        waiting = named.next;
    }
    conversation.quit().await;
    Ok(answer)
}

#[derive(Default)]
struct AddressReplies {
    accepted: Vec<String>,
    refused: Vec<(String, Reply)>,
    /// Addresses in excess of the server's limit, which get a separate mail.
    next: Vec<String>,
}

async fn send_envelope(
    conversation: &mut Conversation<'_>,
    envelope: &Envelope,
    addresses: &[String],
) -> Result<AddressReplies, ConversationError> {
    let is_international = conversation.supports("SMTPUTF8");
    let from = envelope.from.email.to_string();
    if !from.is_ascii() && !is_international {
        return Err(ConversationError::NoUnicode);
    }
    let is_ascii = from.is_ascii() && envelope.to.iter().all(|it| it.is_ascii());
    let option = if is_international && !is_ascii {
        " SMTPUTF8"
    } else {
        ""
    };
    let is_shown = |it: &Mailbox| is_international || it.email.to_string().is_ascii();
    let text = envelope.format_text(is_shown);
    let size = match conversation.size_max() {
        Some(most) if text.len() > most => {
            return Err(ConversationError::TooLarge(text.len(), most));
        }
        _ if conversation.supports("SIZE") => format!(" SIZE={}", text.len()),
        _ => String::new(),
    };
    let line = format!("MAIL FROM:<{from}>{size}{option}");
    conversation.send_command(Phase::Sender, &line).await?;
    let mut named = AddressReplies::default();
    for (at, address) in addresses.iter().enumerate() {
        let reply = if address.is_ascii() || is_international {
            conversation.add_recipient(address).await?
        } else {
            Reply {
                code: 553,
                text: "5.6.7 the mail server does not support non-ASCII addresses (SMTPUTF8)"
                    .into(),
            }
        };
        if reply.is_positive() {
            named.accepted.push(address.clone());
        } else if reply.has_too_many_recipients() && !named.accepted.is_empty() {
            named.next = addresses[at..].to_vec();
            break;
        } else {
            named.refused.push((address.clone(), reply));
        }
    }
    if !named.accepted.is_empty() {
        conversation.send_text(&text).await?;
    }
    Ok(named)
}

async fn connect_to_server<'a>(
    (dialer, timeouts): (&Dialer, Timeouts),
    server: &MailServer,
    met: &mut bool,
    phase: &'a mut Phase,
) -> Result<Conversation<'a>, ConversationError> {
    let MailServer { config, tls } = server;
    let host = config.host.trim_matches(['[', ']']);
    let stream = dialer.connect(host, config.port).await?;
    // Best effort: without it, commands are only slightly delayed.
    let _set = stream.set_nodelay(true);
    let name = ehlo_name(&config.hello, &stream);
    let stream = Box::new(stream);
    let conversation = match config.security {
        SmtpSecurity::None => Conversation::start(stream, &name, phase, timeouts).await?,
        SmtpSecurity::Tls => {
            let secured = upgrade_to_tls(stream, tls, host);
            let stream = with_timeout(timeouts.for_phase(Phase::Greeting), secured).await?;
            Conversation::start(stream, &name, phase, timeouts).await?
        }
        SmtpSecurity::StartTls => {
            let conversation = Conversation::start(stream, &name, phase, timeouts).await?;
            conversation.start_tls(tls, host, &name).await?
        }
    };
    *met = true;
    Ok(conversation)
}

/// Returns the name for EHLO: the configured one, or the machine's name if it is fully qualified,
/// or its address.
fn ehlo_name(set: &str, stream: &TcpStream) -> String {
    if !set.is_empty() {
        return set.to_owned();
    }
    let machine = hostname::get()
        .ok()
        .and_then(|name| name.into_string().ok());
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let is_full = |name: &String| name.contains('.') && name.chars().all(is_letter);
    match (machine.filter(is_full), stream.local_addr()) {
        (Some(name), _) => name,
        (None, Ok(address)) => match address.ip().to_canonical() {
            IpAddr::V4(address) => format!("[{address}]"),
            IpAddr::V6(address) => format!("[IPv6:{address}]"),
        },
        (None, Err(_)) => "[127.0.0.1]".into(),
    }
}

impl ConversationProgress {
    fn verdict(&self, attempt: &AttemptContext<'_>) -> Verdict {
        let all = self.accepted.len() + self.refused.len();
        let accepted = self.accepted.len();
        let refusals: Vec<_> = self
            .refused
            .iter()
            .map(|(address, reply)| {
                let line = reply.first_line();
                let line = cut::truncate_bytes(&line, ANSWER_BYTES_MAX);
                format!("`{address}` ({}: {line})", reply.code)
            })
            .collect();
        let refusals = refusals.join(", ");
        let is_final = self.refused.iter().all(|(_, reply)| reply.is_permanent());
        if self.refused.is_empty() {
            return Verdict::new_delivered("the mail server accepted the mail");
        }
        if accepted > 0 {
            let said = format!(
                "the mail server accepted the mail for {accepted} of {all} addresses and rejected {refusals}"
            );
            let said = attempt.mask_and_truncate(&said);
            return if is_final {
                Verdict::new_delivered(said)
            } else {
                Verdict::new_rejected(said, Advice::Later)
            };
        }
        let said = attempt.mask_and_truncate(&format!("the mail server refused {refusals}"));
        let advice = match (attempt.recipients.reached.is_empty(), is_final) {
            // No address is left to deliver to.
            (true, true) => Advice::Fix,
            (true, false) => Advice::Again,
            (false, true) => Advice::GiveUp,
            (false, false) => Advice::Later,
        };
        Verdict::new_rejected(said, advice)
    }

    fn recipient_answers(&self, attempt: &AttemptContext<'_>) -> Vec<RecipientAnswer> {
        let reached = self.accepted.iter().cloned().map(RecipientAnswer::Reached);
        let refused = self
            .refused
            .iter()
            .map(|(address, reply)| RecipientAnswer::Refused {
                address: address.clone(),
                said: attempt.mask_and_truncate(&format!("{} {}", reply.code, reply.first_line())),
                is_permanent: reply.is_permanent(),
            });
        reached.chain(refused).collect()
    }

    /// Returns the last reply, with the refused addresses in place of headers.
    fn last_reply(
        &self,
        attempt: &AttemptContext<'_>,
        ended: &Result<Option<Reply>, ConversationEnd>,
    ) -> Option<delivery::Response> {
        let last = match ended {
            Ok(Some(reply))
            | Err(ConversationEnd::Broken(ConversationError::Refused(_, reply))) => Some(reply),
            _ => None,
        };
        let last = last.or(self.refused.last().map(|(_, reply)| reply))?;
        let refused = self.refused.iter().map(|(address, reply)| {
            let said = attempt.mask_and_truncate(&format!("{} {}", reply.code, reply.first_line()));
            (address.clone(), said)
        });
        Some(delivery::Response {
            status: last.code,
            headers: refused.collect::<BTreeMap<_, _>>(),
            body: attempt.masker.mask_body(last.text.as_bytes()),
        })
    }
}
