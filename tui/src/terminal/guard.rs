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
pub(super) struct TerminalGuard {
    entered: bool,
    mouse: bool,
    kitty_keys: bool,
    /// The message of a panic, printed after the screen is restored.
    panic_message: Arc<Mutex<Option<String>>>,
}

impl TerminalGuard {
    /// Enters the modes. From now on, panic messages do not appear on the screen.
    pub(super) fn acquire(mouse: bool, kitty_keys: bool) -> io::Result<Self> {
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
        self.set_mouse(self.mouse)
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
        terminal::disable_raw_mode().and(keys).and(modes)
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
