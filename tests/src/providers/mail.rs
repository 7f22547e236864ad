//! A mail server that enforces its rules: TLS, authentication and the format of mails.

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

const LINE_BYTES_MAX: usize = 998;

/// The requirements of a mail server.
#[derive(Debug, Clone, Default)]
pub struct MailRules {
    /// The transport security of connections.
    pub security: MailSecurity,
    /// User name and password, or the XOAUTH2 token; `None` accepts every client.
    pub login: Option<(String, String)>,
    /// Authentication mechanisms, as listed in the EHLO response.
    pub mechanisms: &'static str,
}

/// The transport security of connections.
#[derive(Debug, Clone, Default)]
pub enum MailSecurity {
    /// Not at all.
    #[default]
    None,
    /// With STARTTLS; no other command is accepted before it.
    StartTls(ServerConfig),
    /// With TLS from the first byte.
    Tls(ServerConfig),
}

/// A misbehaviour of a mail server.
#[derive(Debug, Clone)]
pub enum MailMischief {
    /// Accepts connections and never responds.
    Hangs,
    /// Does not execute the command in the first string, and responds with the second string; `.`
    /// is the end of a mail.
    Says(&'static str, &'static str),
    /// Closes the connection on this command.
    HangsUp(&'static str),
    /// Lists capabilities endlessly.
    Floods,
    /// Rejects this address with this response, and accepts all other addresses.
    Refuses(&'static str, &'static str),
    /// Accepts a mail but responds only after this delay.
    AnswersLate(Duration),
    /// Accepts this many recipients per mail and rejects the others (RFC 5321, section 4.5.3.1.10).
    TakesAtMost(usize),
    /// Like [`MailMischief::TakesAtMost`], but closes the connection when a second mail begins.
    TakesOneMail(usize),
}

/// A mail as received.
#[derive(Debug, Clone)]
pub struct Mail {
    /// Envelope sender.
    pub from: String,
    /// Envelope recipients.
    pub to: Vec<String>,
    /// Headers and body, byte for byte.
    pub data: Vec<u8>,
    /// Authentication mechanism that the sender used.
    pub mechanism: String,
    /// Whether the connection was encrypted.
    pub is_secure: bool,
}

/// A mail server on a free local port, shut down when dropped.
#[derive(Debug)]
pub struct StrictMailServer {
    address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct State {
    rules: MailRules,
    mails: Mutex<Vec<Mail>>,
    violations: Mutex<Vec<String>>,
    mischief: Mutex<Option<MailMischief>>,
}

impl StrictMailServer {
    /// Starts a server with these rules.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn start(rules: MailRules) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            rules,
            mails: Mutex::default(),
            violations: Mutex::default(),
            mischief: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&state);
        tasks.spawn(async move {
            let mut conversations = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                // The peer may disconnect at any time.
                conversations.spawn(async move { drop(begin(Box::new(stream), &state).await) });
                while conversations.try_join_next().is_some() {}
            }
        });
        Self {
            address,
            state,
            _tasks: tasks,
        }
    }

    /// Returns the server's settings for `bellwether.toml`, without the credentials.
    pub fn settings(&self) -> String {
        let security = match self.state.rules.security {
            MailSecurity::None => "none",
            MailSecurity::StartTls(_) => "starttls",
            MailSecurity::Tls(_) => "tls",
        };
        let port = self.address.port();
        format!(
            "[smtp]\nhost = \"localhost\"\nport = {port}\nsecurity = \"{security}\"\n\
             from = \"Bellwether <bellwether@example.net>\"\n"
        )
    }

    /// Sets the server's misbehaviour from now on; `None` restores normal behaviour.
    pub fn misbehave(&self, mischief: impl Into<Option<MailMischief>>) {
        *self.state.mischief.lock().unwrap() = mischief.into();
    }

    /// Returns the mails received so far.
    ///
    /// # Panics
    /// Panics if a client violated the rules.
    pub fn mails(&self) -> Vec<Mail> {
        let violations = self.state.violations.lock().unwrap();
        assert!(violations.is_empty(), "SMTP violations: {violations:#?}");
        self.state.mails.lock().unwrap().clone()
    }
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

struct Conversation<'a> {
    stream: BufReader<Box<dyn Stream>>,
    state: &'a State,
    is_secure: bool,
    mechanism: String,
    from: Option<String>,
    to: Vec<String>,
    has_sent: bool,
    is_international: bool,
}

async fn begin(stream: Box<dyn Stream>, state: &State) -> io::Result<()> {
    let (stream, is_secure) = match &state.rules.security {
        MailSecurity::Tls(config) => (secure(stream, config).await?, true),
        MailSecurity::StartTls(_) | MailSecurity::None => (stream, false),
    };
    let mut conversation = Conversation {
        stream: BufReader::new(stream),
        state,
        is_secure,
        mechanism: String::new(),
        from: None,
        to: Vec::new(),
        has_sent: false,
        is_international: false,
    };
    if matches!(conversation.mischief(), Some(MailMischief::Hangs)) {
        return std::future::pending().await;
    }
    conversation.say("220 stand-in ESMTP").await?;
    while let Some(line) = conversation.line().await? {
        let verb = line
            .split([' ', ':'])
            .next()
            .unwrap_or_default()
            .to_ascii_uppercase();
        if verb == "STARTTLS" {
            conversation = conversation.start_tls().await?;
        } else if !conversation.take(&verb, &line).await? {
            break;
        }
    }
    Ok(())
}

async fn secure(stream: Box<dyn Stream>, config: &ServerConfig) -> io::Result<Box<dyn Stream>> {
    let mut config = config.clone();
    config.alpn_protocols.clear();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Ok(Box::new(acceptor.accept(stream).await?))
}

impl Conversation<'_> {
    fn mischief(&self) -> Option<MailMischief> {
        self.state.mischief.lock().unwrap().clone()
    }

    fn add_violation(&self, message: impl Into<String>) {
        self.state.violations.lock().unwrap().push(message.into());
    }

    async fn say(&mut self, line: &str) -> io::Result<()> {
        self.stream
            .write_all(format!("{line}\r\n").as_bytes())
            .await?;
        self.stream.flush().await
    }

    /// Reads a line without its ending; `None` if the peer has disconnected.
    async fn raw_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        if self.stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        if !line.ends_with(b"\r\n") {
            self.add_violation("a line does not end with CR LF");
        }
        line.truncate(line.trim_ascii_end().len());
        if line.len() > LINE_BYTES_MAX {
            self.add_violation(format!("a line is {} bytes", line.len()));
        }
        Ok(Some(line))
    }

    async fn line(&mut self) -> io::Result<Option<String>> {
        let line = self.raw_line().await?;
        Ok(line.map(|line| String::from_utf8_lossy(&line).into_owned()))
    }

    async fn start_tls(mut self) -> io::Result<Self> {
        let MailSecurity::StartTls(config) = &self.state.rules.security else {
            self.say("502 no such command").await?;
            return Ok(self);
        };
        self.say("220 go ahead").await?;
        let stream = secure(self.stream.into_inner(), config).await?;
        Ok(Self {
            stream: BufReader::new(stream),
            is_secure: true,
            ..self
        })
    }

    /// Handles a command; returns whether the connection continues.
    async fn take(&mut self, verb: &str, line: &str) -> io::Result<bool> {
        if !self.goes_well(verb).await? {
            return Ok(verb != "QUIT");
        }
        let must_secure = matches!(self.state.rules.security, MailSecurity::StartTls(_));
        if must_secure && !self.is_secure && !matches!(verb, "EHLO" | "QUIT" | "NOOP") {
            self.add_violation(format!("{verb} came before STARTTLS"));
            self.say("530 issue STARTTLS first").await?;
            return Ok(true);
        }
        match verb {
            "EHLO" => self.hello(line).await?,
            "AUTH" => self.log_in(line).await?,
            "MAIL" if self.state.rules.login.is_some() && self.mechanism.is_empty() => {
                self.say("530 log in first").await?;
            }
            "MAIL"
                if self.has_sent
                    && matches!(self.mischief(), Some(MailMischief::TakesOneMail(_))) =>
            {
                self.say("421 4.7.0 one mail a conversation, closing")
                    .await?;
                return Ok(false);
            }
            "MAIL" if self.from.is_some() => {
                self.add_violation("a mail begins within another");
                self.say("503 5.5.1 nested MAIL command").await?;
            }
            "MAIL" => {
                self.is_international = line.contains("> SMTPUTF8");
                self.holds_letters(line);
                self.from = Some(address(line));
                self.say("250 ok").await?;
            }
            "RCPT" => self.recipient(line).await?,
            "DATA" if self.to.is_empty() => {
                self.add_violation("a text comes for no address");
                self.say("554 5.5.1 no valid recipients").await?;
            }
            "DATA" => self.data().await?,
            "QUIT" => {
                self.say("221 bye").await?;
                return Ok(false);
            }
            _ => self.say("250 ok").await?,
        }
        Ok(true)
    }

    /// Records a fault if a line contains non-ASCII characters without SMTPUTF8.
    fn holds_letters(&self, line: &str) {
        if !line.is_ascii() && !self.is_international {
            self.add_violation(format!("non-ASCII characters without SMTPUTF8: {line}"));
        }
    }

    async fn recipient(&mut self, line: &str) -> io::Result<()> {
        self.holds_letters(line);
        let address = address(line);
        if self.from.is_none() {
            self.add_violation("an address comes before the sender");
        }
        if self.to.contains(&address) {
            self.add_violation(format!("{address} is named twice"));
        }
        match self.mischief() {
            Some(MailMischief::Refuses(refused, answer)) if refused == address => {
                self.say(answer).await
            }
            Some(MailMischief::TakesAtMost(count) | MailMischief::TakesOneMail(count))
                if self.to.len() >= count =>
            {
                self.say("452 4.5.3 Error: too many recipients").await
            }
            _ => {
                self.to.push(address);
                self.say("250 ok").await
            }
        }
    }

    /// Misbehaves as configured, and returns whether to handle the command normally.
    async fn goes_well(&mut self, verb: &str) -> io::Result<bool> {
        match self.mischief() {
            Some(MailMischief::Says(at, answer)) if at == verb => {
                self.say(answer).await?;
                Ok(false)
            }
            Some(MailMischief::HangsUp(at)) if at == verb => {
                Err(io::Error::other("told to hang up"))
            }
            Some(MailMischief::Floods) => loop {
                self.say(&format!("250-{}", "AND-SO-ON".repeat(100)))
                    .await?;
            },
            _ => Ok(true),
        }
    }

    async fn hello(&mut self, line: &str) -> io::Result<()> {
        let words: Vec<_> = line.split_whitespace().collect();
        // RFC 5321, section 4.1.1.1: a fully qualified domain name or an address literal.
        let is_name =
            |name: &&&str| name.contains('.') && (name.starts_with('[') == name.ends_with(']'));
        if words.len() != 2 || words.get(1).is_none_or(|word| !is_name(&word)) {
            self.add_violation(format!("this names nobody: {line}"));
        }
        let mut features = vec!["stand-in".to_owned(), "8BITMIME".into(), "SMTPUTF8".into()];
        let is_starttls = matches!(self.state.rules.security, MailSecurity::StartTls(_));
        if is_starttls && !self.is_secure {
            features.push("STARTTLS".into());
        } else if self.state.rules.login.is_some() {
            features.push(format!("AUTH {}", self.state.rules.mechanisms));
        }
        let last = features.len() - 1;
        for (index, feature) in features.iter().enumerate() {
            let mark = if index == last { ' ' } else { '-' };
            self.say(&format!("250{mark}{feature}")).await?;
        }
        Ok(())
    }

    async fn log_in(&mut self, line: &str) -> io::Result<()> {
        let mut words = line.split_whitespace().skip(1);
        let mechanism = words.next().unwrap_or_default().to_ascii_uppercase();
        let offered = self.state.rules.mechanisms;
        if !offered.split(' ').any(|one| one == mechanism) {
            self.add_violation(format!("{mechanism} was not offered"));
            return self.say("504 unknown mechanism").await;
        }
        let first = words.next().map(str::to_owned);
        if mechanism == "XOAUTH2" {
            return self.log_in_by_token(first).await;
        }
        let given = if mechanism == "PLAIN" {
            let text = self.reply(first, "").await?;
            let mut parts = text.split('\0').skip(1).map(str::to_owned);
            (
                parts.next().unwrap_or_default(),
                parts.next().unwrap_or_default(),
            )
        } else {
            let user = self.reply(first, "Username:").await?;
            (user, self.reply(None, "Password:").await?)
        };
        if self.state.rules.login.as_ref() != Some(&given) {
            return self
                .say("535 5.7.8 authentication credentials invalid")
                .await;
        }
        self.mechanism = mechanism;
        self.say("235 welcome").await
    }

    /// Handles XOAUTH2 as defined by Google and Microsoft: base64 of `user=…^Aauth=Bearer …^A^A`.
    /// The server rejects a token with a challenge that contains the error. The client responds
    /// with an empty line, and then gets the final reply.
    async fn log_in_by_token(&mut self, first: Option<String>) -> io::Result<()> {
        let said = first.and_then(|it| STANDARD.decode(it).ok());
        let said = said.and_then(|it| String::from_utf8(it).ok());
        let Some((user, token)) = said.as_deref().and_then(bearer) else {
            self.add_violation("XOAUTH2 without `user=…^Aauth=Bearer …^A^A` in base64");
            return self.say("501 5.5.2 Cannot Decode response").await;
        };
        let (user, token) = (user.to_owned(), token.to_owned());
        if self.state.rules.login.as_ref() == Some(&(user, token)) {
            self.mechanism = "XOAUTH2".into();
            return self.say("235 2.7.0 Accepted").await;
        }
        let error = r#"{"status":"400","schemes":"Bearer","scope":"https://mail.google.com/"}"#;
        self.say(&format!("334 {}", STANDARD.encode(error))).await?;
        let response = self.line().await?;
        if response.as_deref() != Some("") {
            self.add_violation(format!(
                "the error of XOAUTH2 is answered with {response:?}"
            ));
        }
        self.say("535 5.7.8 Username and Password not accepted")
            .await
    }

    /// Returns the client's response to a challenge. The command may already contain the response.
    async fn reply(&mut self, said: Option<String>, question: &str) -> io::Result<String> {
        let said = if let Some(said) = said {
            said
        } else {
            let question = STANDARD.encode(question);
            self.say(&format!("334 {question}")).await?;
            self.line().await?.unwrap_or_default()
        };
        let text = STANDARD.decode(said).map_err(io::Error::other)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    async fn data(&mut self) -> io::Result<()> {
        self.say("354 continue").await?;
        let mut data = Vec::new();
        loop {
            let Some(line) = self.raw_line().await? else {
                return Err(io::Error::other("a mail broke off"));
            };
            if line == b"." {
                break;
            }
            data.extend_from_slice(line.strip_prefix(b".").unwrap_or(&line));
            data.extend_from_slice(b"\r\n");
        }
        let header = data.split(|byte| *byte == b'\n');
        for line in header.take_while(|line| !line.trim_ascii().is_empty()) {
            self.holds_letters(&String::from_utf8_lossy(line));
        }
        if !self.goes_well(".").await? {
            return Ok(());
        }
        let mail = Mail {
            from: self.from.take().unwrap_or_default(),
            to: std::mem::take(&mut self.to),
            data,
            mechanism: self.mechanism.clone(),
            is_secure: self.is_secure,
        };
        self.state.mails.lock().unwrap().push(mail);
        self.has_sent = true;
        if let Some(MailMischief::AnswersLate(after)) = self.mischief() {
            tokio::time::sleep(after).await;
        }
        self.say("250 taken").await
    }
}

fn address(line: &str) -> String {
    let inside = line
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    inside.map_or(String::new(), |(address, _)| address.to_owned())
}

/// Returns the user and the token of an XOAUTH2 response.
fn bearer(said: &str) -> Option<(&str, &str)> {
    let inside = said.strip_prefix("user=")?.strip_suffix("\u{1}\u{1}")?;
    let (user, token) = inside.split_once("\u{1}auth=Bearer ")?;
    let is_plain = |text: &str| !text.is_empty() && !text.contains('\u{1}');
    (is_plain(user) && is_plain(token)).then_some((user, token))
}
