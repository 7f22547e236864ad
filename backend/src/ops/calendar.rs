//! Calendars: stored, edited, asked when their spans are, and deleted when nothing uses them.

mod users;

use std::sync::Arc;

use crate::{
    calendar::{self, CalendarStatus, Prepared, Span},
    domain::{
        Calendar, Name,
        calendar::{Window, WindowText},
    },
    error::{Error, Reason},
    limits::{CALENDAR_EXCEPT_MAX, CALENDAR_SPANS_MAX, CALENDAR_WINDOWS_MAX, CALENDARS_MAX},
    ops::{
        resource::{self, Drafted, Origin, Resources},
        validate::Faults,
    },
    store::{Changes, Direction, Store, engine::Range},
};
use users::calendar_users;

pub use users::CalendarUsers;

/// How far ahead is answered where no end is asked for.
const AHEAD_MS: i64 = 31 * 24 * 3_600_000;

/// A calendar as its author describes it, not checked yet.
#[derive(Debug, Clone, Default)]
pub struct CalendarDraft {
    /// Its name.
    pub name: String,
    /// For people.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// The zone of its local times.
    pub time_zone: String,
    /// Its windows.
    pub windows: Vec<WindowText>,
    /// The calendars whose windows are taken out.
    pub except: Vec<String>,
    /// For an update: the etag that must be current; empty asks for no check.
    pub etag: String,
}

/// A calendar, and what is known about it now.
#[derive(Debug, Clone)]
pub struct CalendarView {
    /// The calendar.
    pub calendar: Calendar,
    /// Whether it is in a window; none when this machine does not know its zone.
    pub standing: Option<CalendarStatus>,
    /// What uses it.
    pub users: CalendarUsers,
}

/// The spans of a calendar.
#[derive(Debug)]
pub struct Expansion {
    /// The calendar, ready to be asked for local times.
    pub prepared: Prepared,
    /// The spans, in order.
    pub spans: Vec<Span>,
    /// Whether there may be more.
    pub stopped_early: bool,
}

/// The time that is asked for, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, Default)]
pub struct ExpansionSpan {
    /// From when on; none for now.
    pub start_ms: Option<i64>,
    /// Up to when; none for a month later.
    pub end_ms: Option<i64>,
}

/// Manages calendars.
pub type Calendars = Resources<Calendar>;

impl Drafted for Calendar {
    type Draft = CalendarDraft;
    type View = CalendarView;

    fn named(draft: &CalendarDraft) -> (&str, &str) {
        (&draft.name, &draft.etag)
    }

    async fn checked(
        all: &Calendars,
        draft: &CalendarDraft,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.changes();
        let mut faults = Faults::default();
        let name = faults.name(&draft.name, stored.is_none());
        faults.texts(&draft.description, &draft.tags);
        let windows = windows(draft, &mut faults);
        let mut except = Vec::new();
        if draft.except.len() > CALENDAR_EXCEPT_MAX {
            let count = draft.except.len();
            let fault = format!("holds {count} names; at most {CALENDAR_EXCEPT_MAX} are kept");
            faults.add(EXCEPT_PATH, fault);
        } else {
            except = all
                .referred::<Self>(EXCEPT_PATH, &draft.except, &mut faults)
                .await?;
        }
        for (at, other) in except.iter().enumerate() {
            let field = format!("{EXCEPT_PATH}[{at}]");
            if name.as_ref() == Some(&other.value.name) {
                faults.add(field, "is the calendar itself");
            } else if !other.value.except.is_empty() {
                let fault = "excludes other calendars; an excluded calendar cannot";
                faults.add(field, fault);
            }
            changes.touch(other);
        }
        if let (Some(name), false) = (&name, except.is_empty()) {
            let users = calendar_users(&all.store, name).await?;
            if let Some(user) = users.calendars.first() {
                let fault = format!("is not allowed: calendar `{user}` excludes this one");
                faults.add(EXCEPT_PATH, fault);
            }
        }
        if stored.is_none() && count(&all.store).await? >= CALENDARS_MAX {
            return Err(Error::Exhausted {
                message: format!("there are {CALENDARS_MAX} calendars; delete some first"),
                retry_after: None,
            });
        }
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
        Ok((faults.or(calendar)?, changes))
    }

    async fn released(all: &Calendars, calendar: &Self, _force: bool) -> Result<Changes, Error> {
        let users = calendar_users(&all.store, &calendar.name).await?;
        match users.describe() {
            None => Ok(all.store.changes()),
            Some(users) => Err(Error::Refused {
                reason: Reason::InUse,
                message: format!(
                    "calendar `{}` is used by {users}; remove it there first",
                    calendar.name
                ),
            }),
        }
    }

    fn bare(self) -> CalendarView {
        CalendarView {
            calendar: self,
            standing: None,
            users: CalendarUsers::default(),
        }
    }

    async fn view(all: &Calendars, calendar: Self) -> Result<(CalendarView, usize), Error> {
        let users = calendar_users(&all.store, &calendar.name).await?;
        let prepared = prepared(&all.store, &calendar).await?;
        let bytes = users.bytes();
        let view = CalendarView {
            standing: prepared.map(|it| it.at(all.clock.now_ms())),
            users,
            calendar,
        };
        Ok((view, bytes))
    }
}

/// Where the calendars that are taken out are in a request.
const EXCEPT_PATH: &str = "exceptCalendarNames";

impl Calendars {
    /// The spans of a stored calendar.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Invalid`] when the end is before the start, and
    /// [`Error::FailedPrecondition`] when this machine does not know the zone any more.
    pub async fn expand(&self, name: &str, asked: ExpansionSpan) -> Result<Expansion, Error> {
        let stored = resource::find::<Calendar>(&self.store, name).await?;
        let found = prepared(&self.store, &stored.value).await?;
        let missing = || {
            let zone = &stored.value.time_zone;
            Error::FailedPrecondition(format!("its time zone `{zone}` is not known here any more"))
        };
        self.expanded(found.ok_or_else(missing)?, asked)
    }

    /// The spans of a draft; nothing is stored, and the draft needs no name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong.
    pub async fn preview(
        &self,
        mut draft: CalendarDraft,
        asked: ExpansionSpan,
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
        let (calendar, _) = Calendar::checked(self, &draft, stored.as_ref(), origin).await?;
        let prepared = prepared(&self.store, &calendar).await?;
        let missing = || Error::invalid("timeZone", calendar::MissingZone.to_string());
        let expansion = self.expanded(prepared.ok_or_else(missing)?, asked)?;
        let standing = expansion.prepared.at(self.clock.now_ms());
        Ok((expansion, standing))
    }

    fn expanded(&self, prepared: Prepared, asked: ExpansionSpan) -> Result<Expansion, Error> {
        let start_ms = asked.start_ms.unwrap_or_else(|| self.clock.now_ms());
        let end_ms = asked
            .end_ms
            .unwrap_or_else(|| start_ms.saturating_add(AHEAD_MS));
        if end_ms <= start_ms {
            return Err(Error::invalid("end", "is not after `start`"));
        }
        let found = prepared.between(start_ms, end_ms);
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

/// A calendar with those that it takes out, ready to be asked; none when a zone is not known here.
async fn prepared(store: &Store, calendar: &Calendar) -> Result<Option<Prepared>, Error> {
    let keys = calendar.except.iter().map(|it| it.as_str().into());
    let others = store.get_many::<Calendar>(keys.collect()).await?;
    let mut except = Vec::new();
    for other in others.into_iter().flatten() {
        match Prepared::new(&other.value, Vec::new()) {
            Ok(other) => except.push(Arc::new(other)),
            Err(_missing) => return Ok(None),
        }
    }
    Ok(Prepared::new(calendar, except).ok())
}

fn windows(draft: &CalendarDraft, faults: &mut Faults) -> Option<Vec<Window>> {
    let zone = if draft.time_zone.is_empty() {
        faults.add("timeZone", "is required: an IANA name, as Europe/Berlin");
        None
    } else {
        let zone = calendar::zone(&draft.time_zone);
        zone.map_err(|missing| faults.add("timeZone", missing.to_string()))
            .ok()
    };
    let count = draft.windows.len();
    if !(1..=CALENDAR_WINDOWS_MAX).contains(&count) {
        let fault = format!("holds {count} windows; give 1 to {CALENDAR_WINDOWS_MAX}");
        faults.add("windows", fault);
        return None;
    }
    let mut windows = Vec::with_capacity(count);
    for (at, text) in draft.windows.iter().enumerate() {
        match Window::read(text) {
            Ok(window) => {
                let zone = zone.clone().unwrap_or(jiff::tz::TimeZone::UTC);
                match calendar::check(&window, &zone) {
                    Ok(()) => windows.push(window),
                    Err((field, fault)) => faults.add(format!("windows[{at}].{field}"), fault),
                }
            }
            Err(found) => {
                for (field, fault) in found {
                    faults.add(format!("windows[{at}].{field}"), fault);
                }
            }
        }
    }
    (windows.len() == count).then_some(windows)
}

async fn count(store: &Store) -> Result<usize, Error> {
    let all = Range::under(&[]);
    let page = store.page::<Calendar>(all, Direction::Ascending, CALENDARS_MAX);
    Ok(page.await?.len())
}
