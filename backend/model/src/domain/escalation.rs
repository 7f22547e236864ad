//! Escalation policies, which define the order in which contacts are notified until one responds.

use crate::domain::{Name, RecordId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationPolicy {
    pub id: RecordId,
    pub name: Name,
    pub description: String,
    pub tags: Vec<String>,
    pub plan: EscalationPlan,
    pub revision: u64,
    pub create_ms: i64,
    pub update_ms: i64,
}

/// The steps of a policy, fixed for a round of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EscalationPlan {
    /// The steps, in order; never empty.
    pub steps: Vec<EscalationStep>,
    /// Number of rounds, at least 1.
    pub rounds: u32,
    /// Duration of an acknowledgement, in milliseconds; 0 means unlimited.
    pub ack_timeout_ms: i64,
    /// The destination that is notified after all rounds.
    pub fallback: Option<Name>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EscalationStep {
    /// The targets notified together; never empty.
    pub targets: Vec<EscalationTarget>,
    /// Time until the next step, in milliseconds.
    pub wait_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EscalationTarget {
    Destination(Name),
    Contact(Name),
    /// The contacts on call for a schedule at the time of the step.
    Schedule(Name),
}

impl EscalationPolicy {
    fn targets(&self) -> impl Iterator<Item = &EscalationTarget> {
        self.plan.steps.iter().flat_map(|it| &it.targets)
    }

    pub fn destinations(&self) -> impl Iterator<Item = &Name> {
        let of_steps = self.targets().filter_map(|it| match it {
            EscalationTarget::Destination(name) => Some(name),
            _ => None,
        });
        of_steps.chain(&self.plan.fallback)
    }

    pub fn contacts(&self) -> impl Iterator<Item = &Name> {
        self.targets().filter_map(|it| match it {
            EscalationTarget::Contact(name) => Some(name),
            _ => None,
        })
    }

    pub fn schedules(&self) -> impl Iterator<Item = &Name> {
        self.targets().filter_map(|it| match it {
            EscalationTarget::Schedule(name) => Some(name),
            _ => None,
        })
    }
}
