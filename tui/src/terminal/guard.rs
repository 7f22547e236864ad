//! The terminal's modes, entered and restored together on every path.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use crossterm::{
    cursor,
    event::{self, KeyboardEnhancementFlags},
    execute, queue,
    style::{Print, ResetColor},
    terminal::{
        self, BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen,
        LeaveAlternateScreen,
    },
};

/// Enables reports of clicks and the wheel, in the encoding for coordinates above 223.
const CLICKS_AND_WHEEL: &str = "\x1b[?1000h\x1b[?1006h";

/// Owns the terminal's modes. Dropping it restores the terminal.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(super) struct TerminalGuard {
    entered: bool,
    mouse: bool,
    kitty_keys: bool,
    /// Whether the terminal reports changes of the focus.
    focus: bool,
    /// Whether the title was replaced and has to be restored.
    has_title: bool,
    /// The message of a panic, printed after the screen is restored.
    panic_message: Arc<Mutex<Option<String>>>,
}

impl TerminalGuard {
    /// Enters the modes. From now on, panic messages do not appear on the screen.
    pub(super) fn acquire(mouse: bool, kitty_keys: bool, focus: bool) -> io::Result<Self> {
        let panic_message = Arc::new(Mutex::new(None));
        let message = Arc::clone(&panic_message);
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!("{panic}");
            *message.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
        }));
        let mut guard = Self {
            entered: false,
            mouse,
            kitty_keys,
            focus,
            has_title: false,
            panic_message,
        };
        guard.enter()?;
        Ok(guard)
    }

    pub(super) fn enter(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        self.entered = true;
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            event::EnableBracketedPaste,
            terminal::Clear(terminal::ClearType::All),
            cursor::Hide
        )?;
        if self.kitty_keys {
            let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
            execute!(io::stdout(), event::PushKeyboardEnhancementFlags(flags))?;
        }
        if self.focus {
            execute!(io::stdout(), event::EnableFocusChange)?;
        }
        self.set_mouse(self.mouse)
    }

    /// Replaces the title of the terminal, which is saved before the first replacement.
    pub(super) fn set_title(&mut self, title: &str) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_title, true) {
            queue!(io::stdout(), Print("\x1b[22;2t"))?;
        }
        execute!(io::stdout(), Print(format!("\x1b]2;{title}\x1b\\")))
    }

    /// Restores the saved title. It is cleared first for terminals that save no title.
    pub(super) fn restore_title(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_title) {
            execute!(io::stdout(), Print("\x1b]2;\x1b\\\x1b[23;2t"))?;
        }
        Ok(())
    }

    /// Enables or disables mouse reports. Movements are not reported, so that they do not wake an
    /// idle console.
    pub(super) fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        if on {
            execute!(io::stdout(), Print(CLICKS_AND_WHEEL))
        } else {
            execute!(io::stdout(), event::DisableMouseCapture)
        }
    }

    /// Restores the terminal. Continues after a failure, to restore as much as possible.
    pub(super) fn restore(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.entered) {
            return Ok(());
        }
        let title = self.restore_title();
        let keys = if self.kitty_keys {
            execute!(io::stdout(), event::PopKeyboardEnhancementFlags)
        } else {
            Ok(())
        };
        let modes = execute!(
            io::stdout(),
            EndSynchronizedUpdate,
            ResetColor,
            event::DisableBracketedPaste,
            event::DisableFocusChange,
            event::DisableMouseCapture,
            LeaveAlternateScreen,
            cursor::Show
        );
        let raw = terminal::disable_raw_mode();
        raw.and(title).and(keys).and(modes)
    }

    /// Starts a synchronized update, so that a frame is shown as a whole.
    pub(super) fn begin_frame() -> io::Result<()> {
        queue!(io::stdout(), BeginSynchronizedUpdate)
    }

    pub(super) fn end_frame() -> io::Result<()> {
        execute!(io::stdout(), EndSynchronizedUpdate)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        // A failure is ignored: it cannot be reported if the terminal is closed.
        let _gone = self.restore();
        if std::thread::panicking() {
            let panic_message = self
                .panic_message
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let words = panic_message.unwrap_or_else(|| "internal error in the console".to_owned());
            let _gone = writeln!(io::stderr(), "{words}");
        } else {
            drop(std::panic::take_hook());
        }
    }
}
