//! Every mode of the terminal in one place: entered together, undone together, on every way out.

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

/// Asks for presses and the wheel, with coordinates beyond 223.
const CLICKS_AND_WHEEL: &str = "\x1b[?1000h\x1b[?1006h";

/// Holds the terminal. Dropping it gives the terminal back as it was.
pub(super) struct Guard {
    entered: bool,
    /// Whether clicks and the wheel are ours.
    mouse: bool,
    /// Whether the terminal has kitty's keyboard protocol.
    kitty_keys: bool,
    /// The message of a panic, to be printed when the screen is gone.
    fault: Arc<Mutex<Option<String>>>,
}

impl Guard {
    /// Takes the terminal, and keeps panics of any task off the screen from now on.
    pub(super) fn take(mouse: bool, kitty_keys: bool) -> io::Result<Self> {
        let fault = Arc::new(Mutex::new(None));
        let message = Arc::clone(&fault);
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!("{panic}");
            *message.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
        }));
        let mut guard = Self {
            entered: false,
            mouse,
            kitty_keys,
            fault,
        };
        guard.enter()?;
        Ok(guard)
    }

    /// Takes the terminal again.
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

    /// Takes the mouse, or leaves it to the terminal. Movements are not asked for: an idle console
    /// stays idle under a mouse that moves.
    pub(super) fn set_mouse(&mut self, on: bool) -> io::Result<()> {
        self.mouse = on;
        if on {
            execute!(io::stdout(), Print(CLICKS_AND_WHEEL))
        } else {
            execute!(io::stdout(), event::DisableMouseCapture)
        }
    }

    /// Gives the terminal back. Continues after a failure, so that as much as can be is undone.
    pub(super) fn leave(&mut self) -> io::Result<()> {
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

    /// The bytes of a frame are shown together.
    pub(super) fn begin_frame() -> io::Result<()> {
        queue!(io::stdout(), BeginSynchronizedUpdate)
    }

    pub(super) fn end_frame() -> io::Result<()> {
        execute!(io::stdout(), EndSynchronizedUpdate)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The terminal may be gone; there is no one left to notify.
        let _gone = self.leave();
        if std::thread::panicking() {
            let fault = self
                .fault
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let words = fault.unwrap_or_else(|| "a fault in the console".to_owned());
            let _gone = writeln!(io::stderr(), "{words}");
        } else {
            drop(std::panic::take_hook());
        }
    }
}
