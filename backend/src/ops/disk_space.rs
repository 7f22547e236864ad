//! Says aloud, as an event of the service's own, that the disk is nearly full, and that it is not
//! any more.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::{Clock, millis},
    domain::{IncomingEvent, Severity, Status},
    error::Error,
    limits::{DISK_NEARLY_FULL_FLOORS, DISK_SPACIOUS_FLOORS},
    ops::{find, intake::Intake},
    store::{Store, engine::FreeSpace},
};

/// How often to look.
const INTERVAL: Duration = Duration::from_secs(5);
const MEBIBYTE: u64 = 1024 * 1024;

/// Watches the free space on the store's disk.
#[derive(Debug)]
pub struct DiskSpaceWatch {
    store: Store,
    clock: Arc<dyn Clock>,
    intake: Intake,
    /// What was reported last; none before anything was.
    said: Option<Level>,
}

/// How full the disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Spacious,
    NearlyFull,
    Full,
}

impl Level {
    /// None between two levels: then it stays as it was.
    fn of(space: FreeSpace) -> Option<Self> {
        let floors = |count| space.floor_bytes.saturating_mul(count);
        if space.free_bytes < space.floor_bytes {
            Some(Self::Full)
        } else if space.free_bytes < floors(DISK_NEARLY_FULL_FLOORS) {
            Some(Self::NearlyFull)
        } else {
            (space.free_bytes >= floors(DISK_SPACIOUS_FLOORS)).then_some(Self::Spacious)
        }
    }
}

impl DiskSpaceWatch {
    /// Watches for a store, and reports it through an intake.
    pub fn new(store: Store, clock: Arc<dyn Clock>, intake: Intake) -> Self {
        Self {
            store,
            clock,
            intake,
            said: None,
        }
    }

    /// Looks every few seconds until shutdown.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let work = async {
            loop {
                let next_ms = self.clock.now_ms().saturating_add(millis(INTERVAL));
                if let Some(space) = self.store.engine().free_space()
                    && let Err(error) = self.look(space).await
                {
                    // It is reported at the next look, if it still holds.
                    let FreeSpace {
                        free_bytes,
                        floor_bytes,
                    } = space;
                    tracing::warn!(%error, free_bytes, floor_bytes, "disk usage was not reported");
                }
                self.clock.wait_until(next_ms).await;
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    async fn look(&mut self, space: FreeSpace) -> Result<(), Error> {
        let Some(level) = Level::of(space).filter(|level| self.said != Some(*level)) else {
            return Ok(());
        };
        let event = event(level, space, self.clock.now_ms());
        let newest = find::newest(&self.store, event.id()).await?;
        let is_open = newest.is_some_and(|newest| newest.status != Status::Closed);
        if level != Level::Spacious || is_open {
            self.intake.submit_internal(event, Vec::new()).await?;
        }
        self.said = Some(level);
        Ok(())
    }
}

fn event(level: Level, space: FreeSpace, now_ms: i64) -> IncomingEvent {
    let (severity, status, what) = match level {
        Level::Spacious => (None, Status::Closed, "the disk has space again"),
        Level::NearlyFull => (
            Some(Severity::Error),
            Status::Open,
            "the disk is nearly full",
        ),
        Level::Full => (
            Some(Severity::Critical),
            Status::Open,
            "the disk is full: new events are refused",
        ),
    };
    let mebibytes = |bytes: u64| bytes / MEBIBYTE;
    IncomingEvent {
        summary: format!("{what} ({} MiB free)", mebibytes(space.free_bytes)),
        body: format!(
            "New events are refused while less than {} MiB are free (`store.free_space_floor`); \
             reads, acknowledgements, deliveries and deletes continue.",
            mebibytes(space.floor_bytes)
        ),
        severity,
        status: Some(status),
        ..IncomingEvent::own("disk nearly full", "disk-nearly-full", [], now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::samples;

    #[tokio::test]
    async fn a_disk_that_fills_is_said_once_a_level_and_closed_when_there_is_space() {
        let store = samples::store();
        let (deciding, clock) = samples::deciding(store.clone()).await;
        let (intake, _guard) = samples::intake(&deciding);
        let mut watch = DiskSpaceWatch::new(store.clone(), clock as _, intake);
        let free = [100, 30, 19, 19, 25, 9, 19, 25, 30, 100, 25, 5];
        let mut said = Vec::new();
        for free_mebibytes in free {
            let space = FreeSpace {
                free_bytes: free_mebibytes * MEBIBYTE,
                floor_bytes: 10 * MEBIBYTE,
            };
            watch.look(space).await.unwrap();
            let newest = find::newest(&store, event(Level::Full, space, 0).id()).await;
            let newest = newest.unwrap();
            said.push(newest.map(|it| (it.number, it.status, it.severity, it.count)));
        }
        let (open, closed) = (Status::Open, Status::Closed);
        let (error, critical) = (Severity::Error, Severity::Critical);
        let expected = [
            None,
            None,
            Some((1, open, error, 1)),
            Some((1, open, error, 1)),
            Some((1, open, error, 1)),
            Some((1, open, critical, 2)),
            Some((1, open, error, 3)),
            Some((1, open, error, 3)),
            Some((1, closed, error, 4)),
            Some((1, closed, error, 4)),
            Some((1, closed, error, 4)),
            Some((2, open, critical, 1)),
        ];
        assert_eq!(said, expected);
    }
}
