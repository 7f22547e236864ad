//! Looks for missing beats: opens their events, and closes them after the next beat.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use tracing::error;

use super::alarm;
use crate::{
    clock::millis,
    decide::{Heartbeats, LoadedHeartbeat},
    domain::{Expectation, OpenAlarm, RecordId, Standing},
    error::Error,
    limits::{BEATS_APART, HEARTBEAT_LOOK_INTERVAL, SERVICE_TIME_INTERVAL},
    ops::{
        beats::{SERVICE, awaited},
        deciding::Deciding,
        intake::Intake,
    },
    store::{
        Changes, Direction, EngineError, Index, Lane, Stored,
        engine::Range,
        record::{by_beat, bytes::Key},
    },
};

/// Expectations that are read at a time.
const BATCH: usize = 200;

/// Opens and closes the events of heartbeats; on the node that leads.
#[derive(Debug)]
pub struct HeartbeatWatch {
    deciding: Deciding,
    intake: Intake,
    time: Option<Time>,
    /// When to look at each heartbeat again, in time of service.
    next: HashMap<RecordId, i64>,
    /// The heartbeats for which what others expect was taken away.
    swept: Option<Heartbeats>,
}

/// The time of service, as the node that leads counts it.
#[derive(Debug, Clone, Copy)]
struct Time {
    now_ms: i64,
    at: Duration,
    /// How far it is stored.
    stored_ms: i64,
    /// When events were accepted again after a time in which they were not.
    resumed_ms: i64,
}

impl HeartbeatWatch {
    /// Watches what that store expects, and reports through an intake.
    pub fn new(deciding: Deciding, intake: Intake) -> Self {
        Self {
            deciding,
            intake,
            time: None,
            next: HashMap::new(),
            swept: None,
        }
    }

    /// Looks every second until shutdown.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let work = async {
            loop {
                if let Err(error) = self.pass().await {
                    // What is due is found by the next pass.
                    error!(%error, "heartbeats were not looked at");
                }
                let clock = &self.deciding.clock;
                clock
                    .wait_until(clock.now_ms().saturating_add(millis(BEATS_APART)))
                    .await;
            }
        };
        tokio::select! {
            () = work => {}
            () = shutdown.cancelled() => {}
        }
    }

    /// Looks once.
    ///
    /// # Errors
    /// Those of the store and the intake.
    pub async fn pass(&mut self) -> Result<(), Error> {
        let snapshot = self.deciding.ruleset.refreshed().await?;
        let heartbeats = snapshot.heartbeats();
        let is_swept = self
            .swept
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, heartbeats));
        if heartbeats.is_empty() && is_swept {
            return Ok(());
        }
        let time = self.advance(!heartbeats.is_empty()).await?;
        if !is_swept {
            self.sweep(heartbeats).await?;
            self.next.clear();
            self.swept = Some(Arc::clone(heartbeats));
        }
        let has_news = self.deciding.beats.take_change();
        for loaded in heartbeats.iter() {
            let id = loaded.heartbeat.id;
            let is_due = self.next.get(&id).is_none_or(|it| *it <= time.now_ms);
            if has_news || is_due {
                let next_ms = self.look(loaded, time).await?;
                self.next.insert(id, next_ms);
            }
        }
        Ok(())
    }

    /// Counts the time in which events were accepted since the last pass, and stores it now and then.
    async fn advance(&mut self, is_stored: bool) -> Result<Time, Error> {
        let Deciding {
            store,
            clock,
            beats,
            ..
        } = &self.deciding;
        let passed = clock.passed();
        let key = Key::new().id(SERVICE).id(SERVICE).build();
        let mut time = if let Some(time) = self.time {
            time
        } else {
            let stored = store.get::<Expectation>(key.clone()).await?;
            let now_ms = stored.map_or(0, |it| it.value.beat_service_ms);
            Time {
                now_ms,
                at: passed,
                stored_ms: now_ms,
                resumed_ms: now_ms,
            }
        };
        let since = passed.saturating_sub(time.at);
        let space = store.engine().free_space();
        let accepts = space.is_none_or(|it| it.free_bytes >= it.floor_bytes);
        time.at = passed;
        if accepts {
            // A process that stood still accepted nothing meanwhile.
            time.now_ms = time
                .now_ms
                .saturating_add(millis(since.min(SERVICE_TIME_INTERVAL)));
        }
        if !accepts || since > SERVICE_TIME_INTERVAL {
            time.resumed_ms = time.now_ms;
        }
        beats.lead(time.now_ms, passed, !accepts);
        if is_stored && time.now_ms - time.stored_ms >= millis(SERVICE_TIME_INTERVAL) {
            let stored = store.get::<Expectation>(key).await?;
            let next = Expectation {
                last_ms: Some(clock.now_ms()),
                ..awaited(SERVICE, SERVICE, Vec::new(), time.now_ms)
            };
            let mut changes = store.changes();
            match &stored {
                Some(stored) => changes.update(stored, &next),
                None => changes.insert(&next),
            }
            store.apply(Lane::Admin, changes).await?;
            time.stored_ms = time.now_ms;
        }
        self.time = Some(time);
        Ok(time)
    }

    /// Takes away what heartbeats expect that are gone or not enabled, and closes its events.
    async fn sweep(&self, heartbeats: &Heartbeats) -> Result<(), Error> {
        let ids = heartbeats.iter().map(|it| it.heartbeat.id);
        let mut kept: HashSet<RecordId> = ids.collect();
        self.deciding.beats.keep(&kept);
        kept.insert(SERVICE);
        let store = &self.deciding.store;
        let mut range = Range::under(&[]);
        loop {
            let found = store
                .page::<Expectation>(range.clone(), Direction::Ascending, 1)
                .await?;
            let Some(found) = found.into_iter().next() else {
                return Ok(());
            };
            let heartbeat = found.value.heartbeat;
            if !kept.contains(&heartbeat) {
                self.take_away(
                    Range::under(&Key::new().id(heartbeat).build()),
                    "its heartbeat is gone or disabled",
                )
                .await?;
            }
            let mut last = Key::new().id(heartbeat).build();
            last.extend([u8::MAX; 17]);
            range.go_on_after(&last);
        }
    }

    /// Closes the events of expectations, and deletes those.
    async fn take_away(&self, range: Range, why: &str) -> Result<(), Error> {
        let store = &self.deciding.store;
        loop {
            let found = store
                .page::<Expectation>(range.clone(), Direction::Ascending, BATCH)
                .await?;
            if found.is_empty() {
                return Ok(());
            }
            self.end(&found, why).await?;
        }
    }

    async fn end(&self, found: &[Stored<Expectation>], why: &str) -> Result<(), Error> {
        let mut changes = self.deciding.store.changes();
        for stored in found {
            if let Some(open) = stored.value.open {
                alarm::close(&self.deciding, &self.intake, open.event, why).await?;
            }
            changes.delete(stored);
        }
        self.apply(changes).await
    }

    /// Applies changes; what conflicts with a beat is found again by the next look.
    async fn apply(&self, changes: Changes) -> Result<(), Error> {
        if changes.is_empty() {
            return Ok(());
        }
        match self.deciding.store.apply(Lane::Bulk, changes).await {
            Ok(_) | Err(EngineError::Conflict(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Looks at what a heartbeat expects; answers when to look again, in time of service.
    async fn look(&self, loaded: &LoadedHeartbeat, time: Time) -> Result<i64, Error> {
        let heartbeat = &loaded.heartbeat;
        if heartbeat.by.is_empty() {
            self.expect(loaded, time).await?;
        }
        let of = |standing| by_beat(heartbeat.id, standing);
        let all = |standing| Range::under(&of(standing).build());
        // What has waited for longer than that is late.
        let silence_ms = heartbeat.silence_ms();
        let is_settled = time.now_ms - time.resumed_ms >= heartbeat.grace_ms;
        if is_settled {
            let late = Range {
                end: Some(
                    of(Standing::Awaited)
                        .moment(time.now_ms - silence_ms)
                        .build(),
                ),
                ..all(Standing::Awaited)
            };
            for stored in self.found(late).await? {
                self.begin(loaded, stored, time).await?;
            }
        }
        for stored in self.found(all(Standing::Unreported)).await? {
            self.report(loaded, stored, time).await?;
        }
        if !heartbeat.by.is_empty() {
            let forgotten = Range {
                end: Some(
                    of(Standing::Late)
                        .moment(time.now_ms - heartbeat.forget_ms)
                        .build(),
                ),
                ..all(Standing::Late)
            };
            let forgotten = self.found(forgotten).await?;
            self.end(&forgotten, "it had no beat for a long time")
                .await?;
        }
        let store = &self.deciding.store;
        let (index, ascending) = (Index::ExpectationByBeat, Direction::Ascending);
        let awaited = store.page_by::<Expectation>(index, all(Standing::Awaited), ascending, 1);
        let first = awaited.await?.into_iter().next();
        let due_ms = first.map(|(_, it)| it.value.beat_service_ms.saturating_add(silence_ms));
        let latest_ms = time.now_ms.saturating_add(millis(HEARTBEAT_LOOK_INTERVAL));
        Ok(due_ms.map_or(latest_ms, |it| it.clamp(time.now_ms + 1, latest_ms)))
    }

    async fn found(&self, range: Range) -> Result<Vec<Stored<Expectation>>, Error> {
        let (index, ascending) = (Index::ExpectationByBeat, Direction::Ascending);
        let store = &self.deciding.store;
        let found = store.page_by::<Expectation>(index, range, ascending, BATCH);
        let found = found.await?.into_iter();
        Ok(found.map(|(_, stored)| stored).collect())
    }

    /// Expects the first beat of a heartbeat whose beats all count as one.
    async fn expect(&self, loaded: &LoadedHeartbeat, time: Time) -> Result<(), Error> {
        let (id, key) = (loaded.heartbeat.id, loaded.key(&[]));
        let store = &self.deciding.store;
        let found = store.get::<Expectation>(Key::new().id(id).id(key).build());
        if found.await?.is_some() {
            return Ok(());
        }
        let mut changes = store.changes();
        changes.insert(&awaited(id, key, Vec::new(), time.now_ms));
        self.apply(changes).await
    }

    /// Notes that a beat is late, before its event is opened.
    async fn begin(
        &self,
        loaded: &LoadedHeartbeat,
        stored: Stored<Expectation>,
        time: Time,
    ) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let event = alarm::event(&loaded.heartbeat, &stored.value, now_ms).id();
        let next = Expectation {
            open: Some(OpenAlarm {
                event,
                service_ms: time.now_ms,
                is_failure: false,
                is_reported: false,
            }),
            ..stored.value.clone()
        };
        let mut changes = self.deciding.store.changes();
        changes.update(&stored, &next);
        self.apply(changes).await
    }

    /// Opens the event of what is late or has failed, or closes it after a beat; then notes that.
    async fn report(
        &self,
        loaded: &LoadedHeartbeat,
        stored: Stored<Expectation>,
        time: Time,
    ) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let expected = &stored.value;
        let open = match expected.open {
            Some(open) if expected.is_resolved(open) => {
                alarm::close(&self.deciding, &self.intake, open.event, "a beat came").await?;
                None
            }
            before => {
                let event = alarm::event(&loaded.heartbeat, expected, now_ms);
                let id = event.id();
                // An edit may have made another event of it.
                if let Some(before) = before.filter(|it| it.event != id) {
                    alarm::close(
                        &self.deciding,
                        &self.intake,
                        before.event,
                        "it is another event now",
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
        let mut changes = self.deciding.store.changes();
        changes.update(&stored, &next);
        self.apply(changes).await
    }
}
