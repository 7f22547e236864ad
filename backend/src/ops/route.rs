//! Routes of occurrences: matching rules, their destinations, and the silences that cover them.

use std::collections::BTreeSet;

use crate::{
    decide::Snapshot,
    domain::{Name, Occurrence, OccurrenceId},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub occurrence: OccurrenceId,
    /// The enabled rules that match the occurrence, by name.
    pub rules: Vec<Name>,
    /// The destinations of these rules, by name, without duplicates.
    pub destinations: Vec<Name>,
    /// The active silences that hold the messages of all these rules, latest end first.
    pub silences: Vec<Name>,
}

pub fn route_event(snapshot: &Snapshot, occurrence: &Occurrence, now_ms: i64) -> Route {
    let matches = snapshot.matching_triggers(occurrence);
    let rules: Vec<_> = matches.iter().map(|it| it.rule.name.clone()).collect();
    let destinations = matches.iter().flat_map(|it| &it.rule.destination_names);
    let destinations: BTreeSet<_> = destinations.collect();
    let silences = snapshot.silences().find_matching(occurrence, now_ms);
    let silences = silences.into_iter().filter(|silence| {
        let names: Vec<_> = rules.iter().collect();
        silence.covers(occurrence, &names)
            && rules.iter().all(|rule| silence.applies_to_rule(rule))
            && destinations
                .iter()
                .all(|destination| silence.applies_to_destination(destination))
    });
    Route {
        occurrence: occurrence.id(),
        silences: silences.map(|it| it.silence.name.clone()).collect(),
        destinations: destinations.into_iter().cloned().collect(),
        rules,
    }
}
