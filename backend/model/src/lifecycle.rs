//! What an event, an operator or the passing of time makes of an occurrence; pure.

use std::time::Duration;

use crate::{
    decide::Transition,
    domain::{
        Close, CloseReason, Field, HistoryEntry, IncomingEvent, Name, Occurrence, RecordId,
        Reports, Severity, SharedSettings, Status, TraceContext,
    },
    limits::{HISTORY_MAX, REPORT_LATE_MAX_MS},
};

/// The review time of an occurrence that is never looked at.
pub const REVIEW_NEVER_MS: i64 = i64::MAX;

/// An event that was accepted, and how it came.
#[derive(Debug, Clone)]
pub struct Arrival<'a> {
    /// The event.
    pub event: &'a IncomingEvent,
    /// The client that sent it; none when the service did.
    pub author: Option<&'a Name>,
    /// The rules that led to it, oldest first.
    pub chain: &'a [RecordId],
    /// What it follows from.
    pub trace: Option<TraceContext>,
    /// When it was accepted, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What happened to an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Received {
    /// The occurrence took it in.
    Repeated(Transition),
    /// It came too late for anything but being counted.
    Counted,
    /// It opened a new occurrence, which follows the newest one.
    Opened(Box<Occurrence>),
}

/// Whose an occurrence is to be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Assignment {
    /// Whose it is.
    #[default]
    Stays,
    /// No one's.
    Nobody,
    /// That client's.
    Client(Name),
}

/// What is to be another value; none leaves it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StateChange {
    /// The severity.
    pub severity: Option<Severity>,
    /// The status.
    pub status: Option<Status>,
    /// The acknowledged flag.
    pub acknowledged: Option<bool>,
    /// How long the acknowledgement counts, in milliseconds; none for without an end.
    pub acknowledge_for_ms: Option<i64>,
    /// Who looks after it.
    pub assignment: Assignment,
    /// Whether receivers get no update about the acknowledgement.
    pub without_updates: bool,
}

/// Who asks for a change, and when.
#[derive(Debug, Clone, Copy)]
pub struct Cause<'a> {
    /// The client; none when the service itself does.
    pub author: Option<&'a Name>,
    /// The reason that a close gets.
    pub reason: CloseReason,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// Takes an event in, given the occurrence that it continues or follows; `key` is used when that
/// opens another one.
///
/// An event is late when it is before the newest one of the occurrence, regardless of who closed
/// that occurrence and when; the time of an event is the earlier of what it states and when it
/// came. A late event counts and does nothing else, also when it would close or would open the next
/// occurrence. Events of one reporter are never late: the order of their arrival decides. An end
/// counts only where it is of an earlier condition or by one of several reporters.
pub fn receive(
    newest: Option<&mut Occurrence>,
    arrival: &Arrival<'_>,
    settings: &SharedSettings,
    key: RecordId,
) -> Received {
    let event = arrival.event;
    let Some(newest) = newest else {
        return Received::Opened(Box::new(open(None, arrival, settings, key)));
    };
    let now_ms = arrival.now_ms;
    let status = status(newest, event, now_ms);
    let is_end = status == Some(Status::Closed);
    // Nothing that is stored was received later than now, whatever an older version noted.
    let is_before = event.timestamp_ms.min(now_ms) < newest.order_ms().min(now_ms);
    let is_late = is_before && !newest.reports.is_of_known(event.report);
    if is_late || is_overtaken(newest, event, is_end, now_ms) {
        if is_end {
            newest.reports.end(event.report);
        }
        newest.count = newest.count.saturating_add(1);
        return Received::Counted;
    }
    if newest.status == Status::Closed && !is_end {
        return Received::Opened(Box::new(open(Some(newest), arrival, settings, key)));
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
    if replace_content(newest, event) {
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
    let transition = alter(newest, &change, cause, settings);
    // Only what ends sooner moves the review: news alone change no index entry.
    if let Some(expire_ms) = newest.expire_ms {
        newest.review_ms = newest.review_ms.min(expire_ms);
    }
    Received::Repeated(transition)
}

/// The status that an event states of that occurrence: closed also where it is of a reporter whose clock
/// is ahead, and its end therefore in the future, and where it only changes what is open.
pub fn status(newest: &Occurrence, event: &IncomingEvent, now_ms: i64) -> Option<Status> {
    let is_cut_short =
        event.expire_ms.is_some() && newest.reports.is_cut_short(event.report, now_ms);
    if is_cut_short || event.report.is_update && newest.status == Status::Closed {
        Some(Status::Closed)
    } else {
        event.status
    }
}

/// Whether an open occurrence of an identity that an earlier version gave an event is about the alert
/// that the event reports: it began at the same moment, and is as severe unless this is its end.
pub fn continues(folded: &Occurrence, event: &IncomingEvent) -> bool {
    let began_ms = event.report.began_ms;
    let is_end = event.status == Some(Status::Closed);
    folded.status != Status::Closed
        && began_ms.is_some_and(|it| folded.reports.is_begun(it))
        && (is_end || event.severity == Some(folded.severity))
}

/// Whether the reports of an occurrence say that an event has nothing to add to them: an end of an
/// earlier condition or by one of several reporters, or a late report of what was ended just now.
fn is_overtaken(newest: &Occurrence, event: &IncomingEvent, is_end: bool, now_ms: i64) -> bool {
    let (reports, report) = (&newest.reports, event.report);
    match newest.close {
        None if is_end => {
            reports.is_of_earlier(report)
                || report.reporter.is_some() && reports.is_held(report.reporter, now_ms)
        }
        Some(close) if !is_end && close.reason == CloseReason::Sender => {
            now_ms < close.at_ms.saturating_add(REPORT_LATE_MAX_MS) && reports.is_late(report)
        }
        _ => false,
    }
}

/// The reports of an occurrence that an event opens, after another one.
fn reports(before: Option<&Occurrence>, event: &IncomingEvent, status: Status) -> Reports {
    let mut reports = before.map_or_else(Reports::default, |it| it.reports.of_next());
    if status == Status::Closed {
        reports.close(event.report);
    } else {
        reports.add(event.report, expire_ms(event, status));
    }
    reports
}

/// When an occurrence of that status ends unless the event is sent again.
fn expire_ms(event: &IncomingEvent, status: Status) -> Option<i64> {
    event.expire_ms.filter(|_| status != Status::Closed)
}

/// When an event came, where that was before the time it states.
fn received_ms(arrival: &Arrival<'_>) -> Option<i64> {
    (arrival.event.timestamp_ms > arrival.now_ms).then_some(arrival.now_ms)
}

/// Replaces what the event says again, and leaves what it is silent about; answers whether anything
/// is other than before.
fn replace_content(known: &mut Occurrence, event: &IncomingEvent) -> bool {
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
    if !event.metadata.is_empty() && known.metadata != event.metadata {
        known.metadata.clone_from(&event.metadata);
        replaced = true;
    }
    replaced
}

fn open(
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
        summary: event.summary.clone(),
        body: event.body.clone(),
        severity: event.severity.unwrap_or(Severity::Info),
        status,
        acknowledged: event.acknowledged.unwrap_or(false),
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
            to: status.word().into(),
        }],
        notified: Vec::new(),
        chain: arrival.chain.into(),
        review_ms: 0,
        content_ms: Some(arrival.now_ms),
        evaluation: None,
        reopened: None,
        earlier: before.map_or_else(Vec::new, Occurrence::earlier_of_next),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: expire_ms(event, status),
        reports: reports(before, event, status),
        flapping: before.map_or_else(Vec::new, |before| before.flapping.clone()),
        assignee: None,
        trace: arrival.trace,
        acknowledged_until_ms: None,
        age_shift_ms: 0,
    };
    opened.review_ms = review_after(&opened, arrival.now_ms, settings);
    opened
}

/// Changes severity, status, acknowledgement and assignee, keeps who and when in the history, and
/// shows what changed.
pub fn alter(
    occurrence: &mut Occurrence,
    change: &StateChange,
    cause: Cause<'_>,
    settings: &SharedSettings,
) -> Transition {
    let mut transition = Transition {
        from: Some(occurrence.status),
        closed: false,
    };
    let before = occurrence.state();
    if let Some(severity) = change.severity.filter(|it| *it != occurrence.severity) {
        let from = occurrence.severity.word();
        note(occurrence, cause, Field::Severity, from, severity.word());
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
        note(occurrence, cause, Field::Acknowledged, from, to);
        occurrence.acknowledged = flag;
    }
    if occurrence.state() != before {
        occurrence.note_change(before, change.without_updates);
    }
    if change.acknowledged.is_some() {
        let for_ms = change.acknowledge_for_ms;
        let for_ms = for_ms.filter(|_| occurrence.acknowledged);
        occurrence.acknowledged_until_ms = for_ms.map(|it| cause.now_ms.saturating_add(it));
    }
    let assignee = match &change.assignment {
        Assignment::Stays => occurrence.assignee.clone(),
        Assignment::Nobody => None,
        Assignment::Client(name) => Some(name.clone()),
    };
    if assignee != occurrence.assignee {
        let before = std::mem::replace(&mut occurrence.assignee, assignee.clone());
        let word = |it: &Option<Name>| it.as_ref().map_or_else(String::new, Name::to_string);
        let (from, to) = (word(&before), word(&assignee));
        note(occurrence, cause, Field::Assignee, &from, &to);
    }
    let status = change.status.filter(|it| *it != occurrence.status);
    if let Some(status) = status {
        let from = occurrence.status.word();
        note(occurrence, cause, Field::Status, from, status.word());
        occurrence.status = status;
        transition.closed = status == Status::Closed;
        // What its sender said of its end is over when it was closed, and when it is open again.
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
        occurrence.review_ms = review_after(occurrence, cause.now_ms, settings);
    }
    transition
}

fn note(occurrence: &mut Occurrence, cause: Cause<'_>, field: Field, from: &str, to: &str) {
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

/// What the review of an occurrence finds to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    /// Nothing before that time, in milliseconds since 1970.
    Later(i64),
    /// It went without news for too long: close it.
    Age,
    /// The time has passed that its sender gave it without news: close it.
    Expire,
    /// It was closed long enough ago: delete it.
    Forget,
}

/// Looks at an occurrence whose review is due.
///
/// The review time does not move with every repeat, so that a repeat changes few index entries;
/// whether there was news meanwhile is found out here.
pub fn review(occurrence: &Occurrence, now_ms: i64, settings: &SharedSettings) -> Review {
    let since_ms = occurrence
        .close
        .map_or(occurrence.order_ms(), |close| close.at_ms)
        .saturating_add(occurrence.age_shift_ms);
    match review_after(occurrence, since_ms, settings) {
        due_ms if due_ms > now_ms => Review::Later(due_ms),
        _ if occurrence.close.is_some() => Review::Forget,
        _ if occurrence.expire_ms.is_some_and(|it| it <= now_ms) => Review::Expire,
        _ => Review::Age,
    }
}

fn review_after(occurrence: &Occurrence, since_ms: i64, settings: &SharedSettings) -> i64 {
    let wait = match occurrence.close {
        Some(_) => (!settings.event_retention.is_zero()).then_some(settings.event_retention),
        None => age_max(settings, occurrence.severity),
    };
    let later = |wait: Duration| {
        since_ms.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(REVIEW_NEVER_MS))
    };
    let expire_ms = occurrence.expire_ms.unwrap_or(REVIEW_NEVER_MS);
    wait.map_or(REVIEW_NEVER_MS, later).min(expire_ms)
}

/// How long an occurrence of that severity stays open without news; none means for ever.
fn age_max(settings: &SharedSettings, severity: Severity) -> Option<Duration> {
    let age_max = match severity {
        Severity::Debug | Severity::Info => settings.info_age_max,
        Severity::Warning => settings.warning_age_max,
        Severity::Error | Severity::Critical => settings.error_age_max,
    };
    (!age_max.is_zero()).then_some(age_max)
}

#[cfg(test)]
mod tests;
