//! Holds of a rule's messages: current ones, and those at a decision.

use bellwether_proto::v1::Gate;

use crate::{
    decide::condition::with_until,
    domain::{Field, HeldBy, HoldKind, HoldOutcome, Name, Occurrence, RecordId},
};

pub(super) fn holds_at_time(occurrence: &Occurrence, rule: RecordId, at_ms: i64) -> Vec<HeldBy> {
    let mut changes = occurrence.hold_changes.iter().rev();
    let last = changes.find(|it| it.rule == rule && it.at_ms <= at_ms);
    let held = last.filter(|it| match it.what {
        HoldOutcome::Waits => true,
        HoldOutcome::Released | HoldOutcome::ReleasedByHand | HoldOutcome::HandedOver => false,
        // This decision ended the hold, so no record says that it was waiting.
        _ => it.at_ms == at_ms,
    });
    held.map_or_else(Vec::new, |it| it.held_by.clone())
}

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

pub(super) fn hold_gates(held_by: &[HeldBy], now_ms: i64) -> impl Iterator<Item = Gate> {
    let by_kind = held_by.chunk_by(|a, b| a.kind == b.kind);
    by_kind.map(move |holds| {
        let details = holds.iter();
        let details = details.map(|it| {
            let end_ms = it.until_ms.filter(|end_ms| *end_ms > now_ms);
            with_until(&it.describe(), end_ms)
        });
        Gate {
            name: holds[0].kind.as_str().into(),
            passed: Some(false),
            detail: details.collect::<Vec<_>>().join(" and "),
        }
    })
}
