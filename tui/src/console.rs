//! The console: a model, a connection and a backend to draw on. It owns neither a terminal nor
//! keys.

use std::{collections::VecDeque, sync::Arc};

use crossterm::event::{Event, KeyEventKind};
use ratatui::{
    Terminal, TerminalOptions, Viewport,
    backend::Backend,
    layout::{Position, Rect, Size},
};

use crate::{
    client::{self, Command, Keys, Link, ServerUpdate},
    data::FailureKind,
    limits,
    model::{
        Connection, Model, Notice,
        attention::Alert,
        message::{Effect, Msg},
        reply::Reply,
        update,
        write::TextEdit,
    },
    options::{Now, Options},
    theme::{Depth, Theme},
    view,
};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TerminalAction {
    Edit(TextEdit),
    Copy(String),
    Suspend,
    Mouse(bool),
    Alert(Alert),
    EndAlert,
    Open(String),
    Run(Vec<String>),
    StopRun,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceStatus {
    Up,
    Unreachable(String),
    /// The key is rejected or its role is insufficient, with a message.
    NotAllowed(String),
}

#[derive(Debug)]
pub(crate) struct Console<B: Backend> {
    terminal: Terminal<B>,
    model: Model,
    link: Link,
    now: Now,
    outward: VecDeque<TerminalAction>,
    /// Number of write requests sent after a confirmation, and without one.
    writes: u64,
    writes_at_once: u64,
    changed: bool,
}

impl<B: Backend> Console<B> {
    pub(crate) fn start(mut options: Options, backend: B) -> Result<Self, B::Error> {
        let size = backend.size()?;
        // The size is fixed, because the terminal reports changes of it. Querying the size before
        // each frame would open the terminal each time.
        let viewport = Viewport::Fixed(Rect::from((Position::ORIGIN, size)));
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        let service = options.endpoint.uri().to_string();
        let keys = Keys::from_options(&mut options);
        let mut model = Model::new(service, options.read_only, options.time_zone);
        model.shell = options.shell;
        model.context = options.context;
        model.contexts = options.contexts;
        model.own_views = options.views;
        model.mouse = options.mouse;
        model.size = (size.width, size.height);
        model.keymap = Arc::new(options.keys);
        model.theme = options.theme;
        model.depth = options.depth;
        model.is_ascii = options.is_ascii;
        model.background = options.background;
        model.now_ms = options.now.ms();
        model.attention.settings = options.notices;
        model.opener = options.opener;
        model.cycle = options.wall.then(|| model.now_ms + limits::CYCLE_MS);
        let link = client::start(options.endpoint, keys, options.keep_alive);
        let outward = VecDeque::new();
        Ok(Self {
            terminal,
            model,
            link,
            now: options.now,
            outward,
            writes: 0,
            writes_at_once: 0,
            changed: true,
        })
    }

    pub(crate) fn write_count(&self) -> u64 {
        self.writes
    }

    pub(crate) fn max_concurrent_writes(&self) -> u64 {
        self.writes_at_once
    }

    pub(crate) fn wants_to_quit(&self) -> bool {
        self.model.quit
    }

    /// Switches to printing lines; every change then requires a confirmation.
    pub(crate) fn print_lines(&mut self) {
        self.model.is_plain = true;
        if self.model.attention.settings.plain {
            // There are no reports of the focus.
            self.model.set_away(true);
        }
    }

    pub(crate) fn next_context(&self) -> Option<String> {
        self.model.next_context.clone()
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn take_notice(&mut self) -> Option<Notice> {
        self.model.notice.take()
    }

    pub(crate) fn take_terminal_action(&mut self) -> Option<TerminalAction> {
        self.outward.pop_front()
    }

    pub(crate) fn has_terminal_action(&self) -> bool {
        !self.outward.is_empty()
    }

    pub(crate) fn set_theme(&mut self, theme: Theme) {
        self.model.theme = theme;
    }

    pub(crate) fn needs_background_query(&self) -> bool {
        let model = &self.model;
        let depends = matches!(model.theme, Theme::Auto | Theme::Terminal);
        let matters = depends && model.depth != Depth::Sixteen;
        matters && model.background.is_none()
    }

    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    pub(crate) fn backend_mut(&mut self) -> &mut B {
        self.terminal.backend_mut()
    }

    /// Returns the milliseconds until the model's next tick; `None` while nothing on the screen
    /// moves.
    pub(crate) fn wake_in_ms(&self) -> Option<u64> {
        let wait = self.model.wake_at_ms()?.saturating_sub(self.now.ms());
        Some(u64::try_from(wait).unwrap_or(0))
    }

    pub(crate) fn input(&mut self, event: Event) {
        if !matches!(event, Event::Resize(..) | Event::FocusLost) {
            self.link.record_key_press();
        }
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.handle(Msg::Key(key)),
            Event::Mouse(event) => self.handle(Msg::Mouse(event)),
            Event::Paste(text) => self.handle(Msg::Paste(text)),
            Event::Resize(columns, rows) => self.handle(Msg::Resize(columns, rows)),
            Event::FocusGained => self.handle(Msg::Focus(true)),
            Event::FocusLost => self.handle(Msg::Focus(false)),
            Event::Key(_) => {}
        }
    }

    /// Handles a message and all its effects, so that the next key acts on the updated state.
    pub(crate) fn handle(&mut self, msg: Msg) {
        self.model.now_ms = self.now.ms();
        let effects = update::update(&mut self.model, msg);
        self.changed |= self.model.touched;
        self.run_effects(effects);
        update::adjust_cursors(&mut self.model);
    }

    fn run_effects(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(command) => {
                    if let Command::Call(ticket, call) = &command
                        && call.is_write()
                    {
                        let reply = self.model.pending.get(ticket);
                        if matches!(reply, Some(Reply::Write(write, _)) if write.at_once) {
                            self.writes_at_once += 1;
                        } else {
                            self.writes += 1;
                        }
                    }
                    if !self.link.send(command) {
                        let token = crate::theme::Token::Bad;
                        self.model.show_notice(
                            token,
                            "too many requests in progress; try again in a moment",
                        );
                    }
                }
                Effect::Edit(edit) => self.outward.push_back(TerminalAction::Edit(edit)),
                Effect::Copy(text) => self.outward.push_back(TerminalAction::Copy(text)),
                Effect::Suspend => self.outward.push_back(TerminalAction::Suspend),
                Effect::Mouse(on) => self.outward.push_back(TerminalAction::Mouse(on)),
                Effect::Alert(alert) => self.outward.push_back(TerminalAction::Alert(alert)),
                Effect::EndAlert => self.outward.push_back(TerminalAction::EndAlert),
                Effect::Open(url) => self.outward.push_back(TerminalAction::Open(url)),
                Effect::Run(words) => self.outward.push_back(TerminalAction::Run(words)),
                Effect::StopRun => self.outward.push_back(TerminalAction::StopRun),
            }
        }
    }

    /// Waits for updates from the connection and processes all that were received.
    ///
    /// # Cancel safety
    /// No update is lost if the future is dropped.
    pub(crate) async fn receive(&mut self) {
        let first = self.link.next().await;
        self.process(first);
    }

    /// Processes this and further queued updates, up to a budget, as one change.
    fn process(&mut self, first: ServerUpdate) {
        self.model.now_ms = self.now.ms();
        let mut next = Some(first);
        let mut budget = limits::NEWS_BUDGET;
        while let Some(server_update) = next {
            let effects = update::update(&mut self.model, Msg::Server(server_update));
            self.changed |= self.model.touched;
            self.run_effects(effects);
            budget -= 1;
            next = if budget == 0 {
                None
            } else {
                self.link.try_next()
            };
        }
        update::adjust_cursors(&mut self.model);
    }

    pub(crate) fn draw(&mut self) -> Result<(), B::Error> {
        let model = &self.model;
        let (width, height) = model.size;
        let area = Rect::new(0, 0, width, height);
        if self.terminal.get_frame().area() != area {
            self.terminal.resize(area)?;
        }
        self.terminal.draw(|frame| view::draw(model, frame))?;
        self.changed = false;
        Ok(())
    }

    pub(crate) fn redraw(&mut self) -> Result<(), B::Error> {
        let Size { width, height } = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, width, height))?;
        self.handle(Msg::Resize(width, height));
        self.draw()
    }

    pub(crate) fn status(&self) -> ServiceStatus {
        let shown = self.model.store.failure(&self.model.page.route);
        let failure = match &self.model.link {
            Connection::Up => shown,
            Connection::Down { failure, .. } => Some(failure),
            Connection::Connecting => {
                return ServiceStatus::Unreachable("no response in time".to_owned());
            }
        };
        match failure {
            None => ServiceStatus::Up,
            Some(failure) => match failure.kind {
                FailureKind::Unauthenticated | FailureKind::NotSignedIn | FailureKind::Denied => {
                    ServiceStatus::NotAllowed(failure.sentence())
                }
                _ => ServiceStatus::Unreachable(failure.sentence()),
            },
        }
    }

    /// Whether nothing is in flight: all calls have completed, and the connection is up or known to
    /// be down.
    pub(crate) fn is_idle(&self) -> bool {
        let settled = !matches!(self.model.link, Connection::Connecting);
        let is_due = self.model.beside.due_ms.is_some();
        let has_calls = self.model.is_connected() && (is_due || !self.model.pending.is_empty());
        settled && !has_calls
    }
}
