//! The service manager that started this process, such as systemd: it is notified of the state.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time;

/// The service manager; without one, nothing is sent.
pub(crate) struct Manager {
    /// How often it wants a sign of life.
    pulse: Option<Duration>,
}

impl Manager {
    /// The one whose socket the environment names.
    pub(crate) fn of_this_process() -> Self {
        // Half of the time after which it takes the process for dead.
        let pulse = sd_notify::watchdog_enabled().map(|deadline| deadline / 2);
        Self { pulse }
    }

    /// Everything answers.
    pub(crate) fn ready() {
        tell(&[NotifyState::Ready]);
    }

    /// Files are read again; [`Self::ready`] ends it.
    pub(crate) fn reloading() {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "cannot notify the service manager"),
        }
    }

    /// What is under way is drained.
    pub(crate) fn stopping() {
        tell(&[NotifyState::Stopping]);
    }

    /// The loop that serves goes round.
    pub(crate) fn sign_of_life() {
        tell(&[NotifyState::Watchdog]);
    }

    /// Waits until the next sign of life is due; for ever when none is wanted.
    pub(crate) async fn next_sign_of_life(&self) {
        match self.pulse {
            Some(pulse) => time::sleep(pulse).await,
            None => std::future::pending().await,
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
