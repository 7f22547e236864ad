//! `ScheduleService`.

use bellwether_proto::v1::{self, schedule_service_server::ScheduleService};
use tonic::{Request, Response, Status, async_trait};

use super::convert::time::{timestamp, to_millis};
use crate::{
    domain::Schedule,
    ops::{
        link::SignedLinks,
        schedule::{Schedules, ShownShift},
        serve::serve,
        subject,
    },
};

#[derive(Debug)]
pub struct ScheduleApi {
    schedules: Schedules,
    links: SignedLinks,
    base: String,
}

impl ScheduleApi {
    /// Creates the service; feed URLs below `base` are signed with `links`.
    pub fn new(schedules: Schedules, links: SignedLinks, base: &str) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        Self {
            schedules,
            links,
            base,
        }
    }

    fn feed_url(&self, schedule: &Schedule) -> String {
        format!("{}{}", self.base, self.links.schedule_feed(schedule))
    }
}

#[async_trait]
impl ScheduleService for ScheduleApi {
    serve! {
        schedules of schedule;
        create_schedule(CreateScheduleRequest) -> CreateScheduleResponse;
        list_schedules(ListSchedulesRequest) -> ListSchedulesResponse { schedules };
        get_schedule(GetScheduleRequest) -> GetScheduleResponse;
        update_schedule(UpdateScheduleRequest) -> UpdateScheduleResponse;
        delete_schedule(DeleteScheduleRequest) -> DeleteScheduleResponse, |_| false;
    }

    async fn get_on_call(
        &self,
        request: Request<v1::GetOnCallRequest>,
    ) -> Result<Response<v1::GetOnCallResponse>, Status> {
        let request = request.into_inner();
        let at_ms = request.time.as_ref().map(to_millis);
        let then = self.schedules.on_call(&request.name, at_ms).await?;
        Ok(Response::new(v1::GetOnCallResponse {
            contact_names: then.contacts,
            source: then.source,
            until_time: then.until_ms.map(timestamp),
            revision: then.revision,
        }))
    }

    async fn list_shifts(
        &self,
        request: Request<v1::ListShiftsRequest>,
    ) -> Result<Response<v1::ListShiftsResponse>, Status> {
        let request = request.into_inner();
        let range = (
            request.start.as_ref().map(to_millis),
            request.end.as_ref().map(to_millis),
        );
        let found = self.schedules.shifts(&request.name, range).await?;
        Ok(Response::new(v1::ListShiftsResponse {
            shifts: found.shifts.iter().map(Into::into).collect(),
            stopped_early: found.stopped_early,
        }))
    }

    async fn get_schedule_feed(
        &self,
        request: Request<v1::GetScheduleFeedRequest>,
    ) -> Result<Response<v1::GetScheduleFeedResponse>, Status> {
        let name = request.into_inner().name;
        let schedule = self.schedules.issue_feed(&name).await?;
        let url = self.feed_url(&schedule);
        Ok(subject::for_resource(
            name,
            v1::GetScheduleFeedResponse { url },
        ))
    }

    async fn rotate_schedule_feed(
        &self,
        request: Request<v1::RotateScheduleFeedRequest>,
    ) -> Result<Response<v1::RotateScheduleFeedResponse>, Status> {
        let name = request.into_inner().name;
        let schedule = self.schedules.rotate_feed(&name).await?;
        let url = self.feed_url(&schedule);
        Ok(subject::for_resource(
            name,
            v1::RotateScheduleFeedResponse { url },
        ))
    }

    async fn preview_schedule(
        &self,
        request: Request<v1::PreviewScheduleRequest>,
    ) -> Result<Response<v1::PreviewScheduleResponse>, Status> {
        let draft = request.into_inner().schedule.unwrap_or_default();
        let preview = self.schedules.preview(draft).await?;
        let is_gap = |it: &&ShownShift| it.contacts.is_empty();
        let shifts = preview.shifts.shifts.iter();
        Ok(Response::new(v1::PreviewScheduleResponse {
            gaps: shifts.clone().filter(is_gap).map(Into::into).collect(),
            shifts: shifts.map(Into::into).collect(),
            stopped_early: preview.shifts.stopped_early,
            differences: preview.differences,
            warnings: preview.warnings,
        }))
    }

    async fn create_override(
        &self,
        request: Request<v1::CreateOverrideRequest>,
    ) -> Result<Response<v1::CreateOverrideResponse>, Status> {
        let request = request.into_inner();
        let draft = request.r#override.unwrap_or_default();
        let made = self
            .schedules
            .create_override(&request.name, &draft)
            .await?;
        let r#override = Some(made);
        Ok(subject::for_resource(
            request.name,
            v1::CreateOverrideResponse { r#override },
        ))
    }

    async fn delete_override(
        &self,
        request: Request<v1::DeleteOverrideRequest>,
    ) -> Result<Response<v1::DeleteOverrideResponse>, Status> {
        let request = request.into_inner();
        self.schedules
            .delete_override(&request.name, &request.id)
            .await?;
        Ok(subject::for_resource(
            request.name,
            v1::DeleteOverrideResponse {},
        ))
    }
}
