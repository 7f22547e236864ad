//! The progress bar of a command, which is only drawn on a terminal.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

const BAR_COLUMNS: u64 = 30;
const INTERVAL: Duration = Duration::from_millis(100);

/// A progress bar on standard error; it is erased when dropped.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    is_shown: bool,
    drawn: Mutex<Option<Instant>>,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            is_shown: io::stderr().is_terminal(),
            drawn: Mutex::new(None),
        }
    }

    /// Updates the bar, at most once per interval.
    pub(crate) fn print(&self, done: u64, total: u64) {
        if !self.is_shown {
            return;
        }
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if drawn.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        *drawn = Some(Instant::now());
        drop(write!(
            io::stderr(),
            "\r{}",
            progress_line(self.what, done, total)
        ));
        drop(io::stderr().flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let drawn = self.drawn.get_mut().unwrap_or_else(PoisonError::into_inner);
        if drawn.is_some() {
            drop(write!(io::stderr(), "\r\x1b[K"));
        }
    }
}

fn progress_line(what: &str, done: u64, total: u64) -> String {
    let done = done.min(total);
    let share = |of: u64| (u128::from(done) * u128::from(of)) / u128::from(total.max(1));
    let filled = usize::try_from(share(BAR_COLUMNS)).unwrap_or_default();
    let bar: String = (0..usize::try_from(BAR_COLUMNS).unwrap_or_default())
        .map(|column| if column < filled { '#' } else { '-' })
        .collect();
    format!("{what} [{bar}] {:>3} %", share(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_bar_fills_and_stops_at_100_percent() {
        assert_eq!(
            progress_line("check", 0, 0),
            "check [------------------------------]   0 %"
        );
        assert_eq!(
            progress_line("check", 1, 2),
            "check [###############---------------]  50 %"
        );
        assert_eq!(progress_line("check", 9, 2), progress_line("check", 2, 2));
        assert!(progress_line("check", 2, 2).ends_with("] 100 %"));
    }
}
