//! What every decision about occurrences needs: the store, the time and the rules.

use std::sync::Arc;

use crate::{
    clock::Clock,
    decide::{Past, Snapshot, Step, StepKind, notify},
    domain::{Delivery, Occurrence},
    lifecycle::{Cause, StateChange, alter},
    ops::{beats::Beats, loop_guard::Reports, ruleset::Ruleset},
    store::{Duty, Store},
};

pub use super::identity::new_id;

/// What every decision about occurrences needs. Clones share it.
#[derive(Debug, Clone)]
pub struct Deciding {
    /// Where occurrences and deliveries are kept.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The rules in force.
    pub ruleset: Arc<Ruleset>,
    /// What this process knows of the beats of heartbeats.
    pub beats: Arc<Beats>,
}

impl Deciding {
    /// The same for work that only who leads does, see [`Store::leading`].
    #[must_use]
    pub fn leading(&self, duty: Duty) -> Self {
        Self {
            store: self.store.leading(duty),
            ..self.clone()
        }
    }
}

/// What follows from a change of an occurrence.
#[derive(Debug, Default)]
#[must_use]
pub struct Altered {
    /// The deliveries to store together with it.
    pub deliveries: Vec<Delivery>,
    /// What the service says once that is stored.
    pub reports: Reports,
}

impl Deciding {
    /// Changes an occurrence as an operator or ageing asks for; answers what follows from it.
    ///
    /// `past` is what [`crate::ops::revision::past`] reads for the occurrence.
    pub fn alter(
        &self,
        (snapshot, past): (&Snapshot, &Past),
        occurrence: &mut Occurrence,
        change: &StateChange,
        cause: Cause<'_>,
    ) -> Altered {
        let before = occurrence.clone();
        let transition = alter(occurrence, change, cause, snapshot.settings());
        if *occurrence == before {
            return Altered::default();
        }
        let matches = snapshot.matches(occurrence);
        self.store.metrics().evaluated(matches.len());
        let step = Step {
            kind: StepKind::Change,
            transition,
            matches: &matches,
            now_ms: cause.now_ms,
            past,
        };
        let notices = notify(occurrence, &step, snapshot, &mut || new_id(cause.now_ms));
        let mut reports = Reports::default();
        reports.note(&notices, occurrence, cause.now_ms);
        Altered {
            deliveries: notices.deliveries,
            reports,
        }
    }
}
