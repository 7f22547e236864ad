//! Validation of heartbeat drafts.

use std::time::Duration;

use bellwether_proto::{cloud, v1};

use super::NAMED;
use crate::{
    clock::to_millis,
    decide::parse_schedule,
    domain::{HeartbeatEvent, Severity},
    limits::{
        HEARTBEAT_DIMENSIONS_MAX, HEARTBEAT_EVERY_MAX, HEARTBEAT_EVERY_MIN, HEARTBEAT_FIELDS_MAX,
        HEARTBEAT_FORGET_DEFAULT, HEARTBEAT_FORGET_MAX, HEARTBEAT_GRACE_MAX, HEARTBEAT_GRACE_MIN,
        HEARTBEAT_GRACE_OF_CRON, HEARTBEAT_RUN_MAX, HEARTBEAT_RUN_MIN,
    },
    matching::field::Field,
    validate::{Violations, check_length},
    wire::time,
};

const EVENT_NAME_CHARACTERS_MAX: usize = 100;
const SUMMARY_CHARACTERS_MAX: usize = 250;

pub(super) fn check_fields(by: &[String], violations: &mut Violations) {
    if by.len() > HEARTBEAT_FIELDS_MAX {
        let count = by.len();
        let message = format!("has {count} fields; the limit is {HEARTBEAT_FIELDS_MAX}");
        return violations.add("by", message);
    }
    for (at, name) in by.iter().enumerate() {
        if let Err(message) = Field::parse_shared(name) {
            violations.add(format!("by[{at}]"), message);
        } else if by[..at].contains(name) {
            violations.add(format!("by[{at}]"), "is there already");
        }
    }
}

pub(super) struct HeartbeatTimes {
    pub(super) every: i64,
    pub(super) grace: i64,
    pub(super) forget: i64,
    pub(super) max_run: Option<i64>,
}

impl HeartbeatTimes {
    pub(super) fn check(draft: &v1::Heartbeat, violations: &mut Violations) -> Self {
        let every_ms = check_every(draft, violations);
        let tenth = Duration::from_millis(every_ms.unsigned_abs() / 10);
        let usual = if draft.cron.is_empty() {
            tenth.clamp(HEARTBEAT_GRACE_MIN, HEARTBEAT_GRACE_MAX)
        } else {
            HEARTBEAT_GRACE_OF_CRON
        };
        let grace_ms = check_length(
            "grace",
            draft
                .grace
                .as_ref()
                .map_or_else(|| to_millis(usual), time::duration_to_ms),
            (Duration::ZERO, HEARTBEAT_GRACE_MAX),
            violations,
        );
        let twice = Duration::from_millis(every_ms.unsigned_abs() * 2);
        let least = twice.min(HEARTBEAT_FORGET_DEFAULT);
        let forget_ms = check_length(
            "forgetAfter",
            draft.forget_after.as_ref().map_or_else(
                || to_millis(HEARTBEAT_FORGET_DEFAULT.max(twice)),
                time::duration_to_ms,
            ),
            (least, HEARTBEAT_FORGET_MAX),
            violations,
        );
        let run = (HEARTBEAT_RUN_MIN, HEARTBEAT_RUN_MAX);
        let max_run = draft.max_run.as_ref().map(time::duration_to_ms);
        Self {
            every: every_ms,
            grace: grace_ms,
            forget: forget_ms,
            max_run: max_run.map(|it| check_length("maxRun", it, run, violations)),
        }
    }
}

/// Validates `every`, `calendar_name` and `cron`, and returns the interval; 0 without `every`.
fn check_every(draft: &v1::Heartbeat, violations: &mut Violations) -> i64 {
    if !draft.cron.is_empty()
        && let Err((field, message)) = parse_schedule(&draft.cron, &draft.time_zone)
    {
        violations.add(field, message);
    } else if draft.cron.is_empty() && !draft.time_zone.is_empty() {
        violations.add("timeZone", "is allowed only with `cron`");
    }
    let every_ms = draft.every.as_ref().map(time::duration_to_ms);
    match (every_ms, &*draft.calendar_name, &*draft.cron) {
        (Some(every_ms), "", "") => {
            let range = (HEARTBEAT_EVERY_MIN, HEARTBEAT_EVERY_MAX);
            check_length("every", every_ms, range, violations)
        }
        (Some(_), ..) => {
            let message = "is not allowed with `calendarName` or `cron`";
            violations.add("every", message);
            0
        }
        (None, "", "") => {
            let message = "is required, such as `300s`, unless `calendarName` or `cron` is set";
            violations.add("every", message);
            0
        }
        (None, calendar, cron) => {
            if !calendar.is_empty() && !cron.is_empty() {
                violations.add("cron", "is not allowed with `calendarName`");
            }
            0
        }
    }
}

pub(super) fn parse_event(wire: v1::HeartbeatEvent, violations: &mut Violations) -> HeartbeatEvent {
    for (field, text, most) in [
        ("event.name", &wire.name, EVENT_NAME_CHARACTERS_MAX),
        ("event.summary", &wire.summary, SUMMARY_CHARACTERS_MAX),
    ] {
        let count = text.chars().count();
        if count > most {
            violations.add(
                field,
                format!("has {count} characters; the limit is {most}"),
            );
        } else if let Some(control) = text.chars().find(|it| it.is_control()) {
            let message = format!("contains the control character {control:?}; remove it");
            violations.add(field, message);
        }
    }
    if wire.dimensions.len() > HEARTBEAT_DIMENSIONS_MAX {
        let count = wire.dimensions.len();
        let message = format!("has {count} entries; the limit is {HEARTBEAT_DIMENSIONS_MAX}");
        violations.add("event.dimensions", message);
    }
    for (key, value) in &wire.dimensions {
        if ["source", NAMED].contains(&key.as_str()) {
            violations.add("event.dimensions", format!("`{key}` is set by the service"));
        } else if Field::parse(&format!("dimensions.{key}")).is_err() {
            violations.add(
                "event.dimensions",
                format!("`{key}` is not a valid dimension key"),
            );
        } else if value.is_empty() || value.chars().count() > SUMMARY_CHARACTERS_MAX {
            let message =
                format!("`{key}` is empty or has more than {SUMMARY_CHARACTERS_MAX} characters");
            violations.add("event.dimensions", message);
        }
    }
    let severity = Severity::from_number(wire.severity);
    if severity.is_none() && wire.severity != cloud::Severity::Default as i32 {
        violations.add("event.severity", "is not a severity");
    }
    HeartbeatEvent {
        name: wire.name,
        severity: severity.unwrap_or(Severity::Error),
        summary: wire.summary,
        dimensions: wire.dimensions,
    }
}
