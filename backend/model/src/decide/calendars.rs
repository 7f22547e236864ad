//! The calendars that rules and silences refer to, ready to be asked.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    calendar::{CalendarStatus, Prepared, SpansFound},
    domain::{Calendar, Name},
};

/// A calendar as stored, ready to be asked.
#[derive(Debug)]
pub struct LoadedCalendar {
    /// The calendar.
    pub calendar: Calendar,
    prepared: Arc<Prepared>,
}

/// All calendars, by name. One whose zone this machine does not know is left out: what refers to it
/// is held by nothing rather than for ever.
#[derive(Debug, Default)]
pub struct Calendars(BTreeMap<Name, Arc<LoadedCalendar>>);

impl Calendars {
    /// Makes calendars ready.
    pub fn new<'a>(all: impl Iterator<Item = &'a Calendar> + Clone) -> Self {
        let plain = all.clone().filter(|it| it.except.is_empty());
        let plain = plain.filter_map(|it| {
            let prepared = Prepared::new(it, Vec::new()).ok()?;
            Some((&it.name, Arc::new(prepared)))
        });
        let plain: BTreeMap<_, _> = plain.collect();
        let loaded = all.filter_map(|it| {
            let prepared = if it.except.is_empty() {
                Arc::clone(plain.get(&it.name)?)
            } else {
                let except = it.except.iter().map(|name| plain.get(name).cloned());
                Arc::new(Prepared::new(it, except.collect::<Option<_>>()?).ok()?)
            };
            let calendar = it.clone();
            let loaded = LoadedCalendar { calendar, prepared };
            Some((it.name.clone(), Arc::new(loaded)))
        });
        Self(loaded.collect())
    }

    /// The calendar of a name.
    pub fn get(&self, name: &Name) -> Option<&Arc<LoadedCalendar>> {
        self.0.get(name)
    }
}

impl LoadedCalendar {
    /// What it is at a moment.
    pub fn at(&self, now_ms: i64) -> CalendarStatus {
        self.prepared.at(now_ms)
    }

    /// The spans that hold at some moment from one up to and without another.
    pub fn between(&self, start_ms: i64, end_ms: i64) -> SpansFound {
        self.prepared.between(start_ms, end_ms)
    }
}
