//! Schedules: stored, edited, asked who is on call, and overridden for a while.

mod feed;
mod overrides;

use bellwether_proto::v1;

use crate::{
    calendar,
    clock::millis,
    decide::{Calendars, LoadedSchedule, OnCallSource, Shift, Shifts},
    domain::{
        Calendar, Contact, Name, Revised, RevisionOf, Schedule,
        calendar::{Window, WindowText},
        schedule::{Layer, Override, Slot},
    },
    error::Error,
    limits::{
        LAYER_NAME_CHARACTERS_MAX, SCHEDULE_CONTACTS_MAX, SCHEDULE_LAYERS_MAX, SCHEDULE_SLOTS_MAX,
        SCHEDULES_MAX, SHIFTS_MAX, SHIFTS_TIME_MAX,
    },
    ops::{
        etag::etag,
        oncall_watch,
        refers::Refers,
        resource::{self, Drafted, Origin, Resource as _, Resources, resource},
        revision,
        users::Users,
        validate::Faults,
        wire::{Shows, time::timestamp},
    },
    store::{Changes, Kind, Store},
};

/// How far a feed reaches into the past and ahead, in milliseconds.
const FEED_BACK_MS: i64 = 30 * 86_400_000;
/// See [`FEED_BACK_MS`].
const FEED_AHEAD_MS: i64 = 90 * 86_400_000;
/// How far ahead shifts are answered where no end is asked for.
const AHEAD_MS: i64 = 30 * 24 * 3_600_000;

/// Manages schedules.
pub type Schedules = Resources<Schedule>;

resource!(Schedule, v1::Schedule, "schedule", |was| Some(
    Revised::Schedule(was)
));

impl Drafted for Schedule {
    type Draft = v1::Schedule;
    type View = v1::Schedule;

    async fn checked(
        all: &Schedules,
        draft: &v1::Schedule,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.changes();
        let mut faults = Faults::default();
        let name = faults.name(&draft.name, stored.is_none());
        faults.texts(&draft.description, &draft.tags);
        let zone = if draft.time_zone.is_empty() {
            faults.add("timeZone", "is required: an IANA name, as Europe/Berlin");
            None
        } else {
            let zone = calendar::zone(&draft.time_zone);
            zone.map_err(|missing| faults.add("timeZone", missing.to_string()))
                .ok()
        };
        let count = draft.layers.len();
        let mut layers = Vec::with_capacity(count);
        if (1..=SCHEDULE_LAYERS_MAX).contains(&count) {
            let mut refers = Refers::of(all, stored, (&mut faults, &mut changes));
            for (at, layer) in draft.layers.iter().enumerate() {
                let mut under = Under {
                    path: format!("layers[{at}]"),
                    refers: &mut refers,
                };
                layers.extend(under.layer(layer, zone.as_ref()).await?);
            }
        } else {
            let fault = format!("holds {count} layers; give 1 to {SCHEDULE_LAYERS_MAX}");
            faults.add("layers", fault);
        }
        all.check_room(stored, SCHEDULES_MAX).await?;
        let schedule = name.map(|name| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            time_zone: draft.time_zone.clone(),
            layers,
            gaps_allowed: draft.gaps_allowed.unwrap_or_default(),
            overrides: stored.map(|it| it.overrides.clone()).unwrap_or_default(),
            feed_number: stored.map_or(0, |it| it.feed_number),
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((faults.or(schedule)?, changes))
    }

    async fn released(all: &Schedules, schedule: &Self, _force: bool) -> Result<Changes, Error> {
        let users = Users::of(&all.store, Kind::Schedule, &schedule.name).await?;
        users.refuse(Self::WORD, &schedule.name)?;
        let mut changes = all.store.changes();
        let now_ms = all.clock.now_ms();
        oncall_watch::close_for_deleted(&all.store, &schedule.name, now_ms, &mut changes).await?;
        Ok(changes)
    }

    async fn view(all: &Schedules, schedule: Self) -> Result<(v1::Schedule, usize), Error> {
        let loaded = loaded(&all.store, schedule.clone()).await?;
        let now_ms = all.clock.now_ms();
        let now = loaded.as_ref().map(|it| texts(it.at(now_ms).contacts));
        let next = loaded.as_ref().and_then(|it| it.next(now_ms));
        let view = v1::Schedule {
            on_call_names: now.unwrap_or_default(),
            next_change_time: next.as_ref().map(|it| timestamp(it.start_ms)),
            next_names: next.map(|it| texts(&it.contacts)).unwrap_or_default(),
            ..v1::Schedule::of(schedule)
        };
        Ok((view, 0))
    }
}

/// What is checked of one layer.
struct Under<'a, 'b> {
    path: String,
    refers: &'a mut Refers<'b>,
}

impl Under<'_, '_> {
    fn fault(&mut self, field: &str, fault: impl Into<String>) {
        self.refers
            .faults
            .add(format!("{}.{field}", self.path), fault);
    }

    /// The layer of a draft; none when something is wrong with it.
    async fn layer(
        &mut self,
        draft: &v1::ScheduleLayer,
        zone: Option<&jiff::tz::TimeZone>,
    ) -> Result<Option<Layer>, Error> {
        let characters = draft.name.chars().count();
        if characters > LAYER_NAME_CHARACTERS_MAX {
            let most = LAYER_NAME_CHARACTERS_MAX;
            self.fault(
                "name",
                format!("has {characters} characters; at most {most} are kept"),
            );
        }
        let hand_offs = self.hand_offs(draft, zone);
        let path = format!("{}.calendarName", self.path);
        let calendar = self.refers.if_any::<Calendar>(&path, &draft.calendar_name);
        let calendar = calendar.await?;
        let count = draft.slots.len();
        if !(1..=SCHEDULE_SLOTS_MAX).contains(&count) {
            let fault = format!("holds {count} slots; give 1 to {SCHEDULE_SLOTS_MAX}");
            self.fault("slots", fault);
            return Ok(None);
        }
        let mut slots = Vec::with_capacity(count);
        for (at, slot) in draft.slots.iter().enumerate() {
            let path = format!("{}.slots[{at}].contactNames", self.path);
            let contacts = contacts(self.refers, &path, &slot.contact_names, 1).await?;
            slots.push(Slot { contacts });
        }
        Ok(hand_offs.map(|hand_offs| Layer {
            name: draft.name.clone(),
            slots,
            hand_offs,
            calendar: calendar.map(|it| it.value.name),
        }))
    }

    fn hand_offs(
        &mut self,
        draft: &v1::ScheduleLayer,
        zone: Option<&jiff::tz::TimeZone>,
    ) -> Option<Window> {
        let text = WindowText {
            dtstart: draft.dtstart.clone(),
            duration: "P1D".into(),
            rrule: draft.rrule.clone(),
            ..WindowText::default()
        };
        match Window::read(&text) {
            Ok(window) => {
                let zone = zone.cloned().unwrap_or(jiff::tz::TimeZone::UTC);
                let checked = calendar::check(&window, &zone);
                let checked = checked.map_err(|(field, fault)| self.fault(field, fault));
                checked.ok().map(|()| window)
            }
            Err(found) => {
                for (field, fault) in found {
                    self.fault(&field, fault);
                }
                None
            }
        }
    }
}

async fn contacts(
    refers: &mut Refers<'_>,
    path: &str,
    names: &[String],
    least: usize,
) -> Result<Vec<Name>, Error> {
    let count = names.len();
    if !(least..=SCHEDULE_CONTACTS_MAX).contains(&count) {
        let fault = format!("holds {count} names; give {least} to {SCHEDULE_CONTACTS_MAX}");
        refers.faults.add(path, fault);
        return Ok(Vec::new());
    }
    let found = refers.many::<Contact>(path, names).await?;
    Ok(found.into_iter().map(|it| it.value.name).collect())
}

impl Shows<Schedule> for v1::Schedule {
    /// Who is on call is left out.
    fn of(schedule: Schedule) -> Self {
        let layer = |it: Layer| {
            let hand_offs = it.hand_offs.text();
            let slots = it.slots.iter();
            v1::ScheduleLayer {
                name: it.name,
                slots: slots
                    .map(|it| v1::ScheduleSlot {
                        contact_names: texts(&it.contacts),
                    })
                    .collect(),
                dtstart: hand_offs.dtstart,
                rrule: hand_offs.rrule,
                calendar_name: it.calendar.map(|it| it.to_string()).unwrap_or_default(),
            }
        };
        let mut overrides = schedule.overrides;
        overrides.sort_by_key(|it| it.start_ms);
        Self {
            name: schedule.name.to_string(),
            description: schedule.description,
            tags: schedule.tags,
            time_zone: schedule.time_zone,
            layers: schedule.layers.into_iter().map(layer).collect(),
            gaps_allowed: Some(schedule.gaps_allowed),
            overrides: overrides.into_iter().map(Shows::of).collect(),
            on_call_names: Vec::new(),
            next_change_time: None,
            next_names: Vec::new(),
            create_time: Some(timestamp(schedule.create_ms)),
            update_time: Some(timestamp(schedule.update_ms)),
            etag: etag(schedule.id, schedule.revision),
        }
    }
}

impl Shows<Override> for v1::ScheduleOverride {
    fn of(it: Override) -> Self {
        Self {
            id: it.id.to_string(),
            contact_names: texts(&it.contacts),
            start_time: Some(timestamp(it.start_ms)),
            end_time: Some(timestamp(it.end_ms)),
            reason: it.reason,
            author: it.author.map(|it| it.to_string()).unwrap_or_default(),
        }
    }
}

/// A schedule with the calendars that it names, ready to be asked; none when this machine does not know
/// its zone any more.
async fn loaded(store: &Store, schedule: Schedule) -> Result<Option<LoadedSchedule>, Error> {
    let read = async |names: Vec<&Name>| {
        let keys = names.into_iter().map(|it| it.as_str().into());
        let found = store.get_many::<Calendar>(keys.collect()).await?;
        let found = found.into_iter().flatten().map(|it| it.value);
        Ok::<Vec<_>, Error>(found.collect())
    };
    let mut calendars = read(schedule.calendars().collect()).await?;
    let except = calendars.iter().flat_map(|it| &it.except).collect();
    let except = read(except).await?;
    calendars.extend(except);
    let calendars = Calendars::new(calendars.iter());
    Ok(LoadedSchedule::new(schedule, &calendars).ok())
}

fn missing_zone(zone: &str) -> Error {
    Error::FailedPrecondition(format!("its time zone `{zone}` is not known here any more"))
}

/// Names as the wire carries them.
fn texts(names: &[Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Who is on call at a moment.
#[derive(Debug)]
pub struct OnCallThen {
    /// The contacts.
    pub contacts: Vec<String>,
    /// What put them on call.
    pub source: String,
    /// When that changes; none when it does not for 400 days, and for the past.
    pub until_ms: Option<i64>,
    /// Which revision of the schedule answers.
    pub revision: u64,
}

/// What a draft of a schedule would do in the next 30 days.
#[derive(Debug)]
pub struct SchedulePreview {
    /// Its shifts.
    pub shifts: Shifts,
    /// The draft.
    pub schedule: Schedule,
    /// The time for which it puts others on call: from when to when, and who before and after.
    pub differences: Vec<v1::ShiftDifference>,
}

impl Schedules {
    /// Who is on call; without a moment, now. The past is answered by the revision that was in force.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for a moment before the oldest revision that is kept.
    pub async fn on_call(&self, name: &str, at_ms: Option<i64>) -> Result<OnCallThen, Error> {
        let current = resource::find::<Schedule>(&self.store, name).await?.value;
        let at_ms = at_ms.unwrap_or_else(|| self.clock.now_ms());
        let newest = current.revision;
        let schedule = if at_ms >= current.update_ms {
            current
        } else {
            let kept = revision::of_name(&self.store, RevisionOf::Schedule, &current.name).await?;
            let then = kept.into_iter().find_map(|it| {
                let is_then = (it.since_ms()..it.until_ms).contains(&at_ms);
                match it.was {
                    Revised::Schedule(was) if is_then => Some(was),
                    _ => None,
                }
            });
            then.ok_or_else(|| {
                Error::NotFound(format!(
                    "schedule `{name}` has no revision of that time: it was not there, or the \
                     revision is no longer kept"
                ))
            })?
        };
        let zone = schedule.time_zone.clone();
        let loaded = loaded(&self.store, schedule).await?;
        let loaded = loaded.ok_or_else(|| missing_zone(&zone))?;
        let then = loaded.at(at_ms);
        let next = loaded
            .next(at_ms)
            .filter(|_| loaded.schedule.revision == newest);
        Ok(OnCallThen {
            contacts: texts(then.contacts),
            source: source(then.source, &loaded.schedule),
            until_ms: next.map(|it| it.start_ms),
            revision: loaded.schedule.revision,
        })
    }

    /// The shifts of a range, as the schedule is now.
    ///
    /// # Errors
    /// [`Error::NotFound`], and [`Error::Invalid`] for a range that is empty or too long.
    pub async fn shifts(
        &self,
        name: &str,
        (start_ms, end_ms): (Option<i64>, Option<i64>),
    ) -> Result<(Schedule, Shifts), Error> {
        let schedule = resource::find::<Schedule>(&self.store, name).await?.value;
        let start_ms = start_ms.unwrap_or_else(|| self.clock.now_ms());
        let end_ms = end_ms.unwrap_or_else(|| start_ms.saturating_add(AHEAD_MS));
        if end_ms <= start_ms {
            return Err(Error::invalid("end", "is not after `start`"));
        } else if end_ms.saturating_sub(start_ms) > millis(SHIFTS_TIME_MAX) {
            let days = SHIFTS_TIME_MAX.as_secs() / 86_400;
            let fault = format!("is more than {days} d after `start`");
            return Err(Error::invalid("end", fault));
        }
        let loaded = loaded(&self.store, schedule.clone()).await?;
        let loaded = loaded.ok_or_else(|| missing_zone(&schedule.time_zone))?;
        Ok((schedule, loaded.shifts(start_ms, end_ms, SHIFTS_MAX)))
    }

    /// The shifts that a feed has: of the last 30 days and the next 90.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn feed(&self, name: &str) -> Result<(Schedule, Shifts), Error> {
        // From the start of a day: a shift that is cut there is the same in each answer of that day.
        let now_ms = self.clock.now_ms();
        let now_ms = now_ms - now_ms.rem_euclid(86_400_000);
        let range = (
            now_ms.saturating_sub(FEED_BACK_MS),
            now_ms.saturating_add(FEED_AHEAD_MS),
        );
        self.shifts(name, (Some(range.0), Some(range.1))).await
    }

    /// The next 30 days of a draft; nothing is stored, and the draft needs no name.
    ///
    /// # Errors
    /// [`Error::Invalid`] with everything that is wrong.
    pub async fn preview(&self, mut draft: v1::Schedule) -> Result<SchedulePreview, Error> {
        let name = Name::parse(&draft.name).ok();
        let stored = match &name {
            Some(name) => self.store.get::<Schedule>(name.as_str().into()).await?,
            None => None,
        };
        let stored = stored.map(|it| it.value);
        if draft.name.is_empty() {
            "preview".clone_into(&mut draft.name);
        }
        let now_ms = self.clock.now_ms();
        let origin = Origin::new(now_ms);
        let (schedule, _) = Schedule::checked(self, &draft, stored.as_ref(), origin).await?;
        let new = loaded(&self.store, schedule).await?;
        let new = new.ok_or_else(|| missing_zone(&draft.time_zone))?;
        let end_ms = now_ms.saturating_add(AHEAD_MS);
        let shifts = new.shifts(now_ms, end_ms, SHIFTS_MAX);
        let old = match stored {
            Some(stored) => loaded(&self.store, stored).await?,
            None => None,
        };
        let differences = old.map(|old| {
            let before = old.shifts(now_ms, end_ms, SHIFTS_MAX);
            differences(&before.shifts, &shifts.shifts)
        });
        Ok(SchedulePreview {
            shifts,
            schedule: new.schedule,
            differences: differences.unwrap_or_default(),
        })
    }
}

/// The stretches for which others are on call; both lists cover the same time without holes.
fn differences(before: &[Shift], after: &[Shift]) -> Vec<v1::ShiftDifference> {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    let mut found: Vec<v1::ShiftDifference> = Vec::new();
    while let (Some(was), Some(is)) = (old.peek(), new.peek()) {
        let start = Some(timestamp(was.start_ms.max(is.start_ms)));
        let end_ms = was.end_ms.min(is.end_ms);
        if was.contacts != is.contacts {
            let (was, is) = (texts(&was.contacts), texts(&is.contacts));
            match found.last_mut() {
                Some(last)
                    if last.end_time == start
                        && last.contact_names == is
                        && last.contact_names_before == was =>
                {
                    last.end_time = Some(timestamp(end_ms));
                }
                _ => found.push(v1::ShiftDifference {
                    start_time: start,
                    end_time: Some(timestamp(end_ms)),
                    contact_names_before: was,
                    contact_names: is,
                }),
            }
        }
        let (old_ends, new_ends) = (was.end_ms == end_ms, is.end_ms == end_ms);
        if old_ends {
            old.next();
        }
        if new_ends {
            new.next();
        }
    }
    found
}

/// What put contacts on call, as people know it.
pub fn source(source: OnCallSource, schedule: &Schedule) -> String {
    match source {
        OnCallSource::Override => "override".into(),
        OnCallSource::NoOne => String::new(),
        OnCallSource::Layer(at) => {
            let layer = schedule.layers.get(at).filter(|it| !it.name.is_empty());
            layer.map_or_else(|| format!("layer {}", at + 1), |it| it.name.clone())
        }
    }
}

/// A shift as readers get it.
pub fn shown(shift: &Shift, schedule: &Schedule) -> v1::Shift {
    v1::Shift {
        start_time: Some(timestamp(shift.start_ms)),
        end_time: Some(timestamp(shift.end_ms)),
        contact_names: texts(&shift.contacts),
        source: source(shift.source, schedule),
    }
}
