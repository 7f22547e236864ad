//! A console without a terminal, with keys and screens as text.

use futures_util::future::BoxFuture;
use std::time::Duration;

use crossterm::event::{Event, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::{backend::TestBackend, buffer::Buffer};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    console::{Console, ServiceStatus, TerminalAction},
    data::Screen,
    keymap::{self, ACTIONS, Action, Entry},
    model::message::{Msg, ProgramOutput},
    options::Options,
    picture, text,
    theme::Theme,
};

/// Draws one frame of a screen as text: connects, reads, draws, and exits.
///
/// `screen` is the name of a screen, such as `events`, in any letter case. If the service is
/// unreachable, the frame shows that.
pub fn snapshot(
    options: Options,
    screen: &str,
    columns: u16,
    rows: u16,
) -> BoxFuture<'_, Result<Snapshot, UnknownScreen>> {
    Box::pin(async move {
        let mut console = start_on_screen(options, screen, columns, rows).await?;
        Ok(Snapshot {
            frame: console.screen_text(),
            picture: picture::render_svg(console.buffer()),
            status: console.console.status(),
        })
    })
}

/// Presses keys on a screen step by step. The snapshot contains the last frame, and a picture that
/// shows all frames in turn. Changes that the keys make are real.
pub fn record_steps<'a>(
    options: Options,
    screen: &'a str,
    steps: &'a [Step],
    columns: u16,
    rows: u16,
) -> BoxFuture<'a, Result<Snapshot, UnknownScreen>> {
    Box::pin(async move {
        let mut console = start_on_screen(options, screen, columns, rows).await?;
        let mut frames = vec![console.buffer().clone()];
        for step in steps.iter().take(STEPS) {
            console.press_all(step.0.iter().copied());
            console.wait_until_idle().await;
            frames.push(console.buffer().clone());
        }
        Ok(Snapshot {
            frame: console.screen_text(),
            picture: picture::animate_frames(&frames),
            status: console.console.status(),
        })
    })
}

const STEPS: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step(Vec<KeyEvent>);

impl Step {
    /// Parses a line of steps separated by spaces, such as `j j /host=db-1<Enter> x`.
    pub fn read(line: &str) -> Result<Vec<Self>, keymap::Unknown> {
        let steps = line.split_whitespace();
        steps.map(|it| Ok(Self(keymap::parse(it)?))).collect()
    }
}

async fn start_on_screen(
    options: Options,
    screen: &str,
    columns: u16,
    rows: u16,
) -> Result<Headless, UnknownScreen> {
    let found = key_entries().find(|entry| entry.name.eq_ignore_ascii_case(screen));
    let entry = found.ok_or_else(|| UnknownScreen(screen.to_owned()))?;
    let mut console = Headless::start(options, columns, rows);
    console.wait_until_idle().await;
    console.console.handle(Msg::Act(entry.action));
    console.wait_until_idle().await;
    Ok(console)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub frame: String,
    pub picture: String,
    pub status: ServiceStatus,
}

fn key_entries() -> impl Iterator<Item = &'static Entry> {
    let is_screen = |entry: &&Entry| match entry.action {
        Action::Go(_) => true,
        Action::Show(screen) => screen != Screen::OnCall,
        _ => false,
    };
    ACTIONS.iter().filter(is_screen)
}

#[must_use]
pub fn screen_names() -> Vec<&'static str> {
    key_entries().map(|entry| entry.name).collect()
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown screen `{0}`; expected one of {names}", names = screen_names().join(", "))]
pub struct UnknownScreen(String);

const PATIENCE: Duration = Duration::from_secs(60);

const BREATH: Duration = Duration::from_millis(2);

/// A complete console in memory, for tests, documentation and pipes. Like a console on a terminal,
/// it connects to a service, follows events and makes changes.
#[derive(Debug)]
pub struct Headless {
    console: Box<Console<TestBackend>>,
    copied: Vec<String>,
    actions: Vec<String>,
    forbidden: Vec<String>,
}

impl Headless {
    #[must_use]
    pub fn start(mut options: Options, columns: u16, rows: u16) -> Self {
        let forbidden = std::mem::take(&mut options.forbidden);
        let console = Console::start(options, TestBackend::new(columns, rows));
        let Ok(console) = console;
        Self {
            console: Box::new(console),
            copied: Vec::new(),
            actions: Vec::new(),
            forbidden,
        }
    }

    /// Presses keys written as `j/err<Enter>`, and processes received news.
    ///
    /// # Errors
    /// Returns an error if a name in angle brackets is not a key; no key is pressed then.
    pub fn press(&mut self, keys: &str) -> Result<(), keymap::Unknown> {
        self.press_all(keymap::parse(keys)?);
        Ok(())
    }

    fn press_all(&mut self, keys: impl IntoIterator<Item = KeyEvent>) {
        for key in keys {
            self.console.input(Event::Key(key));
        }
    }

    pub fn click(&mut self, column: u16, row: u16) {
        self.mouse(MouseEventKind::Down(MouseButton::Left), column, row);
    }

    pub fn scroll(&mut self, down: bool) {
        self.scroll_at(down, 0, 5);
    }

    /// Turns the wheel at a column and a row, counted from 0.
    pub fn scroll_at(&mut self, down: bool, column: u16, row: u16) {
        let kind = if down {
            MouseEventKind::ScrollDown
        } else {
            MouseEventKind::ScrollUp
        };
        self.mouse(kind, column, row);
    }

    fn mouse(&mut self, kind: MouseEventKind, column: u16, row: u16) {
        self.console.input(Event::Mouse(MouseEvent {
            kind,
            column,
            row,
            modifiers: KeyModifiers::NONE,
        }));
    }

    pub fn paste(&mut self, pasted: &str) {
        self.console.input(Event::Paste(pasted.to_owned()));
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.console.backend_mut().resize(columns, rows);
        self.console.input(Event::Resize(columns, rows));
    }

    /// Waits until nothing is in flight: all calls have completed, and the connection is up or
    /// known to be down. Returns `false` after a minute.
    pub async fn wait_until_idle(&mut self) -> bool {
        self.wait_until(|_| true).await
    }

    /// Waits until the screen shows a text and nothing is in flight. Returns `false` after a
    /// minute.
    pub async fn shows(&mut self, wanted: &str) -> bool {
        self.wait_until(|screen| screen.contains(wanted)).await
    }

    /// Waits until the screen shows a text, regardless of calls in flight. Returns `false` after a
    /// minute.
    pub async fn shows_while_loading(&mut self, wanted: &str) -> bool {
        let end = Instant::now() + PATIENCE;
        while !self.screen_text().contains(wanted) {
            if Instant::now() >= end {
                return false;
            }
            self.tick_if_due();
            let wake = self.console.wake_in_ms().map(Duration::from_millis);
            let wake = wake.map_or(end, |wait| end.min(Instant::now() + wait));
            let _woken = timeout_at(wake, self.console.receive()).await;
        }
        true
    }

    async fn wait_until(&mut self, wanted: impl Fn(&str) -> bool) -> bool {
        let end = Instant::now() + PATIENCE;
        loop {
            self.tick_if_due();
            if self.console.is_idle() && wanted(&self.screen_text()) {
                return true;
            }
            if Instant::now() >= end {
                return false;
            }
            let wake = self.console.wake_in_ms().map(Duration::from_millis);
            let wake = wake.map_or(end, |wait| end.min(Instant::now() + wait));
            // Returns early when an update arrives or the clock has to be checked.
            let _woken = timeout_at(wake, self.console.receive()).await;
        }
    }

    fn tick_if_due(&mut self) {
        if self.console.wake_in_ms() == Some(0) {
            self.console.handle(Msg::Tick);
        }
    }

    pub async fn process_updates(&mut self) {
        self.tick_if_due();
        let _nothing_came = timeout(BREATH, self.console.receive()).await;
    }

    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.console.model().is_connected()
    }

    #[must_use]
    pub fn selected_id(&self) -> Option<String> {
        self.console.model().selected_id()
    }

    #[must_use]
    pub fn has_row(&self, id: &str) -> bool {
        self.console.model().rows().position(id).is_some()
    }

    #[must_use]
    pub fn row_ids(&self) -> Vec<String> {
        let rows = self.console.model().rows();
        (0..rows.len())
            .map(|index| rows.id(index).to_owned())
            .collect()
    }

    #[must_use]
    pub fn is_confirming(&self) -> bool {
        use crate::model::overlay::Overlay;
        let overlay = &self.console.model().overlay;
        matches!(
            overlay,
            Some(Overlay::Confirm(_) | Overlay::Bulk(_) | Overlay::Clash(_) | Overlay::Silence(_))
        )
    }

    /// Returns the number of write requests sent after a confirmation.
    #[must_use]
    pub fn write_count(&self) -> u64 {
        self.console.write_count()
    }

    /// Returns the number of write requests sent without a confirmation, which can be undone.
    #[must_use]
    pub fn max_concurrent_writes(&self) -> u64 {
        self.console.max_concurrent_writes()
    }

    /// Applies `edit` instead of the editor, if an edit was requested. Returns `false` otherwise.
    pub fn edit(&mut self, edit: impl FnOnce(&str) -> String) -> bool {
        self.take_terminal_action(Some(edit))
    }

    fn take_terminal_action(&mut self, mut edit: Option<impl FnOnce(&str) -> String>) -> bool {
        let mut edited = false;
        while let Some(outward) = self.console.take_terminal_action() {
            match outward {
                TerminalAction::Copy(copied) => self.copied.push(text::clean_text(&copied)),
                TerminalAction::Mouse(_) => {}
                TerminalAction::Alert(alert) => {
                    let title = alert.title.unwrap_or_default();
                    self.actions.push(format!("{}{title}", alert.signal));
                }
                TerminalAction::EndAlert => self.actions.push("end".to_owned()),
                TerminalAction::Open(url) => self.actions.push(format!("open {url}")),
                TerminalAction::Run(words) => self.actions.push(format!("run {words:?}")),
                TerminalAction::StopRun => self.actions.push("stop".to_owned()),
                TerminalAction::Suspend => self.console.handle(Msg::Resumed),
                TerminalAction::Edit(text_edit) => {
                    let Some(edit) = edit.take() else { continue };
                    let text = edit(&text_edit.text);
                    self.console.handle(Msg::Edited(text_edit, Ok(text)));
                    edited = true;
                }
            }
        }
        edited
    }

    /// Returns the strings copied to the clipboard, oldest first.
    pub fn clipboard(&mut self) -> &[String] {
        self.take_terminal_action(None::<fn(&str) -> String>);
        &self.copied
    }

    /// Takes the notices, opened links and commands since the last call, oldest first.
    pub fn take_actions(&mut self) -> Vec<String> {
        self.take_terminal_action(None::<fn(&str) -> String>);
        std::mem::take(&mut self.actions)
    }

    /// Ends the running command with this output.
    pub fn end_program(&mut self, text: &str) {
        let (text, end) = (text.to_owned(), "exit status: 0".to_owned());
        let output = ProgramOutput { text, end };
        self.console.handle(Msg::ProgramEnded(output));
    }

    /// Reports that the terminal gained or lost focus.
    pub fn set_focus(&mut self, is_focused: bool) {
        self.console.input(if is_focused {
            Event::FocusGained
        } else {
            Event::FocusLost
        });
    }

    pub fn has_quit(&self) -> bool {
        self.console.wants_to_quit()
    }

    /// Draws the screen in this theme from now on, and returns it with its styles.
    pub fn draw_in_theme(&mut self, theme: Theme) -> &Buffer {
        self.console.set_theme(theme);
        self.buffer()
    }

    /// Draws the screen.
    ///
    /// # Panics
    /// Panics if it contains a text of [`Options::forbidden`].
    pub fn buffer(&mut self) -> &Buffer {
        let Ok(()) = self.console.draw();
        let buffer = self.console.backend_mut().buffer();
        if !self.forbidden.is_empty() {
            let drawn = buffer_text(buffer);
            // A text can be wrapped, even within a panel, so it is also searched without white
            // space.
            let joined: String = drawn.split_whitespace().collect();
            let mut forbidden = self.forbidden.iter();
            let found = forbidden.find(|it| drawn.contains(*it) || joined.contains(*it));
            assert!(found.is_none(), "«{found:?}» is drawn:\n{drawn}");
        }
        buffer
    }

    /// Returns the screen as text, one line per row, without trailing spaces.
    pub fn screen_text(&mut self) -> String {
        buffer_text(self.buffer())
    }
}

fn buffer_text(buffer: &Buffer) -> String {
    let area = *buffer.area();
    let mut screen = String::new();
    for y in area.top()..area.bottom() {
        let mut line = String::new();
        let mut skip = 0_usize;
        for x in area.left()..area.right() {
            let symbol = buffer[(x, y)].symbol();
            if skip == 0 {
                line.push_str(symbol);
            }
            skip = skip.max(text::cell_width(symbol)).saturating_sub(1);
        }
        screen.push_str(line.trim_end());
        screen.push('\n');
    }
    screen
}
