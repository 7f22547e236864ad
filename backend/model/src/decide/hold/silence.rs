//! Holds notifications covered by a silence until it ends.

use super::OutgoingNotification;
use crate::{
    decide::LoadedSilence,
    domain::{HeldBy, HoldKind, Name},
};

/// Returns the silences that hold a notification for all its receivers. One that names destinations
/// does so only together with others that name the rule's remaining destinations.
pub(super) fn silence_holds(sending: &OutgoingNotification<'_>) -> impl Iterator<Item = HeldBy> {
    let covering = sending.covering.iter();
    let covering = covering.filter(|it| it.applies_to_rule(sending.rule_name));
    let covering: Vec<_> = covering.collect();
    // The receivers of a policy change from step to step.
    let rule = sending.rule.filter(|it| it.escalation_policy.is_none());
    let names = rule.map_or(&[][..], |it| &it.destination_names);
    let is_named = |name| covering.iter().any(|it| it.applies_to_destination(name));
    let covers_each = names.iter().all(is_named);
    let covering = covering.into_iter().filter(move |it| {
        let is_limited = !it.silence.destination_names.is_empty();
        !is_limited || covers_each && names.iter().any(|name| it.applies_to_destination(name))
    });
    covering.map(|it| silence_hold(it, sending.now_ms))
}

/// Returns the silences that hold the messages of a rule to one destination.
pub(in crate::decide) fn destination_holds(
    silences: &[&LoadedSilence],
    (rule, destination): (&Name, &Name),
    now_ms: i64,
) -> Vec<HeldBy> {
    let naming = silences.iter().filter(|it| {
        let is_limited = !it.silence.destination_names.is_empty();
        is_limited && it.applies_to_rule(rule) && it.applies_to_destination(destination)
    });
    naming.map(|it| silence_hold(it, now_ms)).collect()
}

fn silence_hold(loaded: &LoadedSilence, now_ms: i64) -> HeldBy {
    let silence = &loaded.silence;
    HeldBy {
        kind: HoldKind::Silence,
        id: silence.id,
        name: silence.name.clone(),
        revision: silence.revision,
        since_ms: silence.start_ms,
        until_ms: loaded.current_end_ms(now_ms),
        author: Some(silence.author.clone()),
        shared: Vec::new(),
        detail: silence.reason.clone(),
    }
}
