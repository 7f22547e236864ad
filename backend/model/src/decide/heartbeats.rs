//! Which events are beats of which heartbeats.

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
    calendar::{Cron, Span, zone},
    domain::{Heartbeat, Occurrence, RecordId, hold::SharedValue},
    matching::{self, CompiledQuery, field::Field},
};

pub use alarm::{AlarmFacts, AlarmTexts, alarm_faults};

/// A heartbeat that is enabled, ready for matching.
#[derive(Debug)]
pub struct LoadedHeartbeat {
    /// The heartbeat as stored.
    pub heartbeat: Heartbeat,
    query: Option<CompiledQuery>,
    windows: Option<Windows>,
    texts: AlarmTexts,
    fields: Vec<(String, Field)>,
    /// The key where all beats count as one.
    whole: Option<RecordId>,
    /// Until when, in time of service, a further beat makes no difference.
    quiet_ms: AtomicI64,
}

/// The windows in which beats are expected.
#[derive(Debug)]
enum Windows {
    Calendar(Arc<LoadedCalendar>),
    Cron(Cron),
}

/// Parses the cron expression of a heartbeat.
///
/// # Errors
/// Returns the field and what is wrong with it.
pub fn cron(text: &str, time_zone: &str) -> Result<Cron, (&'static str, String)> {
    let named = if time_zone.is_empty() {
        "UTC"
    } else {
        time_zone
    };
    let zone = zone(named).map_err(|missing| ("timeZone", missing.to_string()))?;
    Cron::parse(text, zone).map_err(|fault| ("cron", fault))
}

impl LoadedHeartbeat {
    /// Makes a heartbeat ready; none when what is stored cannot be asked, or its calendar: nothing is expected
    /// of it.
    pub fn new(heartbeat: Heartbeat, calendars: &Calendars) -> Option<Self> {
        let windows = match &heartbeat.calendar {
            Some(name) => Some(Windows::Calendar(Arc::clone(calendars.get(name)?))),
            None if heartbeat.cron.is_empty() => None,
            None => Some(Windows::Cron(
                cron(&heartbeat.cron, &heartbeat.time_zone).ok()?,
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

    /// What its event says.
    pub fn texts(&self) -> &AlarmTexts {
        &self.texts
    }

    /// The last window that begins after one moment and not after another.
    pub fn window_begun(&self, after_ms: i64, until_ms: i64) -> Option<Span> {
        let spans = self.windows(after_ms, until_ms + 1)?;
        let mut begun = spans.into_iter().rev();
        begun.find(|it| it.start_ms > after_ms && it.start_ms <= until_ms)
    }

    /// The first window that begins after one moment and not after another.
    pub fn first_window_begun(&self, after_ms: i64, until_ms: i64) -> Option<Span> {
        let spans = self.windows(after_ms, until_ms + 1)?;
        let mut begun = spans.into_iter();
        begun.find(|it| it.start_ms > after_ms && it.start_ms <= until_ms)
    }

    /// Returns the windows that hold at some moment from `start_ms` to before `end_ms`.
    pub fn windows(&self, start_ms: i64, end_ms: i64) -> Option<Vec<Span>> {
        Some(match self.windows.as_ref()? {
            Windows::Calendar(calendar) => calendar.between(start_ms, end_ms).spans,
            Windows::Cron(cron) => cron.between(start_ms, end_ms),
        })
    }

    /// Returns the first window that begins after a moment.
    pub fn window_after(&self, after_ms: i64) -> Option<Span> {
        let calendar = match self.windows.as_ref()? {
            Windows::Calendar(calendar) => calendar,
            Windows::Cron(cron) => {
                let start_ms = cron.after(after_ms)?;
                let found = cron.between(start_ms, start_ms.saturating_add(1));
                return found.into_iter().find(|it| it.start_ms == start_ms);
            }
        };
        let status = calendar.at(after_ms);
        let start_ms = match status.changes_ms? {
            end_ms if status.in_window => calendar.at(end_ms).changes_ms?,
            start_ms => start_ms,
        };
        let found = calendar.between(start_ms, start_ms.saturating_add(1));
        found.spans.into_iter().find(|it| it.start_ms == start_ms)
    }

    /// Whether a window begins at that moment; how long it is, in milliseconds.
    pub fn window_at(&self, start_ms: i64) -> Option<i64> {
        let found = self.window_begun(start_ms - 1, start_ms)?;
        Some(found.end_ms - found.start_ms)
    }

    /// The key of what is expected where all beats count as one.
    pub fn whole(&self) -> Option<RecordId> {
        self.whole
    }

    /// Whether a beat at that time of service makes a difference: of many that count as one, a few are
    /// looked at.
    pub fn is_quiet(&self, service_ms: i64) -> bool {
        service_ms < self.quiet_ms.load(Ordering::Relaxed)
    }

    /// Looks at no beats until that time of service, where all count as one.
    pub fn rest_until(&self, service_ms: i64) {
        if self.whole.is_some() {
            self.quiet_ms.store(service_ms, Ordering::Relaxed);
        }
    }

    /// Whether events can be beats of it.
    pub fn is_of_events(&self) -> bool {
        self.query.is_some()
    }

    /// The values of a beat that an event is; none when it is no beat.
    pub fn beat(&self, occurrence: &Occurrence) -> Option<Vec<SharedValue>> {
        let is_beat = self.query.as_ref()?.matches(occurrence);
        is_beat.then(|| self.values(|_, field| shared_value(field, occurrence)))
    }

    /// The values of its fields, as they are found.
    pub fn values(&self, find: impl Fn(&str, &Field) -> Option<String>) -> Vec<SharedValue> {
        let fields = self.fields.iter();
        fields
            .map(|(name, field)| (name.clone(), find(name, field)))
            .collect()
    }

    /// The key of what is expected of these values.
    pub fn key(&self, values: &[SharedValue]) -> RecordId {
        group_key(self.heartbeat.id, false, values)
    }
}

/// The heartbeats that are enabled, by name.
pub type Heartbeats = Arc<[Arc<LoadedHeartbeat>]>;
