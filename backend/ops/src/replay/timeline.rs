//! The changes of stored occurrences, as steps in time order.

use std::{collections::HashMap, time::Duration};

use crate::{
    clock::to_millis,
    domain::{
        CloseReason, EventId, Field, HistoryEntry, IncomingEvent, Name, Occurrence, RecordId,
        Severity, Status, has_own_source,
        own_event::{LOOP_STOPPED, NO_RESPONSE, SILENCE},
    },
    edit::OccurrenceTarget,
    error::Error,
    lifecycle::{Assignment, StateChange},
    limits::{REPLAY_OCCURRENCES_MAX, REPLAY_REPEATS_MAX, REPLAY_STEPS_MAX, REPLAY_WARM_UP},
    scan,
    search::{Filter, IndexWalk, NEWEST_FIRST},
    store::Store,
};

const BATCH: usize = 500;

/// Identifies an occurrence in a replay: the event, and the opening time in milliseconds since the
/// epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OccurrenceOpening(EventId, i64);

impl OccurrenceOpening {
    pub(super) fn from_occurrence(occurrence: &Occurrence) -> Self {
        Self(occurrence.event, occurrence.start_ms)
    }
}

#[derive(Debug, Default)]
pub struct Timeline {
    pub(super) steps: Vec<ReplayStep>,
    pub occurrences: HashMap<OccurrenceOpening, Occurrence>,
    /// Time from which the timeline is complete, in milliseconds since the epoch.
    pub since_ms: i64,
    pub is_cut: bool,
}

#[derive(Debug)]
pub(super) struct ReplayStep {
    pub(super) at_ms: i64,
    pub(super) happening: ReplayEvent,
}

#[derive(Debug)]
pub(super) enum ReplayEvent {
    Event(Box<IncomingEvent>, Vec<RecordId>),
    Change(OccurrenceTarget, StateChange, Name),
}

impl Timeline {
    /// Reads the stored changes since a time in milliseconds since the epoch. `repeat` is the
    /// interval of the rule's repeats, which determines the number of repeated events to replay.
    pub async fn read(
        store: &Store,
        since_ms: i64,
        repeat: Option<Duration>,
    ) -> Result<Self, Error> {
        // Rules may report an occurrence long after it was opened.
        let from_ms = since_ms.saturating_sub(to_millis(REPLAY_WARM_UP));
        let mut timeline = Self {
            since_ms,
            ..Self::default()
        };
        for statuses in [vec![Status::Open, Status::Suppressed], vec![Status::Closed]] {
            let filter = Filter {
                start_ms: statuses.contains(&Status::Closed).then_some(from_ms),
                statuses,
                ..Filter::default()
            };
            let mut walk = IndexWalk::new(store, &filter, NEWEST_FIRST, None);
            loop {
                let batch = walk.next(BATCH).await?;
                let Some((_, first)) = batch.first() else {
                    break;
                };
                if timeline.is_full() {
                    timeline.is_cut = true;
                    timeline.since_ms = timeline.since_ms.max(first.value.last_seen_ms + 1);
                    break;
                }
                for (_, found) in batch {
                    timeline.add(found.value, from_ms, repeat);
                    scan::yield_if_needed().await;
                }
                tokio::task::yield_now().await;
            }
        }
        timeline.steps.sort_by_key(|step| step.at_ms);
        Ok(timeline)
    }

    pub(super) fn start_ms(&self) -> Option<i64> {
        self.steps.first().map(|step| step.at_ms)
    }

    fn is_full(&self) -> bool {
        self.occurrences.len() >= REPLAY_OCCURRENCES_MAX || self.steps.len() >= REPLAY_STEPS_MAX
    }

    fn add(&mut self, occurrence: Occurrence, from_ms: i64, repeat: Option<Duration>) {
        if is_omitted(&occurrence) {
            return;
        }
        let opened_ms = opened_ms(&occurrence).max(from_ms);
        let mut steps = vec![opening_step(&occurrence, opened_ms)];
        let changes = occurrence.history.iter();
        let changes = changes.filter(|it| !it.from.is_empty() || it.field == Field::Assignee);
        steps.extend(changes.filter_map(|it| change_step(&occurrence, it, from_ms)));
        let sent = steps
            .iter()
            .filter(|it| matches!(it.happening, ReplayEvent::Event(..)));
        let repeats = occurrence.count.saturating_sub(sent.count() as u64);
        steps.extend(repeat_steps(&occurrence, opened_ms, repeats, repeat));
        self.steps.append(&mut steps);
        self.occurrences
            .insert(OccurrenceOpening(occurrence.event, opened_ms), occurrence);
    }
}

/// Whether the replay omits an occurrence: a drill, or an own event that the replay itself creates,
/// about a silence, a loop or an unanswered response.
fn is_omitted(occurrence: &Occurrence) -> bool {
    let is_recreated = has_own_source(&occurrence.dimensions)
        && [SILENCE, LOOP_STOPPED, NO_RESPONSE]
            .iter()
            .any(|it| it.kind == occurrence.kind);
    is_recreated || occurrence.is_drill()
}

fn opened_ms(occurrence: &Occurrence) -> i64 {
    let opened = occurrence.history.first().filter(|it| it.from.is_empty());
    opened.map_or(occurrence.start_ms, |it| it.at_ms)
}

/// Returns the value of a field before its first recorded change; `None` if it never changed.
fn first_value(occurrence: &Occurrence, field: Field) -> Option<&str> {
    let mut changes = occurrence.history.iter();
    let first = changes.find(|it| it.field == field)?;
    // The change recorded at the opening has no previous value.
    Some(if first.from.is_empty() {
        &first.to
    } else {
        &first.from
    })
}

fn event(occurrence: &Occurrence, at_ms: i64) -> IncomingEvent {
    IncomingEvent {
        name: occurrence.name.clone(),
        kind: occurrence.kind.clone(),
        dimensions: occurrence.dimensions.clone(),
        metadata: occurrence.metadata.clone(),
        summary: occurrence.summary.clone(),
        body: occurrence.body.clone(),
        severity: None,
        status: None,
        acknowledged: None,
        timestamp_ms: at_ms,
        expire_ms: None,
        report: crate::domain::Report::default(),
    }
}

fn event_step(occurrence: &Occurrence, event: IncomingEvent) -> ReplayStep {
    ReplayStep {
        at_ms: event.timestamp_ms,
        happening: ReplayEvent::Event(Box::new(event), occurrence.chain.clone()),
    }
}

fn opening_step(occurrence: &Occurrence, at_ms: i64) -> ReplayStep {
    let severity = first_value(occurrence, Field::Severity).and_then(Severity::from_word);
    let acknowledged = first_value(occurrence, Field::Acknowledged).map(|it| it == "true");
    let mut event = event(occurrence, at_ms);
    event.severity = Some(severity.unwrap_or(occurrence.severity));
    event.status = first_value(occurrence, Field::Status).and_then(Status::from_word);
    event.acknowledged = Some(acknowledged.unwrap_or(occurrence.acknowledged));
    event_step(occurrence, event)
}

/// Converts a recorded change into a step. Changes by a sender become events.
fn change_step(occurrence: &Occurrence, entry: &HistoryEntry, from_ms: i64) -> Option<ReplayStep> {
    let at_ms = entry.at_ms.max(from_ms);
    let by_sender = occurrence
        .close
        .is_some_and(|it| it.reason == CloseReason::Sender && it.at_ms == entry.at_ms);
    let mut change = StateChange::default();
    match entry.field {
        Field::Severity => {
            let mut event = event(occurrence, at_ms);
            event.severity = Severity::from_word(&entry.to);
            return Some(event_step(occurrence, event));
        }
        Field::Status if by_sender && entry.to == Status::Closed.as_str() => {
            let mut event = event(occurrence, at_ms);
            event.status = Some(Status::Closed);
            return Some(event_step(occurrence, event));
        }
        Field::Status => change.status = Some(Status::from_word(&entry.to)?),
        Field::Acknowledged => change.acknowledged = Some(entry.to == "true"),
        Field::Assignee if entry.to.is_empty() => change.assignment = Assignment::Unassigned,
        Field::Assignee => change.assignment = Assignment::Client(Name::parse(&entry.to).ok()?),
    }
    let author = entry
        .author
        .clone()
        .or_else(|| Name::parse("bellwether").ok())?;
    Some(ReplayStep {
        at_ms,
        happening: ReplayEvent::Change(OccurrenceTarget::Newest(occurrence.event), change, author),
    })
}

/// Returns the repeats between the opening and the last event, but no more than affect a rule with
/// the repeat interval `repeat`.
fn repeat_steps(
    occurrence: &Occurrence,
    opened_ms: i64,
    repeats: u64,
    repeat: Option<Duration>,
) -> impl Iterator<Item = ReplayStep> {
    let seen_ms = occurrence.order_ms();
    let end_ms = occurrence.close.map_or(seen_ms, |it| it.at_ms.min(seen_ms));
    let span_ms = end_ms.saturating_sub(opened_ms).max(0);
    // Ten repeats per interval determine the time of the next message to a tenth of the interval.
    let finest = repeat.map_or(1, |it| 10 * span_ms / to_millis(it).max(1));
    let finest = u64::try_from(finest)
        .unwrap_or(0)
        .clamp(1, REPLAY_REPEATS_MAX);
    let count = if span_ms == 0 { 0 } else { repeats.min(finest) };
    let count = i64::try_from(count).unwrap_or(0);
    // The last repeat must precede the end, because it would open another occurrence otherwise.
    let at = move |at| opened_ms + span_ms * at / (count + 1);
    (1..=count).map(move |number| event_step(occurrence, event(occurrence, at(number))))
}
