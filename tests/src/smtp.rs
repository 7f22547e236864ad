//! A small SMTP server that records the mails it receives.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

/// A mail as received.
#[derive(Debug, Clone)]
pub struct Mail {
    /// Envelope sender.
    pub from: String,
    /// Envelope recipients.
    pub to: Vec<String>,
    /// Headers and body.
    pub data: String,
}

/// A mail server on a free local port, shut down when dropped.
#[derive(Debug)]
pub struct MailServer {
    address: SocketAddr,
    mails: Arc<Mutex<Vec<Mail>>>,
    _tasks: JoinSet<()>,
}

impl MailServer {
    /// Starts a server that accepts every mail, without TLS.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mails = Arc::<Mutex<Vec<Mail>>>::default();
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&mails);
        tasks.spawn(async move {
            let mut conversations = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let mails = Arc::clone(&shared);
                // The peer may disconnect at any time.
                conversations.spawn(async move { drop(converse(stream, &mails).await) });
            }
        });
        Self {
            address,
            mails,
            _tasks: tasks,
        }
    }

    /// Returns the port on which the server listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the mails received so far.
    pub fn mails(&self) -> Vec<Mail> {
        self.mails.lock().unwrap().clone()
    }
}

async fn converse(stream: TcpStream, mails: &Mutex<Vec<Mail>>) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(b"220 stand-in ready\r\n").await?;
    let (mut from, mut to) = (String::new(), Vec::new());
    while let Some(line) = lines.next_line().await? {
        let verb = line
            .split([' ', ':'])
            .next()
            .unwrap_or_default()
            .to_uppercase();
        let answer = match verb.as_str() {
            "EHLO" => "250-stand-in\r\n250 8BITMIME",
            "MAIL" => {
                from = address(&line);
                "250 ok"
            }
            "RCPT" => {
                to.push(address(&line));
                "250 ok"
            }
            "DATA" => {
                writer.write_all(b"354 continue\r\n").await?;
                let mut data = String::new();
                while let Some(line) = lines.next_line().await? {
                    if line == "." {
                        break;
                    }
                    data.push_str(line.strip_prefix('.').unwrap_or(&line));
                    data.push('\n');
                }
                let mail = Mail {
                    from: from.clone(),
                    to: std::mem::take(&mut to),
                    data,
                };
                mails.lock().unwrap().push(mail);
                "250 taken"
            }
            "QUIT" => "221 bye",
            _ => "250 ok",
        };
        writer.write_all(format!("{answer}\r\n").as_bytes()).await?;
        if verb == "QUIT" {
            break;
        }
    }
    Ok(())
}

fn address(line: &str) -> String {
    let inside = line
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'));
    inside.map_or(String::new(), |(address, _)| address.to_owned())
}
