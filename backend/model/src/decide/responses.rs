//! Advances responses: the receivers of a due step, and the time of the next one.

use std::collections::BTreeSet;

use super::{PageTarget, Responders};
use crate::{
    domain::{
        EscalationPlan, EscalationPolicy, EscalationTarget, HeldBy, Name, PagedContact,
        PagedReceiver, RecordId, Response, ResponseHold, ResponseState, Severity,
    },
    limits::{RESPONSE_HELD_REVIEW_MS, RESPONSE_HOLDS_MAX},
};

#[derive(Debug, Clone, Copy)]
pub struct AdvanceContext<'a> {
    pub responders: &'a Responders,
    pub severity: Severity,
    /// Deliveries that failed permanently, or that wait for a paused destination.
    pub failed: &'a BTreeSet<RecordId>,
    pub now_ms: i64,
}

/// Times after a step at which its deliveries are checked, in milliseconds.
const CHECKS_MS: [i64; 5] = [2_000, 10_000, 30_000, 60_000, 300_000];

impl Response {
    pub fn new(id: RecordId, policy: &EscalationPolicy, now_ms: i64) -> Self {
        Self {
            id,
            policy: policy.name.clone(),
            plan: policy.plan.clone(),
            state: ResponseState::Active,
            round: 1,
            rounds_left: policy.plan.rounds.saturating_sub(1),
            step: 0,
            step_ms: now_ms,
            checks: 0,
            next_ms: Some(now_ms),
            review_ms: Some(now_ms),
            queued: Vec::new(),
            paged: Vec::new(),
            begin_ms: now_ms,
            end_ms: None,
            is_unanswered: false,
            held_by: Vec::new(),
            most_severe: None,
        }
    }

    /// Restarts all rounds with the current policy. A round that has not run any step yet counts as
    /// the first of the new rounds.
    pub fn restart(&mut self, policy: &EscalationPolicy, now_ms: i64) {
        self.policy = policy.name.clone();
        self.plan = policy.plan.clone();
        self.state = ResponseState::Active;
        let is_fresh = self.step == 0 && self.next_ms.is_some();
        self.round = self.round.saturating_add(u32::from(!is_fresh));
        self.rounds_left = self.plan.rounds.saturating_sub(1);
        self.begin_round(now_ms);
        self.end_ms = None;
        self.is_unanswered = false;
    }

    /// Returns the receivers of an ended response for the next response, without round and step.
    pub(super) fn into_earlier_receivers(self) -> Vec<PagedReceiver> {
        let paged = self.paged.into_iter();
        paged
            .map(|it| PagedReceiver {
                round: 0,
                step: 0,
                ..it
            })
            .collect()
    }

    fn begin_round(&mut self, now_ms: i64) {
        self.step = 0;
        self.checks = 0;
        self.step_ms = now_ms;
        self.next_ms = Some(now_ms);
    }

    pub fn end_steps(&mut self, now_ms: i64) {
        self.deactivate(ResponseState::Ended);
        self.end_ms = Some(now_ms);
        self.is_unanswered = false;
    }

    /// Pauses the response because the occurrence was acknowledged with this severity.
    pub fn acknowledge(&mut self, severity: Severity) {
        self.deactivate(ResponseState::Acknowledged);
        self.is_unanswered = false;
        self.record_severity(severity);
    }

    /// Clears all later steps and methods, and sets the state.
    fn deactivate(&mut self, state: ResponseState) {
        self.state = state;
        self.review_ms = None;
        self.queued.clear();
        self.next_ms = None;
        self.held_by.clear();
    }

    /// Stops the response until its rule and its policy are in force again.
    pub fn stop_steps(&mut self, now_ms: i64) {
        if self.state != ResponseState::Stopped {
            self.state = ResponseState::Stopped;
            self.end_ms = Some(now_ms);
        }
        self.review_ms = None;
        self.held_by.clear();
    }

    /// Resumes a stopped response where it stopped. Restarts it if it was acknowledged or if the
    /// policy has other steps now.
    pub(super) fn resume(&mut self, policy: &EscalationPolicy, now_ms: i64) {
        self.state = ResponseState::Active;
        self.end_ms = None;
        let is_other = self.policy != policy.name || self.plan.steps != policy.plan.steps;
        let was_acknowledged =
            self.next_ms.is_none() && self.queued.is_empty() && !self.is_unanswered;
        if is_other || was_acknowledged {
            self.restart(policy, now_ms);
        }
    }

    /// Records the holds, and sets the next evaluation to the time at which all of them may have
    /// ended.
    pub fn hold_steps(&mut self, holding: &[HeldBy], now_ms: i64) {
        self.state = ResponseState::Held;
        self.held_by.clear();
        self.add_holds(holding.iter().map(|it| (it.kind, it.id)));
        let ends = holding.iter().map(|it| it.until_ms);
        let last_ms = ends.collect::<Option<Vec<_>>>();
        let last_ms = last_ms.and_then(|it| it.into_iter().max());
        let again_ms = now_ms.saturating_add(RESPONSE_HELD_REVIEW_MS);
        self.review_ms = last_ms.filter(|it| *it > now_ms).or(Some(again_ms));
    }

    /// Adds holds that must end before another member of the group can become the carrier of this
    /// response.
    pub fn add_holds(&mut self, holds: impl IntoIterator<Item = ResponseHold>) {
        for hold in holds {
            if self.held_by.len() < RESPONSE_HOLDS_MAX && !self.held_by.contains(&hold) {
                self.held_by.push(hold);
            }
        }
    }

    pub fn schedule_evaluation(&mut self) {
        let queued = self.queued.iter().map(|it| it.due_ms);
        let has_sent = self.last_step_receivers().next().is_some();
        let check_ms = usize::try_from(self.checks)
            .ok()
            .and_then(|at| CHECKS_MS.get(at))
            .filter(|_| has_sent)
            .map(|after_ms| self.step_ms.saturating_add(*after_ms));
        self.review_ms = queued.chain(self.next_ms).chain(check_ms).min();
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct AdvanceOutcome {
    pub pages: Vec<PageTarget>,
    /// The steps without receivers, each with its round.
    pub empty: Vec<(u32, u32)>,
}

/// Runs the due steps of an active response. If several steps became due while the response was
/// held, only one of them is run.
pub fn advance(response: &mut Response, context: &AdvanceContext<'_>) -> AdvanceOutcome {
    let mut done = AdvanceOutcome::default();
    let pages = &mut done.pages;
    let policy = context.responders.policies.get(&response.policy);
    response.check_last_step(context);
    response.send_queued(context, pages);
    // Each iteration runs a step or starts a round, so the loop is bounded.
    while response.next_ms.is_some_and(|it| it <= context.now_ms) {
        let at = usize::try_from(response.step).unwrap_or(usize::MAX);
        if at < response.plan.steps.len() {
            if !response.run_step(at, context, pages) {
                done.empty.push((response.round, response.step));
            }
        } else if response.rounds_left > 0 {
            response.round = response.round.saturating_add(1);
            response.rounds_left -= 1;
            if let Some(policy) = policy {
                response.plan = EscalationPlan {
                    rounds: response.plan.rounds,
                    ..policy.plan.clone()
                };
            }
            response.begin_round(context.now_ms);
        } else {
            response.next_ms = None;
        }
    }
    let is_over = response.next_ms.is_none() && response.queued.is_empty();
    if is_over && !response.is_unanswered {
        response.is_unanswered = true;
        response.step = 0;
        let fallback = response.plan.fallback.clone();
        pages.extend(fallback.map(|it| PageTarget::for_destination(it, response.round, 0)));
    }
    done
}

impl Response {
    /// Checks the deliveries of the last step. If one failed, the next method of its contact
    /// becomes due; if all failed, the next step becomes due.
    fn check_last_step(&mut self, context: &AdvanceContext<'_>) {
        if self.step == 0 || context.now_ms <= self.step_ms {
            return;
        }
        while let Some(after_ms) = usize::try_from(self.checks)
            .ok()
            .and_then(|at| CHECKS_MS.get(at))
            && self.step_ms.saturating_add(*after_ms) <= context.now_ms
        {
            self.checks += 1;
        }
        let has_failed = |it: &&PagedReceiver| context.failed.contains(&it.delivery);
        let failed: Vec<_> = self
            .last_step_receivers()
            .filter(has_failed)
            .cloned()
            .collect();
        if failed.is_empty() {
            return;
        }
        for contact in failed.iter().filter_map(|it| it.contact.as_ref()) {
            let queued = self.queued.iter_mut();
            let queued = queued.filter(|it| it.contact == contact.name);
            if let Some(next) = queued.min_by_key(|it| it.due_ms) {
                next.due_ms = next.due_ms.min(context.now_ms);
            }
        }
        let is_all = failed.len() == self.last_step_receivers().count();
        let (round, step) = (self.round, self.step);
        let waits = self.queued.iter().any(|it| it.is_from_step(round, step));
        if is_all && !waits && self.next_ms.is_some() {
            self.next_ms = Some(context.now_ms);
        }
    }

    fn send_queued(&mut self, context: &AdvanceContext<'_>, pages: &mut Vec<PageTarget>) {
        let (due, rest) = std::mem::take(&mut self.queued)
            .into_iter()
            .partition(|it| it.due_ms <= context.now_ms);
        self.queued = rest;
        for queued in due {
            let Some(contact) = context.responders.contacts.get(&queued.contact) else {
                continue;
            };
            let (severity, now_ms) = (context.severity, context.now_ms);
            let mut usable = context.responders.usable_methods(contact, severity, now_ms);
            let Some(method) = usable.find(|it| it.matches_queued(&queued)) else {
                continue;
            };
            let page = method.page(queued.schedule, self);
            pages.push(match queued.round {
                0 => page,
                // The page counts for the step that queued the method, not for the last step.
                round => PageTarget {
                    round,
                    step: queued.step,
                    ..page
                },
            });
        }
    }

    /// Runs a step. Receivers that were already notified in this round are skipped, and a step
    /// without receivers makes the next one due. Returns whether there was a receiver.
    fn run_step(
        &mut self,
        at: usize,
        context: &AdvanceContext<'_>,
        pages: &mut Vec<PageTarget>,
    ) -> bool {
        let step = self.plan.steps[at].clone();
        self.record_severity(context.severity);
        let before = pages.len();
        self.step = self.step.saturating_add(1);
        let (round, number) = (self.round, self.step);
        for target in &step.targets {
            if let EscalationTarget::Destination(name) = target {
                if !self.has_paged_destination(name, pages) {
                    pages.push(PageTarget::for_destination(name.clone(), round, number));
                }
                continue;
            }
            for (contact, schedule) in context.responders.resolve_contacts(target, context.now_ms) {
                if self.has_paged_contact(&contact.name, pages) {
                    continue;
                }
                let usable =
                    context
                        .responders
                        .usable_methods(contact, context.severity, context.now_ms);
                for method in usable {
                    if method.method.after_ms == 0 {
                        pages.push(method.page(schedule.cloned(), self));
                        continue;
                    }
                    let mut queued = self.queued.iter_mut();
                    // A method that has been waiting since an earlier round is not delayed by this
                    // round.
                    if let Some(waiting) = queued.find(|it| method.matches_queued(it)) {
                        (waiting.round, waiting.step) = (round, number);
                    } else {
                        let queued = method.queued_method(schedule.cloned(), self, context.now_ms);
                        self.queued.push(queued);
                    }
                }
            }
        }
        self.checks = 0;
        self.step_ms = context.now_ms;
        let mut queued = self.queued.iter();
        let has_someone = pages.len() > before || queued.any(|it| it.is_from_step(round, number));
        let wait_ms = if has_someone { step.wait_ms } else { 0 };
        self.next_ms = Some(context.now_ms.saturating_add(wait_ms));
        has_someone
    }

    /// Whether the destination, as named by the policy, was notified earlier in this round or is
    /// notified now.
    fn has_paged_destination(&self, name: &Name, pages: &[PageTarget]) -> bool {
        let receivers = self.receivers_in_round(pages);
        let mut direct = receivers.filter(|(contact, _)| contact.is_none());
        direct.any(|(_, destination)| destination == name)
    }

    /// Whether the contact was notified earlier in this round, is notified now, or has a waiting
    /// method.
    fn has_paged_contact(&self, name: &Name, pages: &[PageTarget]) -> bool {
        let mut queued = self.queued.iter().filter(|it| it.round == self.round);
        let mut receivers = self.receivers_in_round(pages);
        queued.any(|it| it.contact == *name)
            || receivers.any(|(contact, _)| contact.is_some_and(|it| it.name == *name))
    }

    fn receivers_in_round<'a>(
        &'a self,
        pages: &'a [PageTarget],
    ) -> impl Iterator<Item = (Option<&'a PagedContact>, &'a Name)> {
        let paged = self.paged.iter();
        let paged = paged.filter(|it| it.round == self.round && it.step > 0);
        // A method that waited may be of an earlier round.
        let now = pages.iter().filter(|it| it.round == self.round);
        paged
            .map(|it| (it.contact.as_ref(), &it.destination.1))
            .chain(now.map(|it| (it.contact.as_ref(), &it.destination)))
    }
}
