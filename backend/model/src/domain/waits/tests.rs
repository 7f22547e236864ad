//! Checks that every time in the domain is registered, or listed here with a reason.

use std::{collections::BTreeSet, fmt::Debug, fs, path::Path};

use super::*;
use crate::{domain::HoldKind, samples};

/// Times that do not move when the clock is set, by type. The times of creation and of the last
/// update of a resource are not listed.
const OTHERS: &[(&str, &str)] = &[
    // Dates of past events, and the bounds of history.
    ("AuditEntry", "time_ms"),
    ("Attempt", "start_ms"),
    ("Client", "create_ms last_used_ms"),
    ("Close", "at_ms"),
    ("Comment", "at_ms"),
    ("Delivery", "create_ms end_ms"),
    ("DigestContent", "start_ms end_ms"),
    ("DigestItem", "at_ms"),
    ("DrillRun", "due_ms start_ms"),
    ("EarlierOccurrence", "end_ms length_ms"),
    ("Evaluation", "at_ms rules_ms"),
    ("Group", "create_ms end_ms"),
    ("Health", "last_success_ms"),
    ("HistoryEntry", "at_ms"),
    ("HoldChange", "at_ms"),
    ("Occurrence", "start_ms last_seen_ms received_ms content_ms"),
    ("Opening", "at_ms"),
    ("PagedReceiver", "at_ms"),
    ("RejectedRecipient", "since_ms"),
    ("Response", "begin_ms end_ms"),
    ("Revision", "until_ms"),
    // Times from the sender's clock.
    ("IncomingEvent", "timestamp_ms expire_ms"),
    ("Occurrence", "expire_ms"),
    ("Report", "began_ms end_ms"),
    ("Reporter", "until_ms began_ms"),
    ("Reports", "began_ms ended_ms"),
    // Points in time chosen by users.
    ("Client", "expire_ms"),
    ("ExpectedWindow", "start_ms"),
    ("Override", "start_ms end_ms"),
    ("PreviousKey", "until_ms"),
    ("Silence", "start_ms end_ms"),
    // Durations.
    ("ContactMethod", "after_ms"),
    ("Drill", "every_ms"),
    ("DrillRun", "acknowledged_after_ms"),
    ("EscalationPlan", "ack_timeout_ms"),
    ("EscalationStep", "wait_ms"),
    ("FlappingLimits", "window_ms settle_ms"),
    ("Group", "interval_ms"),
    ("Grouping", "wait_ms interval_ms"),
    ("Heartbeat", "every_ms max_run_ms grace_ms forget_ms"),
    ("Inhibition", "linger_ms"),
    ("Reaction", "acknowledged_after_ms"),
    ("Rule", "delay_ms auto_pause_ms"),
    ("Silence", "expire_when_idle_ms warn_before_ms"),
    // Service time, which clock steps do not move, and the wall-clock times shown with it.
    ("Drill", "acknowledge_ms"),
    ("DrillRun", "since_service_ms"),
    ("Expectation", "beat_service_ms run_ms gaps_ms"),
    ("ExpectedWindow", "length_ms service_ms slack_ms"),
    ("HeartbeatRun", "since_service_ms start_service_ms start_ms"),
    ("OpenAlarm", "service_ms"),
    ("Outage", "service_ms down_ms"),
];

type Times = BTreeSet<(String, String)>;

/// Returns the name of the type or variant that starts on a line.
fn declared_name(line: &str) -> Option<&str> {
    let line = line.trim_start().strip_suffix(" {")?;
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let name = line.strip_prefix("struct ").unwrap_or(line);
    let is_name = name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric);
    is_name.then_some(name)
}

/// Collects the times in the sources of the domain: fields that hold milliseconds.
fn declared(folder: &Path, times: &mut Times) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            declared(&path, times);
            continue;
        }
        if path.ends_with("waits/tests.rs") {
            continue;
        }
        let (mut of, mut is_code) = (None, false);
        for line in fs::read_to_string(&path).unwrap().lines() {
            let begins_code = ["impl", "fn ", "pub fn ", "mod ", "macro"];
            is_code |= !line.ends_with(';') && begins_code.iter().any(|it| line.starts_with(it));
            if line.starts_with('}') {
                is_code = false;
            }
            if is_code || line.starts_with('}') {
                of = None;
            } else if let Some(name) = declared_name(line) {
                of = Some(name.to_owned());
            }
            let field = line.trim_start();
            let field = field.strip_prefix("pub ").unwrap_or(field);
            if let (Some(of), Some((name, kind))) = (&of, field.split_once(": "))
                && kind.contains("i64")
            {
                times.insert((of.clone(), name.to_owned()));
            }
        }
    }
}

/// Collects the times of a value that a shift changes, judging by its debug output.
fn moved<T: Shift + Clone + Debug>(value: &T, times: &mut Times) {
    let mut shifted = value.clone();
    shifted.shift_times(1);
    let (before, after) = (format!("{value:#?}"), format!("{shifted:#?}"));
    let (mut path, mut field) = (Vec::new(), String::new());
    for (before, after) in before.lines().zip(after.lines()) {
        let line = before.trim_start();
        if let Some((name, rest)) = line.split_once(": ") {
            name.clone_into(&mut field);
            if rest.ends_with('{') {
                path.push(rest.trim_end_matches('{').trim().to_owned());
            }
        } else if line.ends_with('{') {
            path.push(line.trim_end_matches('{').trim().to_owned());
        } else if line.starts_with('}') {
            path.pop();
        }
        if before != after {
            times.insert((path.last().unwrap().clone(), field.clone()));
        }
    }
}

fn all_moved() -> Times {
    let mut times = Times::new();
    for state in [
        DeliveryState::Pending { due_ms: 1 },
        DeliveryState::Leased { until_ms: 2 },
        DeliveryState::Retry { due_ms: 3 },
    ] {
        moved(&samples::delivery(1, state), &mut times);
    }
    moved(&samples::budget_window(), &mut times);
    moved(&samples::group(), &mut times);
    moved(&samples::receipt(), &mut times);
    moved(&samples::drill("weekly page"), &mut times);
    for health in [samples::asking_health(), samples::alternating_health()] {
        moved(&health, &mut times);
    }
    for occurrence in [
        samples::held_occurrence(),
        samples::grouped_occurrence(),
        samples::flapping_occurrence(),
        samples::cause(),
        samples::escalated(),
        samples::occurrence(1),
    ] {
        moved(&occurrence, &mut times);
    }
    let mut silence = samples::silence("idle");
    silence.progress.idle_since_ms = Some(5);
    moved(&silence, &mut times);
    let service = Expectation {
        heartbeat: crate::domain::heartbeat::SERVICE,
        key: crate::domain::heartbeat::SERVICE,
        ..samples::expectation()
    };
    moved(&service, &mut times);
    times
}

#[test]
fn every_time_field_is_shifted_or_listed_as_exempt() {
    let mut times = Times::new();
    declared(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/domain"),
        &mut times,
    );
    let moved = all_moved();
    let mut known = moved.clone();
    for (of, fields) in OTHERS {
        for field in fields.split(' ') {
            let other = ((*of).to_owned(), field.to_owned());
            assert!(
                known.insert(other),
                "{of}.{field} moves, or is listed twice"
            );
        }
    }
    let is_resource = |of: &str| {
        let both = ["create_ms", "update_ms"].map(|it| (of.to_owned(), it.to_owned()));
        both.iter().all(|it| times.contains(it))
    };
    let is_history = |(of, field): &(String, String)| {
        ["create_ms", "update_ms"].contains(&&**field) && is_resource(of)
    };
    let unknown = times.difference(&known).filter(|it| !is_history(it));
    let unknown: Vec<_> = unknown.collect();
    assert!(
        unknown.is_empty(),
        "neither in the register nor listed: {unknown:?}"
    );
    let gone: Vec<_> = known.difference(&times).collect();
    assert!(gone.is_empty(), "no such times: {gone:?}");
}

#[test]
fn hold_end_shifts_unless_chosen_by_a_user() {
    let hold = samples::held_occurrence().pending[0].held_by[0].clone();
    for kind in HoldKind::ALL {
        let before = HeldBy {
            kind,
            until_ms: Some(100),
            ..hold.clone()
        };
        let mut after = before.clone();
        after.shift_times(50);
        let is_of_day = matches!(
            kind,
            HoldKind::Suppressed | HoldKind::Silence | HoldKind::ActiveTimes
        );
        let expected = if is_of_day { 100 } else { 150 };
        assert_eq!(after.until_ms, Some(expected), "{kind:?}");
        assert_eq!(after.since_ms, before.since_ms + 50);
    }
}

#[test]
fn review_of_a_held_response_is_not_postponed() {
    let mut response = Response::new(
        crate::domain::RecordId::from_parts(1, 1),
        &samples::policy("database"),
        100,
    );
    response.hold_steps(&[], 100);
    let review_ms = response.review_ms.unwrap();
    response.shift_times(50);
    assert_eq!(
        (response.review_ms, response.next_ms),
        (Some(review_ms), Some(150))
    );
    response.shift_times(-50);
    assert_eq!(response.review_ms, Some(review_ms - 50));
    response.state = ResponseState::Active;
    response.shift_times(50);
    assert_eq!(response.review_ms, Some(review_ms));
}

#[test]
fn review_shifts_with_age_but_not_with_sender_expiry() {
    // Review time, sender's expiry, clock step, and the expected review time.
    let cases = [
        (100, None, 50, 150),
        (100, None, -50, 50),
        (100, Some(100), 50, 100),
        (100, Some(120), 50, 120),
        (100, Some(120), -50, 50),
        (i64::MAX, None, -50, i64::MAX),
    ];
    for (review_ms, expire_ms, by_ms, expected) in cases {
        let mut occurrence = Occurrence {
            review_ms,
            expire_ms,
            ..samples::occurrence(1)
        };
        occurrence.shift_times(by_ms);
        assert_eq!(
            (occurrence.review_ms, occurrence.age_shift_ms),
            (expected, by_ms)
        );
    }
}
