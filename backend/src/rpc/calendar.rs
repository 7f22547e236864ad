//! `CalendarService`.

use bellwether_proto::v1::{self, calendar_service_server::CalendarService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    convert::{calendar as convert, time::timestamp},
    serve::serve,
};
use crate::ops::calendar::Calendars;

#[derive(Debug)]
pub struct CalendarApi {
    pub(crate) calendars: Calendars,
}

#[async_trait]
impl CalendarService for CalendarApi {
    serve! {
        calendars of calendar;
        create_calendar(CreateCalendarRequest) -> CreateCalendarResponse;
        list_calendars(ListCalendarsRequest) -> ListCalendarsResponse { calendars };
        get_calendar(GetCalendarRequest) -> GetCalendarResponse;
        update_calendar(UpdateCalendarRequest) -> UpdateCalendarResponse;
        delete_calendar(DeleteCalendarRequest) -> DeleteCalendarResponse, |it| it.force;
    }

    async fn preview_calendar(
        &self,
        request: Request<v1::PreviewCalendarRequest>,
    ) -> Result<Response<v1::PreviewCalendarResponse>, Status> {
        let request = request.into_inner();
        let draft = request.calendar.unwrap_or_default();
        let span = convert::requested_span(request.start.as_ref(), request.end.as_ref());
        let (expansion, standing) = self.calendars.preview(draft, span).await?;
        Ok(Response::new(v1::PreviewCalendarResponse {
            spans: convert::spans_to_wire(&expansion),
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
        let span = convert::requested_span(request.start.as_ref(), request.end.as_ref());
        let expansion = self.calendars.expand(&request.name, span).await?;
        Ok(Response::new(v1::ExpandCalendarResponse {
            spans: convert::spans_to_wire(&expansion),
            stopped_early: expansion.stopped_early,
        }))
    }
}
