//! A rule does not create events from events that it caused.

use super::{Condition, Hold};
use crate::{
    domain::{Destination, DestinationKind, Occurrence, RecordId},
    limits::CHAIN_MAX,
};

pub(super) const NAME: &str = "loop guard";

pub(super) const CONDITION: Condition = Condition {
    name: NAME,
    is_rare: true,
    about_repeats: None,
    hold: |case| {
        let stops = |it: &Destination| would_pass_again(case.occurrence, case.rule.id, it);
        let mut destinations = case.destinations();
        (!case.occurrence.chain.is_empty() && destinations.all(stops)).then(Hold::default)
    },
    detail: |_, _, _| "the rule caused this event and would create further events from it".into(),
};

/// Whether a destination would create an event that passes the rule again, or whose chain is too
/// long.
pub fn would_pass_again(
    occurrence: &Occurrence,
    rule: RecordId,
    destination: &Destination,
) -> bool {
    let chain = &occurrence.chain;
    let passes_again = chain.contains(&rule) || chain.len() >= CHAIN_MAX;
    passes_again && matches!(destination.kind, DestinationKind::Event(_))
}
