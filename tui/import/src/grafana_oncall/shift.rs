//! Shifts of Grafana OnCall, read and converted to rotations.

use jiff::{Timestamp, civil::Weekday, tz::TimeZone};
use serde_json::json;

use super::{contact_names, finish, take_number};
use crate::{
    error::ImportError,
    fields::{Fields, invalid_field_error},
    imported::ImportOutput,
    people::ImportedContacts,
    rotation::{Restriction, Rotation},
};

const DAY: i64 = 86_400;
const WEEK: i64 = 7 * DAY;
const WEEKDAYS: [(&str, Weekday); 7] = [
    ("MO", Weekday::Monday),
    ("TU", Weekday::Tuesday),
    ("WE", Weekday::Wednesday),
    ("TH", Weekday::Thursday),
    ("FR", Weekday::Friday),
    ("SA", Weekday::Saturday),
    ("SU", Weekday::Sunday),
];

pub(super) struct Shift {
    pub(super) path: String,
    name: String,
    kind: String,
    pub(super) level: i64,
    start: Timestamp,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
    seconds: i64,
    frequency: String,
    interval: i64,
    days: Vec<String>,
    week_start: Option<String>,
    is_limited: bool,
    groups: Vec<Vec<String>>,
}

/// Reads a shift of a schedule in `zone`.
pub(super) fn read_shift(
    mut shift: Fields,
    zone: &str,
    imported: &mut ImportOutput,
) -> Result<Shift, ImportError> {
    let own_zone = shift.take_nonempty_text("time_zone")?;
    if own_zone.as_deref().is_some_and(|it| it != zone) {
        let what = "times are in the schedule's time zone; check them around clock changes";
        imported.add_note(&shift.path_of("time_zone"), what);
    }
    let zone = own_zone.as_deref().unwrap_or(zone);
    let start = local_time(&mut shift, "start", zone)?;
    let start = start.ok_or_else(|| invalid_field_error(&shift.path_of("start"), "is required"))?;
    let users = shift.take_texts("users")?;
    let mut groups = Vec::new();
    for (path, group) in shift.take_list("rolling_users")? {
        let mut group = Fields::from_value(&path, json!({"users": group}))?;
        groups.push(group.take_texts("users")?);
    }
    let first = take_number(&mut shift, "start_rotation_from_user_index")?.unwrap_or_default();
    if !groups.is_empty() {
        let first = usize::try_from(first).unwrap_or_default() % groups.len();
        groups.rotate_left(first);
    }
    let kind = shift.take_text("type")?.unwrap_or_default();
    let mut is_limited = false;
    for name in ["by_month", "by_monthday"] {
        is_limited |= !shift.take_texts(name)?.is_empty();
    }
    let read = Shift {
        path: shift.path.clone(),
        name: shift.require("name")?,
        level: take_number(&mut shift, "level")?.unwrap_or_default(),
        start,
        from: local_time(&mut shift, "rotation_start", zone)?,
        until: local_time(&mut shift, "until", zone)?,
        seconds: take_number(&mut shift, "duration")?.unwrap_or(DAY),
        frequency: shift.take_text("frequency")?.unwrap_or_default(),
        interval: take_number(&mut shift, "interval")?.unwrap_or(1),
        days: shift.take_texts("by_day")?,
        week_start: shift.take_text("week_start")?,
        is_limited,
        groups: match kind.as_str() {
            "rolling_users" => groups,
            _ => vec![users],
        },
        kind,
    };
    finish(shift, imported);
    Ok(read)
}

impl Shift {
    fn is_single(&self) -> bool {
        self.kind == "single_event"
    }

    fn turn_seconds(&self) -> i64 {
        let unit = match self.frequency.as_str() {
            "hourly" => 3_600,
            "daily" => DAY,
            _ => WEEK,
        };
        unit * self.interval.clamp(1, 1_000)
    }

    /// Whether the shift covers its turns completely.
    fn is_whole(&self) -> bool {
        self.is_single() || self.days.is_empty() && self.seconds >= self.turn_seconds()
    }

    pub(super) fn unsupported_reason(&self) -> Option<&'static str> {
        let frequency = self.frequency.as_str();
        match self.kind.as_str() {
            "single_event" => None,
            "recurrent_event" | "rolling_users" => {
                if self.is_limited || !["hourly", "daily", "weekly"].contains(&frequency) {
                    Some("repeats by month")
                } else if !self.is_whole() && (self.interval > 1 || frequency == "hourly") {
                    Some("leaves out hours, days or weeks between its turns")
                } else if self.groups.len() > 1 && !self.days.is_empty() && frequency != "weekly" {
                    Some("changes daily on certain days of the week")
                } else {
                    None
                }
            }
            _ => Some("is of a type without counterpart; use an override"),
        }
    }

    /// Converts a shift that is supported, in the time zone of its schedule.
    pub(super) fn into_rotation(
        self,
        zone: &str,
        people: &ImportedContacts,
        imported: &mut ImportOutput,
    ) -> Result<Rotation, ImportError> {
        let local = self
            .start
            .to_zoned(TimeZone::get(zone).unwrap_or(TimeZone::UTC));
        let mut days = Vec::new();
        for day in &self.days {
            let unknown =
                || invalid_field_error(&format!("{}.by_day", self.path), "expected `MO` to `SU`");
            days.push(Some(weekday(day).ok_or_else(unknown)?));
        }
        // Turns on certain days of the week change at the start of the week.
        let mut start = self.start;
        if !days.is_empty() && self.frequency == "weekly" {
            let first = self.week_start.as_deref().and_then(weekday);
            let back = first.unwrap_or(Weekday::Sunday).until(local.weekday());
            let moved = local.checked_sub(jiff::Span::new().days(i64::from(back)));
            start = moved.map_or(start, |it| it.timestamp());
        }
        if days.is_empty() {
            days.push((self.frequency != "daily").then(|| local.weekday()));
        }
        let restriction = |weekday| Restriction {
            weekday,
            start: local.time(),
            seconds: self.seconds.clamp(60, WEEK),
        };
        let is_whole = self.is_whole();
        let restrictions = days.into_iter().filter(|_| !is_whole).map(restriction);
        let end = self.start.as_second().saturating_add(self.seconds);
        let slots = self.groups.iter();
        Ok(Rotation {
            start,
            turn_seconds: self.turn_seconds(),
            from: self.from.max(Some(self.start)),
            end: if self.is_single() {
                Timestamp::from_second(end).ok()
            } else {
                self.until
            },
            slots: slots
                .map(|ids| contact_names(&self.path, ids, people, imported))
                .collect(),
            restrictions: restrictions.collect(),
            name: self.name,
            path: self.path,
        })
    }
}

fn weekday(text: &str) -> Option<Weekday> {
    let mut all = WEEKDAYS.iter();
    all.find(|(word, _)| *word == text).map(|(_, day)| *day)
}

/// Reads a local time such as `2026-01-05T08:00:00`.
fn local_time(
    fields: &mut Fields,
    name: &str,
    zone: &str,
) -> Result<Option<Timestamp>, ImportError> {
    let Some(text) = fields.take_nonempty_text(name)? else {
        return Ok(None);
    };
    let path = fields.path_of(name);
    let zone = TimeZone::get(zone)
        .map_err(|_unknown| invalid_field_error(&path, "the time zone is unknown"))?;
    let local: Result<jiff::civil::DateTime, _> = text.trim_end_matches('Z').parse();
    let at = local.and_then(|it| it.to_zoned(zone));
    let at = at.map_err(|_invalid| {
        invalid_field_error(&path, "expected a time such as 2026-01-05T08:00:00")
    });
    Ok(Some(at?.timestamp()))
}
