//! The main loop: keys first, then news, then timers. Draws when the model has changed, and never
//! waits for the network.

use std::{
    io::{self, Stdout, Write},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use crossterm::event::Event;
use futures_util::future::BoxFuture;
use ratatui::backend::CrosstermBackend;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::{Instant, sleep_until},
};

use super::{
    background::{BackgroundQuery, HandledInput},
    child,
    escapes::EscapeParser,
    guard::TerminalGuard,
    keys::Keys,
    panic_trigger::PanicTrigger,
    program,
};
use crate::{
    console::{Console, TerminalAction},
    limits,
    model::message::{Msg, ProgramOutput},
    options::{Error, Options},
    text,
};

/// Runs a console on the terminal until the operator quits or a signal is received. Returns the
/// context to switch to, if any.
pub(crate) async fn run(options: Options) -> Result<Option<String>, Error> {
    let editor = options.editor.clone();
    let opener = options.opener.clone();
    let focus = options.notices.enabled;
    let guard = TerminalGuard::acquire(options.mouse, options.kitty_keys, focus)
        .map_err(Error::Terminal)?;
    let escapes = EscapeParser::new(options.escape_delay);
    // The theme handles colours, including `NO_COLOR`.
    crossterm::style::force_color_output(true);
    let backend = CrosstermBackend::new(io::stdout());
    let console = Console::start(options, backend).map_err(Error::Terminal)?;
    let mut session = Session {
        guard,
        console,
        editor,
        opener,
        running: None,
        keys: Keys::read(),
        escapes,
        question: BackgroundQuery::default(),
    };
    let ended = session.run().await;
    let next = session.console.next_context();
    if ended.is_err() {
        // Dropping the console would show the cursor on a terminal that may be closed, and panic on
        // failure.
        std::mem::forget(session.console);
    }
    ended.map_err(Error::Terminal)?;
    Ok(next)
}

struct Session {
    guard: TerminalGuard,
    console: Console<CrosstermBackend<Stdout>>,
    editor: String,
    opener: Option<String>,
    /// A custom command; dropping it kills the command.
    running: Option<BoxFuture<'static, ProgramOutput>>,
    keys: Keys,
    escapes: EscapeParser,
    question: BackgroundQuery,
}

struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
    stop: Signal,
    panic_trigger: PanicTrigger,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            stop: signal(SignalKind::from_raw(signal_hook::consts::SIGTSTP))?,
            panic_trigger: PanicTrigger::listen()?,
        })
    }
}

impl Session {
    async fn run(&mut self) -> io::Result<()> {
        let mut signals = Signals::listen()?;
        let mut draw_at = Instant::now();
        loop {
            while let Some(outward) = self.console.take_terminal_action() {
                self.run_terminal_action(outward).await?;
            }
            if self.console.wants_to_quit() {
                return self.guard.restore();
            }
            if self.console.has_changed() && draw_at <= Instant::now() {
                self.draw()?;
                draw_at = Instant::now() + limits::FRAME;
            }
            let wake = self.console.wake_in_ms();
            let wake = wake.map(|ms| Instant::now() + Duration::from_millis(ms));
            let frame = self.console.has_changed().then_some(draw_at);
            tokio::select! {
                biased;
                _ = signals.terminate.recv() => return self.guard.restore(),
                _ = signals.hang_up.recv() => return self.guard.restore(),
                _ = signals.interrupt.recv() => return self.guard.restore(),
                _ = signals.stop.recv() => self.suspend()?,
                () = signals.panic_trigger.wait() => {}
                event = self.keys.next() => {
                    let Some(event) = event else { return self.guard.restore() };
                    self.handle_keys(event?).await?;
                    // Draws immediately after a key, regardless of other events.
                    draw_at = Instant::now();
                }
                () = wait_until(self.escapes.deadline()) => {
                    if let Some(event) = self.escapes.flush_overdue(Instant::now()) {
                        self.handle_event(event);
                    }
                    draw_at = Instant::now();
                }
                output = wait_for_output(&mut self.running) => {
                    self.running = None;
                    self.console.handle(Msg::ProgramEnded(output));
                    // The program may have written to the terminal itself.
                    self.console.redraw()?;
                }
                () = wait_until(frame) => {}
                () = self.console.receive() => {}
                () = wait_until(wake) => self.console.handle(Msg::Tick),
            }
        }
    }

    /// Handles a key and those already queued, so that one frame covers all of them.
    async fn handle_keys(&mut self, first: Event) -> io::Result<()> {
        self.input(first);
        for _ in 1..limits::NEWS_BUDGET {
            // Keys after one that starts the editor belong to the editor.
            if self.console.wants_to_quit() || self.console.has_terminal_action() {
                break;
            }
            match self.keys.next_queued().await? {
                Some(event) => self.input(event),
                None => break,
            }
        }
        Ok(())
    }

    fn input(&mut self, event: Event) {
        for event in self.escapes.handle(event, Instant::now()) {
            self.handle_event(event);
        }
    }

    /// Handles a complete event, except responses to our queries.
    fn handle_event(&mut self, event: Event) {
        match self.question.handle(event) {
            HandledInput::Event(event) => self.console.input(event),
            HandledInput::Events(events) => events
                .into_iter()
                .for_each(|event| self.console.input(event)),
            HandledInput::Background(background) => {
                self.console.handle(Msg::Background(background));
            }
            HandledInput::Nothing => {}
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        TerminalGuard::begin_frame()?;
        self.console.draw()?;
        TerminalGuard::end_frame()?;
        if self.console.needs_background_query() && self.question.can_send_query() {
            self.question.send(&mut io::stdout())?;
        }
        Ok(())
    }

    async fn run_terminal_action(&mut self, outward: TerminalAction) -> io::Result<()> {
        match outward {
            TerminalAction::Copy(copied) => self.copy_to_clipboard(&copied),
            TerminalAction::Suspend => self.suspend(),
            TerminalAction::Mouse(on) => self.guard.set_mouse(on),
            TerminalAction::Alert(alert) => {
                let mut out = io::stdout();
                out.write_all(alert.signal.as_bytes())?;
                out.flush()?;
                alert
                    .title
                    .map_or(Ok(()), |title| self.guard.set_title(&title))
            }
            TerminalAction::EndAlert => self.guard.restore_title(),
            TerminalAction::Open(url) => {
                self.open(&url);
                Ok(())
            }
            TerminalAction::Run(words) => {
                self.running = Some(Box::pin(program::run(words)));
                Ok(())
            }
            TerminalAction::StopRun => {
                self.running = None;
                Ok(())
            }
            TerminalAction::Edit(edit) => {
                self.release_terminal()?;
                let (editor, shown) = (self.editor.clone(), edit.text.clone());
                let stem = edit.kind.singular();
                let run = move || child::edit(&editor, stem, &shown);
                let result = tokio::task::spawn_blocking(run).await;
                let result = result.unwrap_or_else(|error| Err(error.to_string()));
                self.reclaim_terminal()?;
                self.console.handle(Msg::Edited(edit, result));
                Ok(())
            }
        }
    }

    fn open(&mut self, url: &str) {
        let Some(opener) = &self.opener else { return };
        if let Err(error) = program::start_detached(opener, url) {
            let reason = format!("failed to run `{opener}` for {url}: {error}");
            self.console.handle(Msg::NotOpened(reason));
        }
    }

    fn suspend(&mut self) -> io::Result<()> {
        self.release_terminal()?;
        signal_hook::low_level::raise(signal_hook::consts::SIGSTOP)?;
        self.reclaim_terminal()?;
        self.console.handle(Msg::Resumed);
        Ok(())
    }

    fn release_terminal(&mut self) -> io::Result<()> {
        self.keys.stop();
        self.guard.restore()
    }

    fn reclaim_terminal(&mut self) -> io::Result<()> {
        self.guard.enter()?;
        self.keys = Keys::read();
        self.console.redraw()
    }

    /// Copies text to the terminal's clipboard (OSC 52), without hidden characters.
    fn copy_to_clipboard(&mut self, copied: &str) -> io::Result<()> {
        let mut clean = text::clean_text(copied);
        while clean.len() > limits::CLIPBOARD_BYTES {
            clean.pop();
        }
        let coded = STANDARD.encode(&clean);
        let backend = self.console.backend_mut();
        write!(backend, "\x1b]52;c;{coded}\x07")?;
        backend.flush()
    }
}

async fn wait_for_output(running: &mut Option<BoxFuture<'static, ProgramOutput>>) -> ProgramOutput {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}

async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
