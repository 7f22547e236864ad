//! What the mover is asked to do, and what it says of it.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::fault::EngineError;

/// When a move that failed is tried again; each time after twice as long,
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// but never after longer than this.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// How long what is not urgent rests after it failed.
const SPARE_REST: Duration = Duration::from_secs(30);

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoverCommand {
    /// Open the file again after an error.
    Reopen,
    /// Move what is in memory.
    Move,
    /// Whatever is not urgent.
    Spare,
    /// Close the file; nothing comes after it.
    Close,
}

/// Commands of one mover.
#[derive(Debug, Default)]
pub(super) struct MoverCommands {
    state: Mutex<CommandState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CommandState {
    reopen: bool,
    /// How often the file was opened again, or failed to be.
    reopenings: u64,
    is_moving: bool,
    /// Why it could not be moved the last time.
    stuck: Option<Stuck>,
    spare_rests_until: Option<Instant>,
    /// Whether commands are still carried out, and why not.
    ending: Ending,
}

/// Whether commands are still carried out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// They are.
    #[default]
    Open,
    /// What is left is done, then the file is closed.
    Closing,
    /// No commands are carried out any more.
    Gone,
}

/// Why something could not be moved.
#[derive(Debug)]
struct Stuck {
    why: String,
    is_full: bool,
    /// When it is tried again, and how long after the last time.
    retry_at: Instant,
    after: Duration,
}

impl MoverCommands {
    fn state(&self) -> MutexGuard<'_, CommandState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut CommandState)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, CommandState>,
        until: Option<Instant>,
    ) -> MutexGuard<'a, CommandState> {
        match until {
            None => self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                let waited = self.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        }
    }

    /// Waits for something to do; what is not urgent only when there is some.
    pub(super) fn next(&self, has_spare: bool) -> MoverCommand {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let retry_at = state.stuck.as_ref().map(|stuck| stuck.retry_at);
            let rests_until = state.spare_rests_until.filter(|until| *until > now);
            if std::mem::take(&mut state.reopen) {
                return MoverCommand::Reopen;
            }
            if state.is_moving && retry_at.is_none_or(|at| at <= now) {
                return MoverCommand::Move;
            }
            if state.ending == Ending::Closing {
                return MoverCommand::Close;
            }
            if has_spare && rests_until.is_none() {
                return MoverCommand::Spare;
            }
            let until = [retry_at, rests_until.filter(|_| has_spare)];
            let until = until.into_iter().flatten().min();
            state = self.wait(state, until);
        }
    }

    /// There is something to move.
    pub(super) fn begin_move(&self) {
        self.change(|state| state.is_moving = true);
    }

    /// It was moved.
    pub(super) fn moved(&self) {
        self.change(|state| {
            state.is_moving = false;
            state.stuck = None;
        });
    }

    /// It could not be moved, and is tried again.
    pub(super) fn stuck(&self, error: &EngineError) {
        let is_full = matches!(error, EngineError::Full(_));
        let why = match error {
            EngineError::Full(why) | EngineError::Unavailable(why) => why.clone(),
            other => other.to_string(),
        };
        self.change(|state| {
            let before = state.stuck.take();
            let after = before.map_or(RETRY_FIRST, |before| RETRY_MAX.min(before.after * 2));
            state.stuck = Some(Stuck {
                why,
                is_full,
                retry_at: Instant::now() + after,
                after,
            });
        });
    }

    /// What is not urgent failed.
    pub(super) fn rest(&self) {
        let until = Instant::now() + SPARE_REST;
        self.change(|state| state.spare_rests_until = Some(until));
    }

    /// Waits until nothing is being moved.
    ///
    /// # Errors
    /// When it cannot be moved now.
    pub(super) fn wait_until_moved(&self) -> Result<(), EngineError> {
        let mut state = self.state();
        while state.is_moving {
            if state.ending == Ending::Gone {
                return Err(EngineError::Unavailable("it is closed".into()));
            }
            match &state.stuck {
                Some(stuck) if stuck.is_full => return Err(EngineError::Full(stuck.why.clone())),
                Some(stuck) => return Err(EngineError::Unavailable(stuck.why.clone())),
                None => state = self.wait(state, None),
            }
        }
        Ok(())
    }

    /// Has the file be opened again.
    pub(super) fn ask_to_reopen(&self) {
        self.change(|state| state.reopen = true);
    }

    /// Has the file be opened again, and waits for it.
    pub(super) fn reopen(&self) {
        let mut state = self.state();
        let before = state.reopenings;
        state.reopen = true;
        self.changed.notify_all();
        while state.reopenings == before && state.ending != Ending::Gone {
            state = self.wait(state, None);
        }
    }

    /// The file was opened again, or could not be.
    pub(super) fn reopened(&self) {
        self.change(|state| state.reopenings += 1);
    }

    /// Has the file be closed once all is moved that can be.
    pub(super) fn close(&self) {
        self.change(|state| {
            if state.ending == Ending::Open {
                state.ending = Ending::Closing;
            }
        });
    }

    /// No commands are carried out any more.
    pub(super) fn abandon(&self) {
        self.change(|state| state.ending = Ending::Gone);
    }
}
