//! The tour's console with its own service, a receiver of webhooks, and the recorded screens.

use std::time::{Duration, Instant};

use base64::{Engine, engine::general_purpose::STANDARD};
use bellwether_tests::{receiver::Receiver, rest::Rest, terminal::Terminal};
use serde_json::Value;
use tempfile::TempDir;

use super::page::{self, Page};

const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Guide {
    pub(super) receiver: Receiver,
    console: Terminal,
    home: TempDir,
    size: (u16, u16),
    pages: Vec<Page>,
}

impl Guide {
    /// Opens the console with its own service, in an empty home.
    pub(super) async fn start(columns: u16, rows: u16) -> Self {
        let home = tempfile::tempdir().unwrap();
        let arguments = [
            "--grpc-listen",
            "127.0.0.1:0",
            "--rest-listen",
            "127.0.0.1:0",
        ];
        let environment = [("BELLWETHER_EGRESS_ALLOW", "127.0.0.0/8"), ("TZ", "UTC")];
        Self {
            receiver: Receiver::start().await,
            console: Terminal::of_size((columns, rows), home.path(), &arguments, &environment),
            home,
            size: (columns, rows),
            pages: Vec::new(),
        }
    }

    pub(super) fn press(&mut self, keys: &str) -> &mut Self {
        self.console.press(keys);
        self
    }

    pub(super) fn sees(&mut self, texts: &[&str]) -> &mut Self {
        self.console.shows(texts);
        self
    }

    /// Records the screen as a page of the document, once it matches the expected one.
    pub(super) fn page(&mut self, title: &'static str, words: &'static str) {
        let parties = [
            (self.rest_address(), "http://127.0.0.1:48480"),
            (self.address("grpc"), "http://127.0.0.1:48481"),
            (
                format!(" {} ", self.address("grpc").trim_start_matches("http://")),
                " 127.0.0.1:48481 ",
            ),
            (self.receiver.url(""), "http://127.0.0.1:49000"),
        ];
        let stored = page::stored(self.pages.len(), self.size);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let page = Page::new(title, words, &self.console.settled(), &parties);
            let is_it = stored.as_ref().is_none_or(|stored| page.shows(stored));
            // A page that differs is reported when the whole document is compared.
            if is_it || Instant::now() > deadline {
                return self.pages.push(page);
            }
        }
    }

    pub(super) fn copied(&self) -> String {
        let written = self.console.output();
        let coded = written.rsplit("\x1b]52;c;").next().unwrap();
        let coded = coded.split('\x07').next().unwrap();
        String::from_utf8(STANDARD.decode(coded).unwrap()).unwrap()
    }

    pub(super) fn rest_address(&self) -> String {
        self.address("rest")
    }

    fn address(&self, part: &str) -> String {
        let noted = std::fs::read(self.data_dir().join("addresses.json")).unwrap();
        let noted: Value = serde_json::from_slice(&noted).unwrap();
        noted[part].as_str().unwrap().to_owned()
    }

    pub(super) fn rest(&self) -> Rest {
        let key = std::fs::read_to_string(self.data_dir().join("admin.key")).unwrap();
        let address = self.rest_address();
        Rest::new(address.trim_start_matches("http://"), Some(key.trim()))
    }

    fn data_dir(&self) -> std::path::PathBuf {
        self.home.path().join(".local/share/bellwether")
    }

    pub(super) fn leave(mut self) -> Vec<Page> {
        self.console.press("q");
        assert!(self.console.ended().success());
        assert_eq!(self.console.remaining_modes(), Vec::<String>::new());
        self.pages
    }
}
