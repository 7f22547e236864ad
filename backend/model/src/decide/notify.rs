//! What a step of an occurrence sends, and what is noted of that in the occurrence.

mod groups;
mod paging;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Case, LoadedSilence, Match, SendKind, Sending, Snapshot, Step, StepKind, Verdict,
    condition::would_pass_again,
    content::{of_update, rule_content, trigger_of_update},
    flapping::{self, flaps, has_settled},
    silences::covering,
    waiting::Waiting,
};
use crate::domain::{
    Content, Delivery, DeliveryState, Destination, Evaluation, HeldBy, MemberChange, Name,
    Notified, Occurrence, Opening, PagedContact, RecordId, Rule, Status, ThreadOf, Trigger,
    delivery::RuleContent,
};

use paging::Receiver;
pub use paging::Unanswered;

/// What a step causes.
#[derive(Debug, Default, PartialEq)]
pub struct Notices {
    /// The deliveries to store together with the occurrence.
    pub deliveries: Vec<Delivery>,
    /// Rules whose `event` destinations the loop guard stopped.
    pub stopped: Vec<Name>,
    /// What there is to tell with the group of [`StepKind::NotifyGroup`]; none when nothing.
    pub member: Option<MemberNotice>,
    /// Deliveries of responses that are to report on a group, each with the group.
    pub of_groups: Vec<(RecordId, RecordId)>,
    /// Responses of which all rounds are over now, and those of which that was so.
    pub unanswered: Vec<Unanswered>,
}

/// What a message about a group says of one of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberNotice {
    /// Its outcome.
    pub change: MemberChange,
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
    occurrence.move_last_notified();
    paging::take_back(occurrence, step.now_ms);
    let evaluation = Evaluation {
        at_ms: step.now_ms,
        rules_ms: snapshot.newest_edit_ms(),
        by_event: step.kind == StepKind::Event,
    };
    flapping::note(occurrence, step, snapshot);
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
    // What reports only on an end is held back as well: no one was notified of a beginning.
    let inhibited = if occurrence.status == Status::Suppressed {
        Vec::new()
    } else {
        let past = step.past;
        inhibitions.held_by(
            occurrence,
            past.causes(),
            |it| past.is_marked(it),
            step.now_ms,
        )
    };
    let mut notified = std::mem::take(&mut occurrence.notified);
    notified.retain(|it| !it.is_outdated(snapshot.rule(it.rule)));
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
    writer.settling(&notified);
    writer.respond(&mut notified);
    writer.forget_last_notified(&mut notified);
    let (notices, waiting) = (writer.notices, writer.waiting);
    let changes = waiting.finish(occurrence, step, snapshot);
    if !step.kind.is_look() || changes || !notices.deliveries.is_empty() {
        occurrence.evaluation = Some(evaluation);
    }
    occurrence.notified = notified;
    paging::limit_acknowledgement(occurrence, step.now_ms);
    flapping::end(occurrence, snapshot, step.now_ms);
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
    /// Whether they are notified of what is open again.
    is_opening: bool,
}

impl Writer<'_> {
    /// Notifies those who were notified before of what changed, and again of what is open again;
    /// answers the rules that did.
    fn updates(&mut self, notified: &mut [Notified]) -> BTreeSet<RecordId> {
        let mut updated = BTreeSet::new();
        let mut replaced = self.replaced(notified);
        for entry in notified.iter_mut() {
            let rule = self.snapshot.rule(entry.rule);
            let Some(news) = self.news(entry, rule) else {
                continue;
            };
            let clear = news.clear;
            let is_opening = news.is_opening;
            let group = if is_opening {
                rule.and_then(|it| self.joining(it))
            } else {
                self.telling(entry, self.occurrence.status == Status::Closed)
            };
            let held_by = if news.is_owed {
                let flaps = self.flaps(rule);
                flaps.or(group).into_iter().collect()
            } else {
                let named = (entry.rule, &entry.rule_name);
                let kind = if is_opening {
                    SendKind::Opening
                } else {
                    SendKind::Update
                };
                self.held_by(named, kind, group.as_ref())
            };
            if !held_by.is_empty() {
                let named = (entry.rule, &entry.rule_name);
                self.waiting.wait(named, is_opening, false, held_by);
                continue;
            }
            entry.last_notified = None;
            entry.cleared = self.occurrence.status == Status::Closed;
            if !clear {
                entry.last_ms = self.step.now_ms;
            }
            updated.insert(entry.rule);
            self.waiting.sent(entry.rule);
            let tells = self.tells(entry.rule);
            if let Some(group) = tells.filter(|_| is_opening || entry.group.is_some()) {
                let change = match (is_opening, entry.cleared) {
                    (true, _) => MemberChange::Joined,
                    (false, true) => MemberChange::Closed,
                    (false, false) => MemberChange::Changed,
                };
                entry.group = Some(group);
                if is_opening {
                    entry.shadow = rule.is_some_and(|it| it.shadow);
                }
                self.notices.member = Some(MemberNotice { change });
                continue;
            }
            if is_opening {
                entry.group = None;
                entry.thread = None;
                entry.shadow = rule.is_some_and(|it| it.shadow);
            }
            // Outstanding resolutions are sent, whatever happened to the rule since.
            let is_real = news.is_owed || !rule.is_some_and(|it| it.shadow);
            let end = sending_state(entry.shadow || !is_real, self.step.now_ms);
            let content = of_update(entry, rule, self.step.past);
            let in_force = (self.snapshot, self.step.past);
            let trigger = trigger_of_update(entry, rule, self.step.matches, in_force);
            let about = (entry.rule, &content, trigger.as_ref());
            let others = replaced.remove(&entry.rule).unwrap_or_default();
            self.update_receivers(entry, about, (clear, is_opening), end, &others);
        }
        updated
    }

    /// By deleted rule, the receivers that get the closing in the same thread by a later rule of its name: the rule
    /// was created again.
    fn replaced(&self, notified: &[Notified]) -> BTreeMap<RecordId, BTreeSet<Receiver>> {
        if self.occurrence.status != Status::Closed {
            return BTreeMap::new();
        }
        let of = |(at, entry): (usize, &Notified)| {
            let later = notified.iter().skip(at + 1).filter(|it| {
                let is_same = it.rule_name == entry.rule_name && it.thread == entry.thread;
                is_same && it.group.is_none() && !it.shadow && !it.cleared && self.closes(it)
            });
            let receivers = later.flat_map(paging::receivers).collect();
            (entry.rule, receivers)
        };
        let deleted = notified.iter().enumerate();
        let deleted = deleted.filter(|(_, it)| self.snapshot.rule(it.rule).is_none());
        deleted.map(of).collect()
    }

    /// Whether receivers are notified of the end of what a rule notified of.
    fn closes(&self, entry: &Notified) -> bool {
        let rule = self.snapshot.rule(entry.rule);
        let last = rule.or_else(|| self.step.past.deleted(entry.rule));
        last.map_or(entry.send_updates, |it| it.send_updates)
    }

    /// What receivers that a rule notified before are to be notified of in this step, or of what
    /// waits since earlier ones.
    fn news(&self, entry: &Notified, rule: Option<&Rule>) -> Option<News> {
        let transition = self.step.transition;
        match self.occurrence.status {
            Status::Closed => {
                // A closing waits until the event settles, for the next message of its group, and for
                // nothing else.
                let waited = self.waiting.before(entry.rule);
                let waits = waited.is_some_and(|it| {
                    !it.is_opening && (it.group_hold().is_some() || it.is_flapping())
                });
                let owed = (transition.closed || waits) && !entry.cleared;
                (owed && self.closes(entry)).then_some(News {
                    clear: true,
                    is_owed: true,
                    is_opening: false,
                })
            }
            Status::Open if entry.cleared => Some(News {
                clear: false,
                is_owed: false,
                is_opening: true,
            }),
            Status::Open => {
                let is_other = entry.last_notified.is_some();
                let has_settled = has_settled(self.occurrence, rule, self.step.now_ms);
                ((is_other || has_settled) && follows(rule)).then_some(News {
                    clear: true,
                    is_owed: false,
                    is_opening: false,
                })
            }
            Status::Suppressed => None,
        }
    }

    /// Notifies those who know of a flapping event when it has settled.
    fn settling(&mut self, notified: &[Notified]) {
        if self.occurrence.flapping.is_empty() || self.occurrence.status != Status::Open {
            return;
        }
        for entry in notified.iter().filter(|it| !it.cleared) {
            let rule = self.snapshot.rule(entry.rule).filter(|it| it.send_updates);
            if let Some(flaps) = self.flaps(rule) {
                let named = (entry.rule, &entry.rule_name);
                self.waiting.wait(named, false, false, vec![flaps]);
            }
        }
    }

    /// Forgets which state was last notified where no update follows any more.
    fn forget_last_notified(&self, notified: &mut [Notified]) {
        for entry in notified {
            let is_suppressed = self.occurrence.status == Status::Suppressed;
            if !is_suppressed && !self.waiting.holds_update(entry.rule) {
                entry.last_notified = None;
            }
        }
    }

    /// What holds back what a rule is to tell while the event flaps.
    fn flaps(&self, rule: Option<&Rule>) -> Option<HeldBy> {
        flaps(self.occurrence, rule, self.step.now_ms)
    }

    /// The group of a rule that a message is being made about.
    fn tells(&self, rule: RecordId) -> Option<RecordId> {
        match self.step.kind {
            StepKind::NotifyGroup { rule: of, group } if of == rule => Some(group),
            _ => None,
        }
    }

    /// What holds back what a rule is to send.
    fn held_by(
        &self,
        (rule, rule_name): (RecordId, &Name),
        kind: SendKind,
        group: Option<&HeldBy>,
    ) -> Vec<HeldBy> {
        if self.step.kind == StepKind::Release(rule) {
            return Vec::new();
        }
        let named = (rule_name, self.snapshot.rule(rule));
        let what = (kind, self.waiting.before(rule));
        let now_ms = self.step.now_ms;
        let sending = Sending {
            covering: self.silences,
            inhibited: self.inhibited,
            group,
            ..Sending::new(named, what, self.occurrence, self.snapshot, now_ms)
        };
        sending.held_by()
    }

    /// Notifies the destinations of rules that match: for the first time, or again when that is due.
    fn openings(&mut self, notified: &mut Vec<Notified>, updated: &BTreeSet<RecordId>) {
        // A change after its closing, by an operator, is not a match.
        let transition = self.step.transition;
        let was_closed = transition.from == Some(Status::Closed);
        let is_closed = self.occurrence.status == Status::Closed;
        if self.step.kind == StepKind::Change && was_closed && is_closed {
            return;
        }
        for found in self.step.matches {
            let waited = self.waiting.before(found.rule.id);
            if !self.step.kind.is_look() || waited.is_some() {
                self.opening(found, notified, updated);
            }
        }
    }

    /// Notifies the destinations of one of them.
    fn opening(
        &mut self,
        found: &Match<'_>,
        notified: &mut Vec<Notified>,
        updated: &BTreeSet<RecordId>,
    ) {
        let now_ms = self.step.now_ms;
        let clear = self.occurrence.status == Status::Closed;
        let rule = found.rule;
        let waited = self.waiting.before(rule.id);
        let known = notified.iter().position(|entry| entry.rule == rule.id);
        let with_group = known.and_then(|at| self.as_group_notified(&notified[at]));
        let case = Case {
            rule,
            occurrence: self.occurrence,
            notified: with_group.as_ref().or(known.map(|at| &notified[at])),
            by_event: self.step.kind == StepKind::Event,
            snapshot: self.snapshot,
            repeat_waits: waited.is_some_and(|it| it.repeat_due),
            now_ms,
        };
        if let Verdict::Held { by, alone, .. } = case.verdict() {
            if alone && by.is_loop_guard() {
                self.notices.stopped.push(rule.name.clone());
            }
            return;
        }
        if let Some(at) = known.filter(|_| updated.contains(&rule.id)) {
            notified[at].last_ms = now_ms;
            return;
        }
        let place = self.place(rule, known.map(|at| &notified[at]));
        let (named, group) = ((rule.id, &rule.name), place.group.as_ref());
        let kind = match known {
            Some(_) => SendKind::Repeat,
            None => SendKind::Opening,
        };
        let held_by = self.held_by(named, kind, group);
        if !held_by.is_empty() {
            if clear {
                self.waiting.spare(rule.id, held_by);
            } else if known.is_some() && !(place.joins && rule.group.is_some()) {
                self.waiting.wait(named, false, true, held_by);
            } else {
                self.waiting.wait(named, true, false, held_by);
            }
            return;
        }
        self.waiting.sent(rule.id);
        let destinations: Vec<_> = case.destinations().collect();
        let tells = self
            .tells(rule.id)
            .filter(|_| !clear && place.is_in_group());
        let sent = if tells.is_some() {
            let change = place.change();
            self.notices.member = Some(MemberNotice { change });
            let all = destinations.iter();
            all.map(|it| (it.id, it.name.clone())).collect()
        } else {
            let thread = known.and_then(|at| notified[at].thread);
            self.send_opening(found, &destinations, (clear, thread))
        };
        let entry = known.map(|at| &mut notified[at]);
        if let Some(new) = keep(entry, found, sent, (now_ms, clear)) {
            notified.push(new);
        }
        let entry = notified.iter_mut().find(|it| it.rule == rule.id);
        if let (Some(entry), Some(_)) = (entry, tells) {
            entry.group = tells;
        }
    }

    /// Writes the deliveries of an opening; answers who is notified.
    fn send_opening(
        &mut self,
        found: &Match<'_>,
        destinations: &[&Destination],
        (clear, thread): (bool, Option<ThreadOf>),
    ) -> Vec<(RecordId, Name)> {
        let rule = found.rule;
        let content = rule_content(rule);
        let mut sent = Vec::with_capacity(destinations.len());
        for destination in destinations {
            if would_pass_again(self.occurrence, rule.id, destination) {
                self.notices.stopped.push(rule.name.clone());
                continue;
            }
            let end = sending_state(rule.shadow, self.step.now_ms);
            let about = (rule.id, &content, Some(found.trigger));
            self.send(about, (destination, None), (clear, thread), end);
            sent.push((destination.id, destination.name.clone()));
        }
        sent
    }

    /// Writes one delivery; answers which.
    fn send(
        &mut self,
        (rule, content, trigger): (RecordId, &RuleContent, Option<&Trigger>),
        (destination, contact): (&Destination, Option<PagedContact>),
        (clear, thread): (bool, Option<ThreadOf>),
        (state, end_ms): (DeliveryState, Option<i64>),
    ) -> RecordId {
        let id = (self.new_id)();
        let shown = self
            .shown
            .get_or_insert_with(|| as_notified(self.occurrence));
        let of_rule = self.snapshot.rule(rule);
        shown.flapping = flapping::reported(self.occurrence, of_rule, self.step.now_ms);
        self.notices.deliveries.push(Delivery {
            rule: Some(rule),
            event: Some(self.occurrence.event),
            state,
            end_ms,
            ..Delivery::new(
                id,
                (destination.id, destination.name.as_str().into()),
                Content {
                    clear,
                    occurrence: shown.clone(),
                    rule: content.clone(),
                    trigger: trigger.cloned(),
                    destination_kind: destination.kind.clone(),
                    template_language: destination.template_language,
                    group: None,
                    thread,
                    digest: None,
                    contact,
                },
                self.step.now_ms,
            )
        });
        id
    }
}

/// Whether a rule notifies of changes.
fn follows(rule: Option<&Rule>) -> bool {
    rule.is_some_and(|it| it.enabled && it.send_updates)
}

/// How a delivery begins, and when it ended: what is only recorded ends immediately.
pub fn sending_state(is_shadow: bool, now_ms: i64) -> (DeliveryState, Option<i64>) {
    if is_shadow {
        (DeliveryState::Shadowed, Some(now_ms))
    } else {
        (DeliveryState::Pending { due_ms: now_ms }, None)
    }
}

/// An occurrence as messages carry it.
pub fn as_notified(occurrence: &Occurrence) -> Occurrence {
    Occurrence {
        history: Vec::new(),
        notified: Vec::new(),
        earlier: Vec::new(),
        causes: Vec::new(),
        covered_by: Vec::new(),
        pending: Vec::new(),
        hold_changes: Vec::new(),
        expire_ms: None,
        reports: crate::domain::Reports::default(),
        flapping: Vec::new(),
        ..occurrence.clone()
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
            group: None,
            shadow: rule.shadow,
            thread: None,
            response: None,
            last_notified: None,
        });
    };
    if rule.shadow && !entry.shadow {
        // The closing is outstanding for receivers that were notified before, and only for them.
        entry.last_ms = now_ms;
        return None;
    }
    entry.last_notified = None;
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
