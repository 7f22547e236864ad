//! Detects missing beats: opens their events, and closes them after the next beat.

mod outages;
mod windows;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures_util::future::{try_join, try_join_all};
use tokio_util::sync::CancellationToken;
use tracing::error;

use self::windows::ClockSteps;
use super::{alarm, due::stored_window};
use crate::{
    beats::new_expectation,
    clock::to_millis,
    decide::{AlarmFacts, Heartbeats, LoadedHeartbeat},
    decision_context::DecisionContext,
    domain::{
        Expectation, ExpectationState, OpenAlarm, RecordId,
        heartbeat::{Outage, SERVICE},
    },
    drill::DrillWatch,
    error::Error,
    intake::Intake,
    limits::{BEATS_APART, HEARTBEAT_CHECK_INTERVAL, SERVICE_TIME_INTERVAL},
    repeat::repeat_until_shutdown,
    store::{
        Changes, Direction, EngineError, Index, Lane, Store, Stored,
        engine::Range,
        record::{beat_prefix, bytes::Key, start_prefix},
    },
};

const BATCH: usize = 200;

/// Task on the leader that opens and closes the events of heartbeats and drills.
#[derive(Debug)]
pub struct HeartbeatWatch {
    deciding: DecisionContext,
    intake: Intake,
    time: Option<WatchTime>,
    /// Service time of each heartbeat's next check.
    next: HashMap<RecordId, i64>,
    /// The heartbeats whose outdated expectations have been deleted.
    swept: Option<Heartbeats>,
    /// Drills, which are measured in service time as well.
    drills: DrillWatch,
}

/// The checks of heartbeats. They share what they read from the store.
#[derive(Debug)]
struct HeartbeatChecks {
    deciding: DecisionContext,
    intake: Intake,
}

#[derive(Debug, Clone)]
struct WatchTime {
    now_ms: i64,
    at: Duration,
    /// The last stored service time; `None` if an outage since then is not stored yet.
    stored_ms: Option<i64>,
    outages: Vec<Outage>,
    steps: ClockSteps,
}

/// Expectations in a part of the beat index that are late after waiting for some time.
struct WaitingRange {
    place: Vec<u8>,
    length_ms: i64,
    /// Returns the service time from which an expectation waits.
    since: fn(&Expectation) -> Option<i64>,
}

impl HeartbeatWatch {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self {
            drills: DrillWatch::new(deciding.clone(), intake.clone()),
            deciding,
            intake,
            time: None,
            next: HashMap::new(),
            swept: None,
        }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let clock = Arc::clone(&self.deciding.clock);
        repeat_until_shutdown(
            self,
            &*clock,
            BEATS_APART,
            shutdown,
            "failed to check heartbeats",
            |it| Box::pin(it.run_once()),
        )
        .await;
    }

    pub async fn run_once(&mut self) -> Result<(), Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        let heartbeats = snapshot.heartbeats();
        let is_swept = self
            .swept
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, heartbeats));
        let is_used = !heartbeats.is_empty() || self.drills.has_any().await?;
        if !is_used && is_swept {
            return Ok(());
        }
        let is_quiet = snapshot.settings().is_quiet_mode();
        let time = &self.advance_service_time(is_used, is_quiet).await?;
        if is_quiet {
            return Ok(());
        }
        if !is_swept {
            self.sweep_expectations(heartbeats).await?;
            self.next.clear();
            self.swept = Some(Arc::clone(heartbeats));
        }
        let has_news = self.deciding.beats.take_changed_flag();
        let is_stepped = time.steps.stepped_ms > 0;
        let due = heartbeats.iter().filter(|loaded| {
            let next_ms = self.next.get(&loaded.heartbeat.id);
            has_news || is_stepped || next_ms.is_none_or(|it| *it <= time.now_ms)
        });
        let check = |store: Store, loaded: &Arc<LoadedHeartbeat>| {
            let checks = self.checks(store);
            let loaded = Arc::clone(loaded);
            async move {
                let next_ms = checks.check_expectation(&loaded, time).await?;
                Ok::<_, Error>((loaded.heartbeat.id, next_ms))
            }
        };
        let checked = self.deciding.store.read_each(due, check).await?;
        self.next.extend(checked);
        self.drills.run_once(time.now_ms).await
    }

    fn checks(&self, store: Store) -> HeartbeatChecks {
        HeartbeatChecks {
            deciding: self.deciding.with_store(store),
            intake: self.intake.clone(),
        }
    }

    /// Adds the time during which events were accepted since the last pass to the service time, and
    /// stores the service time occasionally.
    async fn advance_service_time(
        &mut self,
        is_stored: bool,
        is_quiet: bool,
    ) -> Result<WatchTime, Error> {
        let DecisionContext {
            store,
            clock,
            beats,
            ..
        } = &self.deciding;
        let passed = clock.elapsed();
        let key = Key::new().id(SERVICE).id(SERVICE).build();
        let mut time = if let Some(time) = &self.time {
            time.clone()
        } else {
            let stored = store.get::<Expectation>(key.clone()).await?;
            WatchTime::after_start(stored.map(|it| it.value), clock.now_ms(), passed)
        };
        let since = passed.saturating_sub(time.at);
        let accepts = store.engine().condition().accepts_events() && !is_quiet;
        time.at = passed;
        if accepts {
            // A suspended process accepted no events during that time.
            time.now_ms = time
                .now_ms
                .saturating_add(to_millis(since.min(SERVICE_TIME_INTERVAL)));
        }
        if !accepts || since > SERVICE_TIME_INTERVAL {
            time.record_outage(to_millis(since));
        }
        time.steps
            .detect_step(clock.now_ms(), to_millis(since), time.now_ms);
        beats.set_leader_time(time.now_ms, passed, !accepts);
        let interval_ms = to_millis(SERVICE_TIME_INTERVAL);
        let is_due = |stored_ms: i64| time.now_ms - stored_ms >= interval_ms;
        if is_stored && accepts && time.stored_ms.is_none_or(is_due) {
            let stored = store.get::<Expectation>(key).await?;
            let next = Expectation {
                last_ms: Some(clock.now_ms()),
                outages: time.outages.clone(),
                ..new_expectation(SERVICE, SERVICE, Vec::new(), time.now_ms)
            };
            let mut changes = store.new_changes();
            match &stored {
                Some(stored) => changes.update(stored, &next),
                None => changes.insert(&next),
            }
            store.apply(Lane::Admin, changes).await?;
            time.stored_ms = Some(time.now_ms);
        }
        self.time = Some(time.clone());
        Ok(time)
    }

    async fn sweep_expectations(&self, heartbeats: &Heartbeats) -> Result<(), Error> {
        let ids = heartbeats.iter().map(|it| it.heartbeat.id);
        let mut retained: HashSet<RecordId> = ids.collect();
        self.deciding.beats.retain(&retained);
        let of_calendars = heartbeats.iter().map(|it| &it.heartbeat);
        let of_calendars = of_calendars.filter(|it| it.has_windows());
        let of_calendars: HashSet<_> = of_calendars.map(|it| it.id).collect();
        let checks = self.checks(self.deciding.store.clone());
        checks
            .sweep_windows(|it| of_calendars.contains(&it))
            .await?;
        retained.insert(SERVICE);
        let store = &self.deciding.store;
        let mut range = Range::with_prefix(&[]);
        loop {
            let found = store
                .page::<Expectation>(range.clone(), Direction::Ascending, 1)
                .await?;
            let Some(found) = found.into_iter().next() else {
                return Ok(());
            };
            let heartbeat = found.value.heartbeat;
            if !retained.contains(&heartbeat) {
                checks
                    .delete_range(
                        Range::with_prefix(&Key::new().id(heartbeat).build()),
                        "the heartbeat was deleted or disabled",
                    )
                    .await?;
            }
            let mut last = Key::new().id(heartbeat).build();
            last.extend([u8::MAX; 17]);
            range.exclude_through(&last);
        }
    }
}

impl HeartbeatChecks {
    async fn delete_range(&self, range: Range, why: &str) -> Result<(), Error> {
        let store = &self.deciding.store;
        loop {
            let found = store
                .page::<Expectation>(range.clone(), Direction::Ascending, BATCH)
                .await?;
            if found.is_empty() {
                return Ok(());
            }
            self.end_expectations(&found, why).await?;
        }
    }

    async fn end_expectations(
        &self,
        found: &[Stored<Expectation>],
        why: &str,
    ) -> Result<(), Error> {
        let mut changes = self.deciding.store.new_changes();
        let open = found.iter().filter_map(|stored| stored.value.open);
        let closed =
            open.map(|open| alarm::close_alarm(&self.deciding, &self.intake, open.event, why));
        try_join_all(closed).await?;
        for stored in found {
            changes.delete(stored);
        }
        self.apply(changes).await
    }

    /// Commits the changes. If a beat conflicts with a change, the next check makes the change
    /// again.
    async fn apply(&self, changes: Changes) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        match self.deciding.store.apply(Lane::Bulk, changes).await {
            Ok(_) | Err(EngineError::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn check_expectation(
        &self,
        loaded: &LoadedHeartbeat,
        time: &WatchTime,
    ) -> Result<i64, Error> {
        let heartbeat = &loaded.heartbeat;
        if heartbeat.by.is_empty() {
            self.create_expectations(loaded, time).await?;
        }
        let silent = async {
            if heartbeat.has_windows() {
                return self.check_window(loaded, time).await;
            }
            let waiting = WaitingRange {
                place: beat_prefix(heartbeat.id, ExpectationState::Awaited).build(),
                length_ms: heartbeat.allowed_silence_ms(),
                since: |it| Some(it.beat_service_ms),
            };
            self.check_waiting(loaded, waiting, time).await
        };
        let running = async {
            let Some(run_ms) = heartbeat.max_run_ms else {
                return Ok(i64::MAX);
            };
            let waiting = WaitingRange {
                place: start_prefix(heartbeat.id).build(),
                length_ms: run_ms,
                since: |it| Some(it.run_in_progress()?.since_service_ms),
            };
            self.check_waiting(loaded, waiting, time).await
        };
        let (next_ms, run_ms) = try_join(silent, running).await?;
        let unreported =
            Range::with_prefix(&beat_prefix(heartbeat.id, ExpectationState::Unreported).build());
        let unreported = self.read_range(unreported).await?.into_iter();
        let reports = unreported.map(|stored| self.try_report(loaded, stored, time));
        try_join_all(reports).await?;
        if !heartbeat.by.is_empty() {
            self.delete_silent(loaded, time).await?;
        }
        Ok(next_ms.min(run_ms))
    }

    async fn check_waiting(
        &self,
        loaded: &LoadedHeartbeat,
        waiting: WaitingRange,
        time: &WatchTime,
    ) -> Result<i64, Error> {
        let all = Range::with_prefix(&waiting.place);
        if time.has_outage_grace_passed(loaded.heartbeat.grace_ms, waiting.length_ms) {
            let until_ms = time.now_ms.saturating_sub(waiting.length_ms);
            let late = Range {
                end: Some(
                    Key::new()
                        .remainder(&waiting.place)
                        .time_ms(until_ms)
                        .build(),
                ),
                ..all.clone()
            };
            let late = self.read_range(late).await?.into_iter();
            try_join_all(late.map(|stored| self.begin_run(loaded, stored, time))).await?;
        }
        let store = &self.deciding.store;
        let (index, ascending) = (Index::ExpectationByBeat, Direction::Ascending);
        let first = store.page_by_index::<Expectation>(index, all, ascending, 1);
        let first = first.await?.into_iter().next();
        let since_ms = first.and_then(|(_, it)| (waiting.since)(&it.value));
        let due_ms = since_ms.map(|it| it.saturating_add(waiting.length_ms));
        let latest_ms = time
            .now_ms
            .saturating_add(to_millis(HEARTBEAT_CHECK_INTERVAL));
        Ok(due_ms.map_or(latest_ms, |it| it.clamp(time.now_ms + 1, latest_ms)))
    }

    async fn delete_silent(&self, loaded: &LoadedHeartbeat, time: &WatchTime) -> Result<(), Error> {
        let heartbeat = &loaded.heartbeat;
        let of = |standing| beat_prefix(heartbeat.id, standing);
        let before_ms = time.now_ms.saturating_sub(heartbeat.forget_ms);
        let forgotten = Range {
            end: Some(of(ExpectationState::Late).time_ms(before_ms).build()),
            ..Range::with_prefix(&of(ExpectationState::Late).build())
        };
        let mut forgotten = self.read_range(forgotten).await?;
        if heartbeat.has_windows() {
            // Keep expectations of windows that are further apart than `forget_ms`.
            forgotten.retain(|it| {
                let open = it.value.open;
                open.is_none_or(|open| open.service_ms <= before_ms)
            });
        }
        self.end_expectations(&forgotten, "no beat for a long time")
            .await
    }

    async fn read_range(&self, range: Range) -> Result<Vec<Stored<Expectation>>, Error> {
        let (index, ascending) = (Index::ExpectationByBeat, Direction::Ascending);
        let store = &self.deciding.store;
        let found = store.page_by_index::<Expectation>(index, range, ascending, BATCH);
        let found = found.await?.into_iter();
        Ok(found.map(|(_, stored)| stored).collect())
    }

    async fn create_expectations(
        &self,
        loaded: &LoadedHeartbeat,
        time: &WatchTime,
    ) -> Result<(), Error> {
        let (id, key) = (loaded.heartbeat.id, loaded.key(&[]));
        let store = &self.deciding.store;
        let found = store.get::<Expectation>(Key::new().id(id).id(key).build());
        if found.await?.is_some() {
            return Ok(());
        }
        let mut changes = store.new_changes();
        changes.insert(&new_expectation(id, key, Vec::new(), time.now_ms));
        self.apply(changes).await
    }

    async fn begin_run(
        &self,
        loaded: &LoadedHeartbeat,
        stored: Stored<Expectation>,
        time: &WatchTime,
    ) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let event = alarm::alarm_event(loaded, &stored.value, AlarmFacts::default(), now_ms).id();
        let next = Expectation {
            open: Some(OpenAlarm {
                event,
                service_ms: time.now_ms,
                is_failure: false,
                is_reported: false,
            }),
            ..stored.value.clone()
        };
        let mut changes = self.deciding.store.new_changes();
        changes.update(&stored, &next);
        self.apply(changes).await
    }

    /// Like [`HeartbeatChecks::report_alarm`], but a rejected event does not block the others.
    async fn try_report(
        &self,
        loaded: &LoadedHeartbeat,
        stored: Stored<Expectation>,
        time: &WatchTime,
    ) -> Result<(), Error> {
        match self.report_alarm(loaded, stored, time).await {
            Err(Error::Invalid(violations)) => {
                let heartbeat = &loaded.heartbeat.name;
                error!(%heartbeat, ?violations, "failed to ingest a heartbeat's event");
                Ok(())
            }
            done => done,
        }
    }

    async fn alarm_facts(
        &self,
        loaded: &LoadedHeartbeat,
        expected: &Expectation,
        time: &WatchTime,
    ) -> Result<AlarmFacts, Error> {
        let heartbeat = &loaded.heartbeat;
        let run = expected.run.zip(heartbeat.max_run_ms);
        let overrun = run.filter(|(run, max_ms)| time.now_ms - run.since_service_ms >= *max_ms);
        let wall_ms = |service_ms: i64| {
            let ago_ms = time.now_ms.saturating_sub(service_ms);
            self.deciding.clock.now_ms().saturating_sub(ago_ms)
        };
        let due_ms = if let Some((run, max_ms)) = overrun {
            Some(wall_ms(run.since_service_ms.saturating_add(max_ms)))
        } else if heartbeat.has_windows() {
            let window = stored_window(&self.deciding.store, heartbeat.id).await?;
            let window = window.and_then(|it| it.value.window);
            window.map(|it| it.start_ms.saturating_add(it.length_ms))
        } else {
            let silence_ms = heartbeat.allowed_silence_ms();
            Some(wall_ms(expected.beat_service_ms.saturating_add(silence_ms)))
        };
        Ok(AlarmFacts {
            due_ms,
            overrun_ms: overrun.map(|(_, max_ms)| max_ms),
        })
    }

    /// Opens the event of a late or failed expectation, or closes it after a beat, and then records
    /// that it did so.
    async fn report_alarm(
        &self,
        loaded: &LoadedHeartbeat,
        stored: Stored<Expectation>,
        time: &WatchTime,
    ) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let expected = &stored.value;
        let open = match expected.open {
            Some(open) if expected.is_resolved(open) => {
                alarm::close_alarm(&self.deciding, &self.intake, open.event, "a beat came").await?;
                None
            }
            before => {
                let facts = self.alarm_facts(loaded, expected, time).await?;
                let event = alarm::alarm_event(loaded, expected, facts, now_ms);
                let id = event.id();
                // An edit may have changed the event.
                if let Some(before) = before.filter(|it| it.event != id) {
                    alarm::close_alarm(
                        &self.deciding,
                        &self.intake,
                        before.event,
                        "replaced by another event",
                    )
                    .await?;
                }
                self.intake.submit_internal(event, Vec::new()).await?;
                Some(OpenAlarm {
                    event: id,
                    service_ms: before.map_or(time.now_ms, |it| it.service_ms),
                    is_failure: expected.has_failed,
                    is_reported: true,
                })
            }
        };
        let next = Expectation {
            open,
            ..expected.clone()
        };
        let mut changes = self.deciding.store.new_changes();
        changes.update(&stored, &next);
        self.apply(changes).await
    }
}
