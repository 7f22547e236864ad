//! Holds updates of a flapping event until it settles.

use super::format_length;
use crate::domain::{Flapping, FlappingLimits, HeldBy, HoldKind, Rule};

pub(in super::super) fn flapping_hold(
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
