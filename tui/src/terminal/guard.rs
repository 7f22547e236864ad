//! Every mode of the terminal in one place: entered together, undone together, on every way out.

use std::{
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use crossterm::{
    cursor, event, execute, queue,
    style::ResetColor,
    terminal::{
        self, BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen,
        LeaveAlternateScreen,
    },
};

/// Holds the terminal. Dropping it gives the terminal back as it was.
pub(super) struct Guard {
    entered: bool,
    /// What a panic said, to be told when the screen is gone.
    fault: Arc<Mutex<Option<String>>>,
}

impl Guard {
    /// Takes the terminal, and keeps panics of any task off the screen from now on.
    pub(super) fn take() -> io::Result<Self> {
        let fault = Arc::new(Mutex::new(None));
        let told = Arc::clone(&fault);
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!("{panic}");
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic.to_string());
        }));
        let mut guard = Self {
            entered: false,
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
        )
    }

    /// Gives the terminal back. Goes on after a failure, so that as much as can be is undone.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.entered) {
            return Ok(());
        }
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
        terminal::disable_raw_mode().and(modes)
    }

    /// The bytes of a frame are shown at once.
    pub(super) fn begin_frame() -> io::Result<()> {
        queue!(io::stdout(), BeginSynchronizedUpdate)
    }

    pub(super) fn end_frame() -> io::Result<()> {
        execute!(io::stdout(), EndSynchronizedUpdate)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The terminal may be gone; there is nobody left to tell.
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
