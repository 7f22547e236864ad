//! Calendars ready for evaluation.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    calendar::{CalendarStatus, PreparedCalendar, SpansFound},
    domain::{Calendar, Name},
};

#[derive(Debug)]
pub struct LoadedCalendar {
    pub calendar: Calendar,
    prepared: Arc<PreparedCalendar>,
}

/// All calendars, by name. Calendars whose time zone is not installed on this machine are omitted.
/// They then hold no notifications, instead of holding all of them forever.
#[derive(Debug, Default)]
pub struct Calendars(BTreeMap<Name, Arc<LoadedCalendar>>);

impl Calendars {
    pub fn new<'a>(all: impl Iterator<Item = &'a Calendar> + Clone) -> Self {
        let plain = all.clone().filter(|it| it.except.is_empty());
        let plain = plain.filter_map(|it| {
            let prepared = PreparedCalendar::new(it, Vec::new()).ok()?;
            Some((&it.name, Arc::new(prepared)))
        });
        let plain: BTreeMap<_, _> = plain.collect();
        let loaded = all.filter_map(|it| {
            let prepared = if it.except.is_empty() {
                Arc::clone(plain.get(&it.name)?)
            } else {
                let except = it.except.iter().map(|name| plain.get(name).cloned());
                Arc::new(PreparedCalendar::new(it, except.collect::<Option<_>>()?).ok()?)
            };
            let calendar = it.clone();
            let loaded = LoadedCalendar { calendar, prepared };
            Some((it.name.clone(), Arc::new(loaded)))
        });
        Self(loaded.collect())
    }

    pub fn get(&self, name: &Name) -> Option<&Arc<LoadedCalendar>> {
        self.0.get(name)
    }
}

impl LoadedCalendar {
    pub fn status_at(&self, now_ms: i64) -> CalendarStatus {
        self.prepared.status_at(now_ms)
    }

    pub fn spans_between(&self, start_ms: i64, end_ms: i64) -> SpansFound {
        self.prepared.spans_between(start_ms, end_ms)
    }
}
