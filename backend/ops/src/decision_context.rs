//! The context of decisions about occurrences: store, clock and rules.

use std::sync::Arc;

use crate::{
    beats::Beats,
    clock::Clock,
    decide::{PastDefinitions, Snapshot, Step, StepKind, notify},
    domain::{Delivery, Occurrence},
    lifecycle::{Cause, StateChange, apply_change},
    loop_guard::Reports,
    ruleset::Ruleset,
    store::{Duty, Store},
};

pub use super::identity::new_id;

/// The context of decisions about occurrences. Clones share it.
#[derive(Debug, Clone)]
pub struct DecisionContext {
    pub store: Store,
    pub clock: Arc<dyn Clock>,
    pub ruleset: Arc<Ruleset>,
    pub beats: Arc<Beats>,
}

impl DecisionContext {
    /// Returns a copy for the leader's work; see [`Store::for_leader`].
    #[must_use]
    pub fn for_leader(&self, duty: Duty) -> Self {
        self.with_store(self.store.for_leader(duty))
    }

    #[must_use]
    pub fn with_store(&self, store: Store) -> Self {
        Self {
            store,
            ..self.clone()
        }
    }
}

#[derive(Debug, Default)]
#[must_use]
pub struct AlteredOccurrence {
    /// Deliveries to store in the same commit.
    pub deliveries: Vec<Delivery>,
    /// Events to report after the commit.
    pub reports: Reports,
}

impl DecisionContext {
    /// Changes an occurrence on behalf of an operator or of ageing, and returns the consequences.
    ///
    /// `past` is the result of [`crate::revision::read_past_definitions`] for the occurrence.
    pub fn apply_change(
        &self,
        (snapshot, past): (&Snapshot, &PastDefinitions),
        occurrence: &mut Occurrence,
        change: &StateChange,
        cause: Cause<'_>,
    ) -> AlteredOccurrence {
        let before = occurrence.clone();
        let transition = apply_change(occurrence, change, cause, snapshot.settings());
        if *occurrence == before {
            return AlteredOccurrence::default();
        }
        let matches = snapshot.matching_triggers(occurrence);
        self.store.metrics().record_evaluation(matches.len());
        let step = Step {
            kind: StepKind::Change,
            transition,
            matches: &matches,
            now_ms: cause.now_ms,
            past,
        };
        let notices = notify(occurrence, &step, snapshot, &mut || new_id(cause.now_ms));
        let mut reports = Reports::default();
        reports.add_reports(&notices, occurrence, cause.now_ms);
        AlteredOccurrence {
            deliveries: notices.deliveries,
            reports,
        }
    }
}
