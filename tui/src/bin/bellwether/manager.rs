//! State notifications to the service manager that started this process, such as systemd.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time;

/// The service manager; without one, nothing is sent.
pub(crate) struct Manager {
    /// Interval of watchdog notifications; `None` if the watchdog is disabled.
    pulse: Option<Duration>,
}

impl Manager {
    /// Reads the environment that the service manager has set.
    pub(crate) fn of_this_process() -> Self {
        // Half of the watchdog timeout.
        let pulse = sd_notify::watchdog_enabled().map(|deadline| deadline / 2);
        Self { pulse }
    }

    pub(crate) fn ready() {
        tell(&[NotifyState::Ready]);
    }

    /// Notifies that files are being reloaded; [`Self::ready`] ends that state.
    pub(crate) fn reloading() {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "cannot notify the service manager"),
        }
    }

    pub(crate) fn stopping() {
        tell(&[NotifyState::Stopping]);
    }

    pub(crate) fn sign_of_life() {
        tell(&[NotifyState::Watchdog]);
    }

    /// Waits until the next watchdog notification is due; forever if the watchdog is disabled.
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
