//! The runs of drills: due times, events and results.

use jiff::Timestamp;

use super::{heartbeats::parse_schedule, hold::format_length};
use crate::{
    domain::{
        CloseReason, Drill, DrillResult, DrillRun, Field, HistoryEntry, HoldKind, IncomingEvent,
        Occurrence, ResponseState, Status, drill::DRILL, own_event::DRILL_FAILED,
    },
    limits::DRILL_LATE_MAX_MS,
};

/// The kind of the own events about failed runs.
const MARK: &str = "[DRILL]";
const DEFAULT_SUMMARY: &str = "please acknowledge this test of the on-call route";
const NO_RULE: &str = "no rule with a receiver matched";
const NO_ONE: &str = "no one was paged";

/// Returns the first time after `now_ms` at which a run is due, in milliseconds since 1970. A time
/// of the cron expression at which a run started does not count again, even if the clock was set
/// back.
pub fn next_due_ms(drill: &Drill, now_ms: i64) -> Option<i64> {
    if drill.every_ms > 0 {
        let before_ms = drill.due_ms.filter(|it| *it <= now_ms).unwrap_or(now_ms);
        let passed = (now_ms - before_ms) / drill.every_ms;
        return before_ms.checked_add((passed + 1).checked_mul(drill.every_ms)?);
    }
    let cron = parse_schedule(&drill.cron, &drill.time_zone).ok()?;
    let has_run = |at_ms: i64| {
        let is_run = |it: &DrillRun| it.due_ms == at_ms && it.start_ms.is_some();
        drill.runs.iter().any(is_run)
    };
    let mut due_ms = cron.next_after(now_ms)?;
    while has_run(due_ms) {
        due_ms = cron.next_after(due_ms)?;
    }
    Some(due_ms)
}

/// Starts or skips the run that is due, and schedules the next one. Returns the event to open.
pub fn start_due_run(drill: &mut Drill, now_ms: i64) -> Option<IncomingEvent> {
    let due_ms = drill.due_ms.filter(|_| drill.enabled)?;
    if due_ms > now_ms {
        // After the clock was set back, the next run is earlier than planned.
        let next_ms = next_due_ms(drill, now_ms);
        drill.due_ms = next_ms.map(|it| it.min(due_ms)).or(drill.due_ms);
        return None;
    }
    drill.due_ms = next_due_ms(drill, now_ms);
    let reason = if now_ms - due_ms >= DRILL_LATE_MAX_MS {
        "the service was not running at that time"
    } else if drill.running().is_some() {
        "the previous run was in progress"
    } else {
        return Some(start_run(drill, due_ms, now_ms));
    };
    drill.push_run(DrillRun::new(due_ms, DrillResult::Skipped, reason));
    None
}

/// Records a run in progress, and returns the event to open.
pub fn start_run(drill: &mut Drill, due_ms: i64, now_ms: i64) -> IncomingEvent {
    let about = &drill.event;
    let started = Timestamp::from_millisecond(now_ms).unwrap_or_default();
    let mut dimensions = about.dimensions.clone();
    // An event of its own for each run: earlier runs then do not affect how rules treat it.
    dimensions.insert(DRILL.to_owned(), format!("{} {started}", drill.name));
    let summary = match &*about.summary {
        "" => DEFAULT_SUMMARY,
        summary => summary,
    };
    let event = IncomingEvent {
        dimensions,
        summary: format!("{MARK} {summary}"),
        severity: Some(about.severity),
        status: Some(Status::Open),
        ..IncomingEvent::new_own_event(&about.name, &about.kind, [], now_ms)
    };
    drill.push_run(DrillRun {
        start_ms: Some(now_ms),
        event: Some(event.id()),
        ..DrillRun::new(due_ms, DrillResult::Running, "")
    });
    event
}

/// Completes a run if its result is known. With `is_over`, the time for an acknowledgement has
/// passed. Returns whether the run has ended.
pub fn end_run(run: &mut DrillRun, occurrence: Option<&Occurrence>, is_over: bool) -> bool {
    let Some(occurrence) = occurrence else {
        if is_over {
            (run.result, run.reason) = (DrillResult::NotRouted, "the event was not opened".into());
        }
        return is_over;
    };
    if let Some(reaction) = first_reaction(occurrence) {
        let opened_ms = occurrence
            .history
            .first()
            .map_or(reaction.at_ms, |it| it.at_ms);
        run.result = DrillResult::Acknowledged;
        let author = reaction.author.as_ref();
        run.acknowledged_by = author.map(ToString::to_string).unwrap_or_default();
        run.acknowledged_after_ms = Some((reaction.at_ms - opened_ms).max(0));
        return true;
    }
    let is_closed = occurrence.status == Status::Closed;
    let mut notified = occurrence
        .notified
        .iter()
        .filter(|it| !it.shadow)
        .peekable();
    let hold = held_by(occurrence);
    if notified.peek().is_none() && occurrence.pending.is_empty() && hold.is_none() {
        (run.result, run.reason) = (DrillResult::NotRouted, NO_RULE.into());
        return true;
    }
    if !is_over && !is_closed {
        return false;
    }
    let is_paged = notified.any(|it| {
        let response = it.response.as_ref();
        response.map_or(!it.destinations.is_empty(), |it| !it.paged.is_empty())
    });
    (run.result, run.reason) = match hold {
        _ if is_paged => (DrillResult::Missed, String::new()),
        Some(hold) => (DrillResult::Silenced, hold),
        None => (DrillResult::NotRouted, NO_ONE.into()),
    };
    true
}

/// Returns the acknowledgement, or the close by an operator if that came first.
fn first_reaction(occurrence: &Occurrence) -> Option<&HistoryEntry> {
    let close = occurrence
        .close
        .filter(|it| it.reason == CloseReason::Operator);
    occurrence.history.iter().find(|it| match it.field {
        Field::Acknowledged => it.to == "true",
        Field::Status => close.is_some_and(|close| close.at_ms == it.at_ms),
        Field::Severity | Field::Assignee => false,
    })
}

/// Returns a description of the silence, inhibition, active times or suppression that holds the
/// notification.
fn held_by(occurrence: &Occurrence) -> Option<String> {
    let mut holds = occurrence.pending.iter().flat_map(|it| &it.held_by);
    let hold = holds.find(|it| {
        matches!(
            it.kind,
            HoldKind::Suppressed | HoldKind::Silence | HoldKind::Inhibition | HoldKind::ActiveTimes
        )
    });
    let mut responses = occurrence
        .notified
        .iter()
        .filter_map(|it| it.response.as_deref());
    match hold {
        Some(hold) => Some(hold.kind_with_details()),
        None if occurrence.status == Status::Suppressed => Some("suppressed".into()),
        None if responses.any(|it| it.state == ResponseState::Held) => Some("held".into()),
        None => (!occurrence.covered_by.is_empty()).then(|| "silence".into()),
    }
}

impl Drill {
    /// Returns the event about failed runs, open or closed depending on the last run.
    pub fn failed_event(&self, run: Option<&DrillRun>, now_ms: i64) -> IncomingEvent {
        let name = &self.name;
        let summary = match run.map(|it| (it.result, &*it.reason)) {
            Some((DrillResult::Missed, _)) => {
                let within = format_length(self.acknowledge_ms);
                format!("Drill {name} was not acknowledged within {within}")
            }
            Some((DrillResult::NotRouted, reason)) => {
                format!("Drill {name} did not reach anyone: {reason}")
            }
            _ => {
                return DRILL_FAILED.closed([name.as_str()], "", now_ms);
            }
        };
        DRILL_FAILED.opened([name.as_str()], self.failed_severity, summary, now_ms)
    }
}
