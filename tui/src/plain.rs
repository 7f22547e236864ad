//! Plain mode: a console that reads commands and prints lines, for screen readers, logs and pipes.

mod announce;
mod command;
mod fill;
mod question;
mod reader;
mod say;
mod talk;

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use ratatui::backend::TestBackend;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep_until},
};

use self::{
    reader::{InputLine, Reader},
    talk::Dialogue,
};
use crate::{
    console::{Console, ServiceStatus, TerminalAction},
    limits,
    model::message::Msg,
    options::{Error, Options},
    terminal, text,
};

/// Assumed screen size for the layout of pages. Long lines are acceptable.
const SIZE: (u16, u16) = (200, 50);

/// Runs a console in plain mode, on standard input and output. Returns the state of the service
/// when the input ended or the operator quit.
pub(crate) async fn run(options: Options) -> Result<ServiceStatus, Error> {
    let editor = options.editor.clone();
    let backend = TestBackend::new(SIZE.0, SIZE.1);
    let Ok(mut console) = Console::start(options, backend);
    // Every change requires a confirmation, because an accidental change would go unnoticed.
    console.print_lines();
    let mut plain = PlainConsole {
        console,
        talk: Dialogue::default(),
        reader: Reader::start(),
        editor,
        is_typed: io::stdin().is_terminal(),
        prompted: false,
        busy_until: None,
        announce_at: None,
    };
    plain.run().await.map_err(Error::Terminal)?;
    Ok(plain.console.status())
}

struct PlainConsole {
    console: Console<TestBackend>,
    talk: Dialogue,
    reader: Reader,
    editor: String,
    is_typed: bool,
    prompted: bool,
    /// Time at which to print that the console is waiting for a response.
    busy_until: Option<Instant>,
    announce_at: Option<Instant>,
}

impl PlainConsole {
    async fn run(&mut self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        self.talk.print_greeting(self.console.model());
        loop {
            while let Some(outward) = self.console.take_terminal_action() {
                self.run_terminal_action(outward).await;
            }
            if self.console.wants_to_quit() {
                return self.flush();
            }
            self.print_results();
            if self.flush().is_err() {
                // The program that reads the output has exited.
                return Ok(());
            }
            let wake = self.console.wake_in_ms();
            let wake = wake.map(|ms| Instant::now() + Duration::from_millis(ms));
            tokio::select! {
                biased;
                _ = terminate.recv() => return Ok(()),
                _ = hang_up.recv() => return Ok(()),
                _ = interrupt.recv() => return Ok(()),
                typed = self.reader.next() => match typed? {
                    InputLine::Line(line) => self.handle_line(&line),
                    InputLine::TooLong => self.talk.print("Line too long; ignored."),
                    InputLine::End if self.console.is_idle() => return self.flush(),
                    InputLine::End => {}
                },
                () = self.console.receive() => {}
                () = wait_until(wake) => self.console.handle(Msg::Tick),
                () = wait_until(self.busy_until) => self.print_busy(),
                () = wait_until(self.announce_at) => self.announce(),
            }
        }
    }

    /// Prints the result of a command once it is complete, and allows the next line to be read.
    fn print_results(&mut self) {
        self.talk.print_link_state(self.console.model());
        if let Some(notice) = self.console.take_notice() {
            self.talk.print_notice(&notice);
        }
        self.talk.print_progress(self.console.model());
        if self.console.is_idle() {
            self.busy_until = None;
            self.talk.print_when_idle(self.console.model());
            if question::is_key_shown(self.console.model()) {
                self.console.handle(Msg::Key(command::ESC));
            }
            self.reader.request_line();
            if self.announce_at.is_none() && self.talk.has_changes(self.console.model()) {
                self.announce_at = Some(Instant::now() + limits::ANNOUNCE);
            }
        } else {
            self.busy_until
                .get_or_insert_with(|| Instant::now() + limits::STILL_BUSY);
            // Requested only for typed input: the lines of a file wait until the previous command
            // is complete.
            if self.is_typed && question::is_cancellable(self.console.model()) {
                self.reader.request_line();
            }
        }
    }

    fn handle_line(&mut self, line: &str) {
        if self.is_typed {
            // Typing Enter has ended the line that begins with the prompt.
            self.prompted = false;
        } else {
            self.talk.print(format!("> {line}"));
        }
        self.announce_at = None;
        for msg in self.talk.handle_line(self.console.model(), line) {
            self.console.handle(msg);
        }
        for msg in self.talk.answer_prompt(self.console.model()) {
            self.console.handle(msg);
        }
    }

    fn print_busy(&mut self) {
        self.busy_until = Some(Instant::now() + limits::STILL_BUSY);
        self.talk.print("Still waiting for a response.");
    }

    fn announce(&mut self) {
        self.announce_at = None;
        self.talk.announce_changes(self.console.model());
    }

    async fn run_terminal_action(&mut self, outward: TerminalAction) {
        match outward {
            TerminalAction::Copy(copied) => self.talk.print(copied),
            // There is no screen to suspend and no mouse, and links and commands are not offered.
            TerminalAction::Suspend => self.console.handle(Msg::Resumed),
            TerminalAction::Mouse(_)
            | TerminalAction::EndAlert
            | TerminalAction::Open(_)
            | TerminalAction::Run(_)
            | TerminalAction::StopRun => {}
            TerminalAction::Alert(alert) => {
                let mut out = io::stdout();
                if out.is_terminal() {
                    // A failure is reported by the next line.
                    let _closed = out.write_all(alert.signal.as_bytes());
                }
            }
            TerminalAction::Edit(edit) => {
                let (editor, text) = (self.editor.clone(), edit.text.clone());
                let stem = edit.kind.singular();
                let run = move || terminal::edit(&editor, stem, &text);
                let result = tokio::task::spawn_blocking(run).await;
                let result = result.unwrap_or_else(|error| Err(error.to_string()));
                self.console.handle(Msg::Edited(edit, result));
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let lines = self.talk.take_lines();
        let mut out = io::stdout().lock();
        if self.prompted && !lines.is_empty() {
            writeln!(out)?;
            self.prompted = false;
        }
        for line in lines {
            writeln!(out, "{}", text::clean_text(&line).trim_end())?;
        }
        if self.is_typed && self.reader.is_line_requested() && !self.prompted {
            write!(out, "{} ", question::prompt(self.console.model()))?;
            self.prompted = true;
        }
        out.flush()
    }
}

async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
