//! Flapping: each rule that damps it counts openings across the occurrences of an event. Notified
//! receivers stay with one thread until the event settles.

use super::{Snapshot, Step, StepKind, hold};
use crate::domain::{
    Flapping, HeldBy, HoldChange, HoldOutcome, Notified, Occurrence, RecordId, Rule, Status,
    ThreadOrigin,
};

/// Records that an occurrence opened or closed, for the rules that count this.
pub(super) fn record_change(occurrence: &mut Occurrence, step: &Step<'_>, snapshot: &Snapshot) {
    let mut matches = step.matches.iter();
    let is_counted = matches.any(|it| it.rule.flapping.is_some());
    if occurrence.flapping.is_empty() && !is_counted {
        return;
    }
    let now_ms = step.now_ms;
    let mut known = std::mem::take(&mut occurrence.flapping);
    known.retain(|it| enabled_limits(snapshot.rule(it.rule)).is_some());
    let changes = opens_or_closes(occurrence, step);
    for flapping in &mut known {
        let limits = enabled_limits(snapshot.rule(flapping.rule));
        let Some(limits) = limits else { continue };
        let ends_ms = flapping.until_ms(limits);
        if step.kind == StepKind::Release(flapping.rule) && ends_ms.is_some() {
            // When an operator releases the notification, the event counts as settled.
            flapping.changed_ms = now_ms.saturating_sub(limits.settle_ms);
        }
        if changes {
            if ends_ms.is_some_and(|it| it <= now_ms) {
                flapping.since_ms = None;
            }
            flapping.changed_ms = now_ms;
        }
    }
    if occurrence.status == Status::Open && !step.kind.is_review() {
        for found in step.matches {
            count_openings(&mut known, found.rule, occurrence.number, (now_ms, changes));
        }
    }
    occurrence.flapping = known;
}

fn opens_or_closes(occurrence: &Occurrence, step: &Step<'_>) -> bool {
    let transition = step.transition;
    let is_first = step.kind == StepKind::Event && transition.from.is_none();
    let is_closed = occurrence.status == Status::Closed;
    is_first || transition.closed || transition.from == Some(Status::Closed) && !is_closed
}

/// Counts an opening, once per occurrence and for each reopening.
fn count_openings(
    known: &mut Vec<Flapping>,
    rule: &Rule,
    number: u32,
    (now_ms, changes): (i64, bool),
) {
    let Some(limits) = enabled_limits(Some(rule)) else {
        return;
    };
    let at = known.iter().position(|it| it.rule == rule.id);
    let at = at.unwrap_or_else(|| {
        known.push(Flapping {
            rule: rule.id,
            openings: Vec::new(),
            number: 0,
            changed_ms: now_ms,
            since_ms: None,
        });
        known.len() - 1
    });
    let flapping = &mut known[at];
    if flapping.number == number && !changes {
        return;
    }
    flapping.number = number;
    let since_ms = now_ms.saturating_sub(limits.window_ms);
    flapping.openings.retain(|at_ms| *at_ms > since_ms);
    flapping.openings.push(now_ms);
    let most = usize::try_from(limits.open_count).unwrap_or(usize::MAX);
    let too_many = flapping.openings.len().saturating_sub(most);
    flapping.openings.drain(..too_many);
    if flapping.since_ms.is_none() && flapping.openings.len() >= most {
        flapping.since_ms = Some(now_ms);
    }
}

fn enabled_limits(rule: Option<&Rule>) -> Option<&crate::domain::FlappingLimits> {
    rule.filter(|it| it.enabled)?.flapping.as_ref()
}

/// Returns the hold on updates while the event is flapping, as counted for the rule.
pub(super) fn flapping_hold(
    occurrence: &Occurrence,
    rule: Option<&Rule>,
    now_ms: i64,
) -> Option<HeldBy> {
    let (rule, limits) = (rule?, enabled_limits(rule)?);
    let mut known = occurrence.flapping.iter();
    let flapping = known.find(|it| it.rule == rule.id)?;
    let until_ms = flapping.until_ms(limits)?;
    (until_ms > now_ms).then(|| hold::flapping::flapping_hold(rule, limits, flapping, until_ms))
}

/// Returns the state that a message of the rule reports: flapping, settled, or neither.
pub fn flapping_in_message(
    occurrence: &Occurrence,
    rule: Option<&Rule>,
    now_ms: i64,
) -> Vec<Flapping> {
    let is_settled = has_settled(occurrence, rule, now_ms);
    if !is_settled && flapping_hold(occurrence, rule, now_ms).is_none() {
        return Vec::new();
    }
    let known = occurrence.flapping.iter();
    let of_rule = known.filter(|it| rule.is_some_and(|rule| rule.id == it.rule));
    let reported = of_rule.map(|it| Flapping {
        openings: Vec::new(),
        since_ms: it.since_ms.filter(|_| !is_settled),
        ..it.clone()
    });
    reported.collect()
}

pub(super) fn has_settled(occurrence: &Occurrence, rule: Option<&Rule>, now_ms: i64) -> bool {
    let settled = || {
        let (rule, limits) = (rule?, enabled_limits(rule)?);
        let mut known = occurrence.flapping.iter();
        let flapping = known.find(|it| it.rule == rule.id)?;
        Some(flapping.until_ms(limits)? <= now_ms)
    };
    settled().unwrap_or_default()
}

pub(super) fn end_flapping(occurrence: &mut Occurrence, snapshot: &Snapshot, now_ms: i64) {
    let pending = &occurrence.pending;
    for flapping in &mut occurrence.flapping {
        let limits = enabled_limits(snapshot.rule(flapping.rule));
        let ends_ms = limits.and_then(|it| flapping.until_ms(it));
        let waits = pending.iter().any(|it| it.rule == flapping.rule);
        if !waits && ends_ms.is_some_and(|it| it <= now_ms) {
            flapping.since_ms = None;
        }
    }
}

/// Passes the due closing message of a flapping event on to its next occurrence, so that notified
/// receivers stay in the same thread. Returns whether the previous occurrence changed.
pub fn hand_over_flapping(
    before: &mut Occurrence,
    next: &mut Occurrence,
    snapshot: &Snapshot,
    now_ms: i64,
) -> bool {
    if before.flapping.is_empty() {
        return false;
    }
    let is_flapping = |it: &&Notified| {
        let rule = snapshot.rule(it.rule);
        !it.cleared && !it.is_outdated(rule) && flapping_hold(before, rule, now_ms).is_some()
    };
    let rules: Vec<RecordId> = before
        .notified
        .iter()
        .filter(is_flapping)
        .map(|it| it.rule)
        .collect();
    before.move_last_notified();
    let state = before.notified_state();
    let own = ThreadOrigin {
        key: before.key,
        number: before.number,
    };
    for entry in &mut before.notified {
        if !rules.contains(&entry.rule) {
            continue;
        }
        let known = entry.last_notified.unwrap_or(state);
        next.notified.push(Notified {
            thread: entry.thread.or(Some(own)),
            last_notified: (known != next.notified_state()).then_some(known),
            ..entry.clone()
        });
        entry.cleared = true;
        entry.group = None;
    }
    for at in (0..before.pending.len()).rev() {
        if !rules.contains(&before.pending[at].rule) {
            continue;
        }
        let pending = before.pending.remove(at);
        before.hold_changes.push(HoldChange {
            at_ms: now_ms,
            rule: pending.rule,
            what: HoldOutcome::HandedOver,
            held_by: pending.held_by.clone(),
        });
        next.pending.push(pending);
    }
    !rules.is_empty()
}
