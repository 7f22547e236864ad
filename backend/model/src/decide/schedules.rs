//! On-call lookup: the newest override in force decides, otherwise the last layer that has
//! contacts.

use std::{ops::Range, sync::Arc};

use jiff::{civil::DateTime, tz::TimeZone};

use super::{Calendars, LoadedCalendar};
use crate::{
    calendar::{MissingZone, Rotation, find_zone},
    domain::{
        Name, Schedule,
        schedule::{Layer, Override},
    },
};

#[derive(Debug)]
pub struct LoadedSchedule {
    pub schedule: Schedule,
    layers: Vec<LoadedLayer>,
}

#[derive(Debug)]
struct LoadedLayer {
    rotation: Rotation,
    calendar: Option<Arc<LoadedCalendar>>,
    /// The period in which the layer applies, in milliseconds since 1970.
    applies_ms: Range<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnCall<'a> {
    pub contacts: &'a [Name],
    pub source: OnCallSource,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCallSource {
    Override,
    Layer(usize),
    NoOne,
}

/// A period with the same contacts on call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    pub start_ms: i64,
    pub end_ms: i64,
    pub contacts: Vec<Name>,
    pub source: OnCallSource,
    /// Start of the turn or override, in milliseconds since 1970. Earlier than `start_ms` if
    /// another layer or override took precedence first.
    pub begin_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shifts {
    /// The shifts, in order, limited to the range.
    pub shifts: Vec<Shift>,
    pub stopped_early: bool,
}

/// The horizons to search for the next change, tried in turn, in milliseconds.
const HORIZONS_MS: [i64; 3] = [2 * DAY_MS, 40 * DAY_MS, 400 * DAY_MS];
const DAY_MS: i64 = 24 * 3_600_000;

impl LoadedSchedule {
    /// Prepares a schedule for evaluation. A layer whose calendar is unknown has no contacts.
    pub fn new(schedule: Schedule, calendars: &Calendars) -> Result<Self, MissingZone> {
        let zone = find_zone(&schedule.time_zone)?;
        let layers = schedule.layers.iter().map(|layer| LoadedLayer {
            rotation: Rotation::new(&layer.hand_offs, zone.clone()),
            calendar: layer
                .calendar
                .as_ref()
                .and_then(|it| calendars.get(it).cloned()),
            applies_ms: resolve_local(layer.from, &zone).unwrap_or(i64::MIN)
                ..resolve_local(layer.until, &zone).unwrap_or(i64::MAX),
        });
        Ok(Self {
            layers: layers.collect(),
            schedule,
        })
    }

    pub fn on_call_at(&self, at_ms: i64) -> OnCall<'_> {
        let is_in_force = |it: &&Override| (it.start_ms..it.end_ms).contains(&at_ms);
        if let Some(newest) = self.schedule.overrides.iter().rfind(is_in_force) {
            return OnCall {
                contacts: &newest.contacts,
                source: OnCallSource::Override,
            };
        }
        let layers = self.schedule.layers.iter().zip(&self.layers).enumerate();
        let mut layers = layers.rev();
        let found = layers.find_map(|(at, (layer, loaded))| {
            let contacts = loaded.contacts_on_turn(layer, at_ms)?;
            Some(OnCall {
                contacts,
                source: OnCallSource::Layer(at),
            })
        });
        found.unwrap_or(OnCall {
            contacts: &[],
            source: OnCallSource::NoOne,
        })
    }

    /// Returns the time of the last edit of the schedule or of a calendar of its layers, in
    /// milliseconds since 1970.
    pub fn update_ms(&self) -> i64 {
        let calendars = self.layers.iter().filter_map(|it| it.calendar.as_ref());
        let edits = calendars.map(|it| it.calendar.update_ms);
        edits.fold(self.schedule.update_ms, i64::max)
    }

    /// Whether a layer has no contacts from `at_ms` on, because the layer or its hand-offs ended.
    pub fn has_ended(&self, layer: usize, at_ms: i64) -> bool {
        self.layers.get(layer).is_some_and(|it| {
            let turns_end_ms = it.rotation.end_ms().unwrap_or(i64::MAX);
            it.applies_ms.end.min(turns_end_ms) <= at_ms
        })
    }

    fn begin_ms(&self, at_ms: i64, source: OnCallSource) -> i64 {
        let found = match source {
            OnCallSource::NoOne => None,
            OnCallSource::Override => {
                let mut overrides = self.schedule.overrides.iter();
                overrides
                    .rfind(|it| (it.start_ms..it.end_ms).contains(&at_ms))
                    .map(|it| it.start_ms)
            }
            OnCallSource::Layer(at) => self.layers.get(at).map(|it| it.begin_ms(at_ms)),
        };
        found.unwrap_or(at_ms)
    }

    pub fn shifts(&self, start_ms: i64, end_ms: i64, most: usize) -> Shifts {
        let mut moments = self.change_times(start_ms, end_ms);
        let mut stopped_early = moments.stopped_ms.is_some();
        let end_ms = moments.stopped_ms.map_or(end_ms, |it| it.min(end_ms));
        moments.all.retain(|it| (start_ms + 1..end_ms).contains(it));
        moments.all.push(start_ms);
        moments.all.sort_unstable();
        moments.all.dedup();
        let mut shifts: Vec<Shift> = Vec::new();
        for at_ms in moments.all {
            let now = self.on_call_at(at_ms);
            match shifts.last_mut() {
                Some(last) if last.contacts == now.contacts && last.source == now.source => {}
                last => {
                    if let Some(last) = last {
                        last.end_ms = at_ms;
                    }
                    if shifts.len() == most {
                        stopped_early = true;
                        break;
                    }
                    shifts.push(Shift {
                        start_ms: at_ms,
                        end_ms,
                        contacts: now.contacts.to_vec(),
                        source: now.source,
                        begin_ms: self.begin_ms(at_ms, now.source),
                    });
                }
            }
        }
        Shifts {
            shifts,
            stopped_early,
        }
    }

    /// Returns the next shift with other contacts; `None` if there is none within 400 days.
    pub fn next(&self, now_ms: i64) -> Option<Shift> {
        let current = self.on_call_at(now_ms).contacts;
        HORIZONS_MS.into_iter().find_map(|ahead_ms| {
            let found = self.shifts(now_ms, now_ms.saturating_add(ahead_ms), usize::MAX);
            let mut shifts = found.shifts.into_iter();
            shifts.find(|it| it.contacts != current)
        })
    }

    pub fn first_gap(&self, start_ms: i64, end_ms: i64) -> Option<Shift> {
        let found = self.shifts(start_ms, end_ms, usize::MAX);
        found.shifts.into_iter().find(|it| it.contacts.is_empty())
    }

    fn change_times(&self, start_ms: i64, end_ms: i64) -> HandOffTimes {
        let overrides = self.schedule.overrides.iter();
        let mut moments = HandOffTimes {
            all: overrides.flat_map(|it| [it.start_ms, it.end_ms]).collect(),
            stopped_ms: None,
        };
        for layer in &self.layers {
            moments
                .all
                .extend(layer.rotation.hand_offs_between(start_ms, end_ms));
            moments.all.extend(layer.rotation.end_ms());
            let Range { start, end } = layer.applies_ms;
            moments.all.extend([start, end]);
            if let Some(calendar) = &layer.calendar {
                let found = calendar.spans_between(start_ms, end_ms);
                let edges = found.spans.iter().flat_map(|it| [it.start_ms, it.end_ms]);
                moments.all.extend(edges);
                if found.until_ms < end_ms {
                    let earlier = moments.stopped_ms.unwrap_or(i64::MAX);
                    moments.stopped_ms = Some(earlier.min(found.until_ms));
                }
            }
        }
        moments
    }
}

struct HandOffTimes {
    all: Vec<i64>,
    /// The time up to which the list is complete; `None` if it covers the whole range.
    stopped_ms: Option<i64>,
}

/// Converts a local time. An ambiguous time resolves to the first of the two; a skipped time is
/// resolved with the offset before the gap.
fn resolve_local(local: Option<DateTime>, zone: &TimeZone) -> Option<i64> {
    let at = zone.to_ambiguous_timestamp(local?).compatible().ok()?;
    Some(at.as_millisecond())
}

impl LoadedLayer {
    /// Returns the start of the turn at a time, limited by the layer's calendar and bounds.
    fn begin_ms(&self, at_ms: i64) -> i64 {
        let window = self.calendar.as_ref().and_then(|it| {
            let spans = it.spans_between(at_ms, at_ms.saturating_add(1)).spans;
            spans.first().map(|it| it.start_ms)
        });
        let starts = [self.rotation.last_hand_off(at_ms), window];
        let starts = starts.into_iter().flatten();
        starts.fold(self.applies_ms.start, i64::max)
    }

    /// Returns the contacts whose turn it is at a time; `None` if the layer has no contacts.
    fn contacts_on_turn<'a>(&self, layer: &'a Layer, at_ms: i64) -> Option<&'a [Name]> {
        self.applies_ms.contains(&at_ms).then_some(())?;
        if layer.calendar.is_some() {
            let calendar = self.calendar.as_ref()?;
            calendar.status_at(at_ms).in_window.then_some(())?;
        }
        let turn = self.rotation.turn_at(at_ms)?;
        let slots = u64::try_from(layer.slots.len()).ok()?;
        let slot = usize::try_from(turn.checked_rem(slots)?).ok()?;
        let contacts = &layer.slots.get(slot)?.contacts;
        (!contacts.is_empty()).then_some(contacts)
    }
}

#[cfg(test)]
mod tests;
