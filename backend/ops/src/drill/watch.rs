//! Starts the runs of drills that are due, and determines their results.

use super::closing_event;
use crate::{
    decide::{end_run, start_due_run},
    decision_context::DecisionContext,
    domain::{Drill, DrillResult},
    error::Error,
    find,
    intake::Intake,
    limits::DRILLS_MAX,
    loop_guard::Reports,
    store::{Direction, EngineError, Kind, Lane, LogPosition, engine::Range},
};

/// The checks of drills, on the leader.
#[derive(Debug)]
pub struct DrillWatch {
    deciding: DecisionContext,
    intake: Intake,
    /// Position in the change log at which no drill existed.
    none_at: Option<LogPosition>,
}

impl DrillWatch {
    pub fn new(deciding: DecisionContext, intake: Intake) -> Self {
        Self {
            deciding,
            intake,
            none_at: None,
        }
    }

    pub(crate) async fn has_any(&mut self) -> Result<bool, EngineError> {
        let store = &self.deciding.store;
        let changed = store.engine().last_changed(&[Kind::Drill]);
        if self.none_at == Some(changed) {
            return Ok(false);
        }
        let all = Range::with_prefix(&[]);
        let found = store.page::<Drill>(all, Direction::Ascending, 1).await?;
        self.none_at = found.is_empty().then_some(changed);
        Ok(!found.is_empty())
    }

    /// Checks all drills at a service time. A run, its event and the events about its result are
    /// stored in one commit each, so that a crash neither loses nor repeats any of them.
    pub(crate) async fn run_once(&mut self, service_ms: i64) -> Result<(), Error> {
        if self.none_at.is_some() {
            return Ok(());
        }
        let store = &self.deciding.store;
        let _steady = store.lock_clock_shared().await;
        let all = Range::with_prefix(&[]);
        let drills = store.page::<Drill>(all, Direction::Ascending, DRILLS_MAX);
        for stored in drills.await? {
            let mut next = stored.value.clone();
            let reports = self.advance(&mut next, service_ms).await?;
            if next == stored.value {
                continue;
            }
            let mut changes = store.new_changes();
            changes.update(&stored, &next);
            let recorded = reports.record(&mut changes);
            match store.apply(Lane::Bulk, changes).await {
                Ok(_) => self.intake.report_all(recorded),
                // The next check repeats the decision.
                Err(EngineError::Conflict(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Advances a drill to the current time. Returns the events to ingest.
    async fn advance(&self, drill: &mut Drill, service_ms: i64) -> Result<Reports, Error> {
        let store = &self.deciding.store;
        let now_ms = self.deciding.clock.now_ms();
        let mut reports = Reports::default();
        let acknowledge_ms = drill.acknowledge_ms;
        if let Some(run) = drill.running_mut()
            && let Some(event) = run.event
        {
            let occurrence = find::newest_occurrence(store, event).await?;
            let since_ms = *run.since_service_ms.get_or_insert(service_ms);
            let is_over = service_ms.saturating_sub(since_ms) >= acknowledge_ms;
            if end_run(run, occurrence.as_ref(), is_over) {
                let run = run.clone();
                let why = match run.result {
                    DrillResult::Acknowledged => "acknowledged",
                    _ => "not acknowledged",
                };
                let closing = closing_event(store, &run, why, now_ms).await?;
                let about = drill.failed_event(Some(&run), now_ms);
                let is_open = find::is_event_open(store, about.id()).await?;
                let is_reported = match run.result {
                    DrillResult::Acknowledged => is_open,
                    result => result != DrillResult::Silenced,
                };
                let about = Some(about).filter(|_| is_reported);
                for event in closing.into_iter().chain(about) {
                    reports.add_event(event, now_ms);
                }
            }
        }
        if let Some(event) = start_due_run(drill, now_ms) {
            reports.add_event(event, now_ms);
        }
        Ok(reports)
    }
}
