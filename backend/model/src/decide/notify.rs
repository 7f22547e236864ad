//! Decides the notifications of a step, and records them in the occurrence.

mod groups;
mod paging;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Case, LoadedSilence, Match, OutgoingNotification, SendKind, Snapshot, Step, StepKind, Verdict,
    condition::would_pass_again,
    content::{rule_content, update_content, update_trigger},
    flapping::{self, flapping_hold, has_settled},
    hold::destination_holds,
    silences::covering_silences,
    waiting::HeldNotifications,
};
use crate::domain::{
    Content, Delivery, DeliveryState, Destination, Evaluation, Field, HeldBy, HistoryEntry,
    MemberChange, Name, Notified, Occurrence, Opening, PagedContact, RecordId, Rule, Severity,
    Status, ThreadOrigin, Trigger,
    delivery::{ReportedState, RuleContent},
};

use paging::Receiver;
pub use paging::UnansweredNotice;
pub(super) use paging::withdraw_acknowledgement;

#[derive(Debug, Default, PartialEq)]
pub struct Notices {
    pub deliveries: Vec<Delivery>,
    /// Rules whose `event` destinations were stopped by the loop guard.
    pub stopped: Vec<Name>,
    /// The change to report with the group of [`StepKind::NotifyGroup`], if any.
    pub member: Option<MemberNotice>,
    /// Deliveries of group responses whose content still lacks the group, each with the group.
    pub of_groups: Vec<(RecordId, RecordId)>,
    /// Notices about responses that became unanswered after all rounds, or are no longer
    /// unanswered.
    pub unanswered: Vec<UnansweredNotice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberNotice {
    pub change: MemberChange,
}

/// Decides the notifications of a step, and records them and all holds in the occurrence.
///
/// `new_id` generates the identities of the deliveries.
pub fn notify(
    occurrence: &mut Occurrence,
    step: &Step<'_>,
    snapshot: &Snapshot,
    new_id: &mut dyn FnMut() -> RecordId,
) -> Notices {
    occurrence.move_last_notified();
    paging::withdraw_exceeded_acknowledgement(occurrence, step, snapshot);
    let evaluation = Evaluation {
        at_ms: step.now_ms,
        rules_ms: snapshot.newest_edit_ms(),
        by_event: step.kind == StepKind::Event,
    };
    flapping::record_change(occurrence, step, snapshot);
    let silences = snapshot.silences().find_matching(occurrence, step.now_ms);
    occurrence.covered_by = covering_silences(&silences, occurrence, || {
        let matches = snapshot.matching_triggers(occurrence);
        matches.iter().map(|it| it.rule.name.clone()).collect()
    });
    let was_cause = !occurrence.causes.is_empty();
    let is_review = step.kind == StepKind::Check;
    let inhibitions = snapshot.inhibitions();
    occurrence.causes = inhibitions.cause_marks(occurrence, is_review, step.now_ms);
    if was_cause || !occurrence.causes.is_empty() {
        step.past.causes().record_decided(occurrence);
    }
    let is_nothing =
        step.matches.is_empty() && occurrence.notified.is_empty() && occurrence.pending.is_empty();
    if is_nothing {
        if !step.kind.is_review() {
            occurrence.evaluation = Some(evaluation);
        }
        return Notices::default();
    }
    // Messages that only report an end are inhibited as well, because the beginning was not
    // reported.
    let inhibited = if occurrence.status == Status::Suppressed {
        Vec::new()
    } else {
        let past = step.past;
        inhibitions.holds(
            occurrence,
            past.causes(),
            |it| past.is_inhibition_marked(it),
            step.now_ms,
        )
    };
    let mut notified = std::mem::take(&mut occurrence.notified);
    notified.retain(|it| !it.is_outdated(snapshot.rule(it.rule)));
    let mut writer = Writer {
        step,
        snapshot,
        waiting: HeldNotifications::new(occurrence, step),
        occurrence,
        silences: &silences,
        inhibited: &inhibited,
        left_out: BTreeMap::new(),
        shown: None,
        new_id,
        notices: Notices::default(),
    };
    let updated = writer.notify_updates(&mut notified);
    writer.notify_openings(&mut notified, &updated);
    writer.hold_until_settled(&notified);
    writer.notify_left_out(&mut notified);
    writer.respond(&mut notified);
    writer.forget_last_notified(&mut notified);
    let (notices, waiting) = (writer.notices, writer.waiting);
    let changes = waiting.finish(occurrence, step, snapshot);
    if !step.kind.is_review() || changes || !notices.deliveries.is_empty() {
        occurrence.evaluation = Some(evaluation);
    }
    occurrence.notified = notified;
    paging::limit_acknowledgement(occurrence, step.now_ms);
    flapping::end_flapping(occurrence, snapshot, step.now_ms);
    notices
}

struct Writer<'a> {
    step: &'a Step<'a>,
    snapshot: &'a Snapshot,
    occurrence: &'a Occurrence,
    silences: &'a [&'a LoadedSilence],
    inhibited: &'a [HeldBy],
    waiting: HeldNotifications,
    /// By rule, the destinations left out of its messages because a silence names them.
    left_out: BTreeMap<RecordId, BTreeSet<Name>>,
    shown: Option<Occurrence>,
    new_id: &'a mut dyn FnMut() -> RecordId,
    notices: Notices,
}

struct PendingChange {
    clear: bool,
    /// Whether the change is a due closing message, which is not held.
    is_due_closing: bool,
    is_opening: bool,
}

impl Writer<'_> {
    /// Notifies earlier receivers of changes and reopening. Returns the rules whose receivers were
    /// notified.
    fn notify_updates(&mut self, notified: &mut [Notified]) -> BTreeSet<RecordId> {
        let mut updated = BTreeSet::new();
        let mut replaced = self.replaced_receivers(notified);
        for entry in notified.iter_mut() {
            let rule = self.snapshot.rule(entry.rule);
            let Some(pending) = self.pending_change(entry, rule) else {
                continue;
            };
            let (clear, is_opening) = (pending.clear, pending.is_opening);
            let group = if is_opening {
                rule.and_then(|it| self.join_hold(it))
            } else {
                self.update_hold(entry, self.occurrence.status == Status::Closed)
            };
            let held_by = if pending.is_due_closing {
                self.flapping_hold(rule).or(group).into_iter().collect()
            } else {
                let named = (entry.rule, &entry.rule_name);
                let kind = if is_opening {
                    SendKind::Opening
                } else {
                    SendKind::Update
                };
                self.holds(named, kind, group.as_ref())
            };
            if !held_by.is_empty() {
                let named = (entry.rule, &entry.rule_name);
                self.waiting.add_hold(named, is_opening, false, held_by);
                continue;
            }
            let previous = self.previous_state(entry);
            entry.last_notified = None;
            entry.cleared = self.occurrence.status == Status::Closed;
            if !clear {
                entry.last_ms = self.step.now_ms;
            }
            updated.insert(entry.rule);
            self.waiting.record_sent(entry.rule);
            let current = self.current_group(entry.rule);
            if let Some(group) = current.filter(|_| is_opening || entry.group.is_some()) {
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
            if !(is_opening || pending.is_due_closing || sends_updates(rule)) {
                continue;
            }
            if is_opening {
                entry.group = None;
                entry.thread = None;
                entry.shadow = rule.is_some_and(|it| it.shadow);
            }
            // Due closing messages are sent regardless of changes to the rule.
            let is_real = pending.is_due_closing || !rule.is_some_and(|it| it.shadow);
            let end = sending_state(entry.shadow || !is_real, self.step.now_ms);
            let content = update_content(entry, rule, self.step.past);
            let in_force = (self.snapshot, self.step.past);
            let trigger = update_trigger(entry, rule, self.step.matches, in_force);
            let about = (entry.rule, &content, trigger.as_ref());
            let others = replaced.remove(&entry.rule).unwrap_or_default();
            let what = (clear, is_opening, previous);
            self.update_receivers(entry, about, what, end, &others);
        }
        updated
    }

    /// Returns, by deleted rule, the receivers that already get the closing message in the same
    /// thread from a later rule with the same name.
    fn replaced_receivers(&self, notified: &[Notified]) -> BTreeMap<RecordId, BTreeSet<Receiver>> {
        if self.occurrence.status != Status::Closed {
            return BTreeMap::new();
        }
        let of = |(at, entry): (usize, &Notified)| {
            let later = notified.iter().skip(at + 1).filter(|it| {
                let is_same = it.rule_name == entry.rule_name && it.thread == entry.thread;
                is_same && it.group.is_none() && !it.shadow && !it.cleared && self.sends_closing(it)
            });
            let receivers = later.flat_map(paging::receivers).collect();
            (entry.rule, receivers)
        };
        let deleted = notified.iter().enumerate();
        let deleted = deleted.filter(|(_, it)| self.snapshot.rule(it.rule).is_none());
        deleted.map(of).collect()
    }

    fn sends_closing(&self, entry: &Notified) -> bool {
        let rule = self.snapshot.rule(entry.rule);
        let last = rule.or_else(|| self.step.past.deleted_rule(entry.rule));
        last.map_or(entry.send_updates, |it| it.send_updates)
    }

    /// Returns the change to report to the earlier receivers of a rule, including changes held by
    /// earlier steps.
    fn pending_change(&self, entry: &Notified, rule: Option<&Rule>) -> Option<PendingChange> {
        let transition = self.step.transition;
        match self.occurrence.status {
            Status::Closed => {
                // A closing message only waits for flapping to settle or for the next group
                // message.
                let waited = self.waiting.previous_hold(entry.rule);
                let waits = waited.is_some_and(|it| {
                    !it.is_opening && (it.group_hold().is_some() || it.is_flapping())
                });
                let owed = (transition.closed || waits) && !entry.cleared;
                (owed && self.sends_closing(entry)).then_some(PendingChange {
                    clear: true,
                    is_due_closing: true,
                    is_opening: false,
                })
            }
            Status::Open if entry.cleared => Some(PendingChange {
                clear: false,
                is_due_closing: false,
                is_opening: true,
            }),
            Status::Open => {
                let is_other = entry.last_notified.is_some();
                let has_settled = has_settled(self.occurrence, rule, self.step.now_ms);
                let is_notified = (is_other || has_settled) && sends_updates(rule);
                (is_notified || self.escalates_group(entry)).then_some(PendingChange {
                    clear: true,
                    is_due_closing: false,
                    is_opening: false,
                })
            }
            Status::Suppressed => None,
        }
    }

    /// Whether a member became more severe. This must be reported to the response of its group even
    /// if the rule sends no updates.
    fn escalates_group(&self, entry: &Notified) -> bool {
        let severity = self.occurrence.severity;
        let has_risen = entry.last_notified.is_some_and(|it| it.severity < severity);
        let is_escalated = paging::rule_and_policy_in_force(entry, self.snapshot)
            .1
            .is_some();
        has_risen && is_escalated && self.active_group(entry).is_some()
    }

    fn hold_until_settled(&mut self, notified: &[Notified]) {
        if self.occurrence.flapping.is_empty() || self.occurrence.status != Status::Open {
            return;
        }
        for entry in notified.iter().filter(|it| !it.cleared) {
            let rule = self.snapshot.rule(entry.rule).filter(|it| it.send_updates);
            if let Some(flaps) = self.flapping_hold(rule) {
                let named = (entry.rule, &entry.rule_name);
                self.waiting.add_hold(named, false, false, vec![flaps]);
            }
        }
    }

    /// Returns the holds of silences that name the destination.
    fn destination_holds(
        &self,
        (rule, rule_name): (RecordId, &Name),
        destination: &Name,
    ) -> Vec<HeldBy> {
        if self.step.kind == StepKind::Release(rule) {
            return Vec::new();
        }
        destination_holds(self.silences, (rule_name, destination), self.step.now_ms)
    }

    /// Whether a silence that names the destination holds the rule's message to it. Closings are
    /// not held.
    fn leave_out(&mut self, rule: (RecordId, &Name), destination: &Name) -> bool {
        let is_open = self.occurrence.status == Status::Open;
        let is_held = is_open && !self.destination_holds(rule, destination).is_empty();
        if is_held {
            let left_out = self.left_out.entry(rule.0).or_default();
            left_out.insert(destination.clone());
        }
        is_held
    }

    /// Notifies destinations left out of earlier messages, once no silence names them.
    fn notify_left_out(&mut self, notified: &mut [Notified]) {
        let mut all = std::mem::take(&mut self.left_out);
        for pending in &self.occurrence.pending {
            if !pending.left_out.is_empty() {
                let names = all.entry(pending.rule).or_default();
                names.extend(pending.left_out.iter().cloned());
            }
        }
        if self.occurrence.status != Status::Open {
            return;
        }
        for (rule, names) in all {
            let found = self.step.matches.iter().find(|it| it.rule.id == rule);
            let entry = notified
                .iter_mut()
                .find(|it| it.rule == rule && !it.cleared);
            let (Some(found), Some(entry)) = (found, entry) else {
                continue;
            };
            let named = (rule, &found.rule.name);
            let mut held_by = self.holds(named, SendKind::Update, None);
            let is_held = !held_by.is_empty();
            let (mut due, mut left_out) = (Vec::new(), Vec::new());
            for name in names {
                let Some(destination) = self.snapshot.destination_by_name(&name) else {
                    continue;
                };
                let is_receiver = found.rule.destination_names.contains(&name)
                    || entry.destinations.iter().any(|it| it.0 == destination.id);
                let is_sent = self.notices.deliveries.iter().any(|it| {
                    it.rule == Some(rule)
                        && it.destination == destination.id
                        && it.content.contact.is_none()
                });
                if is_sent {
                    continue;
                }
                let own = self.destination_holds(named, &name);
                if is_receiver && own.is_empty() && !is_held {
                    due.push(destination);
                } else if is_receiver {
                    let new = own
                        .into_iter()
                        .filter(|it| held_by.iter().all(|other| other.id != it.id));
                    let new: Vec<_> = new.collect();
                    held_by.extend(new);
                    left_out.push(name);
                }
            }
            for destination in due {
                let mut known = entry.destinations.iter();
                let is_known = known.any(|it| it.0 == destination.id);
                let previous = is_known.then(|| self.previous_state(entry));
                let what = (false, entry.thread, previous);
                let sent = self.send_opening(found, &[destination], what);
                entry
                    .destinations
                    .extend(sent.into_iter().filter(|_| !is_known));
                self.waiting.record_sent(rule);
            }
            if !left_out.is_empty() {
                self.waiting.hold_left_out(named, held_by, left_out);
            }
        }
    }

    /// Clears the last notified state if no update will follow.
    fn forget_last_notified(&self, notified: &mut [Notified]) {
        for entry in notified {
            let is_suppressed = self.occurrence.status == Status::Suppressed;
            if !is_suppressed && !self.waiting.holds_update(entry.rule) {
                entry.last_notified = None;
            }
        }
    }

    fn previous_state(&self, entry: &Notified) -> ReportedState {
        let known = entry.last_notified.map(|it| it.severity);
        // `last_notified` is kept only for rules that send updates. For the others, the history
        // contains the previous severity.
        let is_change = |it: &&HistoryEntry| {
            it.field == Field::Severity && !it.from.is_empty() && it.at_ms > entry.last_ms
        };
        let changed = || self.occurrence.history.iter().find(is_change);
        let repeated = (!entry.send_updates).then(changed).flatten();
        let repeated =
            repeated.and_then(|it| Severity::ALL.into_iter().find(|of| of.as_str() == it.from));
        ReportedState {
            severity: known.or(repeated).unwrap_or(self.occurrence.severity),
            status: if entry.cleared {
                Status::Closed
            } else {
                Status::Open
            },
        }
    }

    fn flapping_hold(&self, rule: Option<&Rule>) -> Option<HeldBy> {
        flapping_hold(self.occurrence, rule, self.step.now_ms)
    }

    fn current_group(&self, rule: RecordId) -> Option<RecordId> {
        match self.step.kind {
            StepKind::NotifyGroup { rule: of, group } if of == rule => Some(group),
            _ => None,
        }
    }

    fn holds(
        &self,
        (rule, rule_name): (RecordId, &Name),
        kind: SendKind,
        group: Option<&HeldBy>,
    ) -> Vec<HeldBy> {
        if self.step.kind == StepKind::Release(rule) {
            return Vec::new();
        }
        let named = (rule_name, self.snapshot.rule(rule));
        let what = (kind, self.waiting.previous_hold(rule));
        let now_ms = self.step.now_ms;
        let sending = OutgoingNotification {
            covering: self.silences,
            inhibited: self.inhibited,
            group,
            ..OutgoingNotification::new(named, what, self.occurrence, self.snapshot, now_ms)
        };
        sending.holds()
    }

    fn notify_openings(&mut self, notified: &mut Vec<Notified>, updated: &BTreeSet<RecordId>) {
        // A change by an operator after the close is not a match.
        let transition = self.step.transition;
        let was_closed = transition.from == Some(Status::Closed);
        let is_closed = self.occurrence.status == Status::Closed;
        if self.step.kind == StepKind::Change && was_closed && is_closed {
            return;
        }
        for found in self.step.matches {
            let waited = self.waiting.previous_hold(found.rule.id);
            if !self.step.kind.is_review() || waited.is_some() {
                self.notify_opening(found, notified, updated);
            }
        }
    }

    fn notify_opening(
        &mut self,
        found: &Match<'_>,
        notified: &mut Vec<Notified>,
        updated: &BTreeSet<RecordId>,
    ) {
        let now_ms = self.step.now_ms;
        let clear = self.occurrence.status == Status::Closed;
        let rule = found.rule;
        let waited = self.waiting.previous_hold(rule.id);
        let known = notified.iter().position(|entry| entry.rule == rule.id);
        let with_group = known.and_then(|at| self.with_group_notification(&notified[at]));
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
        let place = self.group_relation(rule, known.map(|at| &notified[at]));
        let (named, group) = ((rule.id, &rule.name), place.group.as_ref());
        let kind = match known {
            Some(_) => SendKind::Repeat,
            None => SendKind::Opening,
        };
        let held_by = self.holds(named, kind, group);
        if !held_by.is_empty() {
            if clear {
                self.waiting.hold_obsolete(rule.id, held_by);
            } else if known.is_some() && !(place.joins && rule.group.is_some()) {
                self.waiting.add_hold(named, false, true, held_by);
            } else {
                self.waiting.add_hold(named, true, false, held_by);
            }
            return;
        }
        self.waiting.record_sent(rule.id);
        let destinations: Vec<_> = case.destinations().collect();
        let current = self
            .current_group(rule.id)
            .filter(|_| !clear && place.is_in_group());
        let sent = if current.is_some() {
            let change = place.member_change();
            self.notices.member = Some(MemberNotice { change });
            let all = destinations.iter();
            all.map(|it| (it.id, it.name.clone())).collect()
        } else {
            let thread = known.and_then(|at| notified[at].thread);
            let previous = known.map(|at| self.previous_state(&notified[at]));
            self.send_opening(found, &destinations, (clear, thread, previous))
        };
        let entry = known.map(|at| &mut notified[at]);
        if let Some(new) = record_notification(entry, found, sent, (now_ms, clear)) {
            notified.push(new);
        }
        let entry = notified.iter_mut().find(|it| it.rule == rule.id);
        if let (Some(entry), Some(_)) = (entry, current) {
            entry.group = current;
        }
    }

    /// Creates the deliveries of an opening message. Returns the receivers.
    fn send_opening(
        &mut self,
        found: &Match<'_>,
        destinations: &[&Destination],
        what: (bool, Option<ThreadOrigin>, Option<ReportedState>),
    ) -> Vec<(RecordId, Name)> {
        let rule = found.rule;
        let content = rule_content(rule);
        let mut sent = Vec::with_capacity(destinations.len());
        for destination in destinations {
            if would_pass_again(self.occurrence, rule.id, destination) {
                self.notices.stopped.push(rule.name.clone());
                continue;
            }
            if self.leave_out((rule.id, &rule.name), &destination.name) {
                continue;
            }
            let end = sending_state(rule.shadow, self.step.now_ms);
            let about = (rule.id, &content, Some(found.trigger));
            self.create_delivery(about, (destination, None), what, end);
            sent.push((destination.id, destination.name.clone()));
        }
        sent
    }

    fn create_delivery(
        &mut self,
        (rule, content, trigger): (RecordId, &RuleContent, Option<&Trigger>),
        (destination, contact): (&Destination, Option<PagedContact>),
        (clear, thread, previous): (bool, Option<ThreadOrigin>, Option<ReportedState>),
        (state, end_ms): (DeliveryState, Option<i64>),
    ) -> RecordId {
        let id = (self.new_id)();
        let shown = self
            .shown
            .get_or_insert_with(|| notified_occurrence(self.occurrence));
        let of_rule = self.snapshot.rule(rule);
        shown.flapping = flapping::flapping_in_message(self.occurrence, of_rule, self.step.now_ms);
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
                    previous,
                },
                self.step.now_ms,
            )
        });
        id
    }
}

pub(super) fn sends_updates(rule: Option<&Rule>) -> bool {
    rule.is_some_and(|it| it.enabled && it.send_updates)
}

/// Returns the initial state of a delivery, and its end if the delivery is only recorded.
pub fn sending_state(is_shadow: bool, now_ms: i64) -> (DeliveryState, Option<i64>) {
    if is_shadow {
        (DeliveryState::Shadowed, Some(now_ms))
    } else {
        (DeliveryState::Pending { due_ms: now_ms }, None)
    }
}

pub fn notified_occurrence(occurrence: &Occurrence) -> Occurrence {
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
        informed: Vec::new(),
        enriched: Vec::new(),
        ..occurrence.clone()
    }
}

/// Records that a rule notified these destinations. Returns the entry if it is new.
fn record_notification(
    known: Option<&mut Notified>,
    found: &Match<'_>,
    sent: Vec<(RecordId, Name)>,
    (now_ms, clear): (i64, bool),
) -> Option<Notified> {
    let rule = found.rule;
    // A message about a closed occurrence is also its closing message, if the rule sends closing
    // messages.
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
        // A shadow rule notifies no one, so no closing message becomes due for its receivers.
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
