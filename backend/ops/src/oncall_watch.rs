//! Reports hand-offs of schedules, and upcoming times at which no one is on call.

use std::{collections::HashMap, sync::Arc};

use tokio_util::sync::CancellationToken;

use crate::{
    clock::to_millis,
    decide::{LoadedSchedule, condition::format_time},
    decision_context::{DecisionContext, new_id},
    domain::{
        IncomingEvent, Name, OwnEvent, Schedule, Severity, Status, Value,
        own_event::{NOBODY_ON_CALL, ON_CALL_CHANGED, OwnEventKind},
    },
    error::Error,
    find,
    intake::Intake,
    limits::{ON_CALL_AHEAD, ON_CALL_CHECK_INTERVAL, ON_CALL_CHECK_MAX, ON_CALL_NEWS_AGE},
    repeat::repeat_until_shutdown,
    store::{Changes, EngineError, Store},
};

const CONTACTS: &str = "contacts";

#[derive(Debug)]
pub struct OnCallWatch {
    deciding: DecisionContext,
    intake: Intake,
    /// Schedules checked, with the time of their next check in milliseconds since the epoch.
    checked: HashMap<Name, (i64, Arc<LoadedSchedule>)>,
}

impl OnCallWatch {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self {
            deciding,
            intake,
            checked: HashMap::new(),
        }
    }

    pub async fn run(self, shutdown: CancellationToken) {
        let clock = Arc::clone(&self.deciding.clock);
        repeat_until_shutdown(
            self,
            &*clock,
            ON_CALL_CHECK_INTERVAL,
            shutdown,
            "failed to check schedules",
            |it| Box::pin(it.run_once()),
        )
        .await;
    }

    /// Compares the newest events with the schedules, so that no change is reported twice or missed
    /// across restarts.
    pub async fn run_once(&mut self) -> Result<(), Error> {
        let snapshot = self.deciding.ruleset.refresh().await?;
        let schedules = &snapshot.responders().schedules;
        self.checked.retain(|it, _| schedules.contains_key(it));
        let now_ms = self.deciding.clock.now_ms();
        for (name, schedule) in schedules {
            let known = self.checked.get(name);
            let is_known = known.is_some_and(|(until_ms, it)| {
                *until_ms > now_ms && it.schedule == schedule.schedule
            });
            if is_known {
                continue;
            }
            self.report_hand_off(schedule, now_ms).await?;
            self.report_gap(schedule, now_ms).await?;
            let next_ms = schedule.next(now_ms).map_or(i64::MAX, |it| it.start_ms);
            let latest_ms = now_ms.saturating_add(to_millis(ON_CALL_CHECK_MAX));
            let checked = (next_ms.min(latest_ms), Arc::clone(schedule));
            self.checked.insert(name.clone(), checked);
        }
        Ok(())
    }

    async fn report_hand_off(&self, schedule: &LoadedSchedule, now_ms: i64) -> Result<(), Error> {
        let name = &schedule.schedule.name;
        let contacts = schedule.on_call_at(now_ms).contacts;
        let contacts = contacts.iter().map(Name::as_str).collect::<Vec<_>>();
        let contacts = contacts.join(", ");
        let newest =
            find::newest_occurrence(&self.deciding.store, ON_CALL_CHANGED.id([name.as_str()]))
                .await?;
        let is_open = newest
            .as_ref()
            .is_some_and(|it| it.status != Status::Closed);
        let stays_open = is_open && newest.as_ref().is_some_and(|it| it.expire_ms.is_none());
        let said = newest.and_then(|it| it.metadata.get(CONTACTS).cloned());
        let is = Value::Text(contacts.clone());
        if said.as_ref() == Some(&is) {
            // Earlier versions opened the event without an end.
            if stays_open {
                self.close(&ON_CALL_CHANGED, name).await?;
            }
            return Ok(());
        }
        let summary = match contacts.as_str() {
            "" => format!("no one is on call for {name} now"),
            contacts => format!("on call for {name} now: {contacts}"),
        };
        let subject = [name.as_str()];
        let opened = IncomingEvent {
            metadata: [(CONTACTS.to_owned(), is)].into(),
            // A hand-off is news: its event does not last until the next hand-off.
            expire_ms: Some(now_ms.saturating_add(to_millis(ON_CALL_NEWS_AGE))),
            ..ON_CALL_CHANGED.opened(subject, Severity::Info, summary, now_ms)
        };
        let closed = ON_CALL_CHANGED.closed(subject, "", now_ms);
        // Each hand-off is a separate occurrence, so that rules notify about it.
        for event in is_open.then_some(closed).into_iter().chain([opened]) {
            self.intake.submit(vec![event], None).await?;
        }
        Ok(())
    }

    async fn report_gap(&self, schedule: &LoadedSchedule, now_ms: i64) -> Result<(), Error> {
        let Schedule {
            name, gaps_allowed, ..
        } = &schedule.schedule;
        let end_ms = now_ms.saturating_add(to_millis(ON_CALL_AHEAD));
        let gap = schedule.first_gap(now_ms, end_ms).filter(|_| !gaps_allowed);
        let Some(gap) = gap else {
            return self.close(&NOBODY_ON_CALL, name).await;
        };
        let since = format_time(gap.start_ms.max(now_ms - now_ms % 60_000));
        let summary = format!("no one is on call for {name} from {since}");
        let subject = [name.as_str()];
        if find::is_event_open(&self.deciding.store, NOBODY_ON_CALL.id(subject)).await? {
            return Ok(());
        }
        let opened = NOBODY_ON_CALL.opened(subject, Severity::Warning, summary, now_ms);
        self.intake.submit(vec![opened], None).await?;
        Ok(())
    }

    async fn close(&self, about: &OwnEventKind, schedule: &Name) -> Result<(), Error> {
        let now_ms = self.deciding.clock.now_ms();
        let closing = about.closed([schedule.as_str()], "", now_ms);
        if find::has_effect(&self.deciding.store, &closing).await? {
            self.intake.submit(vec![closing], None).await?;
        }
        Ok(())
    }
}

/// Closes the events about a schedule in the change that deletes it.
pub async fn close_for_deleted(
    store: &Store,
    schedule: &Name,
    now_ms: i64,
    changes: &mut Changes,
) -> Result<(), EngineError> {
    for about in [ON_CALL_CHANGED, NOBODY_ON_CALL] {
        let event = about.closed([schedule.as_str()], "", now_ms);
        if find::has_effect(store, &event).await? {
            let id = new_id(now_ms);
            changes.insert(&OwnEvent {
                id,
                event,
                chain: Vec::new(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::testing::samples as full;

    use super::*;
    use crate::{domain::Occurrence, review::Reviewer, samples, schedule::Schedules, store::Lane};

    const CHANGED: OwnEventKind = ON_CALL_CHANGED;
    const NOBODY: OwnEventKind = NOBODY_ON_CALL;

    async fn newest_occurrence(
        deciding: &DecisionContext,
        about: OwnEventKind,
    ) -> Option<Occurrence> {
        let found = find::newest_occurrence(&deciding.store, about.id(["nights"])).await;
        found.unwrap()
    }

    /// Stores a schedule that is handed over every day at 07:00. The clock starts on 15 January
    /// 2027 at 08:00.
    async fn store_daily_schedule(store: &Store) -> Schedule {
        let mut schedule = Schedule {
            time_zone: "UTC".into(),
            gaps_allowed: false,
            overrides: Vec::new(),
            ..full::schedule("nights")
        };
        schedule.layers[0].hand_offs = full::rotation("2027-01-15T07:00:00", "FREQ=DAILY");
        schedule.layers[0].calendar = None;
        let mut changes = store.new_changes();
        changes.insert(&schedule);
        changes.insert(&full::contact("ana"));
        store.apply(Lane::Admin, changes).await.unwrap();
        schedule
    }

    #[tokio::test]
    async fn hand_offs_and_upcoming_gaps_are_events() {
        let (deciding, clock) = samples::deciding(Store::in_memory()).await;
        let (intake, _guard) = samples::intake(&deciding);
        let schedule = store_daily_schedule(&deciding.store).await;
        let mut watch = OnCallWatch::new(deciding.clone(), intake.clone());
        watch.run_once().await.unwrap();
        let first = newest_occurrence(&deciding, CHANGED).await.unwrap();
        assert_eq!(
            (first.number, &*first.summary),
            (1, "on call for nights now: ana")
        );
        // A restarted process does not report again.
        let mut watch = OnCallWatch::new(deciding.clone(), intake.clone());
        watch.run_once().await.unwrap();
        assert_eq!(
            newest_occurrence(&deciding, CHANGED).await.unwrap().count,
            1
        );
        clock.advance(Duration::from_secs(23 * 3_600));
        watch.run_once().await.unwrap();
        let second = newest_occurrence(&deciding, CHANGED).await.unwrap();
        assert_eq!(
            (second.number, &*second.summary),
            (2, "on call for nights now: ben, cleo")
        );
        assert!(newest_occurrence(&deciding, NOBODY).await.is_none());
        // No one is on call from the day after tomorrow on.
        let key = schedule.name.as_str().into();
        let stored = deciding.store.get::<Schedule>(key).await.unwrap().unwrap();
        let now_ms = deciding.clock.now_ms();
        let gap = crate::domain::schedule::Override {
            contacts: Vec::new(),
            start_ms: now_ms + 30 * 3_600_000,
            end_ms: now_ms + 32 * 3_600_000,
            ..full::schedule("x").overrides.remove(0)
        };
        let mut next = stored.value.clone();
        next.overrides = vec![gap];
        let mut changes = deciding.store.new_changes();
        changes.update(&stored, &next);
        deciding.store.apply(Lane::Admin, changes).await.unwrap();
        watch.run_once().await.unwrap();
        assert!(newest_occurrence(&deciding, NOBODY).await.is_none());
        clock.advance(Duration::from_secs(7 * 3_600));
        watch.run_once().await.unwrap();
        let warned = newest_occurrence(&deciding, NOBODY).await.unwrap();
        assert_eq!(
            (warned.severity, warned.status),
            (Severity::Warning, Status::Open)
        );
        clock.advance(Duration::from_secs(26 * 3_600));
        watch.run_once().await.unwrap();
        assert_eq!(
            newest_occurrence(&deciding, NOBODY).await.unwrap().status,
            Status::Closed
        );
    }

    #[tokio::test]
    async fn hand_off_event_closes_automatically() {
        for is_of_earlier_version in [false, true] {
            let (deciding, clock) = samples::deciding(Store::in_memory()).await;
            store_daily_schedule(&deciding.store).await;
            let (intake, _guard) = samples::intake(&deciding);
            if is_of_earlier_version {
                let opened = IncomingEvent {
                    metadata: [(CONTACTS.to_owned(), Value::Text("ana".into()))].into(),
                    ..CHANGED.event(["nights"], deciding.clock.now_ms())
                };
                intake.submit(vec![opened], None).await.unwrap();
            }
            let mut watch = OnCallWatch::new(deciding.clone(), intake.clone());
            watch.run_once().await.unwrap();
            let reviewer = Reviewer::new(deciding.clone(), intake.clone());
            for (hours, number, contacts) in [(1, 1, "ana"), (24, 2, "ben, cleo"), (24, 3, "ana")] {
                clock.advance(Duration::from_secs(hours * 3_600));
                assert!(reviewer.run_once().await);
                watch.run_once().await.unwrap();
                let changed = newest_occurrence(&deciding, CHANGED).await.unwrap();
                let said = changed.metadata.get(CONTACTS).cloned();
                let expected = Value::Text(contacts.into());
                assert_eq!((changed.number, said), (number, Some(expected)));
                clock.advance(Duration::from_secs(16 * 60));
                assert!(reviewer.run_once().await);
                let changed = newest_occurrence(&deciding, CHANGED).await.unwrap();
                assert_eq!((changed.number, changed.status), (number, Status::Closed));
            }
        }
    }

    #[tokio::test]
    async fn schedule_deletion_closes_its_events_despite_a_kill() {
        let (deciding, _) = samples::deciding(Store::in_memory()).await;
        store_daily_schedule(&deciding.store).await;
        let (intake, guard) = samples::intake(&deciding);
        let mut watch = OnCallWatch::new(deciding.clone(), intake);
        watch.run_once().await.unwrap();
        let open = newest_occurrence(&deciding, CHANGED).await.unwrap();
        assert_eq!(open.status, Status::Open);
        drop(guard);
        let all = Schedules::new(deciding.store.clone(), deciding.clock.clone());
        all.delete("nights", "", false).await.unwrap();
        let (intake, _guard) = samples::intake(&deciding);
        intake.resume(&deciding.store).await.unwrap();
        while !samples::all::<OwnEvent>(&deciding.store).await.is_empty() {
            tokio::task::yield_now().await;
        }
        let changed = newest_occurrence(&deciding, CHANGED).await.unwrap();
        assert_eq!(changed.status, Status::Closed);
    }
}
