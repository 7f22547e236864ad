//! Escalation policies: who is notified next when no one responds.

use crate::domain::{Name, RecordId};

/// Defines who is notified first, and next if no one acknowledges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationPolicy {
    /// Distinguishes it from an earlier policy of the same name.
    pub id: RecordId,
    /// Its name.
    pub name: Name,
    /// For people.
    pub description: String,
    /// Labels, in the author's order.
    pub tags: Vec<String>,
    /// What happens, and when.
    pub plan: EscalationPlan,
    /// Counts its edits from 1; the etag is derived from it.
    pub revision: u64,
    /// When it was made, in milliseconds since 1970.
    pub create_ms: i64,
    /// Time of the last edit, in milliseconds since 1970.
    pub update_ms: i64,
}

/// The steps of a policy, as a round of a response follows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EscalationPlan {
    /// The steps in their order; never empty.
    pub steps: Vec<EscalationStep>,
    /// How often they are gone through, from 1.
    pub rounds: u32,
    /// How long an acknowledgement counts, in milliseconds; 0 for without an end.
    pub ack_timeout_ms: i64,
    /// Who is notified when all rounds are over.
    pub fallback: Option<Name>,
}

/// Those who are notified together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationStep {
    /// Who; never empty.
    pub targets: Vec<EscalationTarget>,
    /// How long the next step waits, in milliseconds.
    pub wait_ms: i64,
}

/// Who is notified by a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EscalationTarget {
    /// A destination.
    Destination(Name),
    /// A contact.
    Contact(Name),
    /// Those that a schedule puts on call at that moment.
    Schedule(Name),
}

impl EscalationPolicy {
    fn targets(&self) -> impl Iterator<Item = &EscalationTarget> {
        self.plan.steps.iter().flat_map(|it| &it.targets)
    }

    /// The destinations that it names.
    pub fn destinations(&self) -> impl Iterator<Item = &Name> {
        let of_steps = self.targets().filter_map(|it| match it {
            EscalationTarget::Destination(name) => Some(name),
            _ => None,
        });
        of_steps.chain(&self.plan.fallback)
    }

    /// The contacts that it names.
    pub fn contacts(&self) -> impl Iterator<Item = &Name> {
        self.targets().filter_map(|it| match it {
            EscalationTarget::Contact(name) => Some(name),
            _ => None,
        })
    }

    /// The schedules that it names.
    pub fn schedules(&self) -> impl Iterator<Item = &Name> {
        self.targets().filter_map(|it| match it {
            EscalationTarget::Schedule(name) => Some(name),
            _ => None,
        })
    }
}
