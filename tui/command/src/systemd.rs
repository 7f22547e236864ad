//! Notifies systemd, or another service manager with its protocol, of the state of the service.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time;

/// Notifies the service manager; has no effect without one.
pub(crate) struct Notifier {
    /// Interval between watchdog pings; `None` if the manager has no watchdog.
    pulse: Option<Duration>,
}

impl Notifier {
    pub(crate) fn from_environment() -> Self {
        // Pings at half of the time after which the manager restarts the process.
        let pulse = sd_notify::watchdog_enabled().map(|deadline| deadline / 2);
        Self { pulse }
    }

    pub(crate) fn notify_ready() {
        send_state(&[NotifyState::Ready]);
    }

    /// Reports the start of a reload; [`Self::notify_ready`] reports its end.
    pub(crate) fn notify_reloading() {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send_state(&[NotifyState::Reloading, now]),
            Err(error) => tracing::warn!(%error, "failed to notify the service manager"),
        }
    }

    pub(crate) fn notify_stopping() {
        send_state(&[NotifyState::Stopping]);
    }

    pub(crate) fn watchdog_ping() {
        send_state(&[NotifyState::Watchdog]);
    }

    /// Waits until the next ping is due; forever without a watchdog.
    pub(crate) async fn next_watchdog_ping(&self) {
        match self.pulse {
            Some(pulse) => time::sleep(pulse).await,
            None => std::future::pending().await,
        }
    }
}

fn send_state(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "failed to notify the service manager");
    }
}
