//! What a step of an occurrence sends, and what is noted of that in the occurrence.

use std::collections::BTreeSet;

use super::{
    Case, Match, Past, Snapshot, Transition, Verdict,
    condition::would_pass_again,
    content::{of_update, rule_content, trigger_of_update},
};
use crate::domain::{
    Content, Delivery, DeliveryState, Destination, Evaluation, Name, Notified, Occurrence, Opening,
    RecordId, Rule, Status, Trigger, delivery::RuleContent,
};

/// What made an occurrence change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// An event came in: rules that notified before may repeat.
    Event,
    /// An operator or ageing changed it, or somebody asked for what is open to be told: a repeat is
    /// news from a sender.
    Change,
}

/// A step of an occurrence, and the rules that match it afterwards.
#[derive(Debug)]
pub struct Step<'a> {
    /// What made it.
    pub kind: StepKind,
    /// What it changed.
    pub transition: Transition,
    /// The enabled rules that match, each once.
    pub matches: &'a [Match<'a>],
    /// When, in milliseconds since 1970.
    pub now_ms: i64,
    /// What earlier messages about the occurrence rested on and is not in force any more.
    pub past: &'a Past,
}

/// What a step causes.
#[derive(Debug, Default, PartialEq)]
pub struct Notices {
    /// The deliveries to store together with the occurrence.
    pub deliveries: Vec<Delivery>,
    /// Rules whose `event` destinations the loop guard stopped.
    pub stopped: Vec<Name>,
}

/// Decides the notifications of a step, and notes in the occurrence when, and who is notified.
///
/// `new_id` makes the identities of the deliveries.
pub fn notify(
    occurrence: &mut Occurrence,
    step: &Step<'_>,
    snapshot: &Snapshot,
    new_id: &mut dyn FnMut() -> RecordId,
) -> Notices {
    occurrence.evaluation = Some(Evaluation {
        at_ms: step.now_ms,
        rules_ms: snapshot.newest_edit_ms(),
        by_event: step.kind == StepKind::Event,
    });
    if step.matches.is_empty() && occurrence.notified.is_empty() {
        return Notices::default();
    }
    let mut notified = std::mem::take(&mut occurrence.notified);
    let mut writer = Writer {
        step,
        snapshot,
        occurrence,
        shown: None,
        new_id,
        notices: Notices::default(),
    };
    let updated = writer.updates(&mut notified);
    writer.openings(&mut notified, &updated);
    let notices = writer.notices;
    occurrence.notified = notified;
    notices
}

struct Writer<'a> {
    step: &'a Step<'a>,
    snapshot: &'a Snapshot,
    occurrence: &'a Occurrence,
    /// The occurrence as deliveries carry it; made for the first one.
    shown: Option<Occurrence>,
    new_id: &'a mut dyn FnMut() -> RecordId,
    notices: Notices,
}

impl Writer<'_> {
    /// Notifies those who were notified before of what changed, and again of what is open again;
    /// answers the rules that did.
    fn updates(&mut self, notified: &mut [Notified]) -> BTreeSet<RecordId> {
        let mut updated = BTreeSet::new();
        for entry in notified.iter_mut() {
            let rule = self.snapshot.rule(entry.rule);
            let Some(clear) = self.update(entry, rule) else {
                continue;
            };
            entry.cleared = self.occurrence.status == Status::Closed;
            if !clear {
                entry.last_ms = self.step.now_ms;
            }
            updated.insert(entry.rule);
            let content = of_update(entry, rule, self.step.past);
            let in_force = (self.snapshot, self.step.past);
            let trigger = trigger_of_update(entry, rule, self.step.matches, in_force);
            let destinations = entry.destinations.iter();
            for destination in destinations.filter_map(|(id, _)| self.snapshot.destination(*id)) {
                if would_pass_again(self.occurrence, entry.rule, destination) {
                    self.notices.stopped.push(entry.rule_name.clone());
                } else {
                    self.send(entry.rule, &content, trigger.as_ref(), destination, clear);
                }
            }
        }
        updated
    }

    /// Whether whoever a rule notified before hears of this step, and the `clear` of that message.
    fn update(&self, entry: &Notified, rule: Option<&Rule>) -> Option<bool> {
        let transition = self.step.transition;
        let changed = transition.severity_changed || transition.acknowledgement_changed;
        match self.occurrence.status {
            Status::Closed => {
                let owed = transition.closed && !entry.cleared;
                let last = rule.or_else(|| self.step.past.deleted(entry.rule));
                let sends = last.map_or(entry.send_updates, |it| it.send_updates);
                (owed && sends).then_some(true)
            }
            Status::Open if entry.cleared => Some(false),
            Status::Open => {
                let follows = rule.is_some_and(|it| it.enabled && it.send_updates);
                (changed && follows).then_some(true)
            }
            Status::Suppressed => None,
        }
    }

    /// Notifies the destinations of rules that match: for the first time, or again when that is due.
    fn openings(&mut self, notified: &mut Vec<Notified>, updated: &BTreeSet<RecordId>) {
        let now_ms = self.step.now_ms;
        let clear = self.occurrence.status == Status::Closed;
        for found in self.step.matches {
            let rule = found.rule;
            let known = notified.iter().position(|entry| entry.rule == rule.id);
            let case = Case {
                rule,
                occurrence: self.occurrence,
                notified: known.map(|at| &notified[at]),
                by_event: self.step.kind == StepKind::Event,
                snapshot: self.snapshot,
                now_ms,
            };
            if let Verdict::Held { by, alone, .. } = case.verdict() {
                if alone && by.is_loop_guard() {
                    self.notices.stopped.push(rule.name.clone());
                }
                continue;
            }
            if let Some(at) = known.filter(|_| updated.contains(&rule.id)) {
                notified[at].last_ms = now_ms;
                continue;
            }
            let content = rule_content(rule);
            let mut sent = Vec::with_capacity(rule.destination_names.len());
            for destination in case.destinations() {
                if would_pass_again(self.occurrence, rule.id, destination) {
                    self.notices.stopped.push(rule.name.clone());
                    continue;
                }
                self.send(rule.id, &content, Some(found.trigger), destination, clear);
                sent.push((destination.id, destination.name.clone()));
            }
            let known = known.map(|at| &mut notified[at]);
            if let Some(new) = keep(known, found, sent, (now_ms, clear)) {
                notified.push(new);
            }
        }
    }

    /// Writes one delivery.
    fn send(
        &mut self,
        rule: RecordId,
        content: &RuleContent,
        trigger: Option<&Trigger>,
        destination: &Destination,
        clear: bool,
    ) {
        let shown = self.shown.get_or_insert_with(|| Occurrence {
            history: Vec::new(),
            notified: Vec::new(),
            ..self.occurrence.clone()
        });
        self.notices.deliveries.push(Delivery {
            id: (self.new_id)(),
            rule: Some(rule),
            destination: destination.id,
            destination_name: destination.name.as_str().into(),
            event: Some(self.occurrence.event),
            state: DeliveryState::Pending {
                due_ms: self.step.now_ms,
            },
            test: false,
            attempts: 0,
            last_error: String::new(),
            create_ms: self.step.now_ms,
            end_ms: None,
            retry_of: None,
            retried_as: None,
            content: Content {
                clear,
                occurrence: shown.clone(),
                rule: content.clone(),
                trigger: trigger.cloned(),
                destination_kind: destination.kind.clone(),
            },
        });
    }
}

/// Notes that a rule notified these destinations; answers the note when it is a new one.
fn keep(
    known: Option<&mut Notified>,
    found: &Match<'_>,
    sent: Vec<(RecordId, Name)>,
    (now_ms, clear): (i64, bool),
) -> Option<Notified> {
    let rule = found.rule;
    // A message about what is over is its closing as well, where closings are wanted.
    let cleared = clear && rule.send_updates;
    let opening = || Opening {
        at_ms: now_ms,
        trigger: found.trigger.into(),
        rule_revision: rule.revision,
    };
    let Some(entry) = known else {
        return Some(Notified {
            rule: rule.id,
            rule_name: rule.name.clone(),
            last_ms: now_ms,
            send_updates: rule.send_updates,
            destinations: sent,
            cleared,
            opening: Some(opening()),
        });
    };
    if entry.cleared || entry.opening.is_none() {
        entry.opening = Some(opening());
    }
    entry.last_ms = now_ms;
    entry.send_updates |= rule.send_updates;
    entry.cleared = cleared;
    for destination in sent {
        if !entry.destinations.iter().any(|it| it.0 == destination.0) {
            entry.destinations.push(destination);
        }
    }
    None
}

#[cfg(test)]
mod tests;
