//! Validation of drafts of drills.

use bellwether_backend_model::calendar::Cron;
use bellwether_proto::{cloud, v1};

use crate::{
    clock::to_millis,
    decide::parse_schedule,
    domain::{DrillEvent, Severity, drill::DRILL, is_reserved_key},
    limits::{DRILL_DIMENSIONS_MAX, DRILL_EVERY_MAX, DRILL_EVERY_MIN},
    matching::field::Field,
    validate::{Violations, check_length},
    wire::time,
};

const NAME_CHARACTERS_MAX: usize = 100;
const TEXT_CHARACTERS_MAX: usize = 200;
const NAMED: &str = "drill";

/// Checks the schedule and returns the interval; 0 without one.
pub(super) fn check_schedule(draft: &v1::Drill, now_ms: i64, violations: &mut Violations) -> i64 {
    let every_ms = draft.every.as_ref().map(time::duration_to_ms);
    match (&*draft.cron, every_ms) {
        ("", _) if !draft.time_zone.is_empty() => {
            violations.add("timeZone", "is allowed only with `cron`");
        }
        ("", _) => {}
        (_, Some(_)) => violations.add("every", "is not allowed with `cron`"),
        (cron, None) => match parse_schedule(cron, &draft.time_zone) {
            Ok(cron) if !is_sparse(&cron, now_ms) => {
                violations.add(
                    "cron",
                    "starts more than once per hour; use a single minute",
                );
            }
            Ok(_) => {}
            Err((field, message)) => violations.add(field, message),
        },
    }
    every_ms.map_or(0, |every_ms| {
        let range = (DRILL_EVERY_MIN, DRILL_EVERY_MAX);
        check_length("every", every_ms, range, violations)
    })
}

/// Whether the times are at least an hour apart. Of three times, two are within an hour if more than
/// one minute matches.
fn is_sparse(cron: &Cron, now_ms: i64) -> bool {
    let first = cron.next_after(now_ms);
    let times: Vec<_> = std::iter::successors(first, |it| cron.next_after(*it))
        .take(3)
        .collect();
    let least_ms = to_millis(DRILL_EVERY_MIN);
    times.windows(2).all(|pair| pair[1] - pair[0] >= least_ms)
}

pub(super) fn parse_event(wire: v1::DrillEvent, violations: &mut Violations) -> DrillEvent {
    for (field, text, most) in [
        ("event.name", &wire.name, NAME_CHARACTERS_MAX),
        ("event.type", &wire.r#type, NAME_CHARACTERS_MAX),
        ("event.summary", &wire.summary, TEXT_CHARACTERS_MAX),
    ] {
        let count = text.chars().count();
        if count > most {
            let message = format!("has {count} characters; the limit is {most}");
            violations.add(field, message);
        } else if text.chars().any(char::is_control) || !text.is_empty() && text.trim().is_empty() {
            violations.add(field, "is blank or contains a control character");
        }
    }
    check_dimensions(&wire, violations);
    DrillEvent {
        severity: parse_severity("event.severity", wire.severity, violations)
            .unwrap_or(Severity::Critical),
        name: or_default(wire.name),
        kind: or_default(wire.r#type),
        summary: wire.summary,
        dimensions: wire.dimensions,
    }
}

fn check_dimensions(wire: &v1::DrillEvent, violations: &mut Violations) {
    let count = wire.dimensions.len();
    if count > DRILL_DIMENSIONS_MAX {
        let message = format!("has {count} entries; the limit is {DRILL_DIMENSIONS_MAX}");
        violations.add("event.dimensions", message);
    }
    for (key, value) in &wire.dimensions {
        let characters = value.chars().count();
        let message = if key == DRILL || is_reserved_key(key, value) {
            format!("`{key}` = `{value}` is reserved for the service")
        } else if key == "name" || Field::parse(&format!("dimensions.{key}")).is_err() {
            format!("`{key}` is not a valid dimension key")
        } else if !(1..=TEXT_CHARACTERS_MAX).contains(&characters) {
            format!("`{key}` has {characters} characters; expected 1 to {TEXT_CHARACTERS_MAX}")
        } else {
            continue;
        };
        violations.add("event.dimensions", message);
    }
}

pub(super) fn parse_severity(
    field: &str,
    number: i32,
    violations: &mut Violations,
) -> Option<Severity> {
    let severity = Severity::from_number(number);
    if severity.is_none() && number != cloud::Severity::Default as i32 {
        violations.add(field, "is not a severity");
    }
    severity
}

fn or_default(text: String) -> String {
    if text.is_empty() {
        NAMED.to_owned()
    } else {
        text
    }
}
