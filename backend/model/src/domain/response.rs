//! Responses: how far the escalation of an occurrence has come for one rule.

use std::collections::BTreeMap;

use crate::{
    domain::{EscalationPlan, HoldKind, Name, RecordId},
    limits::RESPONSE_RECEIVERS_MAX,
};

/// The type of the events by which the service says that no one responded.
pub const ESCALATION_KIND: &str = "escalation";

/// How far the escalation of an occurrence has come for one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Its identity.
    pub id: RecordId,
    /// The policy that it follows.
    pub policy: Name,
    /// What it follows until the next round.
    pub plan: EscalationPlan,
    /// How it stands.
    pub state: ResponseState,
    /// The round, from 1.
    pub round: u32,
    /// How many more follow without an acknowledgement.
    pub rounds_left: u32,
    /// How many steps of the round were taken.
    pub step: u32,
    /// When the last of them was taken, in milliseconds since 1970.
    pub step_ms: i64,
    /// How often it was looked whether the deliveries of that step arrive.
    pub checks: u32,
    /// When the next step is due, in milliseconds since 1970; none when none follows.
    pub next_ms: Option<i64>,
    /// When to look at it, in milliseconds since 1970; none when no time changes it.
    pub look_ms: Option<i64>,
    /// Methods of contacts that are used later.
    pub queued: Vec<QueuedMethod>,
    /// Who was notified by it, each receiver once.
    pub paged: Vec<Paged>,
    /// When it began, in milliseconds since 1970.
    pub begin_ms: i64,
    /// When it ended, in milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// Whether all rounds were over without an acknowledgement.
    pub is_unanswered: bool,
    /// Silences, and causes of inhibitions, that hold it and the members of its group which could carry it.
    pub held_by: Vec<ResponseHold>,
}

/// A hold of a response: a silence, or the occurrence that is the cause.
pub type ResponseHold = (HoldKind, RecordId);

/// How a response stands. Numbers are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseState {
    /// Steps are taken.
    Active = 1,
    /// Something holds the next step.
    Held = 2,
    /// Someone responded.
    Acknowledged = 3,
    /// The occurrence was closed, or its rule was deleted.
    Ended = 4,
    /// Its rule is disabled, or follows no policy: it continues when both are back.
    Stopped = 5,
}

impl ResponseState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Active,
        Self::Held,
        Self::Acknowledged,
        Self::Ended,
        Self::Stopped,
    ];

    /// Whether no step is taken by it, unless an edit has it continue.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Stopped)
    }
}

/// A method of a contact that is used later in the same step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedMethod {
    /// The contact.
    pub contact: Name,
    /// The schedule that put the contact on call.
    pub schedule: Option<Name>,
    /// The place of the method.
    pub method: u32,
    /// When, in milliseconds since 1970.
    pub due_ms: i64,
}

/// A receiver that was notified by a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paged {
    /// The contact, and its variables then; none for a destination of the policy itself.
    pub contact: Option<PagedContact>,
    /// The schedule that put the contact on call.
    pub schedule: Option<Name>,
    /// The destination.
    pub destination: (RecordId, Name),
    /// The newest delivery.
    pub delivery: RecordId,
    /// When it was decided, in milliseconds since 1970.
    pub at_ms: i64,
    /// In which round.
    pub round: u32,
    /// By which step of it, from 1; 0 when all rounds were over.
    pub step: u32,
}

/// A contact in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagedContact {
    /// Its name.
    pub name: Name,
    /// Variables for templates.
    pub variables: BTreeMap<String, String>,
    /// The response that the contact can acknowledge.
    pub response: RecordId,
}

impl Response {
    /// Whether it has room for one more receiver, or knows this one.
    pub fn has_room_for(&self, contact: Option<&Name>, destination: RecordId) -> bool {
        self.paged.len() < RESPONSE_RECEIVERS_MAX || self.place_of(contact, destination).is_some()
    }

    fn place_of(&self, contact: Option<&Name>, destination: RecordId) -> Option<usize> {
        let mut known = self.paged.iter();
        known.position(|it| {
            it.destination.0 == destination && it.contact.as_ref().map(|it| &it.name) == contact
        })
    }

    /// Notes who is notified.
    pub fn note(&mut self, paged: Paged) {
        let contact = paged.contact.as_ref().map(|it| &it.name);
        match self.place_of(contact, paged.destination.0) {
            Some(at) => self.paged[at] = paged,
            None => self.paged.push(paged),
        }
    }

    /// Whether another open member of its group is to carry it, or none is left: the one that does was closed
    /// or acknowledged, or something holds it.
    pub fn is_to_move(&self, is_closed: bool, is_acknowledged: bool) -> bool {
        match self.state {
            ResponseState::Active => is_closed || is_acknowledged,
            ResponseState::Held => true,
            ResponseState::Acknowledged | ResponseState::Stopped => is_closed,
            ResponseState::Ended => false,
        }
    }

    /// The deliveries of its last step.
    pub fn of_last_step(&self) -> impl Iterator<Item = &Paged> {
        let paged = self.paged.iter();
        paged.filter(|it| it.round == self.round && it.step == self.step)
    }
}
