//! Watches the state of the store: logs changes, probes a store whose writes fail, and opens an
//! event when the disk is nearly full.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    domain::{IncomingEvent, Settings, Severity, own_event::DISK_NEARLY_FULL},
    error::Error,
    find,
    intake::Intake,
    limits::{DISK_NEARLY_FULL_FLOORS, DISK_SPACIOUS_FLOORS},
    repeat::repeat_until_shutdown,
    store::{
        Lane, Store,
        engine::{Condition, FreeSpace},
    },
};

const INTERVAL: Duration = Duration::from_secs(1);
/// Minimum time between two log lines about the state of the store.
const LOGGED_EVERY: Duration = Duration::from_secs(60);
const MEBIBYTE: u64 = 1024 * 1024;

#[derive(Debug)]
pub struct StoreWatch {
    store: Store,
    clock: Arc<dyn Clock>,
    intake: Intake,
    condition: watch::Sender<Condition>,
    /// The last logged state and its time; `None` before the first.
    logged: Option<(&'static str, Duration)>,
    /// The level last reported by an event; `None` before the first check.
    said: Option<SpaceLevel>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpaceLevel {
    Spacious,
    NearlyFull,
    Full,
}

impl SpaceLevel {
    /// Returns the level. `None` between two levels or if the level is unknown; the current one is
    /// then kept.
    fn from_condition(condition: &Condition, space: Option<FreeSpace>) -> Option<Self> {
        let is_above =
            |it: FreeSpace, floors| it.free_bytes >= it.floor_bytes.saturating_mul(floors);
        match (condition, space) {
            (Condition::Short(_) | Condition::Full(_), _) => Some(Self::Full),
            (Condition::Writable, Some(space)) if !is_above(space, DISK_NEARLY_FULL_FLOORS) => {
                Some(Self::NearlyFull)
            }
            (Condition::Writable, Some(space)) => {
                is_above(space, DISK_SPACIOUS_FLOORS).then_some(Self::Spacious)
            }
            (Condition::Writable, None) => Some(Self::Spacious),
            _ => None,
        }
    }
}

impl StoreWatch {
    pub fn new(store: Store, clock: Arc<dyn Clock>, intake: Intake) -> Self {
        Self {
            store,
            clock,
            intake,
            condition: watch::Sender::default(),
            logged: None,
            said: None,
        }
    }

    pub fn condition(&self) -> watch::Receiver<Condition> {
        self.condition.subscribe()
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let clock = Arc::clone(&self.clock);
        // If the disk is still full, the next check reports it.
        repeat_until_shutdown(
            self,
            &*clock,
            INTERVAL,
            shutdown,
            "failed to report the full disk",
            |it| Box::pin(it.check()),
        )
        .await;
    }

    async fn check(&mut self) -> Result<(), Error> {
        let mut condition = self.store.engine().condition();
        if condition.must_be_cleared_by_write() {
            self.probe_write().await;
            condition = self.store.engine().condition();
        }
        self.log_change(&condition);
        self.condition.send_if_modified(|before| {
            let is_other = *before != condition;
            before.clone_from(&condition);
            is_other
        });
        self.report(&condition).await
    }

    /// Performs a write without effect, to probe a store that nothing else writes to.
    async fn probe_write(&self) {
        let written = async {
            let mut changes = self.store.new_changes();
            if let Some(stored) = self.store.get::<Settings>(Settings::NAME.into()).await? {
                changes.check(&stored);
                self.store.apply(Lane::Admin, changes).await?;
            }
            Ok::<_, Error>(())
        };
        // The result is ignored, because the engine has recorded it.
        drop(tokio::time::timeout(INTERVAL, written).await);
    }

    /// Logs a change of the state, at most once a minute.
    fn log_change(&mut self, condition: &Condition) {
        let passed = self.clock.elapsed();
        let (last, is_early) = match self.logged {
            None => (Condition::default().as_str(), false),
            Some((word, at)) => (word, passed.saturating_sub(at) < LOGGED_EVERY),
        };
        if is_early || last == condition.as_str() {
            return;
        }
        if condition.accepts_events() {
            tracing::info!("the store accepts events again");
        } else {
            tracing::error!("{condition}");
        }
        self.logged = Some((condition.as_str(), passed));
    }

    async fn report(&mut self, condition: &Condition) -> Result<(), Error> {
        let space = self.store.engine().free_space();
        let level =
            SpaceLevel::from_condition(condition, space).filter(|level| self.said != Some(*level));
        let Some(level) = level else {
            return Ok(());
        };
        let event = disk_space_event(level, space, self.clock.now_ms());
        if find::has_effect(&self.store, &event).await? {
            self.intake.submit_store_event(event).await?;
        }
        self.said = Some(level);
        Ok(())
    }
}

fn disk_space_event(level: SpaceLevel, space: Option<FreeSpace>, now_ms: i64) -> IncomingEvent {
    let (severity, what) = match level {
        SpaceLevel::Spacious => (None, "the disk has free space again"),
        SpaceLevel::NearlyFull => (Some(Severity::Error), "the disk is nearly full"),
        SpaceLevel::Full => (
            Some(Severity::Critical),
            "the disk is full: new events are refused",
        ),
    };
    let mebibytes = |bytes: u64| bytes / MEBIBYTE;
    let (summary, floor) = match space {
        Some(space) => (
            format!("{what} ({} MiB free)", mebibytes(space.free_bytes)),
            format!(
                "while less than {} MiB are free (`store.free_space_floor`)",
                mebibytes(space.floor_bytes)
            ),
        ),
        None => (
            what.to_owned(),
            "while the database has no space".to_owned(),
        ),
    };
    let event = match severity {
        Some(severity) => DISK_NEARLY_FULL.opened([], severity, summary, now_ms),
        None => DISK_NEARLY_FULL.closed([], summary, now_ms),
    };
    IncomingEvent {
        body: format!(
            "Events from senders are refused {floor}. Pending messages, escalations, releases and \
             closings continue while a quarter of that is free; reads, acknowledgements, \
             deliveries and deletes continue as long as anything can be written.",
        ),
        ..event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        clock::ManualClock,
        domain::{SharedSettings, Status},
        samples,
        store::{
            Sealer,
            engine::{EngineError, memory::MemoryEngine},
        },
    };

    struct TestWorld {
        watch: StoreWatch,
        engine: Arc<MemoryEngine>,
        store: Store,
        clock: Arc<ManualClock>,
        intake: Intake,
        _guard: tokio_util::sync::DropGuard,
    }

    impl TestWorld {
        async fn new() -> Self {
            let engine = Arc::new(MemoryEngine::new());
            let store = Store::new(
                Arc::clone(&engine) as _,
                Arc::new(Sealer::with_random_key()),
            );
            samples::save_settings(&store, SharedSettings::default()).await;
            let (deciding, clock) = samples::deciding(store.clone()).await;
            let (intake, guard) = samples::intake(&deciding);
            Self {
                watch: StoreWatch::new(store.clone(), Arc::clone(&clock) as _, intake.clone()),
                engine,
                store,
                clock,
                intake,
                _guard: guard,
            }
        }
    }

    fn free_space(free_mebibytes: u64) -> FreeSpace {
        FreeSpace {
            free_bytes: free_mebibytes * MEBIBYTE,
            floor_bytes: 10 * MEBIBYTE,
        }
    }

    #[tokio::test]
    async fn low_disk_space_is_reported_once_per_level() {
        let TestWorld {
            mut watch,
            engine,
            store,
            _guard,
            ..
        } = TestWorld::new().await;
        let free = [100, 30, 19, 19, 25, 9, 19, 25, 30, 100, 25, 5, 0, 100];
        let mut said = Vec::new();
        for free_mebibytes in free {
            engine.set_free_space(Some(free_space(free_mebibytes)));
            watch.check().await.unwrap();
            let newest =
                find::newest_occurrence(&store, disk_space_event(SpaceLevel::Full, None, 0).id())
                    .await;
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
            Some((2, open, critical, 1)),
            Some((2, closed, critical, 2)),
        ];
        assert_eq!(said, expected);
    }

    #[tokio::test]
    async fn senders_are_refused_before_own_events_when_space_runs_short() {
        let TestWorld {
            engine,
            clock,
            intake,
            _guard,
            ..
        } = TestWorld::new().await;
        // Free space, and whether events from senders, own events, and events about the store are
        // accepted.
        for (free, expected) in [
            (10, [true, true, true]),
            (9, [false, true, true]),
            (3, [false, true, true]),
            (1, [false, false, true]),
            (0, [false, false, true]),
        ] {
            engine.set_free_space(Some(free_space(free)));
            let own = |name: &str| {
                let name = format!("{name} {free}");
                IncomingEvent::new_own_event(&name, "own", [], clock.now_ms())
            };
            let host = free.to_string();
            let accepted = tokio::join!(
                intake.submit(vec![samples::event(&host)], None),
                intake.submit_internal(own("own"), Vec::new()),
                intake.submit_store_event(own("store")),
            );
            let accepted = [accepted.0.is_ok(), accepted.1.is_ok(), accepted.2.is_ok()];
            assert_eq!(accepted, expected, "{free} MiB");
        }
    }

    #[tokio::test]
    async fn store_state_follows_writes_and_free_space() {
        let TestWorld {
            mut watch,
            engine,
            clock,
            _guard,
            ..
        } = TestWorld::new().await;
        let condition = watch.condition();
        let mut logged = Vec::new();
        let failure = EngineError::Unavailable("read-only".into());
        for (failure, free, word) in [
            (None, 100, "writable"),
            (Some(&failure), 100, "unwritable"),
            (None, 9, "short"),
            (None, 100, "writable"),
        ] {
            engine.fail_writes(failure);
            engine.set_free_space(Some(free_space(free)));
            drop(watch.check().await);
            assert_eq!(condition.borrow().as_str(), word);
            logged.push(watch.logged.map(|(word, _)| word));
        }
        assert_eq!(logged[1..], [Some("unwritable"); 3], "within a minute");
        clock.advance(LOGGED_EVERY);
        drop(watch.check().await);
        assert_eq!(watch.logged.map(|(word, _)| word), Some("writable"));
    }
}
