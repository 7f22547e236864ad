//! Responses: the progress of an escalation for an occurrence and a rule.

use std::collections::BTreeMap;

use crate::{
    domain::{EscalationPlan, HoldKind, Name, RecordId, Severity},
    limits::RESPONSE_RECEIVERS_MAX,
};

/// The dimension of events about unanswered responses that names the policy.
pub const POLICY_DIMENSION: &str = "policy";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub id: RecordId,
    pub policy: Name,
    /// The plan, fixed until the next round.
    pub plan: EscalationPlan,
    pub state: ResponseState,
    /// The round, counted from 1.
    pub round: u32,
    /// Number of further rounds without an acknowledgement.
    pub rounds_left: u32,
    pub step: u32,
    /// Time of the last step, in milliseconds since 1970.
    pub step_ms: i64,
    /// Number of times the deliveries of the last step were checked.
    pub checks: u32,
    /// Time of the next step, in milliseconds since 1970; `None` if there is none.
    pub next_ms: Option<i64>,
    /// Time of the next evaluation, in milliseconds since 1970; `None` if none is needed.
    pub review_ms: Option<i64>,
    /// Contact methods to use later, regardless of the round at that time.
    pub queued: Vec<QueuedMethod>,
    /// The notified receivers, without duplicates.
    pub paged: Vec<PagedReceiver>,
    pub begin_ms: i64,
    pub end_ms: Option<i64>,
    /// Whether all rounds ended without an acknowledgement.
    pub is_unanswered: bool,
    /// The silences and inhibition sources that hold the response, or the group members that could
    /// carry it.
    pub held_by: Vec<ResponseHold>,
    /// The highest severity for which a step ran or that was acknowledged. `None` before the first
    /// step and in records of earlier versions.
    pub most_severe: Option<Severity>,
}

/// A hold on a response: a silence, or the occurrence that inhibits it.
pub type ResponseHold = (HoldKind, RecordId);

/// The state of a response. The numbers are stored on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseState {
    Active = 1,
    /// The next step is held.
    Held = 2,
    Acknowledged = 3,
    /// The occurrence was closed, or its rule was deleted.
    Ended = 4,
    /// The rule is disabled or has no policy; the response continues once the rule is enabled and
    /// has a policy again.
    Stopped = 5,
}

impl ResponseState {
    pub const ALL: [Self; 5] = [
        Self::Active,
        Self::Held,
        Self::Acknowledged,
        Self::Ended,
        Self::Stopped,
    ];

    /// Whether the response runs no further steps unless an edit resumes it.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Ended | Self::Stopped)
    }
}

/// A contact method to use later on behalf of the step that notified the contact, even if other
/// steps run first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMethod {
    pub contact: Name,
    /// The schedule through which the contact is on call.
    pub schedule: Option<Name>,
    /// The index of the method. Used if an earlier version stored no identity.
    pub position: u32,
    pub due_ms: i64,
    /// The identity of the method; empty in records of earlier versions.
    pub method: String,
    /// The last round in which a step notified the contact; 0 in records of earlier versions.
    pub round: u32,
    /// The step of that round, counted from 1.
    pub step: u32,
}

impl QueuedMethod {
    /// Whether this step of a round notified the contact last.
    pub fn is_from_step(&self, round: u32, step: u32) -> bool {
        (self.round, self.step) == (round, step)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagedReceiver {
    /// The contact, with its variables at the time of the notification; `None` for a destination
    /// named by the policy.
    pub contact: Option<PagedContact>,
    pub schedule: Option<Name>,
    pub destination: (RecordId, Name),
    pub delivery: RecordId,
    /// Time at which the newest delivery was decided, in milliseconds since 1970.
    pub at_ms: i64,
    pub round: u32,
    /// The step of the round, counted from 1; 0 after all rounds.
    pub step: u32,
}

/// A contact as shown in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagedContact {
    pub name: Name,
    pub variables: BTreeMap<String, String>,
    pub response: RecordId,
    /// The identity of the method; empty in records of earlier versions.
    pub method: String,
}

/// A contact and the identity of one of its methods.
pub type PagedMethod = (Name, String);

impl PagedContact {
    pub fn key(&self) -> PagedMethod {
        (self.name.clone(), self.method.clone())
    }

    /// Whether both are pages to the same contact by the same method. A method without an identity,
    /// which an earlier version stored, is equal to any other.
    pub fn is_same_page(&self, other: &Self) -> bool {
        let is_unknown = self.method.is_empty() || other.method.is_empty();
        self.name == other.name && (is_unknown || self.method == other.method)
    }
}

impl Response {
    /// Whether the response can record one more receiver, or has already recorded this receiver.
    pub fn has_room_for(&self, contact: Option<&PagedContact>, destination: RecordId) -> bool {
        self.paged.len() < RESPONSE_RECEIVERS_MAX
            || self.receiver_position(contact, destination).is_some()
    }

    fn receiver_position(
        &self,
        contact: Option<&PagedContact>,
        destination: RecordId,
    ) -> Option<usize> {
        let mut known = self.paged.iter();
        known.position(|it| {
            let is_same = match (&it.contact, contact) {
                (Some(it), Some(contact)) => it.is_same_page(contact),
                (it, contact) => it.is_none() && contact.is_none(),
            };
            is_same && it.destination.0 == destination
        })
    }

    /// Whether a severity is higher than any for which a step ran or that was acknowledged.
    pub fn exceeds_acknowledged_severity(&self, severity: Severity) -> bool {
        self.most_severe.is_some_and(|it| it < severity)
    }

    /// Records a severity for which a step runs or that is acknowledged.
    pub fn record_severity(&mut self, severity: Severity) {
        self.most_severe = self.most_severe.max(Some(severity));
    }

    /// Records a notified receiver, replacing its earlier entry.
    pub fn record_paged(&mut self, paged: PagedReceiver) {
        match self.receiver_position(paged.contact.as_ref(), paged.destination.0) {
            Some(at) => self.paged[at] = paged,
            None => self.paged.push(paged),
        }
    }

    /// Returns the escalation policy if all its rounds ended without an acknowledgement, and the
    /// response has neither ended nor stopped.
    pub fn unanswered_policy(&self) -> Option<&Name> {
        let is_unanswered = self.is_unanswered && !self.state.has_ended();
        is_unanswered.then_some(&self.policy)
    }

    /// Whether the response must move to another open member of its group, or end if there is none,
    /// because its member was closed, acknowledged or held.
    pub fn should_move_to_group(&self, is_closed: bool, is_acknowledged: bool) -> bool {
        match self.state {
            ResponseState::Active => is_closed || is_acknowledged,
            ResponseState::Held => true,
            ResponseState::Acknowledged | ResponseState::Stopped => is_closed,
            ResponseState::Ended => false,
        }
    }

    pub fn last_step_receivers(&self) -> impl Iterator<Item = &PagedReceiver> {
        let paged = self.paged.iter();
        paged.filter(|it| it.round == self.round && it.step == self.step)
    }
}
