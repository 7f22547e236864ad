//! Metrics steps of a commit.

use std::time::Duration;

use crate::{
    domain::{Delivery, DeliveryState, Group, HoldChange, HoldOutcome, Occurrence, Pending},
    metrics::CommitStep,
};

pub(super) fn delivery_steps(
    after: &Delivery,
    before: Option<&Delivery>,
    to: &mut Vec<CommitStep>,
) {
    let kind = after.content.destination_kind.as_str();
    let Some(before) = before else {
        let is_digest = after.content.digest.is_some();
        if !after.test && !is_digest && after.retry_of.is_none() {
            to.push(match after.state {
                DeliveryState::Shadowed => CommitStep::Shadowed(kind),
                _ => CommitStep::Decided(kind),
            });
        }
        return;
    };
    let Some(state) = end_label(after.state).filter(|_| end_label(before.state).is_none()) else {
        return;
    };
    if after.test {
        return to.push(CommitStep::Tested { kind, state });
    }
    let took = duration_between(after.create_ms, after.end_ms.unwrap_or(after.create_ms));
    to.push(CommitStep::Ended { kind, state, took });
}

pub(super) fn group_steps(after: &Group, before: Option<&Group>, to: &mut Vec<CommitStep>) {
    if before.is_none_or(|it| it.message_count < after.message_count) {
        to.push(CommitStep::Grouped(after.member_count));
    }
}

pub(super) fn occurrence_steps(
    after: &Occurrence,
    before: Option<&Occurrence>,
    to: &mut Vec<CommitStep>,
) {
    let known = before.map_or(&[][..], |it| &it.hold_changes);
    // New changes are at the end.
    let new = after.hold_changes.iter().rev();
    for change in new.take_while(|it| !known.contains(it)) {
        let pending = before.map_or(&[][..], |it| &it.pending);
        let waited = pending.iter().find(|it| it.rule == change.rule);
        hold_change_steps(change, waited.and_then(Pending::due_ms), to);
    }
}

/// `due_ms` is the time at which the held notification was due for evaluation.
fn hold_change_steps(change: &HoldChange, due_ms: Option<i64>, to: &mut Vec<CommitStep>) {
    match change.what {
        HoldOutcome::Waits => {
            let begun = change.held_by.iter();
            let begun = begun.filter(|it| it.since_ms == change.at_ms);
            to.extend(begun.map(|it| CommitStep::Held(it.kind.as_str())));
        }
        HoldOutcome::Released => {
            let due_ms = due_ms.filter(|due_ms| *due_ms <= change.at_ms);
            let late = due_ms.map(|due_ms| duration_between(due_ms, change.at_ms));
            to.push(CommitStep::Released(late));
        }
        HoldOutcome::ReleasedByHand => to.push(CommitStep::Released(None)),
        HoldOutcome::HandedOver => {}
        skipped => {
            debug_assert!(skipped.skipped_reason().is_some(), "{skipped:?}");
            let first = change.held_by.first();
            to.extend(first.map(|it| CommitStep::Skipped(it.kind.as_str())));
        }
    }
}

fn duration_between(from_ms: i64, until_ms: i64) -> Duration {
    Duration::from_millis((until_ms - from_ms).try_into().unwrap_or(0))
}

fn end_label(state: DeliveryState) -> Option<&'static str> {
    match state {
        DeliveryState::Pending { .. }
        | DeliveryState::Leased { .. }
        | DeliveryState::Retry { .. } => None,
        DeliveryState::Delivered => Some("delivered"),
        DeliveryState::Dead => Some("dead"),
        DeliveryState::Cancelled => Some("cancelled"),
        DeliveryState::Folded => Some("folded"),
        DeliveryState::Shadowed => Some("shadowed"),
    }
}
