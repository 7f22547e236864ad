//! Heartbeats ready for matching with events.

mod alarm;

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use super::{
    Calendars, LoadedCalendar,
    grouping::{group_key, shared_value},
};
use crate::{
    calendar::{Cron, Span, find_zone},
    domain::{Heartbeat, Occurrence, RecordId, hold::SharedValue},
    matching::{self, CompiledQuery, field::Field},
};

pub use alarm::{AlarmFacts, AlarmTexts, alarm_violations};

#[derive(Debug)]
pub struct LoadedHeartbeat {
    pub heartbeat: Heartbeat,
    query: Option<CompiledQuery>,
    windows: Option<Windows>,
    texts: AlarmTexts,
    fields: Vec<(String, Field)>,
    /// The key of the only expectation, if all beats count as one set.
    whole: Option<RecordId>,
    /// Service time until which further beats make no difference.
    quiet_ms: AtomicI64,
}

#[derive(Debug)]
enum Windows {
    Calendar(Arc<LoadedCalendar>),
    Cron(Cron),
}

pub fn parse_schedule(text: &str, time_zone: &str) -> Result<Cron, (&'static str, String)> {
    let named = if time_zone.is_empty() {
        "UTC"
    } else {
        time_zone
    };
    let zone = find_zone(named).map_err(|missing| ("timeZone", missing.to_string()))?;
    Cron::parse(text, zone).map_err(|message| ("cron", message))
}

impl LoadedHeartbeat {
    /// Prepares a heartbeat. `None` if the stored heartbeat does not compile or its calendar is
    /// unknown; no beats are expected then.
    pub fn new(heartbeat: Heartbeat, calendars: &Calendars) -> Option<Self> {
        let windows = match &heartbeat.calendar {
            Some(name) => Some(Windows::Calendar(Arc::clone(calendars.get(name)?))),
            None if heartbeat.cron.is_empty() => None,
            None => Some(Windows::Cron(
                parse_schedule(&heartbeat.cron, &heartbeat.time_zone).ok()?,
            )),
        };
        let query = heartbeat.query.as_ref();
        let query = query.map(|query| matching::compile(query).ok());
        let by = heartbeat.by.iter();
        let fields = by.map(|name| Some((name.clone(), Field::parse(name).ok()?)));
        Some(Self {
            query: match query {
                Some(compiled) => Some(compiled?),
                None => None,
            },
            fields: fields.collect::<Option<_>>()?,
            whole: heartbeat
                .by
                .is_empty()
                .then(|| group_key(heartbeat.id, false, &[])),
            quiet_ms: AtomicI64::new(i64::MIN),
            windows,
            texts: AlarmTexts::new(&heartbeat),
            heartbeat,
        })
    }

    pub fn alarm_texts(&self) -> &AlarmTexts {
        &self.texts
    }

    /// Returns the last window that starts after `after_ms` and no later than `until_ms`.
    pub fn last_window_started(&self, after_ms: i64, until_ms: i64) -> Option<Span> {
        let spans = self.windows(after_ms, until_ms + 1)?;
        let mut begun = spans.into_iter().rev();
        begun.find(|it| it.start_ms > after_ms && it.start_ms <= until_ms)
    }

    /// Returns the first window that starts after `after_ms` and no later than `until_ms`.
    pub fn first_window_started(&self, after_ms: i64, until_ms: i64) -> Option<Span> {
        let spans = self.windows(after_ms, until_ms + 1)?;
        let mut begun = spans.into_iter();
        begun.find(|it| it.start_ms > after_ms && it.start_ms <= until_ms)
    }

    pub fn windows(&self, start_ms: i64, end_ms: i64) -> Option<Vec<Span>> {
        Some(match self.windows.as_ref()? {
            Windows::Calendar(calendar) => calendar.spans_between(start_ms, end_ms).spans,
            Windows::Cron(cron) => cron.windows_between(start_ms, end_ms),
        })
    }

    pub fn window_after(&self, after_ms: i64) -> Option<Span> {
        let calendar = match self.windows.as_ref()? {
            Windows::Calendar(calendar) => calendar,
            Windows::Cron(cron) => {
                let start_ms = cron.next_after(after_ms)?;
                let found = cron.windows_between(start_ms, start_ms.saturating_add(1));
                return found.into_iter().find(|it| it.start_ms == start_ms);
            }
        };
        let status = calendar.status_at(after_ms);
        let start_ms = match status.changes_ms? {
            end_ms if status.in_window => calendar.status_at(end_ms).changes_ms?,
            start_ms => start_ms,
        };
        let found = calendar.spans_between(start_ms, start_ms.saturating_add(1));
        found.spans.into_iter().find(|it| it.start_ms == start_ms)
    }

    pub fn window_length_ms(&self, start_ms: i64) -> Option<i64> {
        let found = self.last_window_started(start_ms - 1, start_ms)?;
        Some(found.end_ms - found.start_ms)
    }

    pub fn single_expectation_key(&self) -> Option<RecordId> {
        self.whole
    }

    /// Whether a beat at the service time `service_ms` can be ignored. If all beats count as one
    /// set, only a few of them are evaluated.
    pub fn can_ignore_beat(&self, service_ms: i64) -> bool {
        service_ms < self.quiet_ms.load(Ordering::Relaxed)
    }

    /// Ignores beats until the service time `service_ms`, if all beats count as one set.
    pub fn ignore_beats_until(&self, service_ms: i64) {
        if self.whole.is_some() {
            self.quiet_ms.store(service_ms, Ordering::Relaxed);
        }
    }

    pub fn uses_events(&self) -> bool {
        self.query.is_some()
    }

    pub fn beat_values(&self, occurrence: &Occurrence) -> Option<Vec<SharedValue>> {
        let is_beat = self.query.as_ref()?.matches(occurrence);
        is_beat.then(|| self.values(|_, field| shared_value(field, occurrence)))
    }

    pub fn values(&self, find: impl Fn(&str, &Field) -> Option<String>) -> Vec<SharedValue> {
        let fields = self.fields.iter();
        fields
            .map(|(name, field)| (name.clone(), find(name, field)))
            .collect()
    }

    pub fn key(&self, values: &[SharedValue]) -> RecordId {
        group_key(self.heartbeat.id, false, values)
    }
}

pub type Heartbeats = Arc<[Arc<LoadedHeartbeat>]>;
