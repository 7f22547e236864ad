//! Import of on-call rotations as layers: shifts of a fixed length, and times of day or week at
//! which a layer is staffed.

use jiff::{
    Timestamp, Zoned,
    civil::{Date, DateTime, Time, Weekday},
    tz::TimeZone,
};
use serde_json::{Value, json};

use super::imported::ImportOutput;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
const WEEK: i64 = 7 * DAY;
const SLOTS_MAX: usize = 100;
const CONTACTS_MAX: usize = 10;
pub(crate) const LAYERS_MAX: usize = 10;
const INTERVAL_MAX: i64 = 1_000;
const MONDAY: Date = Date::constant(2000, 1, 3);
const WEEKDAYS: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

pub(crate) struct Rotation {
    pub(crate) path: String,
    pub(crate) name: String,
    pub(crate) start: Timestamp,
    pub(crate) turn_seconds: i64,
    /// Time from which the rotation applies; `None` if it applies from the first hand-off.
    pub(crate) from: Option<Timestamp>,
    pub(crate) end: Option<Timestamp>,
    /// The contacts of each turn; an empty turn notifies no one.
    pub(crate) slots: Vec<Vec<String>>,
    /// Times to which the rotation is limited; empty if there is no limit.
    pub(crate) restrictions: Vec<Restriction>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Restriction {
    pub(crate) weekday: Option<Weekday>,
    pub(crate) start: Time,
    pub(crate) seconds: i64,
}

impl Restriction {
    fn window_json(&self) -> Value {
        let (day, rule) = match self.weekday {
            None => (MONDAY, "FREQ=DAILY".to_owned()),
            Some(weekday) => {
                let offset = weekday.to_monday_zero_offset();
                let day = MONDAY.saturating_add(jiff::Span::new().days(i64::from(offset)));
                let word = usize::try_from(offset).map_or("MO", |at| WEEKDAYS[at]);
                (day, format!("FREQ=WEEKLY;BYDAY={word}"))
            }
        };
        let dtstart = day.to_datetime(self.start);
        let mut window = json!({"dtstart": format_local(dtstart), "rrule": rule});
        if self.seconds < DAY && self.seconds % 60 == 0 {
            let end = dtstart.saturating_add(jiff::Span::new().seconds(self.seconds));
            window["endTimeOfDay"] = json!(format!("{:02}:{:02}", end.hour(), end.minute()));
        } else {
            window["duration"] = json!(format_duration(self.seconds));
        }
        window
    }
}

/// Returns the layers of a rotation, in the time zone of its schedule. If layers cannot represent
/// the rotation, reports the reason and returns none.
#[expect(clippy::too_many_lines, reason = "one field after another")]
pub(crate) fn layers_json(
    rotation: &Rotation,
    zone: &str,
    imported: &mut ImportOutput,
) -> Vec<Value> {
    let Ok(time_zone) = TimeZone::get(zone) else {
        imported.record_omission(&rotation.path, "its time zone is unknown");
        return Vec::new();
    };
    let now = Timestamp::now();
    if let Some(why) = unsupported_reason(rotation, now) {
        imported.record_omission(&rotation.path, why);
        return Vec::new();
    }
    let start = first_hand_off(rotation, &time_zone);
    let bound = |at: Option<Timestamp>| at.map(|at| Zoned::new(at, time_zone.clone()).datetime());
    let (from, until) = (bound(rotation.from), bound(rotation.end));
    let from = from.filter(|from| *from > start);
    let is_exact = |local: DateTime, at: Option<Timestamp>| {
        time_zone.to_ambiguous_timestamp(local).compatible().ok() == at
    };
    let bounds = [(from, rotation.from), (until, rotation.end)];
    if bounds
        .iter()
        .any(|(local, at)| local.is_some_and(|it| !is_exact(it, *at)))
    {
        let what = "begins or ends in the hour repeated by a clock change; check it";
        imported.add_note(&rotation.path, what);
    }
    let turn = rotation.turn_seconds;
    let made = if rotation.slots.len() == 1 {
        vec![(start, String::new(), rotation.slots.clone(), Vec::new())]
    } else if turn % WEEK == 0 && turn / WEEK <= INTERVAL_MAX {
        let rule = recurrence_rule("WEEKLY", turn / WEEK);
        vec![(start, rule, rotation.slots.clone(), Vec::new())]
    } else if turn % DAY == 0 && turn / DAY <= INTERVAL_MAX {
        let rule = recurrence_rule("DAILY", turn / DAY);
        vec![(start, rule, rotation.slots.clone(), Vec::new())]
    } else if let Some(parts) = split_into_day_parts(rotation, start) {
        parts
    } else {
        let why = "shifts must last whole days or split a day into at most 10 equal parts";
        imported.record_omission(&rotation.path, why);
        return Vec::new();
    };
    let several = made.len() > 1;
    made.into_iter()
        .enumerate()
        .map(|(at, (start, rule, slots, times))| {
            let slots: Vec<_> = slots
                .into_iter()
                .map(|names| json!({"contactNames": names}))
                .collect();
            let name = if several {
                format!("{} {}", rotation.name, at + 1)
            } else {
                rotation.name.clone()
            };
            let mut layer = json!({
                "name": name.chars().take(100).collect::<String>(),
                "slots": slots, "dtstart": format_local(start),
            });
            if !rule.is_empty() {
                layer["rrule"] = json!(rule);
            }
            if let Some(from) = from.filter(|from| *from > start) {
                layer["from"] = json!(format_local(from));
            }
            if let Some(until) = until {
                layer["until"] = json!(format_local(until));
            }
            let times = if times.is_empty() {
                &rotation.restrictions
            } else {
                &times
            };
            if !times.is_empty() {
                let calendar = add_calendar(&name, zone, times, &rotation.path, imported);
                layer["calendarName"] = json!(calendar);
            }
            layer
        })
        .collect()
}

/// Returns the local time of the first hand-off. If the rotation applies earlier, the time is moved
/// back by whole cycles.
fn first_hand_off(rotation: &Rotation, zone: &TimeZone) -> DateTime {
    let start = Zoned::new(rotation.start, zone.clone()).datetime();
    let turns = i64::try_from(rotation.slots.len()).unwrap_or(1);
    let cycle = rotation.turn_seconds.saturating_mul(turns);
    let ahead = rotation
        .from
        .map_or(0, |from| rotation.start.as_second() - from.as_second());
    if ahead <= 0 || cycle <= 0 {
        return start;
    }
    // Subtracts in civil time, so that cycles of whole days keep their local hand-off time across
    // clock changes.
    let cycles = ahead / cycle + 1;
    let back = jiff::Span::new().try_seconds(cycles.saturating_mul(cycle));
    back.map_or(start, |back| start.saturating_sub(back))
}

fn unsupported_reason(rotation: &Rotation, now: Timestamp) -> Option<&'static str> {
    if rotation.end.is_some_and(|end| end <= now) {
        return Some("it is over");
    }
    if rotation.slots.iter().all(Vec::is_empty) {
        return Some("no shift has a contact, or none could be imported");
    }
    if rotation
        .end
        .is_some_and(|end| end <= rotation.from.unwrap_or(rotation.start))
    {
        return Some("it ends before it starts");
    }
    if rotation.slots.len() > SLOTS_MAX {
        return Some("more than 100 shifts");
    }
    if rotation.slots.iter().any(|it| it.len() > CONTACTS_MAX) {
        return Some("a shift has more than 10 contacts");
    }
    if rotation.turn_seconds <= 0 {
        return Some("unknown shift length");
    }
    None
}

type Part = (DateTime, String, Vec<Vec<String>>, Vec<Restriction>);

/// Splits a rotation with shifts of a few hours into layers, one for each shift of the day.
fn split_into_day_parts(rotation: &Rotation, start: DateTime) -> Option<Vec<Part>> {
    let turn = rotation.turn_seconds;
    let parts = usize::try_from(DAY / turn).ok()?;
    if DAY % turn != 0 || parts > LAYERS_MAX || !rotation.restrictions.is_empty() {
        return None;
    }
    let count = rotation.slots.len();
    let part = |at: usize| {
        let seconds = turn * i64::try_from(at).unwrap_or_default();
        let begins = start.saturating_add(jiff::Span::new().seconds(seconds));
        let turns = (0..count).map(|day| rotation.slots[(day * parts + at) % count].clone());
        let time = Restriction {
            weekday: None,
            start: begins.time(),
            seconds: turn,
        };
        let turns = turns.collect();
        (begins, "FREQ=DAILY".to_owned(), turns, vec![time])
    };
    Some((0..parts).map(part).collect())
}

fn add_calendar(
    name: &str,
    zone: &str,
    times: &[Restriction],
    path: &str,
    imported: &mut ImportOutput,
) -> String {
    let windows: Vec<_> = times.iter().map(Restriction::window_json).collect();
    let name = imported.unique_name("calendar", name);
    imported.add(
        "calendar",
        json!({"name": name, "description": path, "timeZone": zone, "windows": windows}),
    );
    name
}

fn recurrence_rule(frequency: &str, interval: i64) -> String {
    if interval == 1 {
        format!("FREQ={frequency}")
    } else {
        format!("FREQ={frequency};INTERVAL={interval}")
    }
}

fn format_local(at: DateTime) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Formats seconds as an ISO 8601 duration of calendar days and hours.
fn format_duration(seconds: i64) -> String {
    let (days, rest) = (seconds / DAY, seconds % DAY);
    let part = |value: i64, unit: &str| match value {
        0 => String::new(),
        value => format!("{value}{unit}"),
    };
    let parts = [
        (rest / HOUR, "H"),
        (rest % HOUR / 60, "M"),
        (rest % 60, "S"),
    ];
    let time: String = parts.map(|(value, unit)| part(value, unit)).concat();
    let joint = if time.is_empty() { "" } else { "T" };
    format!("P{}{joint}{time}", part(days, "D"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_rotation(turn_seconds: i64, people: &[&str]) -> Rotation {
        Rotation {
            path: "x".to_owned(),
            name: "r".to_owned(),
            start: "2026-01-05T08:00:00Z".parse().unwrap(),
            turn_seconds,
            from: None,
            end: None,
            slots: people.iter().map(|name| vec![(*name).to_owned()]).collect(),
            restrictions: Vec::new(),
        }
    }

    #[test]
    fn hourly_rotation_becomes_one_layer_per_daily_shift() {
        let mut imported = ImportOutput::new("test", false);
        let made = layers_json(
            &sample_rotation(8 * HOUR, &["a", "b"]),
            "Europe/Berlin",
            &mut imported,
        );
        let starts: Vec<_> = made.iter().map(|it| it["dtstart"].clone()).collect();
        let expected = [
            "2026-01-05T09:00:00",
            "2026-01-05T17:00:00",
            "2026-01-06T01:00:00",
        ];
        assert_eq!(starts, expected);
        let firsts = made.iter().map(|it| &it["slots"][0]["contactNames"][0]);
        assert_eq!(firsts.collect::<Vec<_>>(), ["a", "b", "a"]);
        let seconds = made.iter().map(|it| &it["slots"][1]["contactNames"][0]);
        assert_eq!(seconds.collect::<Vec<_>>(), ["b", "a", "b"]);
        assert_eq!(made[1]["calendarName"], "r 2");
    }

    #[test]
    fn unsupported_rotations_are_reported() {
        for (rotation, why) in [
            (
                sample_rotation(5 * HOUR, &["a", "b"]),
                "must last whole days",
            ),
            (sample_rotation(DAY, &[]), "no shift has a contact"),
            (sample_rotation(0, &["a"]), "unknown shift length"),
        ] {
            let mut imported = ImportOutput::new("test", false);
            assert!(layers_json(&rotation, "UTC", &mut imported).is_empty());
            assert!(imported.differences()[0].contains(why), "{why}");
        }
    }

    #[test]
    fn rotation_bounds_and_empty_slots_are_imported() {
        let at = |text: &str| Some(text.parse().unwrap());
        let far = "2999-01-01T00:00:00Z";
        let expected = |dtstart: &str, from: Option<&str>, until: Option<&str>| {
            let mut layer = json!({
                "name": "r", "dtstart": dtstart, "rrule": "FREQ=DAILY",
                "slots": [{"contactNames": ["a"]}, {"contactNames": []}],
            });
            for (field, value) in [("from", from), ("until", until)] {
                if let Some(value) = value {
                    layer[field] = json!(value);
                }
            }
            layer
        };
        for (from, end, expected) in [
            (None, None, expected("2026-01-05T09:00:00", None, None)),
            (
                at("2026-02-01T11:00:00Z"),
                at(far),
                expected(
                    "2026-01-05T09:00:00",
                    Some("2026-02-01T12:00:00"),
                    Some("2999-01-01T01:00:00"),
                ),
            ),
            // The layer applies from five days (three cycles) before the given first hand-off.
            (
                at("2025-12-31T08:00:00Z"),
                None,
                expected("2025-12-30T09:00:00", Some("2025-12-31T09:00:00"), None),
            ),
        ] {
            let mut rotation = sample_rotation(DAY, &["a", "b"]);
            rotation.slots[1].clear();
            (rotation.from, rotation.end) = (from, end);
            let mut imported = ImportOutput::new("test", false);
            let made = layers_json(&rotation, "Europe/Berlin", &mut imported);
            assert_eq!(made, [expected]);
            assert!(
                imported.differences().is_empty(),
                "{:?}",
                imported.report_lines()
            );
        }
    }

    #[test]
    fn restriction_becomes_a_calendar_window() {
        let night = Restriction {
            weekday: None,
            start: Time::constant(22, 0, 0, 0),
            seconds: 8 * HOUR,
        };
        let expected = json!({"dtstart": "2000-01-03T22:00:00", "endTimeOfDay": "06:00",
            "rrule": "FREQ=DAILY"});
        assert_eq!(night.window_json(), expected);
        let weekend = Restriction {
            weekday: Some(Weekday::Friday),
            start: Time::constant(17, 0, 0, 0),
            seconds: 2 * DAY + 15 * HOUR,
        };
        let expected = json!({"dtstart": "2000-01-07T17:00:00", "duration": "P2DT15H",
            "rrule": "FREQ=WEEKLY;BYDAY=FR"});
        assert_eq!(weekend.window_json(), expected);
    }
}
