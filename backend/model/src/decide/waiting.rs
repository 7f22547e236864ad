//! Held notifications of an occurrence during a step: previously held, still held, sent and
//! skipped.

use std::collections::BTreeSet;

use super::{Snapshot, Step, StepKind};
use crate::{
    domain::{HeldBy, HoldChange, HoldOutcome, Name, Occurrence, Pending, RecordId, Status},
    limits::HOLD_CHANGES_MAX,
};

#[derive(Debug)]
pub(super) struct HeldNotifications {
    now_ms: i64,
    before: Vec<Pending>,
    after: Vec<Pending>,
    sent: BTreeSet<RecordId>,
    changes: Vec<HoldChange>,
}

impl HeldNotifications {
    pub(super) fn new(occurrence: &Occurrence, step: &Step<'_>) -> Self {
        Self {
            now_ms: step.now_ms,
            before: occurrence.pending.clone(),
            after: Vec::new(),
            sent: BTreeSet::new(),
            changes: Vec::new(),
        }
    }

    pub(super) fn previous_hold(&self, rule: RecordId) -> Option<&Pending> {
        self.before.iter().find(|it| it.rule == rule)
    }

    pub(super) fn add_hold(
        &mut self,
        (rule, rule_name): (RecordId, &Name),
        is_opening: bool,
        repeat_due: bool,
        mut held_by: Vec<HeldBy>,
    ) {
        if let Some(known) = self.after.iter_mut().find(|it| it.rule == rule) {
            known.repeat_due |= repeat_due;
            return;
        }
        let before = self.previous_hold(rule).cloned();
        let held_before = before.as_ref().map_or(&[][..], |it| &it.held_by);
        let same = |it: &HeldBy, other: &HeldBy| it.kind == other.kind && it.id == other.id;
        for hold in &mut held_by {
            let known = held_before.iter().find(|it| same(it, hold));
            hold.since_ms = known.map_or(self.now_ms, |it| it.since_ms);
        }
        let is_as_before = held_before.len() == held_by.len()
            && held_by
                .iter()
                .all(|it| held_before.iter().any(|other| same(it, other)));
        if !is_as_before {
            self.record_change(rule, HoldOutcome::Waits, held_by.clone());
        }
        self.after.push(Pending {
            rule,
            rule_name: rule_name.clone(),
            is_opening,
            since_ms: before.as_ref().map_or(self.now_ms, |it| it.since_ms),
            repeat_due: repeat_due || before.is_some_and(|it| it.repeat_due),
            last_notified: None,
            held_by,
            left_out: Vec::new(),
        });
    }

    /// Holds the messages of a rule to destinations that a silence names.
    pub(super) fn hold_left_out(
        &mut self,
        rule: (RecordId, &Name),
        held_by: Vec<HeldBy>,
        left_out: Vec<Name>,
    ) {
        self.add_hold(rule, true, false, held_by);
        if let Some(pending) = self.after.iter_mut().find(|it| it.rule == rule.0) {
            pending.left_out = left_out;
        }
    }

    pub(super) fn holds_update(&self, rule: RecordId) -> bool {
        let mut after = self.after.iter();
        after.any(|it| it.rule == rule && !it.is_opening)
    }

    pub(super) fn record_sent(&mut self, rule: RecordId) {
        self.sent.insert(rule);
    }

    pub(super) fn was_sent(&self, rule: RecordId) -> bool {
        self.sent.contains(&rule)
    }

    /// Records a notification that would be held but is already obsolete, because the occurrence is
    /// closed.
    pub(super) fn hold_obsolete(&mut self, rule: RecordId, held_by: Vec<HeldBy>) {
        if self.previous_hold(rule).is_none() {
            self.record_change(rule, HoldOutcome::Closed, held_by);
        }
    }

    fn record_change(&mut self, rule: RecordId, what: HoldOutcome, held_by: Vec<HeldBy>) {
        self.changes.push(HoldChange {
            at_ms: self.now_ms,
            rule,
            what,
            held_by,
        });
    }

    /// Stores the held notifications and the outcome of the others in the occurrence. Returns
    /// whether the occurrence changed.
    pub(super) fn finish(
        mut self,
        occurrence: &mut Occurrence,
        step: &Step<'_>,
        snapshot: &Snapshot,
    ) -> bool {
        for pending in std::mem::take(&mut self.before) {
            if self.after.iter().any(|it| it.rule == pending.rule) {
                continue;
            }
            // A closing is not sent to destinations that were left out.
            let is_missed = occurrence.status == Status::Closed && !pending.left_out.is_empty();
            let what = if self.sent.contains(&pending.rule) && !is_missed {
                match step.kind {
                    StepKind::Release(_) => HoldOutcome::ReleasedByHand,
                    _ => HoldOutcome::Released,
                }
            } else if occurrence.status == Status::Suppressed || !is_decided_in_step(&pending, step)
            {
                self.after.push(pending);
                continue;
            } else {
                skip_outcome(&pending, occurrence, step, snapshot)
            };
            self.record_change(pending.rule, what, pending.held_by);
        }
        let is_news = !self.changes.is_empty() || occurrence.pending != self.after;
        occurrence.pending = self.after;
        for change in self.changes {
            let of_rule = occurrence.hold_changes.iter();
            let count = of_rule.filter(|it| it.rule == change.rule).count();
            if count >= HOLD_CHANGES_MAX {
                let mut all = occurrence.hold_changes.iter();
                let oldest = all.position(|it| it.rule == change.rule);
                oldest.map(|at| occurrence.hold_changes.remove(at));
            }
            occurrence.hold_changes.push(change);
        }
        is_news
    }
}

fn is_decided_in_step(pending: &Pending, step: &Step<'_>) -> bool {
    let mut matches = step.matches.iter();
    step.kind != StepKind::Open || matches.any(|it| it.rule.id == pending.rule)
}

fn skip_outcome(
    pending: &Pending,
    occurrence: &Occurrence,
    step: &Step<'_>,
    snapshot: &Snapshot,
) -> HoldOutcome {
    if occurrence.status == Status::Closed {
        return HoldOutcome::Closed;
    }
    match snapshot.rule(pending.rule) {
        None => HoldOutcome::RuleDeleted,
        Some(rule) if !rule.enabled => HoldOutcome::RuleDisabled,
        Some(_) if !pending.is_opening => HoldOutcome::Unchanged,
        Some(rule) if step.matches.iter().any(|it| it.rule.id == rule.id) => HoldOutcome::Blocked,
        Some(_) => HoldOutcome::NoLongerMatched,
    }
}
