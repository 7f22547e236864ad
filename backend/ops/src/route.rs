//! Routes of occurrences: matching rules, their destinations, and the silences that cover them.

use std::collections::BTreeSet;

use bellwether_proto::v1::EventRoute;

use crate::{
    decide::Snapshot,
    domain::{Name, Occurrence},
};

/// Returns the enabled rules that match the occurrence and their destinations, each by name and
/// without duplicates, and the active silences that hold the messages of all these rules, latest
/// end first.
pub fn route_event(snapshot: &Snapshot, occurrence: &Occurrence, now_ms: i64) -> EventRoute {
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
    EventRoute {
        occurrence_id: occurrence.id().to_string(),
        silence_names: silences.map(|it| it.silence.name.to_string()).collect(),
        destination_names: destinations.into_iter().map(Name::to_string).collect(),
        rule_names: rules.iter().map(Name::to_string).collect(),
    }
}
