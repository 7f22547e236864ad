//! Schedules: validation, storage, on-call queries and overrides.

mod feed;
mod history;
mod layers;
mod overrides;
mod shifts;

use bellwether_backend_model::calendar;
use bellwether_proto::v1;

use crate::{
    decide::{Calendars, LoadedSchedule},
    domain::{
        Calendar, Name, RevisedResource, Schedule,
        schedule::{Layer, Override},
    },
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{SCHEDULE_LAYERS_MAX, SCHEDULES_MAX},
    oncall_watch,
    references::References,
    refers::ReferenceChecker,
    resource::{AuthoredResource, Origin, Resource as _, Resources, resource},
    store::{Changes, Kind, Store},
    validate::Violations,
    wire::time::timestamp,
};
use layers::LayerChecker;

pub use shifts::{OnCallAt, SchedulePreview, ShownShift, ShownShifts};

pub type Schedules = Resources<Schedule>;

resource!(Schedule, v1::Schedule, "schedule", |was| Some(
    RevisedResource::Schedule(was)
));

impl AuthoredResource for Schedule {
    type Draft = v1::Schedule;
    type View = v1::Schedule;

    async fn from_draft(
        all: &Schedules,
        draft: &v1::Schedule,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.new_changes();
        let mut violations = Violations::default();
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
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
        let count = draft.layers.len();
        let mut layers = Vec::with_capacity(count);
        if (1..=SCHEDULE_LAYERS_MAX).contains(&count) {
            let mut refers = ReferenceChecker::new(all, stored, (&mut violations, &mut changes));
            for (at, layer) in draft.layers.iter().enumerate() {
                let mut under = LayerChecker {
                    path: format!("layers[{at}]"),
                    refers: &mut refers,
                };
                layers.extend(under.check_layer(layer, zone.as_ref()).await?);
            }
        } else {
            let message = format!("has {count} layers; expected 1 to {SCHEDULE_LAYERS_MAX}");
            violations.add("layers", message);
        }
        all.check_room(stored, SCHEDULES_MAX).await?;
        let mut schedule = name.map(|name| Self {
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
        if let (true, Some(stored), Some(schedule)) = (draft.keep_current, stored, &mut schedule) {
            all.retain_current_contacts(stored, schedule, &mut violations)
                .await?;
        }
        Ok((violations.into_result(schedule)?, changes))
    }

    async fn changes_on_delete(
        all: &Schedules,
        schedule: &Self,
        _force: bool,
    ) -> Result<Changes, Error> {
        let references = References::find(&all.store, Kind::Schedule, &schedule.name).await?;
        references.ensure_unused(Self::WORD, &schedule.name)?;
        let mut changes = all.store.new_changes();
        let now_ms = all.clock.now_ms();
        oncall_watch::close_for_deleted(&all.store, &schedule.name, now_ms, &mut changes).await?;
        Ok(changes)
    }

    async fn view(all: &Schedules, schedule: Self) -> Result<(v1::Schedule, usize), Error> {
        let loaded = load_schedule(&all.store, schedule.clone()).await?;
        let now_ms = all.clock.now_ms();
        let now = loaded
            .as_ref()
            .map(|it| name_texts(it.on_call_at(now_ms).contacts));
        let next = loaded.as_ref().and_then(|it| it.next(now_ms));
        let view = v1::Schedule {
            on_call_names: now.unwrap_or_default(),
            next_change_time: next.as_ref().map(|it| timestamp(it.start_ms)),
            next_names: next.map(|it| name_texts(&it.contacts)).unwrap_or_default(),
            ..v1::Schedule::from_domain(schedule)
        };
        Ok((view, 0))
    }
}

impl FromDomain<Schedule> for v1::Schedule {
    fn from_domain(schedule: Schedule) -> Self {
        let layer = |it: Layer| {
            let hand_offs = it.hand_offs.to_text();
            let slots = it.slots.iter();
            v1::ScheduleLayer {
                name: it.name,
                slots: slots
                    .map(|it| v1::ScheduleSlot {
                        contact_names: name_texts(&it.contacts),
                    })
                    .collect(),
                dtstart: hand_offs.dtstart,
                rrule: hand_offs.rrule,
                calendar_name: it.calendar.map(|it| it.to_string()).unwrap_or_default(),
                from: it.from.map(|it| it.to_string()).unwrap_or_default(),
                until: it.until.map(|it| it.to_string()).unwrap_or_default(),
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
            overrides: overrides.into_iter().map(FromDomain::from_domain).collect(),
            on_call_names: Vec::new(),
            next_change_time: None,
            next_names: Vec::new(),
            create_time: Some(timestamp(schedule.create_ms)),
            update_time: Some(timestamp(schedule.update_ms)),
            etag: compute_etag(schedule.id, schedule.revision),
            keep_current: false,
        }
    }
}

impl FromDomain<Override> for v1::ScheduleOverride {
    fn from_domain(it: Override) -> Self {
        Self {
            id: it.id.to_string(),
            contact_names: name_texts(&it.contacts),
            start_time: Some(timestamp(it.start_ms)),
            end_time: Some(timestamp(it.end_ms)),
            reason: it.reason,
            author: it.author.map(|it| it.to_string()).unwrap_or_default(),
        }
    }
}

/// Loads a schedule with its calendars. `None` if its time zone is no longer installed on this
/// machine.
async fn load_schedule(store: &Store, schedule: Schedule) -> Result<Option<LoadedSchedule>, Error> {
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
    Error::FailedPrecondition(format!("time zone `{zone}` is no longer installed"))
}

fn name_texts(names: &[Name]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests;
