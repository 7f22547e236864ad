//! State changes of occurrences caused by events, operators or the passing of time. Pure functions.

use std::time::Duration;

use crate::{
    decide::{Enrichments, Transition},
    domain::{
        Close, CloseReason, Field, HistoryEntry, IncomingEvent, Name, Occurrence, RecordId,
        Reports, Severity, SharedSettings, Status, TraceContext,
    },
    limits::{HISTORY_MAX, REPORT_LATE_MAX_MS},
};

/// The review time of an occurrence that requires no review.
pub const REVIEW_NEVER_MS: i64 = i64::MAX;

#[derive(Debug, Clone)]
pub struct Arrival<'a> {
    pub event: &'a IncomingEvent,
    /// The client that sent the event; `None` if the service did.
    pub author: Option<&'a Name>,
    /// The rules that caused the event, oldest first.
    pub chain: &'a [RecordId],
    pub trace: Option<TraceContext>,
    pub enrichments: &'a Enrichments,
    /// Time at which the event was accepted, in milliseconds since 1970.
    pub now_ms: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum EventEffect {
    /// The event was applied to the current occurrence.
    Repeated(Transition),
    /// The event arrived too late and was only counted.
    Counted,
    /// The event opened a new occurrence after the newest one.
    Opened(Box<Occurrence>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Assignment {
    #[default]
    Unchanged,
    Unassigned,
    Client(Name),
}

/// Changes to an occurrence; `None` leaves a value unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StateChange {
    pub severity: Option<Severity>,
    pub status: Option<Status>,
    pub acknowledged: Option<bool>,
    /// Duration of the acknowledgement, in milliseconds; `None` means unlimited.
    pub acknowledge_for_ms: Option<i64>,
    pub assignment: Assignment,
    /// Whether receivers get no update about the acknowledgement.
    pub without_updates: bool,
    /// The destinations from which the change comes. They get no update about it.
    pub informed: Vec<RecordId>,
}

#[derive(Debug, Clone, Copy)]
pub struct Cause<'a> {
    /// The client; `None` if the service itself makes the change.
    pub author: Option<&'a Name>,
    /// The close reason, if the change closes the occurrence.
    pub reason: CloseReason,
    pub now_ms: i64,
}

/// Applies an event to the occurrence that it continues or follows. If it opens another occurrence,
/// `key` becomes its key.
///
/// An event is late if it is older than the newest one of the occurrence, regardless of who closed
/// that occurrence and when; the time of an event is the earlier of its timestamp and its arrival.
/// A late event is only counted, even if it would close the occurrence or open the next one. Events
/// of one reporter are never late: their order of arrival decides. An end is only counted if it
/// belongs to an earlier condition or comes from one of several reporters.
pub fn apply_event(
    newest: Option<&mut Occurrence>,
    arrival: &Arrival<'_>,
    settings: &SharedSettings,
    key: RecordId,
) -> EventEffect {
    let event = arrival.event;
    let Some(newest) = newest else {
        return EventEffect::Opened(Box::new(open_occurrence(None, arrival, settings, key)));
    };
    let now_ms = arrival.now_ms;
    let status = requested_status(newest, event, now_ms);
    let is_end = status == Some(Status::Closed);
    // A stored time in the future, which an older version may have recorded, counts as now.
    let is_before = event.timestamp_ms.min(now_ms) < newest.order_ms().min(now_ms);
    let is_late = is_before && !newest.reports.is_from_known_reporter(event.report);
    if is_late || is_superseded(newest, event, is_end, now_ms) {
        if is_end {
            newest.reports.end_report(event.report);
        }
        newest.count = newest.count.saturating_add(1);
        return EventEffect::Counted;
    }
    if newest.status == Status::Closed && !is_end {
        return EventEffect::Opened(Box::new(open_occurrence(
            Some(newest),
            arrival,
            settings,
            key,
        )));
    }
    newest.count = newest.count.saturating_add(1);
    arrival.chain.clone_into(&mut newest.chain);
    newest.trace = arrival.trace;
    newest.expire_ms = expire_ms(event, newest.status);
    if is_end {
        newest.reports.close(event.report);
    } else {
        newest.reports.add(event.report, newest.expire_ms);
    }
    newest.last_seen_ms = event.timestamp_ms;
    newest.received_ms = received_ms(arrival);
    newest.age_shift_ms = 0;
    if replace_content(newest, event, arrival.enrichments) {
        newest.content_ms = Some(now_ms);
    }
    let change = StateChange {
        severity: event.severity,
        status,
        acknowledged: event.acknowledged,
        ..StateChange::default()
    };
    let cause = Cause {
        author: arrival.author,
        reason: CloseReason::Sender,
        now_ms,
    };
    let transition = apply_change(newest, &change, cause, settings);
    // Only an earlier expiry moves the review, so that repeats change no index entry.
    if let Some(expire_ms) = newest.expire_ms {
        newest.review_ms = newest.review_ms.min(expire_ms);
    }
    EventEffect::Repeated(transition)
}

/// Returns the status that an event gives to the occurrence. The status is also closed if the
/// expiry is in the future only because the clock of the reporter is ahead, or if the event only
/// updates open occurrences and this one is closed.
pub fn requested_status(newest: &Occurrence, event: &IncomingEvent, now_ms: i64) -> Option<Status> {
    let is_cut_short =
        event.expire_ms.is_some() && newest.reports.is_cut_short(event.report, now_ms);
    if is_cut_short || event.report.is_update && newest.status == Status::Closed {
        Some(Status::Closed)
    } else {
        event.status
    }
}

/// Whether an open occurrence whose identity was assigned by an earlier version is about the alert
/// that the event reports. The occurrence must have begun at the same time and, unless the event is
/// its end, have the same severity.
pub fn continues_occurrence(folded: &Occurrence, event: &IncomingEvent) -> bool {
    let began_ms = event.report.began_ms;
    let is_end = event.status == Some(Status::Closed);
    folded.status != Status::Closed
        && began_ms.is_some_and(|it| folded.reports.has_condition_begun_at(it))
        && (is_end || event.severity == Some(folded.severity))
}

/// Whether earlier reports supersede an event: it is the end of an earlier condition or of one of
/// several reporters, or a late report of a condition that just ended.
fn is_superseded(newest: &Occurrence, event: &IncomingEvent, is_end: bool, now_ms: i64) -> bool {
    let (reports, report) = (&newest.reports, event.report);
    match newest.close {
        None if is_end => {
            reports.is_about_earlier_condition(report)
                || report.reporter.is_some() && reports.is_kept_open(report.reporter, now_ms)
        }
        Some(close) if !is_end && close.reason == CloseReason::Sender => {
            now_ms < close.at_ms.saturating_add(REPORT_LATE_MAX_MS)
                && reports.is_late_report(report)
        }
        _ => false,
    }
}

fn updated_reports(before: Option<&Occurrence>, event: &IncomingEvent, status: Status) -> Reports {
    let mut reports = before.map_or_else(Reports::default, |it| it.reports.for_next_occurrence());
    if status == Status::Closed {
        reports.close(event.report);
    } else {
        reports.add(event.report, expire_ms(event, status));
    }
    reports
}

fn expire_ms(event: &IncomingEvent, status: Status) -> Option<i64> {
    event.expire_ms.filter(|_| status != Status::Closed)
}

/// Returns the arrival time of an event if it is earlier than the event's timestamp.
fn received_ms(arrival: &Arrival<'_>) -> Option<i64> {
    (arrival.event.timestamp_ms > arrival.now_ms).then_some(arrival.now_ms)
}

/// Replaces the content that the event provides and keeps the rest. Returns whether the content
/// changed.
fn replace_content(
    known: &mut Occurrence,
    event: &IncomingEvent,
    enrichments: &Enrichments,
) -> bool {
    let mut replaced = false;
    let mut replace = |known: &mut String, new: &String| {
        if !new.is_empty() && known != new {
            known.clone_from(new);
            replaced = true;
        }
    };
    replace(&mut known.summary, &event.summary);
    replace(&mut known.body, &event.body);
    replace(&mut known.kind, &event.kind);
    if !enrichments.is_empty() || !known.enriched.is_empty() {
        return replace_enriched_metadata(known, event, enrichments) || replaced;
    }
    if !event.metadata.is_empty() && known.metadata != event.metadata {
        known.metadata.clone_from(&event.metadata);
        replaced = true;
    }
    replaced
}

/// Replaces the metadata that the event provides, and applies the tables to the sender's metadata.
/// Returns whether the metadata changed.
fn replace_enriched_metadata(
    known: &mut Occurrence,
    event: &IncomingEvent,
    enrichments: &Enrichments,
) -> bool {
    let before = known.metadata.clone();
    known.remove_enriched();
    if !event.metadata.is_empty() {
        known.metadata.clone_from(&event.metadata);
    }
    enrichments.apply(known);
    known.metadata != before
}

fn open_occurrence(
    before: Option<&Occurrence>,
    arrival: &Arrival<'_>,
    settings: &SharedSettings,
    key: RecordId,
) -> Occurrence {
    let event = arrival.event;
    let status = event.status.unwrap_or(if event.report.is_update {
        Status::Closed
    } else {
        Status::Open
    });
    let severity = event.severity.unwrap_or(Severity::Info);
    let acknowledged = event.acknowledged.unwrap_or(false);
    let mut opened = Occurrence {
        key,
        event: before.map_or_else(|| event.id(), |before| before.event),
        number: before.map_or(1, |before| before.number.saturating_add(1)),
        name: event.name.clone(),
        kind: match event.kind.as_str() {
            "" => event.name.clone(),
            kind => kind.into(),
        },
        dimensions: event.dimensions.clone(),
        metadata: event.metadata.clone(),
        enriched: Vec::new(),
        summary: event.summary.clone(),
        body: event.body.clone(),
        severity,
        status,
        acknowledged,
        start_ms: event.timestamp_ms,
        last_seen_ms: event.timestamp_ms,
        received_ms: received_ms(arrival),
        close: (status == Status::Closed).then_some(Close {
            at_ms: arrival.now_ms,
            reason: CloseReason::Sender,
        }),
        count: 1,
        prior_count: before.map_or(0, |before| before.prior_count.saturating_add(before.count)),
        annotations: Vec::new(),
        history: vec![HistoryEntry {
            at_ms: arrival.now_ms,
            author: arrival.author.cloned(),
            field: Field::Status,
            from: String::new(),
            to: status.as_str().into(),
        }],
        notified: Vec::new(),
        chain: arrival.chain.into(),
        review_ms: 0,
        content_ms: Some(arrival.now_ms),
        evaluation: None,
        reopened: None,
        earlier: before.map_or_else(Vec::new, Occurrence::as_earlier_occurrence),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: expire_ms(event, status),
        reports: updated_reports(before, event, status),
        flapping: before.map_or_else(Vec::new, |before| before.flapping.clone()),
        assignee: None,
        trace: arrival.trace,
        acknowledged_until_ms: None,
        acknowledged_severity: acknowledged.then_some(severity),
        age_shift_ms: 0,
        informed: Vec::new(),
    };
    arrival.enrichments.apply(&mut opened);
    opened.review_ms = review_time_ms(&opened, arrival.now_ms, settings);
    opened
}

/// Applies a change of severity, status, acknowledgement or assignee, records it in the history,
/// and returns the changes.
pub fn apply_change(
    occurrence: &mut Occurrence,
    change: &StateChange,
    cause: Cause<'_>,
    settings: &SharedSettings,
) -> Transition {
    let mut transition = Transition {
        from: Some(occurrence.status),
        closed: false,
    };
    let before = occurrence.notified_state();
    if let Some(severity) = change.severity.filter(|it| *it != occurrence.severity) {
        let from = occurrence.severity.as_str();
        record_history(occurrence, cause, Field::Severity, from, severity.as_str());
        occurrence.severity = severity;
    }
    if let Some(flag) = change
        .acknowledged
        .filter(|it| *it != occurrence.acknowledged)
    {
        let (from, to) = if flag {
            ("false", "true")
        } else {
            ("true", "false")
        };
        record_history(occurrence, cause, Field::Acknowledged, from, to);
        occurrence.acknowledged = flag;
    }
    let is_other_state = occurrence.notified_state() != before;
    if is_other_state {
        occurrence.update_notified(before, change.without_updates);
    }
    if change.acknowledged.is_some() {
        occurrence.acknowledged_severity = occurrence.acknowledged.then_some(occurrence.severity);
        let for_ms = change.acknowledge_for_ms;
        let for_ms = for_ms.filter(|_| occurrence.acknowledged);
        occurrence.acknowledged_until_ms = for_ms.map(|it| cause.now_ms.saturating_add(it));
    }
    let assignee = match &change.assignment {
        Assignment::Unchanged => occurrence.assignee.clone(),
        Assignment::Unassigned => None,
        Assignment::Client(name) => Some(name.clone()),
    };
    if assignee != occurrence.assignee {
        let before = std::mem::replace(&mut occurrence.assignee, assignee.clone());
        let word = |it: &Option<Name>| it.as_ref().map_or_else(String::new, Name::to_string);
        let (from, to) = (word(&before), word(&assignee));
        record_history(occurrence, cause, Field::Assignee, &from, &to);
    }
    let status = change.status.filter(|it| *it != occurrence.status);
    if is_other_state || status.is_some() {
        occurrence.informed.clone_from(&change.informed);
    }
    if let Some(status) = status {
        let from = occurrence.status.as_str();
        record_history(occurrence, cause, Field::Status, from, status.as_str());
        occurrence.status = status;
        transition.closed = status == Status::Closed;
        // The expiry set by the sender no longer applies once the occurrence has been closed, even
        // if it is reopened.
        if transition.closed {
            occurrence.expire_ms = None;
        }
        occurrence.close = transition.closed.then_some(Close {
            at_ms: cause.now_ms,
            reason: cause.reason,
        });
        occurrence.age_shift_ms = 0;
    }
    let is_other_severity = occurrence.severity != before.severity;
    if status.is_some() || is_other_severity && occurrence.close.is_none() {
        occurrence.review_ms = review_time_ms(occurrence, cause.now_ms, settings);
    }
    transition
}

fn record_history(
    occurrence: &mut Occurrence,
    cause: Cause<'_>,
    field: Field,
    from: &str,
    to: &str,
) {
    let history = &mut occurrence.history;
    if history.len() >= HISTORY_MAX {
        history.drain(..=history.len() - HISTORY_MAX);
    }
    history.push(HistoryEntry {
        at_ms: cause.now_ms,
        author: cause.author.cloned(),
        field,
        from: from.into(),
        to: to.into(),
    });
}

/// The action that the review of an occurrence requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// No action is required before this time, in milliseconds since 1970.
    Later(i64),
    /// Close the occurrence: no event was received for too long.
    Age,
    /// Close the occurrence: the expiry set by the sender passed.
    Expire,
    /// Delete the occurrence: its retention has passed.
    Forget,
}

/// Reviews an occurrence whose review is due.
///
/// Repeats do not move the review time, which saves changes of index entries. Instead, repeats are
/// taken into account here.
pub fn review_occurrence(
    occurrence: &Occurrence,
    now_ms: i64,
    settings: &SharedSettings,
) -> Review {
    let since_ms = occurrence
        .close
        .map_or(occurrence.order_ms(), |close| close.at_ms)
        .saturating_add(occurrence.age_shift_ms);
    match review_time_ms(occurrence, since_ms, settings) {
        due_ms if due_ms > now_ms => Review::Later(due_ms),
        _ if occurrence.close.is_some() => Review::Forget,
        _ if occurrence.expire_ms.is_some_and(|it| it <= now_ms) => Review::Expire,
        _ => Review::Age,
    }
}

fn review_time_ms(occurrence: &Occurrence, since_ms: i64, settings: &SharedSettings) -> i64 {
    let wait = match occurrence.close {
        Some(_) => (!settings.event_retention.is_zero()).then_some(settings.event_retention),
        None => age_limit(settings, occurrence.severity),
    };
    let later = |wait: Duration| {
        since_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(REVIEW_NEVER_MS))
    };
    let expire_ms = occurrence.expire_ms.unwrap_or(REVIEW_NEVER_MS);
    wait.map_or(REVIEW_NEVER_MS, later).min(expire_ms)
}

/// Returns the time for which an occurrence of a severity stays open without events; `None` means
/// forever.
fn age_limit(settings: &SharedSettings, severity: Severity) -> Option<Duration> {
    let age_max = match severity {
        Severity::Debug | Severity::Info => settings.info_age_max,
        Severity::Warning => settings.warning_age_max,
        Severity::Error | Severity::Critical => settings.error_age_max,
    };
    (!age_max.is_zero()).then_some(age_max)
}

#[cfg(test)]
mod tests;
