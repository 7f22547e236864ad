//! The mover's commands and its status.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::error::EngineError;

/// First delay before a failed move is retried; doubled each time, up to [`RETRY_MAX`].
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// Pause of background work after a failure.
const BACKGROUND_PAUSE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoverCommand {
    Reopen,
    Move,
    Spare,
    /// Close the file; the last command.
    Close,
}

#[derive(Debug, Default)]
pub(super) struct MoverCommands {
    state: Mutex<CommandState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CommandState {
    reopen: bool,
    reopenings: u64,
    is_moving: bool,
    stuck: Option<StallReason>,
    background_paused_until: Option<Instant>,
    ending: ShutdownState,
}

/// Whether commands are still executed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ShutdownState {
    #[default]
    Open,
    /// Remaining work is completed, then the file is closed.
    Closing,
    Ended,
}

#[derive(Debug)]
struct StallReason {
    why: String,
    is_full: bool,
    /// Time of the next attempt, and its delay after the previous attempt.
    retry_at: Instant,
    after: Duration,
}

impl MoverCommands {
    fn lock_state(&self) -> MutexGuard<'_, CommandState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut CommandState)) {
        change(&mut self.lock_state());
        self.changed.notify_all();
    }

    fn wait_for_change<'a>(
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

    /// Waits for the next task. Background work is only returned if `has_work`.
    pub(super) fn next_command(&self, has_work: bool) -> MoverCommand {
        let mut state = self.lock_state();
        loop {
            let now = Instant::now();
            let retry_at = state.stuck.as_ref().map(|stuck| stuck.retry_at);
            let rests_until = state.background_paused_until.filter(|until| *until > now);
            if std::mem::take(&mut state.reopen) {
                return MoverCommand::Reopen;
            }
            if state.is_moving && retry_at.is_none_or(|at| at <= now) {
                return MoverCommand::Move;
            }
            if state.ending == ShutdownState::Closing {
                return MoverCommand::Close;
            }
            if has_work && rests_until.is_none() {
                return MoverCommand::Spare;
            }
            let until = [retry_at, rests_until.filter(|_| has_work)];
            let until = until.into_iter().flatten().min();
            state = self.wait_for_change(state, until);
        }
    }

    pub(super) fn begin_move(&self) {
        self.update(|state| state.is_moving = true);
    }

    pub(super) fn report_moved(&self) {
        self.update(|state| {
            state.is_moving = false;
            state.stuck = None;
        });
    }

    pub(super) fn report_stuck(&self, error: &EngineError) {
        let is_full = matches!(error, EngineError::Full(_));
        let why = match error {
            EngineError::Full(why) | EngineError::Unavailable(why) => why.clone(),
            other => other.to_string(),
        };
        self.update(|state| {
            let before = state.stuck.take();
            let after = before.map_or(RETRY_FIRST, |before| RETRY_MAX.min(before.after * 2));
            state.stuck = Some(StallReason {
                why,
                is_full,
                retry_at: Instant::now() + after,
                after,
            });
        });
    }

    pub(super) fn report_background_failure(&self) {
        let until = Instant::now() + BACKGROUND_PAUSE;
        self.update(|state| state.background_paused_until = Some(until));
    }

    /// Waits until no move is pending.
    ///
    /// # Errors
    ///
    /// Returns an error if moving currently fails.
    pub(super) fn wait_until_moved(&self) -> Result<(), EngineError> {
        let mut state = self.lock_state();
        while state.is_moving {
            if state.ending == ShutdownState::Ended {
                return Err(EngineError::Unavailable("it is closed".into()));
            }
            match &state.stuck {
                Some(stuck) if stuck.is_full => return Err(EngineError::Full(stuck.why.clone())),
                Some(stuck) => return Err(EngineError::Unavailable(stuck.why.clone())),
                None => state = self.wait_for_change(state, None),
            }
        }
        Ok(())
    }

    pub(super) fn request_reopen(&self) {
        self.update(|state| state.reopen = true);
    }

    pub(super) fn reopen(&self) {
        let mut state = self.lock_state();
        let before = state.reopenings;
        state.reopen = true;
        self.changed.notify_all();
        while state.reopenings == before && state.ending != ShutdownState::Ended {
            state = self.wait_for_change(state, None);
        }
    }

    pub(super) fn report_reopened(&self) {
        self.update(|state| state.reopenings += 1);
    }

    /// Requests that the file be closed after moving as many rows as possible.
    pub(super) fn close(&self) {
        self.update(|state| {
            if state.ending == ShutdownState::Open {
                state.ending = ShutdownState::Closing;
            }
        });
    }

    pub(super) fn report_ended(&self) {
        self.update(|state| state.ending = ShutdownState::Ended);
    }
}
