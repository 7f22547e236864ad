//! Holds updates of a flapping event until it settles.

use super::{super::condition::format_time, HoldCondition, format_length};
use crate::{
    decide::Tense,
    domain::{Flapping, FlappingLimits, HeldBy, HoldKind, Rule},
};

pub(super) const HOLD: HoldCondition = HoldCondition {
    name: "flapping",
    kind: HoldKind::Flapping,
    held_by: |sending| sending.flapping.into_iter().cloned().collect(),
    detail: |all, tense| {
        let until = all.iter().filter_map(|it| it.until_ms).max();
        let until = until.map_or_else(String::new, |at_ms| {
            format!(", at {} at the earliest", format_time(at_ms))
        });
        let waits = if tense == Tense::Now {
            "waits"
        } else {
            "waited"
        };
        let why = all.first().map_or("", |it| &it.detail);
        format!("the rule {waits} for the event to settle{until}: {why}")
    },
};

/// Returns the hold on updates of a flapping event.
pub(in super::super) fn held_by(
    rule: &Rule,
    limits: &FlappingLimits,
    flapping: &Flapping,
    until_ms: i64,
) -> HeldBy {
    HeldBy {
        kind: HoldKind::Flapping,
        id: rule.id,
        name: rule.name.clone(),
        revision: rule.revision,
        since_ms: flapping.since_ms.unwrap_or(flapping.changed_ms),
        until_ms: Some(until_ms),
        author: None,
        shared: Vec::new(),
        detail: format!(
            "opened {} times within {}; settles after {} without a change",
            limits.open_count,
            format_length(limits.window_ms),
            format_length(limits.settle_ms)
        ),
    }
}
