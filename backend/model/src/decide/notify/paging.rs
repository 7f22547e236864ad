//! Escalation: receivers that are notified in addition to the rule's destinations, until someone
//! acknowledges.

use std::collections::BTreeSet;

use super::Writer;
use crate::{
    decide::{
        AdvanceContext, PageTarget, SendKind, Snapshot, Step, StepKind, advance,
        condition::would_pass_again, content::rule_content, sending_state, update_trigger,
    },
    domain::{
        DeliveryState, EscalationPolicy, Field, HeldBy, HistoryEntry, HoldKind, Name, Notified,
        Occurrence, OccurrenceId, PagedContact, PagedMethod, RecordId, Response, ResponseState,
        Rule, Status, Trigger,
        delivery::{ReportedState, RuleContent},
    },
    limits::HISTORY_MAX,
};

/// A notice that a response became unanswered after all rounds, or is no longer unanswered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnansweredNotice {
    pub rule: Name,
    pub policy: Name,
    pub occurrence: OccurrenceId,
    /// Whether the response is no longer unanswered by this policy.
    pub is_over: bool,
}

impl UnansweredNotice {
    /// Returns the notices about a response that was unanswered by the policy `before`, if any.
    pub fn from_change(
        before: Option<&Name>,
        response: &Response,
        (entry, occurrence): (&Notified, &Occurrence),
    ) -> Vec<Self> {
        let after = response.unanswered_policy();
        if before == after {
            return Vec::new();
        }
        let policies = before.map(|it| (it, true)).into_iter();
        let policies = policies.chain(after.map(|it| (it, false)));
        let notice = |(policy, is_over): (&Name, bool)| Self {
            rule: entry.rule_name.clone(),
            policy: policy.clone(),
            occurrence: occurrence.id(),
            is_over,
        };
        policies.map(notice).collect()
    }
}

pub(super) fn rule_and_policy_in_force<'a>(
    entry: &Notified,
    snapshot: &'a Snapshot,
) -> (Option<&'a Rule>, Option<&'a EscalationPolicy>) {
    let rule = snapshot.rule(entry.rule);
    let rule = rule.filter(|it| it.enabled && !it.shadow);
    let policy = rule.and_then(|it| {
        let policies = &snapshot.responders().policies;
        policies.get(it.escalation_policy.as_ref()?)
    });
    (rule, policy.map(AsRef::as_ref))
}

/// Withdraws an acknowledgement that has expired, or that was given for a lower severity than the
/// occurrence has now.
pub(super) fn withdraw_exceeded_acknowledgement(
    occurrence: &mut Occurrence,
    step: &Step<'_>,
    snapshot: &Snapshot,
) {
    let severity = occurrence.severity;
    for entry in &mut occurrence.notified {
        // Responses of earlier versions recorded no severity.
        let before = entry.last_notified.map_or(severity, |it| it.severity);
        if let Some(response) = &mut entry.response {
            response.most_severe.get_or_insert(before);
        }
    }
    if !occurrence.acknowledged || occurrence.status == Status::Closed {
        occurrence.acknowledged_until_ms = None;
        // A closed occurrence stays acknowledged when it is reopened.
        occurrence.acknowledged_severity =
            (occurrence.acknowledged_severity).filter(|_| occurrence.acknowledged);
        return;
    }
    let until_ms = occurrence.acknowledged_until_ms;
    let is_expired = until_ms.is_some_and(|it| it <= step.now_ms);
    let is_exceeded = |entry: &Notified| {
        let response = entry.response.as_deref();
        let is_paused = |it: &&Response| it.state == ResponseState::Acknowledged;
        response
            .filter(is_paused)
            .is_some_and(|it| it.exceeds_acknowledged_severity(severity))
            && rule_and_policy_in_force(entry, snapshot).1.is_some()
    };
    let is_outdated = occurrence.status == Status::Open
        && occurrence.is_more_severe_than_acknowledged()
        && occurrence.notified.iter().any(is_exceeded);
    if is_expired || is_outdated {
        withdraw_acknowledgement(occurrence, step.now_ms);
    }
}

pub(in crate::decide) fn withdraw_acknowledgement(occurrence: &mut Occurrence, now_ms: i64) {
    let before = occurrence.notified_state();
    occurrence.acknowledged = false;
    occurrence.acknowledged_until_ms = None;
    occurrence.acknowledged_severity = None;
    occurrence.informed.clear();
    if occurrence.history.len() >= HISTORY_MAX {
        occurrence.history.remove(0);
    }
    occurrence.history.push(HistoryEntry {
        at_ms: now_ms,
        author: None,
        field: Field::Acknowledged,
        from: "true".into(),
        to: "false".into(),
    });
    occurrence.update_notified(before, false);
}

pub(super) fn limit_acknowledgement(occurrence: &mut Occurrence, now_ms: i64) {
    let is_open = occurrence.status != Status::Closed;
    if !occurrence.acknowledged || !is_open || occurrence.acknowledged_until_ms.is_some() {
        return;
    }
    let responses = occurrence
        .notified
        .iter()
        .filter_map(|it| it.response.as_ref());
    let acknowledged = responses.filter(|it| it.state == ResponseState::Acknowledged);
    let timeouts = acknowledged.map(|it| it.plan.ack_timeout_ms);
    let shortest = timeouts.filter(|it| *it > 0).min();
    occurrence.acknowledged_until_ms = shortest.map(|it| now_ms.saturating_add(it));
}

/// Holds a response. In a group, another member that is not held takes over immediately, if there
/// is one.
fn hold_response(entry: &Notified, response: &mut Response, holding: &[HeldBy], now_ms: i64) {
    let is_new = response.state != ResponseState::Held;
    if is_new || entry.group.is_none() {
        response.hold_steps(holding, now_ms);
    }
    if is_new && entry.group.is_some() {
        response.review_ms = Some(now_ms);
    }
}

pub(super) type Receiver = (RecordId, Option<PagedMethod>);

/// Returns the contacts notified by the response of a rule, each with its destination.
fn contacts(entry: &Notified) -> impl Iterator<Item = (RecordId, Option<PagedContact>)> {
    let paged = entry.response.iter().flat_map(|it| &it.paged);
    let paged = paged.filter(|it| it.contact.is_some());
    paged.map(|it| (it.destination.0, it.contact.clone()))
}

pub(super) fn receivers(entry: &Notified) -> impl Iterator<Item = Receiver> {
    let of_rule = entry.destinations.iter().map(|(id, _)| (*id, None));
    of_rule.chain(contacts(entry).map(|(id, contact)| (id, contact.map(|it| it.key()))))
}

impl Writer<'_> {
    pub(super) fn respond(&mut self, notified: &mut [Notified]) {
        let was_closed = self.step.transition.from == Some(Status::Closed);
        for entry in notified.iter_mut() {
            let (rule, policy) = rule_and_policy_in_force(entry, self.snapshot);
            let is_active = |it: &Response| it.state != ResponseState::Ended;
            if !entry.response.as_deref().is_some_and(is_active) {
                let is_new = self.waiting.was_sent(entry.rule)
                    && self.occurrence.status == Status::Open
                    && !self.occurrence.acknowledged
                    && !(entry.cleared || entry.shadow || entry.group.is_some());
                // An event that reports that no one responded under this policy is not escalated by it.
                let policy =
                    policy.filter(|it| !self.occurrence.reports_unanswered_policy(&it.name));
                let Some(policy) = policy.filter(|_| is_new) else {
                    continue;
                };
                let mut new = Response::new((self.new_id)(), policy, self.step.now_ms);
                // Receivers of a response that ended before the occurrence still get the closing
                // message.
                let before = entry.response.take().filter(|_| !was_closed);
                new.paged = before.map_or_else(Vec::new, |it| it.into_earlier_receivers());
                entry.response = Some(Box::new(new));
            }
            let Some(mut response) = entry.response.take() else {
                continue;
            };
            let before = response.unanswered_policy().cloned();
            self.advance_response(entry, &mut response, (rule, policy));
            let said =
                UnansweredNotice::from_change(before.as_ref(), &response, (entry, self.occurrence));
            self.notices.unanswered.extend(said);
            entry.response = Some(response);
        }
    }

    fn advance_response(
        &mut self,
        entry: &mut Notified,
        response: &mut Response,
        (rule, policy): (Option<&Rule>, Option<&EscalationPolicy>),
    ) {
        let now_ms = self.step.now_ms;
        let is_over = entry.cleared || self.occurrence.status == Status::Closed;
        let acknowledged = self.occurrence.acknowledged;
        let (Some(rule), Some(policy)) = (rule, policy) else {
            let is_moving = entry.group.is_some() && is_over;
            if self.snapshot.rule(entry.rule).is_none() || is_over && !is_moving {
                return response.end_steps(now_ms);
            }
            response.stop_steps(now_ms);
            response.review_ms = is_moving.then_some(now_ms);
            return;
        };
        if response.state == ResponseState::Stopped && !is_over {
            response.resume(policy, now_ms);
        }
        if entry.group.is_some() && response.should_move_to_group(is_over, acknowledged) {
            // The next evaluation decides whether another member carries the response.
            if is_over || acknowledged {
                response.review_ms = Some(now_ms);
                return;
            }
        } else if is_over {
            return response.end_steps(now_ms);
        }
        if self.occurrence.acknowledged {
            response.acknowledge(self.occurrence.severity);
            return;
        }
        if response.state == ResponseState::Acknowledged {
            response.restart(policy, now_ms);
        }
        if self.occurrence.status == Status::Suppressed {
            hold_response(entry, response, &[], now_ms);
            // Except in a group, the response is evaluated only once the occurrence is open again.
            response.review_ms = response.review_ms.filter(|_| entry.group.is_some());
            return;
        }
        let mut holding = self.holds((rule.id, &rule.name), SendKind::Repeat, None);
        holding.retain(|it| matches!(it.kind, HoldKind::Silence | HoldKind::Inhibition));
        if !holding.is_empty() {
            return hold_response(entry, response, &holding, now_ms);
        }
        response.held_by.clear();
        response.state = ResponseState::Active;
        if response.exceeds_acknowledged_severity(self.occurrence.severity) {
            response.restart(policy, now_ms);
        }
        // The steps of a group's response run only in a check, which has read the group's members.
        if entry.group.is_some() && self.step.kind != StepKind::Check {
            return response.schedule_evaluation();
        }
        let context = AdvanceContext {
            responders: self.snapshot.responders(),
            severity: self.occurrence.severity,
            failed: self.step.past.failed_deliveries(),
            now_ms,
        };
        for page in advance(response, &context).pages {
            self.page(entry, response, rule, page);
        }
        response.schedule_evaluation();
    }

    fn page(
        &mut self,
        entry: &mut Notified,
        response: &mut Response,
        rule: &Rule,
        page: PageTarget,
    ) {
        let Some(destination) = self.snapshot.destination_by_name(&page.destination) else {
            return;
        };
        if would_pass_again(self.occurrence, rule.id, destination) {
            self.notices.stopped.push(rule.name.clone());
            return;
        }
        let named = (rule.id, &rule.name);
        if !self.destination_holds(named, &destination.name).is_empty() {
            return;
        }
        if !response.has_room_for(page.contact.as_ref(), destination.id) {
            return;
        }
        let content = rule_content(rule);
        let in_force = (self.snapshot, self.step.past);
        let trigger = update_trigger(entry, Some(rule), self.step.matches, in_force);
        let end = sending_state(false, self.step.now_ms);
        let about = (rule.id, &content, trigger.as_ref());
        let to = (destination, page.contact.clone());
        let delivery = self.create_delivery(about, to, (false, entry.thread, None), end);
        let destination = (destination.id, destination.name.clone());
        if page.contact.is_none() && !entry.destinations.contains(&destination) {
            entry.destinations.push(destination.clone());
        }
        if let Some(group) = entry.group {
            self.notices.of_groups.push((delivery, group));
        }
        response.record_paged(page.into_paged(destination.0, delivery, self.step.now_ms));
    }

    /// Sends an update to all earlier receivers: the destinations of the rule and, unless the
    /// occurrence was reopened, the contacts of its response. Destinations from which the change
    /// came are skipped.
    pub(super) fn update_receivers(
        &mut self,
        entry: &Notified,
        about: (RecordId, &RuleContent, Option<&Trigger>),
        (clear, is_opening, previous): (bool, bool, ReportedState),
        end: (DeliveryState, Option<i64>),
        others: &BTreeSet<Receiver>,
    ) {
        let of_rule = entry.destinations.iter().map(|(id, _)| (*id, None));
        let contacts = contacts(entry).filter(|_| !is_opening);
        for (id, contact) in of_rule.chain(contacts) {
            if others.contains(&(id, contact.as_ref().map(PagedContact::key))) {
                continue;
            }
            if clear && self.occurrence.informed.contains(&id) {
                continue;
            }
            let Some(destination) = self.snapshot.destination(id) else {
                continue;
            };
            let named = (entry.rule, &entry.rule_name);
            if self.leave_out(named, &destination.name) {
                continue;
            }
            if would_pass_again(self.occurrence, entry.rule, destination) {
                self.notices.stopped.push(entry.rule_name.clone());
            } else {
                let what = (clear, entry.thread, Some(previous));
                self.create_delivery(about, (destination, contact), what, end);
            }
        }
    }
}
