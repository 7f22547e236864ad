//! Occurrences: spans of an event from its opening to its close.

use std::collections::BTreeMap;

use crate::domain::{
    CauseMark, EventId, Flapping, HoldChange, IncomingEvent, LastNotified, Name, OccurrenceId,
    Pending, RecordId, Reports, Response, RevisionId, Rule, Severity, Status, ThreadOrigin,
    TraceContext, has_own_source,
    own_event::NO_RESPONSE,
    response::POLICY_DIMENSION,
    value::{Fields, json_bytes},
};

#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    pub key: RecordId,
    pub event: EventId,
    /// The number of the occurrence within its event, counted from 1.
    pub number: u32,
    /// The name of the event: what happened.
    pub name: String,
    /// The kind of event, as last sent.
    pub kind: String,
    pub dimensions: BTreeMap<String, String>,
    /// Further JSON values, as last sent, and those of enrichment tables.
    pub metadata: Fields,
    /// The keys of the metadata that enrichment tables set.
    pub enriched: Vec<String>,
    pub summary: String,
    pub body: String,
    pub severity: Severity,
    pub status: Status,
    pub acknowledged: bool,
    pub assignee: Option<Name>,
    pub start_ms: i64,
    /// Timestamp of the newest event, in milliseconds since 1970.
    pub last_seen_ms: i64,
    /// Time at which the newest event was received, in milliseconds since 1970, if earlier than its
    /// timestamp.
    pub received_ms: Option<i64>,
    pub close: Option<Close>,
    pub count: u64,
    /// Number of events received in earlier occurrences of the same event.
    pub prior_count: u64,
    /// Operators' notes, oldest first.
    pub annotations: Vec<Annotation>,
    /// The newest 100 changes, oldest first.
    pub history: Vec<HistoryEntry>,
    pub notified: Vec<Notified>,
    /// The rules that caused the event if an `event` destination created it, oldest first.
    pub chain: Vec<RecordId>,
    /// Time of the next review for ageing or retention, in milliseconds since 1970.
    pub review_ms: i64,
    /// Time of the last change of kind, summary, body or metadata, in milliseconds since 1970;
    /// `None` if not recorded.
    pub content_ms: Option<i64>,
    /// The last evaluation of the rules; `None` if not recorded.
    pub evaluation: Option<Evaluation>,
    /// The number of an earlier occurrence that was reopened after this one closed.
    pub reopened: Option<u32>,
    /// The newest [`EARLIER_MAX`] earlier occurrences of the event, oldest first.
    pub earlier: Vec<EarlierOccurrence>,
    /// The inhibitions of which the occurrence is, or recently was, a source.
    pub causes: Vec<CauseMark>,
    /// The silences that covered the occurrence at the last evaluation.
    pub covered_by: Vec<RecordId>,
    /// The held notifications, at most one per rule.
    pub pending: Vec<Pending>,
    /// The newest 20 changes of holds per rule, oldest first.
    pub hold_changes: Vec<HoldChange>,
    /// Time at which the occurrence closes unless the event is sent again, in milliseconds since
    /// 1970. `None` if the sender set no expiry, or if the occurrence is closed.
    pub expire_ms: Option<i64>,
    /// The reports that make up the occurrence, for senders that repeat them.
    pub reports: Reports,
    /// Recent openings of the event, per rule that damps flapping. In the occurrence of a message,
    /// an entry shows that the event is flapping or has settled.
    pub flapping: Vec<Flapping>,
    pub trace: Option<TraceContext>,
    /// Time at which the acknowledgement expires, in milliseconds since 1970; `None` if it does not
    /// expire.
    pub acknowledged_until_ms: Option<i64>,
    /// Severity at the last acknowledgement; `None` if the occurrence is not acknowledged, or was
    /// acknowledged by a version that did not record the severity.
    pub acknowledged_severity: Option<Severity>,
    /// Clock steps since the newest event or the close, in milliseconds, which are added before the
    /// age is computed.
    pub age_shift_ms: i64,
    /// The destinations from which the last change of severity, status or acknowledgement came.
    /// They get no update about it.
    pub informed: Vec<RecordId>,
}

impl Occurrence {
    /// Removes the metadata that enrichment tables set.
    pub fn remove_enriched(&mut self) {
        for key in self.enriched.drain(..) {
            self.metadata.remove(&key);
        }
    }

    pub fn is_more_severe_than_acknowledged(&self) -> bool {
        let earlier = self.acknowledged_severity;
        self.acknowledged && earlier.is_none_or(|it| it < self.severity)
    }

    pub fn is_unanswered_report(&self) -> bool {
        has_own_source(&self.dimensions) && self.kind == NO_RESPONSE.kind
    }

    /// Whether the event reports that no one responded by this policy. The policy then does not
    /// escalate it.
    pub fn reports_unanswered_policy(&self, policy: &Name) -> bool {
        // Earlier versions did not name the policy.
        let failed = self.dimensions.get(POLICY_DIMENSION);
        self.is_unanswered_report() && failed.is_none_or(|it| *it == policy.as_str())
    }

    pub fn is_notified_flapping(&self) -> bool {
        self.flapping.iter().any(|it| it.since_ms.is_some())
    }

    pub fn is_notified_settled(&self) -> bool {
        !self.flapping.is_empty() && !self.is_notified_flapping()
    }

    /// Returns the time of the next evaluation, in milliseconds since 1970. [`i64::MAX`] if a hold
    /// has no known end, `None` if no evaluation is needed.
    pub fn due_ms(&self) -> Option<i64> {
        let held = self.pending.iter();
        let held = held.map(|it| it.due_ms().unwrap_or(i64::MAX));
        held.chain(self.other_due_ms()).min()
    }

    /// Like [`Self::due_ms`], but ignores held notifications while the occurrence is suppressed.
    pub fn next_evaluation_ms(&self) -> Option<i64> {
        if self.status == Status::Suppressed {
            return self.other_due_ms();
        }
        self.due_ms()
    }

    /// Returns the time to evaluate the occurrence's inhibitions, responses and acknowledgement.
    fn other_due_ms(&self) -> Option<i64> {
        let causes = self.causes.iter().filter_map(CauseMark::due_ms);
        let responses = self.notified.iter().filter_map(|it| it.response.as_ref());
        let responses = responses.filter_map(|it| it.review_ms);
        let all = causes.chain(responses).chain(self.acknowledged_until_ms);
        all.min()
    }

    pub fn notified_state(&self) -> LastNotified {
        LastNotified {
            severity: self.severity,
            acknowledged: self.acknowledged,
        }
    }

    /// Records that severity or acknowledgement changed from `before`. With `is_silent`, receivers
    /// get no update about the acknowledgement.
    pub fn update_notified(&mut self, before: LastNotified, is_silent: bool) {
        self.move_last_notified();
        let state = self.notified_state();
        for entry in &mut self.notified {
            let mut known = entry.last_notified.unwrap_or(before);
            if is_silent {
                known.acknowledged = state.acknowledged;
            }
            entry.last_notified = (known != state).then_some(known);
        }
    }

    /// Moves the last notified states from pending notifications, where earlier versions stored
    /// them, to the entries of the rules.
    pub fn move_last_notified(&mut self) {
        let state = self.notified_state();
        for pending in &mut self.pending {
            let known = pending.last_notified.take().filter(|it| *it != state);
            let mut notified = self.notified.iter_mut();
            let entry = notified.find(|it| it.rule == pending.rule);
            if let (Some(entry), Some(known)) = (entry, known) {
                entry.last_notified = Some(known);
            }
        }
    }

    /// Returns the event with which the service closes the occurrence.
    pub fn closing_event(self, summary: String, now_ms: i64) -> IncomingEvent {
        IncomingEvent {
            dimensions: self.dimensions,
            metadata: self.metadata,
            summary,
            status: Some(Status::Closed),
            ..IncomingEvent::new_own_event(&self.name, &self.kind, [], now_ms)
        }
    }

    pub fn id(&self) -> OccurrenceId {
        OccurrenceId {
            event: self.event,
            number: self.number,
        }
    }

    /// Returns the earlier occurrences to store with the next occurrence of the event.
    pub fn as_earlier_occurrence(&self) -> Vec<EarlierOccurrence> {
        let mut earlier = self.earlier.clone();
        if let Some(close) = self.close {
            let opened = self.history.first().filter(|it| it.from.is_empty());
            let opened_ms = opened.map_or(self.start_ms, |it| it.at_ms);
            earlier.push(EarlierOccurrence {
                end_ms: close.at_ms,
                length_ms: close.at_ms.saturating_sub(opened_ms).max(0),
                by_sender: close.reason == CloseReason::Sender,
            });
        }
        let too_many = earlier.len().saturating_sub(EARLIER_MAX);
        earlier.drain(..too_many);
        earlier
    }

    /// Returns the time by which events are ordered, in milliseconds since 1970: the time of
    /// receipt of the newest event, or its timestamp if that is earlier.
    pub fn order_ms(&self) -> i64 {
        self.received_ms.unwrap_or(self.last_seen_ms)
    }

    /// Returns the approximate size in a response, in bytes.
    pub fn estimated_bytes(&self) -> usize {
        let dimensions = self.dimensions.iter();
        let dimensions = dimensions.map(|(key, value)| key.len() + value.len());
        let annotations = self.annotations.iter().map(|note| note.text.len());
        let texts = self.summary.len() + self.body.len();
        texts + json_bytes(&self.metadata) + dimensions.chain(annotations).sum::<usize>()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation {
    pub at_ms: i64,
    /// Time of the newest edit of a trigger or rule in force at the evaluation, in milliseconds
    /// since 1970. Shows whether the evaluation already used a definition that was edited in the
    /// same millisecond.
    pub rules_ms: i64,
    /// Whether an event caused the evaluation, rather than an operator or ageing.
    pub by_event: bool,
}

pub const EARLIER_MAX: usize = 10;

/// An earlier occurrence, reduced to the fields that predict the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierOccurrence {
    pub end_ms: i64,
    /// Time for which the occurrence was open by the service's clock, in milliseconds.
    pub length_ms: i64,
    pub by_sender: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    pub at_ms: i64,
    pub reason: CloseReason,
}

/// The reason of a close, with its numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    Sender = 1,
    Operator = 2,
    /// No event was received for the configured time.
    Aged = 3,
    /// The expiry set by the sender passed.
    Expired = 4,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// 20 letters and digits.
    pub id: String,
    pub text: String,
    /// The client that last edited the annotation.
    pub author: Name,
    pub create_ms: i64,
    pub update_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    pub at_ms: i64,
    /// The client that made the change; `None` if the service did.
    pub author: Option<Name>,
    pub field: Field,
    pub from: String,
    pub to: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Severity,
    Status,
    Acknowledged,
    Assignee,
}

impl Field {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Severity => "severity",
            Self::Status => "status",
            Self::Acknowledged => "acknowledged",
            Self::Assignee => "assignee",
        }
    }
}

#[expect(
    clippy::struct_field_names,
    reason = "the state of the last notification"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notified {
    pub rule: RecordId,
    /// The name of the rule, readable even after the rule is deleted.
    pub rule_name: Name,
    /// Time of the last notification caused by a matching trigger, in milliseconds since 1970.
    pub last_ms: i64,
    /// Whether the rule sent updates when it notified.
    pub send_updates: bool,
    /// The receivers of the opening message, by identity and name. They also get the closing
    /// message.
    pub destinations: Vec<(RecordId, Name)>,
    pub cleared: bool,
    /// The basis of the opening message; `None` if it is not recorded.
    pub opening: Option<Opening>,
    /// The group with which the occurrence is reported; `None` if it is reported separately.
    pub group: Option<RecordId>,
    /// Whether the rule was a shadow rule. No message was sent then, and no closing message is due.
    pub shadow: bool,
    /// The occurrence under which receivers already know this one; `None` if they know it as
    /// itself.
    pub thread: Option<ThreadOrigin>,
    /// The progress of the escalation; `None` without a policy.
    pub response: Option<Box<Response>>,
    /// The last notified state, if it differs from the current state and an update is still due.
    /// Updates are due while they are held or the occurrence is suppressed.
    pub last_notified: Option<LastNotified>,
}

impl Notified {
    /// Whether the notification is obsolete: a shadow rule made it, and the rule now sends or was
    /// deleted.
    pub fn is_outdated(&self, rule: Option<&Rule>) -> bool {
        self.shadow && rule.is_none_or(|it| !it.shadow)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    pub at_ms: i64,
    pub trigger: RevisionId,
    pub rule_revision: u64,
}
