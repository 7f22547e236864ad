//! An SMTP conversation (RFC 5321): commands, replies and the current phase.

use std::{io, sync::Arc, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
        BufReader,
    },
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{
    dial::DialError,
    limits::{MAIL_REPLY_BYTES_MAX, MAIL_REPLY_LINE_BYTES_MAX},
};

const CHALLENGES_MAX: usize = 4;
const FAREWELL_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of bytes of a text that are sent at a time.
const BLOCK_BYTES: usize = 64 * 1024;

/// The part of a conversation that a reply belongs to. It determines what a refusal concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Greeting,
    Hello,
    StartTls,
    Auth,
    /// MAIL: the sender.
    Sender,
    /// RCPT: an address.
    Recipient,
    Data,
    /// The text, up to its final line.
    Text,
    /// The final line of the text was sent: the mail may be delivered.
    Answer,
}

impl Phase {
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Greeting => "the connection",
            Self::Hello => "EHLO",
            Self::StartTls => "STARTTLS",
            Self::Auth => "AUTH",
            Self::Sender => "MAIL",
            Self::Recipient => "RCPT",
            Self::Data => "DATA",
            Self::Text | Self::Answer => "the text",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// Maximum timeout of any command.
    pub(super) command: Duration,
    /// Timeout for the response to the text.
    pub(super) answer: Duration,
}

impl Timeouts {
    /// Returns the timeout for a reply, or for a block of the text (RFC 5321, 4.5.3.2).
    pub(super) fn for_phase(self, phase: Phase) -> Duration {
        let minutes = match phase {
            Phase::Data => 2,
            Phase::Text => 3,
            Phase::Answer => return self.answer,
            _ => 5,
        };
        self.command.min(Duration::from_secs(minutes * 60))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reply {
    /// Three digits, 200 to 599.
    pub(super) code: u16,
    /// The lines of the reply, without the code.
    pub(super) text: String,
}

impl Reply {
    pub(super) fn is_positive(&self) -> bool {
        self.code < 300
    }

    /// Whether the refusal is permanent, according to its code unless the enhanced code or the text
    /// says otherwise.
    pub(super) fn is_permanent(&self) -> bool {
        self.code >= 500 && !self.is_deferral()
    }

    /// Returns the enhanced status code (RFC 3463), without the class.
    fn enhanced_code(&self) -> Option<(u16, u16)> {
        let first = self.text.split_whitespace().next()?;
        let mut numbers = first.trim_matches(|c: char| !c.is_ascii_digit()).split('.');
        let class: u16 = numbers.next()?.parse().ok()?;
        let (subject, detail) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        (matches!(class, 2 | 4 | 5) && numbers.next().is_none()).then_some((subject, detail))
    }

    fn contains_any(&self, words: &[&str]) -> bool {
        let text = self.first_line().to_ascii_lowercase();
        words.iter().any(|word| text.contains(word))
    }

    /// Whether a later attempt may succeed even if the code is permanent: the sender's quota is
    /// used up, or the server requests a later retry.
    pub(super) fn is_deferral(&self) -> bool {
        let is_quota = match self.enhanced_code() {
            // Gmail's daily limits.
            Some((4, 5) | (7, 28)) => true,
            // Exchange's submission quota, and others that do not concern the mailbox.
            Some((2, 0)) => self.contains_any(&["quota", "limit", "rate"]),
            _ => false,
        };
        is_quota
            || self.contains_any(&[
                "try again",
                "try later",
                "retry later",
                "rate limit",
                "sending limit",
                "sending quota",
                "submission quota",
                "submissionquota",
                "too many messages",
                "throttl",
                "temporarily deferred",
            ])
    }

    /// Whether the mail was refused because of its size or content. The reduced form may then be
    /// accepted.
    pub(super) fn is_about_content(&self) -> bool {
        let is_size = self.contains_any(&[
            "too big",
            "too large",
            "size limit",
            "maximum size",
            "exceeds size",
        ]);
        match self.enhanced_code() {
            Some((3, 4) | (2, 3) | (6, _)) => true,
            Some((2, 2)) => false,
            Some(_) => is_size,
            None => self.code == 552 || is_size,
        }
    }

    /// Whether the address was refused because the mail has more recipients than the server
    /// accepts. Some servers use 552 for this (RFC 5321, 4.5.3.1.10).
    pub(super) fn has_too_many_recipients(&self) -> bool {
        matches!(self.code, 452 | 552) && self.contains_any(&["4.5.3", "5.5.3", "too many recip"])
    }

    pub(super) fn first_line(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ConversationError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the mail server replied {}: {} ({})", .1.code, .1.first_line(), .0.command())]
    Refused(Phase, Reply),
    /// The server does not use SMTP.
    #[error("invalid reply from the mail server: {0}")]
    Garbled(String),
    #[error("the mail server does not offer STARTTLS")]
    NoStartTls,
    #[error("the mail server does not offer authentication by {0}")]
    NoMechanism(&'static str),
    #[error("the mail server does not support non-ASCII sender addresses (SMTPUTF8)")]
    NoUnicode,
    #[error("the mail is {0} bytes; the mail server accepts at most {1}")]
    TooLarge(usize, usize),
    #[error("the mail server did not reply within {0:?}")]
    Late(Duration),
}

#[derive(Clone, Copy)]
pub(super) enum Login<'a> {
    Password(&'a str, &'a str),
    Token(&'a str, &'a str),
}

pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(super) struct Conversation<'a> {
    stream: BufReader<Box<dyn Stream>>,
    /// Extensions offered by the server, in upper case, with their parameters.
    extensions: Vec<String>,
    /// The current phase; readable by the caller even after a timeout.
    phase: &'a mut Phase,
    timeouts: Timeouts,
}

impl<'a> Conversation<'a> {
    /// Reads the greeting and sends EHLO with the given name.
    pub(super) async fn start(
        stream: Box<dyn Stream>,
        name: &str,
        phase: &'a mut Phase,
        timeouts: Timeouts,
    ) -> Result<Self, ConversationError> {
        let mut conversation = Self {
            stream: BufReader::new(stream),
            extensions: Vec::new(),
            phase,
            timeouts,
        };
        conversation.expect_reply(Phase::Greeting, 2).await?;
        conversation.send_hello(name).await?;
        Ok(conversation)
    }

    pub(super) async fn start_tls(
        mut self,
        tls: &Arc<ClientConfig>,
        host: &str,
        name: &str,
    ) -> Result<Self, ConversationError> {
        if !self.supports("STARTTLS") {
            return Err(ConversationError::NoStartTls);
        }
        self.send_command(Phase::StartTls, "STARTTLS").await?;
        if !self.stream.buffer().is_empty() {
            // Text received before TLS is not authenticated.
            return Err(ConversationError::Garbled("text before TLS".into()));
        }
        let secured = upgrade_to_tls(self.stream.into_inner(), tls, host);
        let stream = with_timeout(self.timeouts.for_phase(Phase::StartTls), secured).await?;
        let mut conversation = Self {
            stream: BufReader::new(stream),
            ..self
        };
        conversation.send_hello(name).await?;
        Ok(conversation)
    }

    async fn send_hello(&mut self, name: &str) -> Result<(), ConversationError> {
        self.extensions.clear();
        match self
            .send_command(Phase::Hello, &format!("EHLO {name}"))
            .await
        {
            Ok(reply) => {
                let lines = reply.text.lines().skip(1);
                self.extensions = lines.map(str::to_ascii_uppercase).collect();
            }
            // The server does not support EHLO.
            Err(ConversationError::Refused(_, reply)) if matches!(reply.code, 500..=502) => {
                self.send_command(Phase::Hello, &format!("HELO {name}"))
                    .await?;
            }
            Err(broken) => return Err(broken),
        }
        Ok(())
    }

    pub(super) fn supports(&self, keyword: &str) -> bool {
        let mut offered = self.extensions.iter();
        offered.any(|line| line.split_whitespace().next() == Some(keyword))
    }

    /// Returns the maximum size of a mail in bytes (`SIZE`, RFC 1870); `None` if the server states
    /// none.
    pub(super) fn size_max(&self) -> Option<usize> {
        let mut offered = self.extensions.iter().map(|line| line.split_whitespace());
        let mut size = offered.find_map(|mut words| {
            let is_size = words.next() == Some("SIZE");
            is_size.then_some(words)
        })?;
        size.next()?.parse().ok().filter(|size| *size > 0)
    }

    pub(super) async fn authenticate(&mut self, login: Login<'_>) -> Result<(), ConversationError> {
        let (mut line, answers) = match login {
            Login::Password(user, password) if self.supports_auth_mechanism("PLAIN") => {
                let initial = STANDARD.encode(format!("\0{user}\0{password}"));
                (format!("AUTH PLAIN {initial}"), Vec::new())
            }
            Login::Password(user, password) if self.supports_auth_mechanism("LOGIN") => {
                ("AUTH LOGIN".to_owned(), vec![user, password])
            }
            Login::Token(user, token) if self.supports_auth_mechanism("XOAUTH2") => {
                let initial = format!("user={user}\u{1}auth=Bearer {token}\u{1}\u{1}");
                // The only challenge contains an error; an empty response makes the server refuse.
                let initial = STANDARD.encode(initial);
                (format!("AUTH XOAUTH2 {initial}"), Vec::new())
            }
            Login::Password(..) => return Err(ConversationError::NoMechanism("PLAIN or LOGIN")),
            Login::Token(..) => return Err(ConversationError::NoMechanism("XOAUTH2")),
        };
        let mut answers = answers.into_iter();
        for _ in 0..CHALLENGES_MAX {
            self.write(Phase::Auth, &line).await?;
            let reply = self.read_reply().await?;
            match reply.code {
                334 => line = STANDARD.encode(answers.next().unwrap_or_default()),
                200..=299 => return Ok(()),
                _ => return Err(ConversationError::Refused(Phase::Auth, reply)),
            }
        }
        Err(ConversationError::Garbled(
            "too many challenges during AUTH".into(),
        ))
    }

    /// Whether the server offers a mechanism for AUTH, including the older spelling `AUTH=LOGIN`.
    fn supports_auth_mechanism(&self, mechanism: &str) -> bool {
        self.extensions.iter().any(|line| {
            let mut words = line.split([' ', '\t', '=']);
            words.next() == Some("AUTH") && words.any(|word| word == mechanism)
        })
    }

    pub(super) async fn send_command(
        &mut self,
        phase: Phase,
        line: &str,
    ) -> Result<Reply, ConversationError> {
        self.write(phase, line).await?;
        self.expect_reply(phase, if phase == Phase::Data { 3 } else { 2 })
            .await
    }

    /// Sends an address; the reply may refuse it.
    pub(super) async fn add_recipient(
        &mut self,
        address: &str,
    ) -> Result<Reply, ConversationError> {
        self.write(Phase::Recipient, &format!("RCPT TO:<{address}>"))
            .await?;
        match self.read_reply().await? {
            // The server is closing the connection, regardless of the address.
            reply if reply.code == 421 => Err(ConversationError::Refused(Phase::Recipient, reply)),
            reply if matches!(reply.code, 300..400) => {
                Err(unexpected_reply(Phase::Recipient, &reply))
            }
            reply => Ok(reply),
        }
    }

    /// Sends DATA and the content of a mail, up to its final line.
    pub(super) async fn send_text(&mut self, text: &[u8]) -> Result<(), ConversationError> {
        self.send_command(Phase::Data, "DATA").await?;
        *self.phase = Phase::Text;
        let error = match self.write_blocks(&dot_stuff(text)).await {
            Err(ConversationError::Io(error)) => error,
            other => return other,
        };
        // A server that rejects the content early may send the reason before it closes.
        match self.read_reply().await {
            Ok(reply) if !reply.is_positive() => {
                Err(ConversationError::Refused(Phase::Text, reply))
            }
            _ => Err(error.into()),
        }
    }

    async fn write_blocks(&mut self, text: &[u8]) -> Result<(), ConversationError> {
        let limit = self.timeouts.for_phase(Phase::Text);
        for block in text.chunks(BLOCK_BYTES) {
            with_timeout(limit, self.stream.write_all(block)).await?;
        }
        with_timeout(limit, self.stream.flush()).await
    }

    /// Ends the text; from here on the mail may be delivered.
    pub(super) async fn end_text(&mut self) -> Result<Reply, ConversationError> {
        self.write(Phase::Answer, ".").await?;
        self.expect_reply(Phase::Answer, 2).await
    }

    pub(super) async fn quit(mut self) {
        let phase = *self.phase;
        let farewell = async {
            self.write(phase, "QUIT").await?;
            self.read_reply().await
        };
        let _ended = timeout(FAREWELL_TIMEOUT, farewell).await;
    }

    async fn write(&mut self, phase: Phase, line: &str) -> Result<(), ConversationError> {
        *self.phase = phase;
        let limit = self.timeouts.for_phase(phase);
        // Send in one write, because the network may delay a second one.
        let line = format!("{line}\r\n");
        with_timeout(limit, self.stream.write_all(line.as_bytes())).await?;
        with_timeout(limit, self.stream.flush()).await
    }

    async fn expect_reply(&mut self, phase: Phase, digit: u16) -> Result<Reply, ConversationError> {
        let reply = self.read_reply().await?;
        match reply.code / 100 {
            begun if begun == digit => Ok(reply),
            4 | 5 => Err(ConversationError::Refused(phase, reply)),
            _ => Err(unexpected_reply(phase, &reply)),
        }
    }

    async fn read_reply(&mut self) -> Result<Reply, ConversationError> {
        with_timeout(
            self.timeouts.for_phase(*self.phase),
            self.read_reply_lines(),
        )
        .await
    }

    async fn read_reply_lines(&mut self) -> Result<Reply, ConversationError> {
        let mut text = String::new();
        loop {
            let mut line = Vec::new();
            let mut limited = (&mut self.stream).take(MAIL_REPLY_LINE_BYTES_MAX as u64);
            limited.read_until(b'\n', &mut line).await?;
            if line.is_empty() {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            // Servers use arbitrary encodings.
            let line = String::from_utf8_lossy(&line);
            let code = line.get(..3).and_then(|code| code.parse().ok());
            let (Some(code @ 200..600), true) = (code, line.ends_with('\n')) else {
                return Err(ConversationError::Garbled("a malformed line".into()));
            };
            let rest = line[3..].trim_end();
            let is_last = !rest.starts_with('-');
            let rest = rest.strip_prefix(['-', ' ']).unwrap_or(rest);
            if text.len() + rest.len() > MAIL_REPLY_BYTES_MAX {
                return Err(ConversationError::Garbled("an endless reply".into()));
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(rest);
            if is_last {
                return Ok(Reply { code, text });
            }
        }
    }
}

fn unexpected_reply(phase: Phase, reply: &Reply) -> ConversationError {
    ConversationError::Garbled(format!("{} to {}", reply.code, phase.command()))
}

pub(super) async fn with_timeout<T, E: Into<ConversationError>>(
    limit: Duration,
    step: impl Future<Output = Result<T, E>>,
) -> Result<T, ConversationError> {
    let ended = timeout(limit, step).await;
    ended
        .map_err(|_elapsed| ConversationError::Late(limit))?
        .map_err(Into::into)
}

/// Performs the TLS handshake; the certificate must be for `host`.
pub(super) async fn upgrade_to_tls(
    stream: Box<dyn Stream>,
    tls: &Arc<ClientConfig>,
    host: &str,
) -> Result<Box<dyn Stream>, ConversationError> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let secured = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    Ok(Box::new(secured.await?))
}

/// Returns the text as sent: it ends with a line break, and leading dots are doubled.
fn dot_stuff(text: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::with_capacity(text.len() + 64);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    if !stuffed.ends_with(b"\r\n") {
        stuffed.extend_from_slice(b"\r\n");
    }
    stuffed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_starting_with_a_dot_are_stuffed() {
        for (text, sent) in [
            ("a", "a\r\n"),
            ("a\r\n", "a\r\n"),
            (".\r\n..b\r\n", "..\r\n...b\r\n"),
            ("a\r\n.", "a\r\n..\r\n"),
            ("", "\r\n"),
        ] {
            assert_eq!(dot_stuff(text.as_bytes()), sent.as_bytes(), "{text:?}");
        }
    }
    #[test]
    fn enhanced_code_and_text_take_precedence_over_the_code() {
        let reply = |line: &str| Reply {
            code: line[..3].parse().unwrap(),
            text: line[4..].into(),
        };
        let deferrals = [
            "550 5.4.5 Daily user sending limit exceeded. For more information, go to https://…",
            "550 5.7.0 Mail rejected, try again later",
            "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException",
            "550 5.7.28 Our system has detected an unusual rate of mail",
            "554 Throttling failure: Daily message quota exceeded, try later",
        ];
        for line in deferrals {
            assert!(!reply(line).is_permanent(), "{line}");
        }
        let permanent = [
            "550 5.1.1 no such user",
            "550 5.7.1 blocked",
            "552 5.2.2 mailbox full",
            "554 5.7.0 not allowed",
            "550 5.4.1 Recipient address rejected: Access denied",
        ];
        for line in permanent {
            assert!(reply(line).is_permanent(), "{line}");
        }
        let about_content = [
            "552 5.3.4 Error: message file too big",
            "552 message size exceeds fixed maximum",
            "554 5.6.0 invalid content",
            "552 5.2.3 Message exceeds administrative limit",
            "554 message too large",
        ];
        for line in about_content {
            assert!(reply(line).is_about_content(), "{line}");
        }
        for line in permanent {
            assert!(!reply(line).is_about_content(), "{line}");
        }
    }

    #[test]
    fn smtp_timeouts_default_to_rfc_5321() {
        let timeouts = |command| Timeouts {
            command: Duration::from_secs(command),
            answer: Duration::from_secs(7),
        };
        let seconds = |command, phase| timeouts(command).for_phase(phase).as_secs();
        assert_eq!(seconds(900, Phase::Greeting), 300);
        assert_eq!(seconds(900, Phase::Recipient), 300);
        assert_eq!(seconds(900, Phase::Data), 120);
        assert_eq!(seconds(900, Phase::Text), 180);
        assert_eq!(seconds(30, Phase::Greeting), 30);
        assert_eq!(seconds(900, Phase::Answer), 7);
    }
}
