//! The shifts of a schedule or a contact as an iCalendar file, for users' calendars.

use icalendar::{Calendar, Component, Event, Parameter, Property};
use serde_json::Value;

const REFRESH: &str = "PT1H";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeedKind {
    /// A schedule; its events name the contacts.
    Schedule,
    /// A contact; its events name the schedules.
    Contact,
}

pub(crate) fn write_calendar(of: FeedKind, name: &str, found: &Value) -> String {
    let mut calendar = Calendar::empty();
    for (key, value) in [
        ("VERSION", "2.0"),
        ("PRODID", "-//Bellwether//On call//EN"),
        ("CALSCALE", "GREGORIAN"),
        ("METHOD", "PUBLISH"),
    ] {
        calendar.append_property((key, value));
    }
    let refresh = Property::new("REFRESH-INTERVAL", REFRESH)
        .append_parameter(Parameter::new("VALUE", "DURATION"))
        .done();
    calendar
        .name(&format!("On call: {name}"))
        .timezone(found["timeZone"].as_str().unwrap_or("UTC"))
        .append_property(refresh)
        .append_property(("X-PUBLISHED-TTL", REFRESH));
    let shifts = found["shifts"].as_array().into_iter().flatten();
    for shift in shifts {
        calendar.push(shift_event(of, shift));
    }
    calendar.to_string()
}

fn shift_event(of: FeedKind, entry: &Value) -> Event {
    let shift = &entry["shift"];
    let schedule = entry["scheduleName"].as_str().unwrap_or_default();
    let names = shift["contactNames"].as_array().into_iter().flatten();
    let names: Vec<_> = names.filter_map(Value::as_str).collect();
    let who = match (of, names.as_slice()) {
        (FeedKind::Contact, _) => schedule.to_owned(),
        (FeedKind::Schedule, []) => "no one".to_owned(),
        (FeedKind::Schedule, names) => names.join(", "),
    };
    let mut description = schedule.to_owned();
    let source = shift["source"].as_str().unwrap_or_default();
    for part in [source, &names.join(", ")] {
        if !part.is_empty() {
            description.push_str(", ");
            description.push_str(part);
        }
    }
    let updated = ical_time(&entry["updateTime"]);
    let mut event = Event::new();
    event
        .uid(entry["uid"].as_str().unwrap_or_default())
        .summary(&format!("On call: {who}"))
        .description(&description)
        .add_property("DTSTAMP", &updated)
        .add_property("LAST-MODIFIED", &updated)
        .add_property("SEQUENCE", sequence_number(&entry["revision"]))
        .add_property("DTSTART", ical_time(&shift["startTime"]))
        .add_property("DTEND", ical_time(&shift["endTime"]));
    event.done()
}

/// Returns a 64-bit number, which is a string in JSON.
fn sequence_number(revision: &Value) -> String {
    let text = revision.as_str().map(str::to_owned);
    text.or_else(|| Some(revision.as_u64()?.to_string()))
        .unwrap_or_else(|| "0".to_owned())
}

fn ical_time(time: &Value) -> String {
    let at = time
        .as_str()
        .and_then(|it| it.parse::<jiff::Timestamp>().ok());
    at.map_or_else(String::new, |at| at.strftime("%Y%m%dT%H%M%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn feed_has_one_event_per_shift_with_the_schedule_revision() {
        let shift = |day: u8, names: &[&str]| {
            json!({
                "shift": {
                    "startTime": format!("2026-11-{day:02}T08:00:00Z"),
                    "endTime": format!("2026-11-{:02}T08:00:00Z", day + 1),
                    "contactNames": names,
                    "source": "layer 1",
                },
                "uid": format!("{day}@bellwether"),
                "scheduleName": "nights; \"db\"",
                "updateTime": "2026-10-01T12:30:00.5Z",
                "revision": "7",
            })
        };
        let shifts = json!([shift(1, &["ana", "ben"]), shift(2, &[])]);
        let found = json!({"shifts": shifts, "timeZone": "Europe/Berlin"});
        let table: [(FeedKind, &[&str]); 2] = [
            (
                FeedKind::Schedule,
                &[
                    "BEGIN:VCALENDAR",
                    "VERSION:2.0",
                    "X-WR-TIMEZONE:Europe/Berlin",
                    "UID:1@bellwether",
                    "DTSTAMP:20261001T123000Z",
                    "LAST-MODIFIED:20261001T123000Z",
                    "SEQUENCE:7",
                    "DTSTART:20261101T080000Z",
                    "DTEND:20261102T080000Z",
                    "SUMMARY:On call: ana\\, ben",
                    "SUMMARY:On call: no one",
                    "DESCRIPTION:nights\\; \"db\"\\, layer 1\\, ana\\, ben",
                ],
            ),
            (FeedKind::Contact, &["SUMMARY:On call: nights\\; \"db\""]),
        ];
        for (of, lines) in table {
            let text = write_calendar(of, "nights", &found);
            assert_eq!(text.matches("BEGIN:VEVENT").count(), 2, "{text}");
            for once in ["\nPRODID:", "\nVERSION:", "\nCALSCALE:", "\nX-WR-TIMEZONE:"] {
                assert_eq!(text.matches(once).count(), 1, "{once} in {text}");
            }
            for line in lines {
                assert!(text.contains(&format!("{line}\r\n")), "{line} in {text}");
            }
            assert!(text.lines().all(|line| line.len() <= 75), "{text}");
        }
    }
}
