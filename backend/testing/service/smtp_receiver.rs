//! A small mail server for tests: implements basic SMTP, records mails, and rejects them on demand.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Mail {
    pub(crate) commands: Vec<String>,
    /// The mail with its headers; empty if none was sent.
    pub(crate) data: String,
}

/// Listens on a free port of 127.0.0.1 until dropped.
#[derive(Debug)]
pub(crate) struct SmtpReceiver {
    pub(crate) addr: SocketAddr,
    mails: Arc<Mutex<Vec<Mail>>>,
    _server: JoinSet<()>,
}

impl SmtpReceiver {
    /// Starts a server with custom replies. For each prefix of a command, they contain the lines to
    /// send instead of accepting the command. An empty line closes the connection, and `...` never
    /// replies. `.` is the end of the mail, `HI` the greeting.
    pub(crate) async fn start(refuse: &'static [(&'static str, &'static str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let mails = Arc::<Mutex<Vec<Mail>>>::default();
        let stored = Arc::clone(&mails);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut conversations = JoinSet::new();
            loop {
                let (stream, _peer) = listener.accept().await.unwrap();
                let stored = Arc::clone(&stored);
                conversations.spawn(async move {
                    let mail = run_conversation(stream, refuse).await;
                    stored.lock().unwrap().push(mail);
                });
            }
        });
        Self {
            addr,
            mails,
            _server: server,
        }
    }

    pub(crate) fn mails(&self) -> Vec<Mail> {
        self.mails.lock().unwrap().clone()
    }
}

async fn run_conversation(stream: TcpStream, refuse: &[(&str, &str)]) -> Mail {
    let mut stream = BufReader::new(stream);
    let mut mail = Mail::default();
    let mut in_data = false;
    let mut line = "HI".to_owned();
    loop {
        let refusal = refuse
            .iter()
            .find(|(start, _)| line.starts_with(start) && (!in_data || line == "."));
        let reply = match (refusal, in_data, line.as_str()) {
            (Some((_, "")), ..) => return mail,
            (Some((_, "...")), ..) => std::future::pending().await,
            (Some((_, reply)), ..) => reply,
            (None, false, "HI") => "220 ready",
            (None, true, ".") => "250 taken",
            (None, true, _) => "",
            (None, false, command) => match command.get(..4).unwrap_or_default() {
                // The response to a token error.
                "" => "535 5.7.3 Authentication unsuccessful",
                "EHLO" => "250-hello\r\n250 AUTH PLAIN",
                "AUTH" => "235 welcome",
                "DATA" => "354 continue",
                "QUIT" => "221 bye",
                _ => "250 ok",
            },
        };
        if in_data && line != "." {
            mail.data.push_str(&line);
            mail.data.push('\n');
        } else {
            in_data = reply.starts_with("354");
            let reply = format!("{reply}\r\n");
            if stream.write_all(reply.as_bytes()).await.is_err() {
                return mail;
            }
        }
        if reply.starts_with("221") {
            return mail;
        }
        line.clear();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return mail;
        }
        line.truncate(line.trim_end().len());
        if !in_data {
            mail.commands.push(line.clone());
        }
    }
}
