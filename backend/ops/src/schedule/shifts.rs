//! Shifts: the contacts on call at a time, and the changes that a draft would make.

use bellwether_proto::v1;

use super::{Schedules, load_schedule, missing_zone, name_texts};
use crate::{
    clock::to_millis,
    decide::{LoadedSchedule, OnCallSource, Shift, condition::format_time},
    domain::{Name, RecordId, Schedule, schedule::Override},
    error::Error,
    limits::{OVERRIDE_LENGTH_MAX, OVERRIDES_MAX, SHIFTS_MAX, SHIFTS_TIME_MAX},
    resource::{self, AuthoredResource as _, Origin},
    store::audit,
    validate::Violations,
    wire::time::timestamp,
};

/// Default length of the range for which shifts are listed.
const AHEAD_MS: i64 = 30 * 24 * 3_600_000;
/// Reason of the override that `keep_current` adds.
const CURRENT_REASON: &str = "on call until the hand-off";

#[derive(Debug)]
pub struct OnCallAt {
    pub contacts: Vec<String>,
    pub source: String,
    /// Time of the next change. `None` if there is none within 400 days, or for a time in the past.
    pub until_ms: Option<i64>,
    pub revision: u64,
}

/// A shift, with its source as described by the schedule in force at the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownShift {
    pub start_ms: i64,
    pub end_ms: i64,
    pub contacts: Vec<Name>,
    /// Description of the layer or override that put the contacts on call.
    pub source: String,
    /// Start of the turn or override, in milliseconds since the epoch.
    pub begin_ms: i64,
}

#[derive(Debug, Default)]
pub struct ShownShifts {
    pub shifts: Vec<ShownShift>,
    pub stopped_early: bool,
}

#[derive(Debug)]
pub struct SchedulePreview {
    pub shifts: ShownShifts,
    pub differences: Vec<v1::ShiftDifference>,
    pub warnings: Vec<String>,
}

impl ShownShift {
    fn new(shift: Shift, schedule: &Schedule) -> Self {
        Self {
            start_ms: shift.start_ms,
            end_ms: shift.end_ms,
            source: source(shift.source, schedule),
            contacts: shift.contacts,
            begin_ms: shift.begin_ms,
        }
    }

    /// Returns whether an adjacent shift has the same contacts and source.
    pub(super) fn is_continued(&self, by: &Self) -> bool {
        (&self.contacts, &self.source) == (&by.contacts, &by.source)
    }
}

impl From<&ShownShift> for v1::Shift {
    fn from(it: &ShownShift) -> Self {
        Self {
            start_time: Some(timestamp(it.start_ms)),
            end_time: Some(timestamp(it.end_ms)),
            contact_names: name_texts(&it.contacts),
            source: it.source.clone(),
        }
    }
}

impl ShownShifts {
    fn compute(schedule: &LoadedSchedule, (start_ms, end_ms): (i64, i64), most: usize) -> Self {
        let found = schedule.shifts(start_ms, end_ms, most);
        let shifts = found.shifts.into_iter();
        Self {
            shifts: shifts
                .map(|it| ShownShift::new(it, &schedule.schedule))
                .collect(),
            stopped_early: found.stopped_early,
        }
    }

    /// Appends later shifts, and merges a shift that continues across an edit.
    fn append(&mut self, later: Self, most: usize) {
        self.stopped_early |= later.stopped_early;
        for shift in later.shifts {
            let is_full = self.shifts.len() == most;
            match self.shifts.last_mut() {
                Some(last) if last.end_ms == shift.start_ms && last.is_continued(&shift) => {
                    last.end_ms = shift.end_ms;
                }
                _ if is_full => {
                    self.stopped_early = true;
                    return;
                }
                _ => self.shifts.push(shift),
            }
        }
    }
}

impl Schedules {
    /// Returns the contacts on call at a time, by default now. For a past time, uses the revision
    /// in force then.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such schedule, or no stored revision for that
    /// time.
    pub async fn on_call(&self, name: &str, at_ms: Option<i64>) -> Result<OnCallAt, Error> {
        let current = resource::find::<Schedule>(&self.store, name).await?.value;
        let at_ms = at_ms.unwrap_or_else(|| self.clock.now_ms());
        let newest = current.revision;
        let range = (at_ms, at_ms.saturating_add(1));
        let then = self.revisions_in_force(current, range).await?.pop();
        let (_, schedule) = then.ok_or_else(|| {
            Error::NotFound(format!(
                "schedule `{name}` has no revision of that time: it did not exist, or the revision is no longer \
                 stored"
            ))
        })?;
        let zone = schedule.time_zone.clone();
        let loaded = load_schedule(&self.store, schedule).await?;
        let loaded = loaded.ok_or_else(|| missing_zone(&zone))?;
        let then = loaded.on_call_at(at_ms);
        let next = loaded
            .next(at_ms)
            .filter(|_| loaded.schedule.revision == newest);
        Ok(OnCallAt {
            contacts: name_texts(then.contacts),
            source: source(then.source, &loaded.schedule),
            until_ms: next.map(|it| it.start_ms),
            revision: loaded.schedule.revision,
        })
    }

    /// Returns the shifts of a range. Times in the past use the revisions in force then.
    ///
    /// # Errors
    /// Returns [`Error::NotFound`] if there is no such schedule, and [`Error::Invalid`] if the
    /// range is empty or too long.
    pub async fn shifts(
        &self,
        name: &str,
        (start_ms, end_ms): (Option<i64>, Option<i64>),
    ) -> Result<ShownShifts, Error> {
        let schedule = resource::find::<Schedule>(&self.store, name).await?.value;
        let start_ms = start_ms.unwrap_or_else(|| self.clock.now_ms());
        let end_ms = end_ms.unwrap_or_else(|| start_ms.saturating_add(AHEAD_MS));
        if end_ms <= start_ms {
            return Err(Error::invalid("end", "must be after `start`"));
        } else if end_ms.saturating_sub(start_ms) > to_millis(SHIFTS_TIME_MAX) {
            let days = SHIFTS_TIME_MAX.as_secs() / 86_400;
            let message = format!("is more than {days} d after `start`");
            return Err(Error::invalid("end", message));
        }
        self.compute_shifts(schedule, (start_ms, end_ms), SHIFTS_MAX)
            .await
    }

    /// Computes the shifts of a range from the revisions in force at that time, at most `most`.
    pub(super) async fn compute_shifts(
        &self,
        schedule: Schedule,
        range: (i64, i64),
        most: usize,
    ) -> Result<ShownShifts, Error> {
        let mut all = ShownShifts::default();
        for (range, schedule) in self.revisions_in_force(schedule, range).await? {
            let zone = schedule.time_zone.clone();
            let loaded = load_schedule(&self.store, schedule).await?;
            let loaded = loaded.ok_or_else(|| missing_zone(&zone))?;
            all.append(ShownShifts::compute(&loaded, range, most), most);
            if all.stopped_early {
                break;
            }
        }
        Ok(all)
    }

    /// Previews the next 30 days of a draft. The draft is not stored and requires no name.
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
        let origin = Origin::new(self.clock.now_ms());
        let (schedule, _) = Schedule::from_draft(self, &draft, stored.as_ref(), origin).await?;
        // Read the time last, so that the preview does not begin before an override that keeps the
        // current contacts.
        let now_ms = self.clock.now_ms();
        let new = load_schedule(&self.store, schedule).await?;
        let new = new.ok_or_else(|| missing_zone(&draft.time_zone))?;
        let range = (now_ms, now_ms.saturating_add(AHEAD_MS));
        let shifts = ShownShifts::compute(&new, range, SHIFTS_MAX);
        let (mut differences_found, mut warnings) = (Vec::new(), Vec::new());
        let old = match stored {
            Some(stored) => load_schedule(&self.store, stored).await?,
            None => None,
        };
        if let Some(old) = old {
            let before = ShownShifts::compute(&old, range, SHIFTS_MAX);
            differences_found = shift_differences(&before.shifts, &shifts.shifts);
            warnings.extend(mid_shift_warning(&old, &new, now_ms));
        }
        Ok(SchedulePreview {
            shifts,
            differences: differences_found,
            warnings,
        })
    }

    /// Adds an override that keeps the current contacts on call until their hand-off, if the edit
    /// would replace them now.
    pub(super) async fn retain_current_contacts(
        &self,
        stored: &Schedule,
        next: &mut Schedule,
        violations: &mut Violations,
    ) -> Result<(), Error> {
        let now_ms = self.clock.now_ms();
        let old = load_schedule(&self.store, stored.clone()).await?;
        let new = load_schedule(&self.store, next.clone()).await?;
        let Some((old, new)) = old.zip(new) else {
            return Ok(());
        };
        let current = old.on_call_at(now_ms).contacts;
        if current == new.on_call_at(now_ms).contacts {
            return Ok(());
        }
        let end_ms = old.next(now_ms).map(|it| it.start_ms);
        let longest_ms = now_ms.saturating_add(to_millis(OVERRIDE_LENGTH_MAX));
        let end_ms = end_ms.filter(|it| *it <= longest_ms);
        let Some(end_ms) = end_ms else {
            let days = OVERRIDE_LENGTH_MAX.as_secs() / 86_400;
            let message = format!("is not possible: no hand-off within {days} d");
            violations.add("keepCurrent", message);
            return Ok(());
        };
        let open = next.overrides.iter().filter(|it| it.end_ms > now_ms);
        if open.count() >= OVERRIDES_MAX {
            let message = format!(
                "requires an override, but the limit of {OVERRIDES_MAX} is reached; delete some first"
            );
            violations.add("keepCurrent", message);
            return Ok(());
        }
        next.overrides.push(Override {
            id: RecordId::from_parts(now_ms.unsigned_abs(), rand::random()),
            contacts: current.to_vec(),
            start_ms: now_ms,
            end_ms,
            reason: CURRENT_REASON.into(),
            author: audit::current_actor().and_then(|it| Name::parse(&it.client).ok()),
        });
        Ok(())
    }
}

fn mid_shift_warning(old: &LoadedSchedule, new: &LoadedSchedule, now_ms: i64) -> Option<String> {
    let (before, after) = (
        old.on_call_at(now_ms).contacts,
        new.on_call_at(now_ms).contacts,
    );
    if before == after || before.is_empty() {
        return None;
    }
    let until = old.next(now_ms).map(|it| format_time(it.start_ms));
    let until = until.map_or_else(String::new, |it| format!(" until {it}"));
    let before = name_texts(before).join(", ");
    let after = match after {
        [] => "no one".to_owned(),
        after => name_texts(after).join(", "),
    };
    Some(format!(
        "replaces {before}, on call{until}, with {after} immediately; `keepCurrent: true` waits for that hand-off"
    ))
}

fn source(source: OnCallSource, schedule: &Schedule) -> String {
    match source {
        OnCallSource::Override => "override".into(),
        OnCallSource::NoOne => String::new(),
        OnCallSource::Layer(at) => {
            let layer = schedule.layers.get(at).filter(|it| !it.name.is_empty());
            layer.map_or_else(|| format!("layer {}", at + 1), |it| it.name.clone())
        }
    }
}

/// Returns the time ranges in which other contacts are on call. Both lists must cover the same
/// range without gaps.
fn shift_differences(before: &[ShownShift], after: &[ShownShift]) -> Vec<v1::ShiftDifference> {
    let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
    let mut found: Vec<v1::ShiftDifference> = Vec::new();
    while let (Some(was), Some(is)) = (old.peek(), new.peek()) {
        let start = Some(timestamp(was.start_ms.max(is.start_ms)));
        let end_ms = was.end_ms.min(is.end_ms);
        if was.contacts != is.contacts {
            let (was, is) = (name_texts(&was.contacts), name_texts(&is.contacts));
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
