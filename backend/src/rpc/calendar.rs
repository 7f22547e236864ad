//! `CalendarService`.

use bellwether_proto::v1::{self, calendar_service_server::CalendarService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    audit,
    convert::{
        calendar as convert,
        list::{count, page_and_filter},
        time::timestamp,
    },
};
use crate::ops::calendar::{CalendarDraft, Calendars};

/// Serves calendars.
#[derive(Debug)]
pub struct CalendarApi {
    calendars: Calendars,
}

impl CalendarApi {
    /// Serves these calendars.
    pub fn new(calendars: Calendars) -> Self {
        Self { calendars }
    }
}

#[async_trait]
impl CalendarService for CalendarApi {
    async fn create_calendar(
        &self,
        request: Request<v1::CreateCalendarRequest>,
    ) -> Result<Response<v1::CreateCalendarResponse>, Status> {
        let request = request.into_inner();
        let draft = CalendarDraft::from(request.calendar.unwrap_or_default());
        let view = self.calendars.create(draft, request.validate_only).await?;
        let name = view.calendar.name.clone();
        let calendar = Some(view.into());
        let answer = v1::CreateCalendarResponse { calendar };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn list_calendars(
        &self,
        request: Request<v1::ListCalendarsRequest>,
    ) -> Result<Response<v1::ListCalendarsResponse>, Status> {
        let wire = request.into_inner();
        let page = (wire.page_size, wire.page_token);
        let (page, filter) = page_and_filter(page, wire.names, wire.tags, wire.q);
        let page = self.calendars.list(&filter, &page).await?;
        Ok(Response::new(v1::ListCalendarsResponse {
            calendars: page.items.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            total_size: Some(count(page.total)),
        }))
    }

    async fn get_calendar(
        &self,
        request: Request<v1::GetCalendarRequest>,
    ) -> Result<Response<v1::GetCalendarResponse>, Status> {
        let view = self.calendars.get(&request.into_inner().name).await?;
        Ok(Response::new(v1::GetCalendarResponse {
            calendar: Some(view.into()),
        }))
    }

    async fn update_calendar(
        &self,
        request: Request<v1::UpdateCalendarRequest>,
    ) -> Result<Response<v1::UpdateCalendarResponse>, Status> {
        let request = request.into_inner();
        let draft = CalendarDraft::from(request.calendar.unwrap_or_default());
        let view = self.calendars.update(draft, request.validate_only).await?;
        let name = view.calendar.name.clone();
        let calendar = Some(view.into());
        let answer = v1::UpdateCalendarResponse { calendar };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn delete_calendar(
        &self,
        request: Request<v1::DeleteCalendarRequest>,
    ) -> Result<Response<v1::DeleteCalendarResponse>, Status> {
        let request = request.into_inner();
        self.calendars
            .delete(&request.name, &request.etag, request.force)
            .await?;
        Ok(audit::of(request.name, v1::DeleteCalendarResponse {}))
    }

    async fn preview_calendar(
        &self,
        request: Request<v1::PreviewCalendarRequest>,
    ) -> Result<Response<v1::PreviewCalendarResponse>, Status> {
        let request = request.into_inner();
        let draft = CalendarDraft::from(request.calendar.unwrap_or_default());
        let asked = convert::asked(request.start.as_ref(), request.end.as_ref());
        let (expansion, standing) = self.calendars.preview(draft, asked).await?;
        Ok(Response::new(v1::PreviewCalendarResponse {
            spans: convert::spans(&expansion),
            stopped_early: expansion.stopped_early,
            in_window: Some(standing.in_window),
            next_change_time: standing.changes_ms.map(timestamp),
        }))
    }

    async fn expand_calendar(
        &self,
        request: Request<v1::ExpandCalendarRequest>,
    ) -> Result<Response<v1::ExpandCalendarResponse>, Status> {
        let request = request.into_inner();
        let asked = convert::asked(request.start.as_ref(), request.end.as_ref());
        let expansion = self.calendars.expand(&request.name, asked).await?;
        Ok(Response::new(v1::ExpandCalendarResponse {
            spans: convert::spans(&expansion),
            stopped_early: expansion.stopped_early,
        }))
    }
}
