//! Drills: service, storage, editing, deletion and runs.

mod draft;
mod watch;

use bellwether_proto::v1::{self, drill_service_server::DrillService};
use tonic::{Request, Response, async_trait};

use crate::{
    clock::to_millis,
    commit::commit,
    decide::{next_due_ms, start_run},
    domain::{Drill, DrillRun, IncomingEvent, OccurrenceId, Severity, Status},
    error::Error,
    etag::compute_etag,
    find,
    from_domain::FromDomain,
    intake::Intake,
    limits::{DRILL_ACKNOWLEDGE_DEFAULT, DRILL_ACKNOWLEDGE_MAX, DRILL_ACKNOWLEDGE_MIN, DRILLS_MAX},
    loop_guard::Reports,
    resource::{self, AuthoredResource, Origin, Resources, resource},
    serve::serve,
    store::{Changes, EngineError, Lane, Store},
    subject,
    tag_scope::TagScope,
    validate::{Violations, check_length},
    wire::time::{self, timestamp},
};

pub use watch::DrillWatch;

pub type Drills = Resources<Drill>;

resource!(Drill, v1::Drill, "drill", |_| None);

#[derive(Debug)]
pub struct DrillApi {
    pub drills: Drills,
    pub intake: Intake,
}

#[async_trait]
impl DrillService for DrillApi {
    serve! {
        drills of drill;
        create_drill(CreateDrillRequest) -> CreateDrillResponse;
        list_drills(ListDrillsRequest) -> ListDrillsResponse { drills };
        get_drill(GetDrillRequest) -> GetDrillResponse;
        update_drill(UpdateDrillRequest) -> UpdateDrillResponse;
        delete_drill(DeleteDrillRequest) -> DeleteDrillResponse, |_| false;
    }

    async fn run_drill(
        &self,
        request: Request<v1::RunDrillRequest>,
    ) -> Result<Response<v1::RunDrillResponse>, tonic::Status> {
        let name = request.into_inner().name;
        let drill = self.drills.start(&self.intake, &name).await?;
        let drill = Some(drill);
        Ok(subject::for_resource(name, v1::RunDrillResponse { drill }))
    }
}

impl AuthoredResource for Drill {
    type Draft = v1::Drill;
    type View = v1::Drill;

    async fn from_draft(
        all: &Drills,
        draft: &v1::Drill,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut violations = Violations::default();
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        let now_ms = all.clock.now_ms();
        let every_ms = draft::check_schedule(draft, now_ms, &mut violations);
        let event = draft::parse_event(draft.event.clone().unwrap_or_default(), &mut violations);
        let within_ms = draft.acknowledge_within.as_ref().map_or_else(
            || to_millis(DRILL_ACKNOWLEDGE_DEFAULT),
            time::duration_to_ms,
        );
        let range = (DRILL_ACKNOWLEDGE_MIN, DRILL_ACKNOWLEDGE_MAX);
        let acknowledge_ms = check_length("acknowledgeWithin", within_ms, range, &mut violations);
        let severity =
            draft::parse_severity("failedSeverity", draft.failed_severity, &mut violations);
        all.check_room(stored, DRILLS_MAX).await?;
        let drill = name.map(|name| {
            let mut drill = Self {
                id: origin.id,
                name,
                description: draft.description.clone(),
                tags: draft.tags.clone(),
                enabled: draft.enabled.unwrap_or_default(),
                cron: draft.cron.clone(),
                time_zone: draft.time_zone.clone(),
                every_ms,
                event,
                acknowledge_ms,
                failed_severity: severity.unwrap_or(Severity::Error),
                due_ms: None,
                runs: stored.map(|it| it.runs.clone()).unwrap_or_default(),
                revision: origin.revision,
                create_ms: origin.create_ms,
                update_ms: origin.update_ms,
            };
            let schedule = |it: &Self| (it.cron.clone(), it.time_zone.clone(), it.every_ms);
            let same = stored.filter(|it| it.enabled && schedule(it) == schedule(&drill));
            if drill.enabled {
                drill.due_ms = same.map_or_else(|| next_due_ms(&drill, now_ms), |it| it.due_ms);
            }
            drill
        });
        Ok((violations.into_result(drill)?, all.store.new_changes()))
    }

    async fn changes_on_delete(all: &Drills, drill: &Self, _force: bool) -> Result<Changes, Error> {
        let now_ms = all.clock.now_ms();
        let mut reports = Reports::default();
        let failed = drill.failed_event(None, now_ms);
        if find::is_event_open(&all.store, failed.id()).await? {
            reports.add_event(failed, now_ms);
        }
        if let Some(run) = drill.running() {
            let closing = closing_event(&all.store, run, "the drill was deleted", now_ms);
            if let Some(event) = closing.await? {
                reports.add_event(event, now_ms);
            }
        }
        let mut changes = all.store.new_changes();
        // The next review ingests the events.
        let _recorded = reports.record(&mut changes);
        Ok(changes)
    }

    async fn view(_all: &Drills, drill: Self) -> Result<(v1::Drill, usize), Error> {
        let runs = drill.runs.iter().rev().map(run_to_wire).collect();
        let next_time = drill.due_ms.map(timestamp);
        let view = v1::Drill {
            runs,
            next_time,
            ..FromDomain::from_domain(drill)
        };
        Ok((view, 0))
    }
}

impl FromDomain<Drill> for v1::Drill {
    fn from_domain(drill: Drill) -> Self {
        let event = drill.event;
        Self {
            name: drill.name.to_string(),
            description: drill.description,
            tags: drill.tags,
            enabled: Some(drill.enabled),
            cron: drill.cron,
            time_zone: drill.time_zone,
            every: (drill.every_ms > 0).then(|| time::duration_from_ms(drill.every_ms)),
            event: Some(v1::DrillEvent {
                name: event.name,
                r#type: event.kind,
                severity: event.severity as i32,
                summary: event.summary,
                dimensions: event.dimensions,
            }),
            acknowledge_within: Some(time::duration_from_ms(drill.acknowledge_ms)),
            failed_severity: drill.failed_severity as i32,
            next_time: None,
            runs: Vec::new(),
            create_time: Some(timestamp(drill.create_ms)),
            update_time: Some(timestamp(drill.update_ms)),
            etag: compute_etag(drill.id, drill.revision),
        }
    }
}

fn run_to_wire(run: &DrillRun) -> v1::DrillRun {
    // Each run has an event of its own, with one occurrence.
    let occurrence = run.event.map(|event| OccurrenceId { event, number: 1 });
    v1::DrillRun {
        result: run.result as i32,
        due_time: Some(timestamp(run.due_ms)),
        start_time: run.start_ms.map(timestamp),
        occurrence_id: occurrence.map(|it| it.to_string()).unwrap_or_default(),
        acknowledged_by: run.acknowledged_by.clone(),
        acknowledged_after: run.acknowledged_after_ms.map(time::duration_from_ms),
        reason: run.reason.clone(),
    }
}

/// Returns the event that closes the event of a run; `None` if it is not open.
async fn closing_event(
    store: &Store,
    run: &DrillRun,
    why: &str,
    now_ms: i64,
) -> Result<Option<IncomingEvent>, EngineError> {
    let Some(event) = run.event else {
        return Ok(None);
    };
    let newest = find::newest_occurrence(store, event).await?;
    let open = newest.filter(|it| it.status != Status::Closed);
    Ok(open.map(|it| it.closing_event(format!("[DRILL] closed: {why}"), now_ms)))
}

impl Drills {
    /// Starts a run now, regardless of the schedule.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the drill does not exist, [`Error::PermissionDenied`] if it is
    /// outside the caller's scope, [`Error::FailedPrecondition`] while a run is in progress, and an
    /// error if the store fails.
    pub async fn start(&self, intake: &Intake, name: &str) -> Result<v1::Drill, Error> {
        let decide = async || {
            let stored = resource::find::<Drill>(&self.store, name).await?;
            if let Some(scope) = TagScope::from_caller() {
                scope.check("name", &stored.value)?;
            }
            if stored.value.running().is_some() {
                let message = format!("a run of drill `{name}` is in progress");
                return Err(Error::FailedPrecondition(message));
            }
            let now_ms = self.clock.now_ms();
            let mut next = stored.value.clone();
            let mut reports = Reports::default();
            reports.add_event(start_run(&mut next, now_ms, now_ms), now_ms);
            let mut changes = self.store.new_changes();
            changes.update(&stored, &next);
            let recorded = reports.record(&mut changes);
            Ok((changes, (next, recorded)))
        };
        let ((drill, recorded), _) = commit(&self.store, Lane::Admin, decide).await?;
        intake.report_all(recorded);
        Ok(Drill::view(self, drill).await?.0)
    }
}

#[cfg(test)]
mod tests;
