//! Calendars: service, storage, editing, expansion into spans, and deletion of unused ones.

use std::sync::Arc;

use bellwether_backend_model::calendar::{self, CalendarStatus, PreparedCalendar, Span};
use bellwether_proto::v1::{self, calendar_service_server::CalendarService};
use prost_types::Timestamp;
use tonic::{Request, Response, Status, async_trait};

use crate::{
    domain::{
        Calendar, Name,
        calendar::{Window, WindowText},
    },
    ended_uses::users_in_force,
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{CALENDAR_EXCEPT_MAX, CALENDAR_SPANS_MAX, CALENDAR_WINDOWS_MAX, CALENDARS_MAX},
    references::References,
    refers::ReferenceChecker,
    resource::{self, AuthoredResource, Origin, Resource as _, Resources, resource},
    serve::serve,
    store::{Changes, Kind, Store},
    validate::Violations,
    wire::time::{self, timestamp},
};

const AHEAD_MS: i64 = 31 * 24 * 3_600_000;

#[derive(Debug)]
pub struct Expansion {
    pub prepared: PreparedCalendar,
    pub spans: Vec<Span>,
    pub stopped_early: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ExpansionSpan {
    /// Start of the range; `None` means now.
    pub start_ms: Option<i64>,
    /// End of the range; `None` means a month after the start.
    pub end_ms: Option<i64>,
}

pub type Calendars = Resources<Calendar>;

resource!(Calendar, v1::Calendar, "calendar", |_| None);

#[derive(Debug)]
pub struct CalendarApi {
    pub calendars: Calendars,
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
        let span = requested_span(request.start.as_ref(), request.end.as_ref());
        let (expansion, standing) = self.calendars.preview(draft, span).await?;
        Ok(Response::new(v1::PreviewCalendarResponse {
            spans: spans_to_wire(&expansion),
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
        let span = requested_span(request.start.as_ref(), request.end.as_ref());
        let expansion = self.calendars.expand(&request.name, span).await?;
        Ok(Response::new(v1::ExpandCalendarResponse {
            spans: spans_to_wire(&expansion),
            stopped_early: expansion.stopped_early,
        }))
    }
}

fn requested_span(start: Option<&Timestamp>, end: Option<&Timestamp>) -> ExpansionSpan {
    ExpansionSpan {
        start_ms: start.map(time::to_millis),
        end_ms: end.map(time::to_millis),
    }
}

fn spans_to_wire(expansion: &Expansion) -> Vec<v1::CalendarSpan> {
    let local = |at_ms| {
        let local = expansion.prepared.to_local_time(at_ms);
        local.map_or_else(String::new, |it| it.to_string())
    };
    let span = |it: &Span| v1::CalendarSpan {
        start_time: Some(timestamp(it.start_ms)),
        end_time: Some(timestamp(it.end_ms)),
        local_start: local(it.start_ms),
        local_end: local(it.end_ms),
        longer_by: (it.longer_ms != 0).then_some(prost_types::Duration {
            seconds: it.longer_ms / 1_000,
            nanos: 0,
        }),
    };
    expansion.spans.iter().map(span).collect()
}

impl AuthoredResource for Calendar {
    type Draft = v1::Calendar;
    type View = v1::Calendar;

    async fn from_draft(
        all: &Calendars,
        draft: &v1::Calendar,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.new_changes();
        let mut violations = Violations::default();
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        let windows = windows(draft, &mut violations);
        let mut except = Vec::new();
        let requested = &draft.except_calendar_names;
        if requested.len() > CALENDAR_EXCEPT_MAX {
            let count = requested.len();
            let message = format!("has {count} names; the limit is {CALENDAR_EXCEPT_MAX}");
            violations.add(EXCEPT_PATH, message);
        } else {
            let mut refers = ReferenceChecker::new(all, stored, (&mut violations, &mut changes));
            except = refers.resolve_all::<Self>(EXCEPT_PATH, requested).await?;
        }
        for (at, other) in except.iter().enumerate() {
            let field = format!("{EXCEPT_PATH}[{at}]");
            if name.as_ref() == Some(&other.value.name) {
                violations.add(field, "must not be the calendar itself");
            } else if !other.value.except.is_empty() {
                let message = "must not exclude other calendars, because it is excluded itself";
                violations.add(field, message);
            }
        }
        if let (Some(name), false) = (&name, except.is_empty()) {
            let references = References::find(&all.store, Kind::Calendar, name).await?;
            if let Some(user) = references.first_user("calendar") {
                let message = format!("is not allowed: calendar `{user}` excludes this calendar");
                violations.add(EXCEPT_PATH, message);
            }
        }
        all.check_room(stored, CALENDARS_MAX).await?;
        let calendar = name.zip(windows).map(|(name, windows)| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            time_zone: draft.time_zone.clone(),
            windows,
            except: except.iter().map(|it| it.value.name.clone()).collect(),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(calendar)?, changes))
    }

    async fn changes_on_delete(
        all: &Calendars,
        calendar: &Self,
        _force: bool,
    ) -> Result<Changes, Error> {
        let mut changes = all.store.new_changes();
        let used = (Kind::Calendar, &calendar.name);
        let users = users_in_force(&all.store, used, all.clock.now_ms(), &mut changes).await?;
        users.ensure_unused(Self::WORD, &calendar.name)?;
        Ok(changes)
    }

    async fn view(all: &Calendars, calendar: Self) -> Result<(v1::Calendar, usize), Error> {
        let used = (Kind::Calendar, &calendar.name);
        // Excluded calendars must exist for as long as the calendar does.
        let mut unused = all.store.new_changes();
        let users = users_in_force(&all.store, used, all.clock.now_ms(), &mut unused).await?;
        let prepared = prepare_calendar(&all.store, &calendar).await?;
        let standing = prepared.map(|it| it.status_at(all.clock.now_ms()));
        let user = |(kind, name): (&str, &Name)| v1::CalendarUser {
            kind: kind.to_owned(),
            name: name.to_string(),
        };
        let view = v1::Calendar {
            in_window: standing.map(|it| it.in_window),
            next_change_time: standing.and_then(|it| it.changes_ms).map(timestamp),
            used_by: users.iter().map(user).collect(),
            ..v1::Calendar::from_domain(calendar)
        };
        Ok((view, users.bytes()))
    }
}

impl FromDomain<Calendar> for v1::Calendar {
    fn from_domain(calendar: Calendar) -> Self {
        Self {
            name: calendar.name.to_string(),
            description: calendar.description,
            tags: calendar.tags,
            time_zone: calendar.time_zone,
            windows: calendar.windows.iter().map(window_view).collect(),
            except_calendar_names: calendar.except.iter().map(ToString::to_string).collect(),
            in_window: None,
            next_change_time: None,
            used_by: Vec::new(),
            create_time: Some(timestamp(calendar.create_ms)),
            update_time: Some(timestamp(calendar.update_ms)),
            etag: compute_etag(calendar.id, calendar.revision),
        }
    }
}

const EXCEPT_PATH: &str = "exceptCalendarNames";

impl Calendars {
    /// Returns the spans of a stored calendar.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if the calendar does not exist, [`Error::Invalid`] if the end is
    /// before the start, and [`Error::FailedPrecondition`] if the time zone is no longer installed
    /// on this machine.
    pub async fn expand(&self, name: &str, span: ExpansionSpan) -> Result<Expansion, Error> {
        let stored = resource::find::<Calendar>(&self.store, name).await?;
        let found = prepare_calendar(&self.store, &stored.value).await?;
        let missing = || {
            let zone = &stored.value.time_zone;
            Error::FailedPrecondition(format!("time zone `{zone}` is no longer installed"))
        };
        self.expand_prepared(found.ok_or_else(missing)?, span)
    }

    /// Returns the spans of a draft. The draft is not stored and requires no name.
    pub async fn preview(
        &self,
        mut draft: v1::Calendar,
        span: ExpansionSpan,
    ) -> Result<(Expansion, CalendarStatus), Error> {
        let name = Name::parse(&draft.name).ok();
        let stored = match &name {
            Some(name) => self.store.get::<Calendar>(name.as_str().into()).await?,
            None => None,
        };
        if draft.name.is_empty() {
            "preview".clone_into(&mut draft.name);
        }
        let stored = stored.map(|it| it.value);
        let origin = Origin::new(self.clock.now_ms());
        let (calendar, _) = Calendar::from_draft(self, &draft, stored.as_ref(), origin).await?;
        let prepared = prepare_calendar(&self.store, &calendar).await?;
        let missing = || Error::invalid("timeZone", calendar::MissingZone.to_string());
        let expansion = self.expand_prepared(prepared.ok_or_else(missing)?, span)?;
        let standing = expansion.prepared.status_at(self.clock.now_ms());
        Ok((expansion, standing))
    }

    fn expand_prepared(
        &self,
        prepared: PreparedCalendar,
        span: ExpansionSpan,
    ) -> Result<Expansion, Error> {
        let start_ms = span.start_ms.unwrap_or_else(|| self.clock.now_ms());
        let end_ms = span
            .end_ms
            .unwrap_or_else(|| start_ms.saturating_add(AHEAD_MS));
        if end_ms <= start_ms {
            return Err(Error::invalid("end", "must be after `start`"));
        }
        let found = prepared.spans_between(start_ms, end_ms);
        let mut spans = found.spans;
        let stopped_early = found.until_ms < end_ms || spans.len() > CALENDAR_SPANS_MAX;
        spans.truncate(CALENDAR_SPANS_MAX);
        Ok(Expansion {
            prepared,
            spans,
            stopped_early,
        })
    }
}

/// Prepares a calendar and its excluded calendars for lookups; `None` if a time zone is unknown.
async fn prepare_calendar(
    store: &Store,
    calendar: &Calendar,
) -> Result<Option<PreparedCalendar>, Error> {
    let keys = calendar.except.iter().map(|it| it.as_str().into());
    let others = store.get_many::<Calendar>(keys.collect()).await?;
    let mut except = Vec::new();
    for other in others.into_iter().flatten() {
        match PreparedCalendar::new(&other.value, Vec::new()) {
            Ok(other) => except.push(Arc::new(other)),
            Err(_missing) => return Ok(None),
        }
    }
    Ok(PreparedCalendar::new(calendar, except).ok())
}

fn windows(draft: &v1::Calendar, violations: &mut Violations) -> Option<Vec<Window>> {
    let zone = if draft.time_zone.is_empty() {
        violations.add(
            "timeZone",
            "is required: an IANA name such as Europe/Berlin",
        );
        None
    } else {
        let zone = calendar::find_zone(&draft.time_zone);
        zone.map_err(|missing| violations.add("timeZone", missing.to_string()))
            .ok()
    };
    let count = draft.windows.len();
    if !(1..=CALENDAR_WINDOWS_MAX).contains(&count) {
        let message = format!("has {count} windows; expected 1 to {CALENDAR_WINDOWS_MAX}");
        violations.add("windows", message);
        return None;
    }
    let mut windows = Vec::with_capacity(count);
    for (at, window) in draft.windows.iter().enumerate() {
        match Window::parse(&text(window)) {
            Ok(window) => {
                let zone = zone.clone().unwrap_or(jiff::tz::TimeZone::UTC);
                match calendar::check_calendar(&window, &zone) {
                    Ok(()) => windows.push(window),
                    Err((field, message)) => {
                        violations.add(format!("windows[{at}].{field}"), message);
                    }
                }
            }
            Err(found) => {
                for (field, message) in found {
                    violations.add(format!("windows[{at}].{field}"), message);
                }
            }
        }
    }
    (windows.len() == count).then_some(windows)
}

fn text(wire: &v1::CalendarWindow) -> WindowText {
    let it = wire.clone();
    WindowText {
        dtstart: it.dtstart,
        duration: it.duration,
        end_time_of_day: it.end_time_of_day,
        rrule: it.rrule,
        exdate: it.exdate,
        rdate: it.rdate,
    }
}

fn window_view(window: &Window) -> v1::CalendarWindow {
    let it = window.to_text();
    v1::CalendarWindow {
        dtstart: it.dtstart,
        duration: it.duration,
        end_time_of_day: it.end_time_of_day,
        rrule: it.rrule,
        exdate: it.exdate,
        rdate: it.rdate,
    }
}
