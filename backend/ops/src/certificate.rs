//! Reports the expiry and renewal of the listeners' certificate as an event of the service itself.

use std::{sync::Arc, time::Duration};

use bellwether_process::listen::Tls;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, DAY_MS, to_millis},
    domain::{IncomingEvent, Severity, own_event::CERTIFICATE_ENDS},
    error::Error,
    find,
    intake::Intake,
    store::Store,
};

/// Interval between checks, in addition to those at each renewal.
const INTERVAL: Duration = Duration::from_secs(3_600);
/// Severity by days left before the expiry, most severe first.
const LEVELS: [(i64, Severity); 4] = [
    (0, Severity::Critical),
    (1, Severity::Critical),
    (7, Severity::Error),
    (30, Severity::Warning),
];

#[derive(Debug)]
pub struct CertificateWatch {
    store: Store,
    clock: Arc<dyn Clock>,
    intake: Intake,
    /// End and level of the certificate last reported; `None` before the first report.
    reported: Option<(i64, Option<i64>)>,
}

impl CertificateWatch {
    pub fn new(store: Store, clock: Arc<dyn Clock>, intake: Intake) -> Self {
        Self {
            store,
            clock,
            intake,
            reported: None,
        }
    }

    /// Checks every hour and at each renewal, until shutdown.
    pub async fn run(mut self, mut tls: Tls, shutdown: CancellationToken) {
        loop {
            let next_ms = self.clock.now_ms().saturating_add(to_millis(INTERVAL));
            let end_ms = tls.borrow_and_update().end_ms;
            if let Err(error) = self.check(end_ms).await {
                // If the certificate still expires soon, the next check reports it again.
                tracing::warn!(%error, "failed to report the certificate's expiry");
            }
            tokio::select! {
                () = self.clock.wait_until(next_ms) => {}
                Ok(()) = tls.changed() => {}
                () = shutdown.cancelled() => return,
            }
        }
    }

    async fn check(&mut self, end_ms: i64) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let left_ms = end_ms.saturating_sub(now_ms);
        let level = LEVELS.iter().find(|(days, _)| left_ms <= days * DAY_MS);
        let reported = (end_ms, level.map(|(days, _)| *days));
        if self.reported == Some(reported) {
            return Ok(());
        }
        let event = certificate_event(level.map(|(_, severity)| *severity), end_ms, now_ms);
        if find::has_effect(&self.store, &event).await? {
            self.intake.submit_internal(event, Vec::new()).await?;
        }
        self.reported = Some(reported);
        Ok(())
    }
}

/// Creates the event about a certificate. Without a severity, the certificate is not about to
/// expire.
fn certificate_event(severity: Option<Severity>, end_ms: i64, now_ms: i64) -> IncomingEvent {
    let end = jiff::Timestamp::from_millisecond(end_ms)
        .map_or_else(|_out_of_range| "never".to_owned(), |end| end.to_string());
    let event = match severity {
        None => {
            let summary = format!("the certificate was renewed and is valid until {end}");
            CERTIFICATE_ENDS.closed([], summary, now_ms)
        }
        Some(severity) => {
            let verb = if end_ms <= now_ms {
                "expired"
            } else {
                "expires"
            };
            let summary = format!("the certificate {verb} at {end}");
            CERTIFICATE_ENDS.opened([], severity, summary, now_ms)
        }
    };
    IncomingEvent {
        body: "Clients then reject the connection. Replace the files of `tls_cert` and `tls_key`: \
               they are reloaded without a restart."
            .into(),
        ..event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        domain::Status,
        samples::{self, START_MS},
    };

    #[tokio::test]
    async fn certificate_expiry_is_reported_per_level_and_closed_on_renewal() {
        let store = Store::in_memory();
        let (deciding, clock) = samples::deciding(store.clone()).await;
        let (intake, _guard) = samples::intake(&deciding);
        let mut watch = CertificateWatch::new(store.clone(), clock.clone(), intake);
        let day = Duration::from_secs(24 * 3_600);
        let (end_ms, renewed_ms) = (START_MS + 40 * DAY_MS, START_MS + 100 * DAY_MS);
        let mut reported = Vec::new();
        // Days before the end: 40, 30, 29, 7, 1, 0, one day after the end, and the renewal.
        let steps = [
            (0, end_ms),
            (10, end_ms),
            (1, end_ms),
            (22, end_ms),
            (6, end_ms),
        ];
        let later = [(1, end_ms), (1, end_ms), (0, renewed_ms), (1, renewed_ms)];
        for (days, end_ms) in steps.into_iter().chain(later) {
            clock.advance(day * days);
            watch.check(end_ms).await.unwrap();
            let newest = find::newest_occurrence(&store, CERTIFICATE_ENDS.id([]))
                .await
                .unwrap();
            reported.push(newest.map(|it| (it.status, it.severity, it.count)));
        }
        let (open, closed) = (Status::Open, Status::Closed);
        let (error, critical) = (Severity::Error, Severity::Critical);
        let expected = [
            None,
            Some((open, Severity::Warning, 1)),
            Some((open, Severity::Warning, 1)),
            Some((open, error, 2)),
            Some((open, critical, 3)),
            Some((open, critical, 4)),
            Some((open, critical, 4)),
            Some((closed, critical, 5)),
            Some((closed, critical, 5)),
        ];
        assert_eq!(reported, expected);
    }
}
