//! Holds of a rule's messages: current ones, those at a decision, and how they ended.

use super::{Gate, NextStep};
use crate::{
    decide::{HOLDS, Snapshot, Tense, hold::explain_kind},
    domain::{
        Field, HeldBy, HoldChange, HoldKind, HoldOutcome, Name, Occurrence, Pending, RecordId,
    },
};

pub(super) fn holds_at(occurrence: &Occurrence, rule: RecordId, at_ms: i64) -> Vec<HeldBy> {
    let mut changes = occurrence.hold_changes.iter().rev();
    let last = changes.find(|it| it.rule == rule && it.at_ms <= at_ms);
    let held = last.filter(|it| match it.what {
        HoldOutcome::Waits => true,
        HoldOutcome::Released | HoldOutcome::ReleasedByHand | HoldOutcome::HandedOver => false,
        // A hold that was already over at the decision is not recorded as waiting.
        _ => it.at_ms == at_ms,
    });
    held.map_or_else(Vec::new, |it| it.held_by.clone())
}

/// Returns the hold for a suppressed event, with its time and client.
pub(super) fn suppression_hold(
    rule_name: &Name,
    rule: RecordId,
    occurrence: &Occurrence,
) -> Option<HeldBy> {
    let mut changes = occurrence.history.iter().rev();
    let change = changes.find(|it| it.field == Field::Status)?;
    Some(HeldBy {
        kind: HoldKind::Suppressed,
        id: rule,
        name: rule_name.clone(),
        revision: 0,
        since_ms: change.at_ms,
        until_ms: None,
        author: change.author.clone(),
        shared: Vec::new(),
        detail: "the event is suppressed until it is reopened".into(),
    })
}

/// Returns a condition for each kind of hold that applies.
pub(super) fn gates(held_by: &[HeldBy], tense: Tense) -> impl Iterator<Item = Gate> {
    HOLDS.iter().filter_map(move |hold| {
        Some(Gate {
            name: hold.name,
            passed: false,
            detail: explain_kind(held_by, hold, tense)?,
        })
    })
}

pub(super) fn sentence(held_by: &[HeldBy], tense: Tense) -> Option<String> {
    let details: Vec<_> = gates(held_by, tense).map(|gate| gate.detail).collect();
    (!details.is_empty()).then(|| details.join("; "))
}

pub(super) fn next(pending: &Pending, snapshot: &Snapshot) -> NextStep {
    let rule = snapshot.rule(pending.rule);
    let is_shadow = rule.is_some_and(|it| it.shadow);
    let condition = if is_shadow {
        "recorded only, since the rule is a dry run"
    } else if pending.is_opening {
        "if it is still open and the rule still matches"
    } else if pending.is_flapping() {
        "with its state then, if it has settled"
    } else if pending.repeat_due {
        "once, with its state then"
    } else {
        "if it differs from the last notification"
    };
    NextStep {
        at_ms: pending.due_ms(),
        destinations: rule
            .filter(|_| !is_shadow)
            .map_or_else(Vec::new, |it| it.destination_names.clone()),
        condition,
    }
}

/// Returns the reason why a pending message has not been sent, and what happens next.
pub(super) fn wait_reason(pending: &Pending, next: &NextStep) -> Option<String> {
    let held = sentence(&pending.held_by, Tense::Now)?;
    let names: Vec<_> = next.destinations.iter().map(Name::as_str).collect();
    let receivers = match names.as_slice() {
        [] => "no one".to_owned(),
        names => names.join(", "),
    };
    let condition = next.condition;
    Some(if pending.is_opening {
        format!("no one was notified: {held}; then notifies {receivers}, {condition}")
    } else {
        format!("notified; an update is held: {held}; then notifies {receivers}, {condition}")
    })
}

/// Returns the reason why the rule's last pending message was never sent; `None` if it was sent, or
/// none was ever pending.
pub(super) fn skip_reason(occurrence: &Occurrence, rule: RecordId) -> Option<String> {
    let last: &HoldChange = occurrence
        .hold_changes
        .iter()
        .rev()
        .find(|it| it.rule == rule)?;
    let why = last.what.skipped_reason()?;
    let held = sentence(&last.held_by, Tense::Then)?;
    Some(format!("{why}, while {held}"))
}
