//! One open-to-closed span of an event.

use std::collections::BTreeMap;

use crate::domain::{
    CauseMark, EventId, Flapping, HoldChange, LastNotified, Name, OccurrenceId, Pending, RecordId,
    Reports, Response, RevisionId, Rule, Severity, Status, ThreadOf, TraceContext,
    value::{Fields, json_bytes},
};

/// One open-to-closed span of an event, with all that is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Occurrence {
    /// Its key in the store.
    pub key: RecordId,
    /// The event.
    pub event: EventId,
    /// 1 for the event's first occurrence.
    pub number: u32,
    /// What happened.
    pub name: String,
    /// The kind of event, as last sent.
    pub kind: String,
    /// The thing it happened to.
    pub dimensions: BTreeMap<String, String>,
    /// Further JSON values, as last sent.
    pub metadata: Fields,
    /// One line for people.
    pub summary: String,
    /// Details for people.
    pub body: String,
    /// How bad it is.
    pub severity: Severity,
    /// Where it stands.
    pub status: Status,
    /// Whether it is acknowledged.
    pub acknowledged: bool,
    /// The client that looks after it.
    pub assignee: Option<Name>,
    /// When it was opened, in milliseconds since 1970.
    pub start_ms: i64,
    /// The time that the newest event states, in milliseconds since 1970.
    pub last_seen_ms: i64,
    /// When the newest event was received, in milliseconds since 1970, where that was before the
    /// time it states.
    pub received_ms: Option<i64>,
    /// How it ended; none unless the status is closed.
    pub close: Option<Close>,
    /// How often it was sent.
    pub count: u64,
    /// How often the event was sent in earlier occurrences.
    pub prior_count: u64,
    /// Operators' notes, oldest first.
    pub annotations: Vec<Annotation>,
    /// Changes, oldest first; the newest 100.
    pub history: Vec<HistoryEntry>,
    /// The rules that notified about it.
    pub notified: Vec<Notified>,
    /// The rules that led to it, when an `event` destination made it: oldest first.
    pub chain: Vec<RecordId>,
    /// When to look at it next for ageing or retention, in milliseconds since 1970.
    pub review_ms: i64,
    /// When type, summary, body and metadata became what they are, in milliseconds since 1970;
    /// none when that was not noted.
    pub content_ms: Option<i64>,
    /// When rules were last asked about it; none when that was not noted.
    pub evaluation: Option<Evaluation>,
    /// The number of an earlier occurrence of the event that was reopened after this one was closed.
    pub reopened: Option<u32>,
    /// The occurrences of the event before it, oldest first; the newest [`EARLIER_MAX`].
    pub earlier: Vec<Earlier>,
    /// Of which inhibitions it is a source, or was so lately.
    pub causes: Vec<CauseMark>,
    /// The silences that cover it, as of the last look.
    pub covered_by: Vec<RecordId>,
    /// What is decided to be sent and waits, at most one of each rule.
    pub pending: Vec<Pending>,
    /// How what waits came to wait and ceased to, oldest first; the newest 20 of each rule.
    pub hold_changes: Vec<HoldChange>,
    /// When it is closed unless it is sent again, in milliseconds since 1970; none when its sender
    /// said nothing of that, and when it is closed.
    pub expire_ms: Option<i64>,
    /// The reports that it is built from, where their senders repeat them.
    pub reports: Reports,
    /// How often the event opened lately, for the rules that count that. What a message is about
    /// has an entry when it flaps, and when it has settled.
    pub flapping: Vec<Flapping>,
    /// What the newest event follows from; none when it came without a trace.
    pub trace: Option<TraceContext>,
    /// Until when the acknowledgement counts, in milliseconds since 1970; none when no time ends it.
    pub acknowledged_until_ms: Option<i64>,
    /// By how much the clock was set since its newest event or its end, in milliseconds: its age counts from
    /// that later.
    pub age_shift_ms: i64,
}

impl Occurrence {
    /// Whether a message tells that it flaps.
    pub fn is_notified_flapping(&self) -> bool {
        self.flapping.iter().any(|it| it.since_ms.is_some())
    }

    /// Whether a message tells that it flaps no more.
    pub fn is_notified_settled(&self) -> bool {
        !self.flapping.is_empty() && !self.is_notified_flapping()
    }

    /// Returns the time of its next evaluation, in milliseconds since 1970; [`i64::MAX`] where no time ends a hold,
    /// none where nothing is to be evaluated.
    pub fn due_ms(&self) -> Option<i64> {
        let held = self.pending.iter();
        let held = held.map(|it| it.due_ms().unwrap_or(i64::MAX));
        held.chain(self.other_due_ms()).min()
    }

    /// Returns the same without what waits until it is no longer suppressed.
    pub fn evaluated_ms(&self) -> Option<i64> {
        if self.status == Status::Suppressed {
            return self.other_due_ms();
        }
        self.due_ms()
    }

    /// Returns the time to evaluate its effects, its responses and its acknowledgement.
    fn other_due_ms(&self) -> Option<i64> {
        let causes = self.causes.iter().filter_map(CauseMark::due_ms);
        let responses = self.notified.iter().filter_map(|it| it.response.as_ref());
        let responses = responses.filter_map(|it| it.look_ms);
        let all = causes.chain(responses).chain(self.acknowledged_until_ms);
        all.min()
    }

    /// The state in notifications.
    pub fn state(&self) -> LastNotified {
        LastNotified {
            severity: self.severity,
            acknowledged: self.acknowledged,
        }
    }

    /// Notes that severity or acknowledgement were others before; with `is_silent`, receivers are taken to know of
    /// the acknowledgement.
    pub fn note_change(&mut self, before: LastNotified, is_silent: bool) {
        self.move_last_notified();
        let state = self.state();
        for entry in &mut self.notified {
            let mut known = entry.last_notified.unwrap_or(before);
            if is_silent {
                known.acknowledged = state.acknowledged;
            }
            entry.last_notified = (known != state).then_some(known);
        }
    }

    /// Moves what earlier versions stored with what waits to the entries of the rules.
    pub fn move_last_notified(&mut self) {
        let state = self.state();
        for pending in &mut self.pending {
            let known = pending.last_notified.take().filter(|it| *it != state);
            let mut notified = self.notified.iter_mut();
            let entry = notified.find(|it| it.rule == pending.rule);
            if let (Some(entry), Some(known)) = (entry, known) {
                entry.last_notified = Some(known);
            }
        }
    }

    /// The identity that callers see.
    pub fn id(&self) -> OccurrenceId {
        OccurrenceId {
            event: self.event,
            number: self.number,
        }
    }

    /// The occurrences before the one that follows it.
    pub fn earlier_of_next(&self) -> Vec<Earlier> {
        let mut earlier = self.earlier.clone();
        if let Some(close) = self.close {
            let opened = self.history.first().filter(|it| it.from.is_empty());
            let opened_ms = opened.map_or(self.start_ms, |it| it.at_ms);
            earlier.push(Earlier {
                end_ms: close.at_ms,
                length_ms: close.at_ms.saturating_sub(opened_ms).max(0),
                by_sender: close.reason == CloseReason::Sender,
            });
        }
        let too_many = earlier.len().saturating_sub(EARLIER_MAX);
        earlier.drain(..too_many);
        earlier
    }

    /// What counts for the order of events: the earlier of what the newest one states and when it
    /// was received, in milliseconds since 1970.
    pub fn order_ms(&self) -> i64 {
        self.received_ms.unwrap_or(self.last_seen_ms)
    }

    /// About how many bytes it has in an answer.
    pub fn weight_bytes(&self) -> usize {
        let dimensions = self.dimensions.iter();
        let dimensions = dimensions.map(|(key, value)| key.len() + value.len());
        let annotations = self.annotations.iter().map(|note| note.text.len());
        let texts = self.summary.len() + self.body.len();
        texts + json_bytes(&self.metadata) + dimensions.chain(annotations).sum::<usize>()
    }
}

/// When rules were asked about an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evaluation {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The time of the newest edit of a trigger or rule that was in force, in milliseconds since
    /// 1970: what tells definitions apart that were edited at that very moment.
    pub rules_ms: i64,
    /// Whether an event came; else an operator or ageing changed it.
    pub by_event: bool,
}

/// Earlier occurrences that are known of an event.
pub const EARLIER_MAX: usize = 10;

/// An earlier occurrence, as far as it shows what to expect of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Earlier {
    /// When it was closed, in milliseconds since 1970.
    pub end_ms: i64,
    /// How long it was open by the service's clock, in milliseconds.
    pub length_ms: i64,
    /// Whether its sender closed it.
    pub by_sender: bool,
}

/// How an occurrence ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// Why.
    pub reason: CloseReason,
}

/// Why an occurrence was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// Its sender closed it.
    Sender,
    /// An operator closed it.
    Operator,
    /// No news came for the configured time.
    Aged,
    /// Its sender said until when it is open without news, and that has passed.
    Expired,
}

/// An operator's note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// 20 letters and digits.
    pub id: String,
    /// The text.
    pub text: String,
    /// The client that wrote it last.
    pub author: Name,
    /// When it was written first, in milliseconds since 1970.
    pub create_ms: i64,
    /// When it was written last, in milliseconds since 1970.
    pub update_ms: i64,
}

/// A change of an occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// When, in milliseconds since 1970.
    pub at_ms: i64,
    /// The client that made it; none when the service did.
    pub author: Option<Name>,
    /// What changed.
    pub field: Field,
    /// The value before, as a word; empty when the occurrence was opened.
    pub from: String,
    /// The value after, as a word.
    pub to: String,
}

/// What a history entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The severity.
    Severity,
    /// The status.
    Status,
    /// The acknowledged flag.
    Acknowledged,
    /// Who looks after it; no one is the empty word.
    Assignee,
}

impl Field {
    /// Its name in the JSON interface.
    pub fn word(self) -> &'static str {
        match self {
            Self::Severity => "severity",
            Self::Status => "status",
            Self::Acknowledged => "acknowledged",
            Self::Assignee => "assignee",
        }
    }
}

/// That a rule notified about an occurrence.
#[expect(
    clippy::struct_field_names,
    reason = "the state of the last notification"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notified {
    /// The rule, by identity.
    pub rule: RecordId,
    /// Its name, which stays readable when the rule is gone.
    pub rule_name: Name,
    /// When it notified last because a trigger matched, in milliseconds since 1970.
    pub last_ms: i64,
    /// Whether the rule asked for updates when it notified.
    pub send_updates: bool,
    /// The receivers of the opening message, by identity and name: they get the closing one.
    pub destinations: Vec<(RecordId, Name)>,
    /// Whether the closing message went out.
    pub cleared: bool,
    /// What the opening message rested on; none when that was not noted.
    pub opening: Option<Opening>,
    /// The group that it is reported with; none for an occurrence on its own.
    pub group: Option<RecordId>,
    /// Whether it only recorded what it would have sent: no one knows, and no resolution is
    /// outstanding.
    pub shadow: bool,
    /// The occurrence that those who were notified know it by; none for this one.
    pub thread: Option<ThreadOf>,
    /// How far its escalation has come; none without a policy.
    pub response: Option<Box<Response>>,
    /// The state that was last notified, while the occurrence has another one and its receivers are to be notified
    /// of that: something holds the update, or the occurrence is suppressed.
    pub last_notified: Option<LastNotified>,
}

impl Notified {
    /// Whether it is of no meaning any more: only recorded, by a rule that sends by now or is gone.
    pub fn is_outdated(&self, rule: Option<&Rule>) -> bool {
        self.shadow && rule.is_none_or(|it| !it.shadow)
    }
}

/// What an opening message rested on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: i64,
    /// The trigger that matched.
    pub trigger: RevisionId,
    /// The rule's revision.
    pub rule_revision: u64,
}
