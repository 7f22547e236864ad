//! Calendars.

use super::{
    occurrence::record_id,
    rule::{names, texts},
};
use crate::domain::{
    Calendar, Name,
    calendar::{Window, WindowText},
};

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CalendarV1 {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    description: String,
    #[prost(string, repeated, tag = "4")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    time_zone: String,
    #[prost(message, repeated, tag = "6")]
    windows: Vec<WindowV1>,
    #[prost(string, repeated, tag = "7")]
    except: Vec<String>,
    #[prost(uint64, tag = "8")]
    revision: u64,
    #[prost(int64, tag = "9")]
    create_ms: i64,
    #[prost(int64, tag = "10")]
    update_ms: i64,
}

/// As its author writes it.
#[derive(Clone, PartialEq, prost::Message)]
struct WindowV1 {
    #[prost(string, tag = "1")]
    dtstart: String,
    #[prost(string, tag = "2")]
    duration: String,
    #[prost(string, tag = "3")]
    end_time_of_day: String,
    #[prost(string, tag = "4")]
    rrule: String,
    #[prost(string, repeated, tag = "5")]
    exdate: Vec<String>,
    #[prost(string, repeated, tag = "6")]
    rdate: Vec<String>,
}

impl From<&Calendar> for CalendarV1 {
    fn from(calendar: &Calendar) -> Self {
        let window = |it: &Window| {
            let text = it.text();
            WindowV1 {
                dtstart: text.dtstart,
                duration: text.duration,
                end_time_of_day: text.end_time_of_day,
                rrule: text.rrule,
                exdate: text.exdate,
                rdate: text.rdate,
            }
        };
        Self {
            id: calendar.id.to_bytes().into(),
            name: calendar.name.to_string(),
            description: calendar.description.clone(),
            tags: calendar.tags.clone(),
            time_zone: calendar.time_zone.clone(),
            windows: calendar.windows.iter().map(window).collect(),
            except: texts(&calendar.except),
            revision: calendar.revision,
            create_ms: calendar.create_ms,
            update_ms: calendar.update_ms,
        }
    }
}

impl CalendarV1 {
    pub(crate) fn into_calendar(self) -> Option<Calendar> {
        let window = |it: WindowV1| {
            let text = WindowText {
                dtstart: it.dtstart,
                duration: it.duration,
                end_time_of_day: it.end_time_of_day,
                rrule: it.rrule,
                exdate: it.exdate,
                rdate: it.rdate,
            };
            Window::read(&text).ok()
        };
        Some(Calendar {
            id: record_id(self.id)?,
            name: Name::parse(&self.name).ok()?,
            description: self.description,
            tags: self.tags,
            time_zone: self.time_zone,
            windows: self
                .windows
                .into_iter()
                .map(window)
                .collect::<Option<_>>()?,
            except: names(&self.except)?,
            revision: self.revision,
            create_ms: self.create_ms,
            update_ms: self.update_ms,
        })
    }
}
