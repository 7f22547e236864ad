//! What a step of an occurrence sends, and what is noted of that in the occurrence.

use std::collections::BTreeSet;

use super::{
    Case, LoadedSilence, Match, Sending, Snapshot, Step, StepKind, Verdict,
    condition::would_pass_again,
    content::{of_update, rule_content, trigger_of_update},
    silences::covering,
    waiting::Waiting,
};
use crate::domain::{
    Content, Delivery, DeliveryState, Destination, Evaluation, HeldBy, LastTold, Name, Notified,
    Occurrence, Opening, RecordId, Rule, Status, Trigger, delivery::RuleContent,
};

/// What a step causes.
#[derive(Debug, Default, PartialEq)]
pub struct Notices {
    /// The deliveries to store together with the occurrence.
    pub deliveries: Vec<Delivery>,
    /// Rules whose `event` destinations the loop guard stopped.
    pub stopped: Vec<Name>,
}

/// Decides the notifications of a step, and notes in the occurrence when, who is notified, what
/// waits and why.
///
/// `new_id` makes the identities of the deliveries.
pub fn notify(
    occurrence: &mut Occurrence,
    step: &Step<'_>,
    snapshot: &Snapshot,
    new_id: &mut dyn FnMut() -> RecordId,
) -> Notices {
    let evaluation = Evaluation {
        at_ms: step.now_ms,
        rules_ms: snapshot.newest_edit_ms(),
        by_event: step.kind == StepKind::Event,
    };
    let silences = snapshot.silences().matching(occurrence, step.now_ms);
    occurrence.covered_by = covering(&silences, occurrence, || {
        let matches = snapshot.matches(occurrence);
        matches.iter().map(|it| it.rule.name.clone()).collect()
    });
    let was_cause = !occurrence.causes.is_empty();
    let is_look = step.kind == StepKind::Look;
    let inhibitions = snapshot.inhibitions();
    occurrence.causes = inhibitions.marks(occurrence, is_look, step.now_ms);
    if was_cause || !occurrence.causes.is_empty() {
        step.past.causes().decide(occurrence);
    }
    let is_nothing =
        step.matches.is_empty() && occurrence.notified.is_empty() && occurrence.pending.is_empty();
    if is_nothing {
        if !step.kind.is_look() {
            occurrence.evaluation = Some(evaluation);
        }
        return Notices::default();
    }
    let inhibited = if occurrence.status == Status::Open {
        inhibitions.held_by(occurrence, step.past.causes(), step.now_ms)
    } else {
        Vec::new()
    };
    let mut notified = std::mem::take(&mut occurrence.notified);
    let mut writer = Writer {
        step,
        snapshot,
        waiting: Waiting::new(occurrence, step),
        occurrence,
        silences: &silences,
        inhibited: &inhibited,
        shown: None,
        new_id,
        notices: Notices::default(),
    };
    let updated = writer.updates(&mut notified);
    writer.openings(&mut notified, &updated);
    let (notices, waiting) = (writer.notices, writer.waiting);
    let changes = waiting.finish(occurrence, step, snapshot);
    if !step.kind.is_look() || changes || !notices.deliveries.is_empty() {
        occurrence.evaluation = Some(evaluation);
    }
    occurrence.notified = notified;
    notices
}

struct Writer<'a> {
    step: &'a Step<'a>,
    snapshot: &'a Snapshot,
    occurrence: &'a Occurrence,
    /// Those in force that match the occurrence.
    silences: &'a [&'a LoadedSilence],
    /// What holds the occurrence as the effect of something else.
    inhibited: &'a [HeldBy],
    waiting: Waiting,
    /// The occurrence as deliveries carry it; made for the first one.
    shown: Option<Occurrence>,
    new_id: &'a mut dyn FnMut() -> RecordId,
    notices: Notices,
}

/// What those who were notified before are to hear.
struct News {
    /// The `clear` of the message.
    clear: bool,
    /// Whether it waits for nothing.
    is_owed: bool,
    /// What they were told last; none for an opening.
    last_told: Option<LastTold>,
}

impl Writer<'_> {
    /// Notifies those who were notified before of what changed, and again of what is open again;
    /// answers the rules that did.
    fn updates(&mut self, notified: &mut [Notified]) -> BTreeSet<RecordId> {
        let mut updated = BTreeSet::new();
        for entry in notified.iter_mut() {
            let rule = self.snapshot.rule(entry.rule);
            let Some(news) = self.news(entry, rule) else {
                continue;
            };
            let clear = news.clear;
            if !news.is_owed {
                let is_opening = news.last_told.is_none();
                let held_by = self.held_by(entry.rule, &entry.rule_name, is_opening);
                if !held_by.is_empty() {
                    let named = (entry.rule, &entry.rule_name);
                    self.waiting.wait(named, news.last_told, false, held_by);
                    continue;
                }
            }
            entry.cleared = self.occurrence.status == Status::Closed;
            if !clear {
                entry.last_ms = self.step.now_ms;
            }
            updated.insert(entry.rule);
            self.waiting.sent(entry.rule);
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

    /// What whoever a rule notified before is to hear of this step, or of what waits since earlier
    /// ones.
    fn news(&self, entry: &Notified, rule: Option<&Rule>) -> Option<News> {
        let transition = self.step.transition;
        match self.occurrence.status {
            Status::Closed => {
                let owed = transition.closed && !entry.cleared;
                let last = rule.or_else(|| self.step.past.deleted(entry.rule));
                let sends = last.map_or(entry.send_updates, |it| it.send_updates);
                (owed && sends).then_some(News {
                    clear: true,
                    is_owed: true,
                    last_told: None,
                })
            }
            Status::Open if entry.cleared => Some(News {
                clear: false,
                is_owed: false,
                last_told: None,
            }),
            Status::Open => {
                let follows = rule.is_some_and(|it| it.enabled && it.send_updates);
                let waited = self.waiting.before(entry.rule);
                let last_told = waited.and_then(|it| it.last_told);
                let last_told = last_told.or(transition.before);
                let current = LastTold {
                    severity: self.occurrence.severity,
                    acknowledged: self.occurrence.acknowledged,
                };
                let is_other = last_told.is_some_and(|it| it != current);
                (is_other && follows).then_some(News {
                    clear: true,
                    is_owed: false,
                    last_told,
                })
            }
            Status::Suppressed => None,
        }
    }

    /// What holds back what a rule is to send.
    fn held_by(&self, rule: RecordId, rule_name: &Name, is_opening: bool) -> Vec<HeldBy> {
        if self.step.kind == StepKind::Release(rule) {
            return Vec::new();
        }
        let waited = self.waiting.before(rule).filter(|it| it.is_opening);
        let sending = Sending {
            rule_name,
            rule: self.snapshot.rule(rule),
            covering: self.silences,
            inhibited: self.inhibited,
            calendars: self.snapshot.calendars(),
            earlier: &self.occurrence.earlier,
            // What is closed already is told of when it matches, or never.
            is_opening: is_opening && self.occurrence.status != Status::Closed,
            first_ms: waited.map_or(self.step.now_ms, |it| it.since_ms),
            now_ms: self.step.now_ms,
        };
        sending.held_by()
    }

    /// Notifies the destinations of rules that match: for the first time, or again when that is due.
    fn openings(&mut self, notified: &mut Vec<Notified>, updated: &BTreeSet<RecordId>) {
        let now_ms = self.step.now_ms;
        let clear = self.occurrence.status == Status::Closed;
        for found in self.step.matches {
            let rule = found.rule;
            let waited = self.waiting.before(rule.id);
            if self.step.kind.is_look() && waited.is_none() {
                continue;
            }
            let known = notified.iter().position(|entry| entry.rule == rule.id);
            let case = Case {
                rule,
                occurrence: self.occurrence,
                notified: known.map(|at| &notified[at]),
                by_event: self.step.kind == StepKind::Event,
                snapshot: self.snapshot,
                repeat_waits: waited.is_some_and(|it| it.repeat_due),
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
            let held_by = self.held_by(rule.id, &rule.name, known.is_none());
            if !held_by.is_empty() {
                let named = (rule.id, &rule.name);
                if clear {
                    self.waiting.spare(rule.id, held_by);
                } else if known.is_some() {
                    let told = self.step.transition.before.or(Some(LastTold {
                        severity: self.occurrence.severity,
                        acknowledged: self.occurrence.acknowledged,
                    }));
                    self.waiting.wait(named, told, true, held_by);
                } else {
                    self.waiting.wait(named, None, false, held_by);
                }
                continue;
            }
            self.waiting.sent(rule.id);
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
            earlier: Vec::new(),
            causes: Vec::new(),
            covered_by: Vec::new(),
            pending: Vec::new(),
            hold_changes: Vec::new(),
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
