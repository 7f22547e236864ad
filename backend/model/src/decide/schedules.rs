//! Who is on call: the newest override in force, else the last layer that has someone, else no one.

use std::sync::Arc;

use super::{Calendars, LoadedCalendar};
use crate::{
    calendar::{MissingZone, Rotation, zone},
    domain::{
        Name, Schedule,
        schedule::{Layer, Override},
    },
};

/// A schedule as stored, ready to be asked.
#[derive(Debug)]
pub struct LoadedSchedule {
    /// The schedule.
    pub schedule: Schedule,
    layers: Vec<LoadedLayer>,
}

#[derive(Debug)]
struct LoadedLayer {
    rotation: Rotation,
    calendar: Option<Arc<LoadedCalendar>>,
}

/// Who is on call at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnCall<'a> {
    /// The contacts; empty when no one is.
    pub contacts: &'a [Name],
    /// What put them on call.
    pub source: OnCallSource,
}

/// What puts contacts on call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCallSource {
    /// An override, which may name no one.
    Override,
    /// A layer, by its place.
    Layer(usize),
    /// Nothing.
    NoOne,
}

/// A stretch of time in which the same contacts are on call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// The start, in milliseconds since 1970.
    pub start_ms: i64,
    /// The end, in milliseconds since 1970.
    pub end_ms: i64,
    /// The contacts; empty for a gap.
    pub contacts: Vec<Name>,
    /// What put them on call.
    pub source: OnCallSource,
}

/// The shifts of a range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shifts {
    /// In order and cut to the range.
    pub shifts: Vec<Shift>,
    /// Whether there may be more.
    pub stopped_early: bool,
}

/// How far is looked for the next change, in turn, in milliseconds.
const HORIZONS_MS: [i64; 3] = [2 * DAY_MS, 40 * DAY_MS, 400 * DAY_MS];
const DAY_MS: i64 = 24 * 3_600_000;

impl LoadedSchedule {
    /// Makes a schedule ready. A layer whose calendar is not known has no one.
    ///
    /// # Errors
    /// [`MissingZone`] when this machine does not know its zone.
    pub fn new(schedule: Schedule, calendars: &Calendars) -> Result<Self, MissingZone> {
        let zone = zone(&schedule.time_zone)?;
        let layers = schedule.layers.iter().map(|layer| LoadedLayer {
            rotation: Rotation::new(&layer.hand_offs, zone.clone()),
            calendar: layer
                .calendar
                .as_ref()
                .and_then(|it| calendars.get(it).cloned()),
        });
        Ok(Self {
            layers: layers.collect(),
            schedule,
        })
    }

    /// Who is on call at a moment.
    pub fn at(&self, at_ms: i64) -> OnCall<'_> {
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
            let contacts = loaded.contacts(layer, at_ms)?;
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

    /// The shifts of a range, at most so many.
    pub fn shifts(&self, start_ms: i64, end_ms: i64, most: usize) -> Shifts {
        let mut moments = self.changes(start_ms, end_ms);
        let mut stopped_early = moments.stopped_ms.is_some();
        let end_ms = moments.stopped_ms.map_or(end_ms, |it| it.min(end_ms));
        moments.all.retain(|it| (start_ms + 1..end_ms).contains(it));
        moments.all.push(start_ms);
        moments.all.sort_unstable();
        moments.all.dedup();
        let mut shifts: Vec<Shift> = Vec::new();
        for at_ms in moments.all {
            let now = self.at(at_ms);
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
                    });
                }
            }
        }
        Shifts {
            shifts,
            stopped_early,
        }
    }

    /// When other contacts are on call next, and which; none when they stay for 400 days.
    pub fn next(&self, now_ms: i64) -> Option<Shift> {
        let current = self.at(now_ms).contacts;
        HORIZONS_MS.into_iter().find_map(|ahead_ms| {
            let found = self.shifts(now_ms, now_ms.saturating_add(ahead_ms), usize::MAX);
            let mut shifts = found.shifts.into_iter();
            shifts.find(|it| it.contacts != current)
        })
    }

    /// The first gap of a range.
    pub fn gap(&self, start_ms: i64, end_ms: i64) -> Option<Shift> {
        let found = self.shifts(start_ms, end_ms, usize::MAX);
        found.shifts.into_iter().find(|it| it.contacts.is_empty())
    }

    /// The moments at which someone else may be on call.
    fn changes(&self, start_ms: i64, end_ms: i64) -> Moments {
        let overrides = self.schedule.overrides.iter();
        let mut moments = Moments {
            all: overrides.flat_map(|it| [it.start_ms, it.end_ms]).collect(),
            stopped_ms: None,
        };
        for layer in &self.layers {
            moments.all.extend(layer.rotation.between(start_ms, end_ms));
            if let Some(calendar) = &layer.calendar {
                let found = calendar.between(start_ms, end_ms);
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

/// Moments of a range.
struct Moments {
    all: Vec<i64>,
    /// From when on they are not known.
    stopped_ms: Option<i64>,
}

impl LoadedLayer {
    /// Whose turn it is at a moment.
    fn contacts<'a>(&self, layer: &'a Layer, at_ms: i64) -> Option<&'a [Name]> {
        if layer.calendar.is_some() {
            let calendar = self.calendar.as_ref()?;
            calendar.at(at_ms).in_window.then_some(())?;
        }
        let turn = self.rotation.count(at_ms).checked_sub(1)?;
        let slots = u64::try_from(layer.slots.len()).ok()?;
        let slot = usize::try_from(turn.checked_rem(slots)?).ok()?;
        Some(&layer.slots.get(slot)?.contacts)
    }
}

#[cfg(test)]
mod tests;
