//! The shifts of a schedule as an iCalendar file.

use icalendar::{Calendar, Component, Event};
use serde_json::Value;

/// Refresh interval suggested to calendar applications.
const REFRESH: &str = "PT1H";

/// Writes the response of `OpenFeed`; gaps become events too, unless they are allowed.
pub(crate) fn write(schedule: &str, found: &Value) -> String {
    let mut calendar = Calendar::new();
    calendar
        .name(&format!("On call: {schedule}"))
        .append_property(("PRODID", "-//Bellwether//On call//EN"))
        .append_property(("REFRESH-INTERVAL;VALUE=DURATION", REFRESH))
        .append_property(("X-PUBLISHED-TTL", REFRESH));
    let gaps_allowed = found["gapsAllowed"] == true;
    let shifts = found["shifts"].as_array().into_iter().flatten();
    for shift in shifts {
        let names = shift["contactNames"].as_array().into_iter().flatten();
        let names: Vec<_> = names.filter_map(Value::as_str).collect();
        if names.is_empty() && gaps_allowed {
            continue;
        }
        calendar.push(event(schedule, shift, &names));
    }
    calendar.to_string()
}

fn event(schedule: &str, shift: &Value, names: &[&str]) -> Event {
    let [start, end] = ["startTime", "endTime"].map(|field| stamp(&shift[field]));
    let who = if names.is_empty() {
        "no one".to_owned()
    } else {
        names.join(", ")
    };
    let description = match shift["source"].as_str().unwrap_or_default() {
        "" => schedule.to_owned(),
        source => format!("{schedule}, {source}"),
    };
    let mut event = Event::new();
    event
        .uid(&format!("{start}-{schedule}@bellwether"))
        .summary(&format!("On call: {who}"))
        .description(&description)
        .add_property("DTSTAMP", &start)
        .add_property("DTSTART", &start)
        .add_property("DTEND", &end);
    event.done()
}

fn stamp(time: &Value) -> String {
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
    fn a_feed_has_an_event_for_each_shift_and_each_gap_that_is_not_meant() {
        let shift = |day: u8, names: &[&str]| {
            json!({
                "startTime": format!("2026-11-{day:02}T08:00:00Z"),
                "endTime": format!("2026-11-{:02}T08:00:00Z", day + 1),
                "contactNames": names,
                "source": "layer 1",
            })
        };
        let shifts = json!([shift(1, &["ana", "ben"]), shift(2, &[])]);
        let mut found = json!({"shifts": shifts});
        let text = write("nights; \"db\"", &found);
        assert_eq!(text.matches("BEGIN:VEVENT").count(), 2, "{text}");
        for line in [
            "BEGIN:VCALENDAR",
            "DTSTART:20261101T080000Z",
            "DTEND:20261102T080000Z",
            "SUMMARY:On call: ana\\, ben",
            "SUMMARY:On call: no one",
        ] {
            assert!(text.contains(&format!("{line}\r\n")), "{line} in {text}");
        }
        found["gapsAllowed"] = true.into();
        let text = write("nights", &found);
        assert_eq!(text.matches("BEGIN:VEVENT").count(), 1, "{text}");
        assert!(text.lines().all(|line| line.len() <= 75), "{text}");
    }
}
