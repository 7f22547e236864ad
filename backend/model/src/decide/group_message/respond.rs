//! The response of a group: started, restarted for new members, and ended together with messages of
//! the group.

use std::{cmp::Reverse, collections::BTreeSet};

use super::Message;
use crate::{
    decide::{AdvanceContext, Notices, UnansweredNotice, advance, would_pass_again},
    domain::{
        Delivery, Group, GroupContent, MemberChange, Name, Notified, Occurrence, PagedContact,
        RecordId, Response, ResponseState, Status,
    },
};

type StepContext<'a> = (&'a GroupContent, &'a Group);

impl Message<'_> {
    /// Starts, continues or ends the response of the group; returns the deliveries to send with the
    /// message.
    pub(super) fn respond(&mut self, content: &GroupContent, group: &mut Group) -> Vec<Delivery> {
        let (rule, now_ms) = (self.rule(), self.about.now_ms);
        let responders = self.about.snapshot.responders();
        let in_force = rule.filter(|it| it.enabled && !it.shadow && !group.shadow);
        let policy = in_force.and_then(|it| it.escalation_policy.as_ref());
        let policy = policy.and_then(|name| responders.policies.get(name));
        let carrier = group.responder.and_then(|key| self.member_index(key));
        let before = carrier.and_then(|at| Some((at, self.notified_entry(at)?.response.take()?)));
        let unanswered = before
            .as_ref()
            .and_then(|(_, it)| it.unanswered_policy().cloned());
        let mut deliveries = match &before {
            Some((_, response)) => self.report_changes(response, (content, group)),
            None => Vec::new(),
        };
        let begins = self.first_member(before.as_ref().map(|(_, it)| &**it));
        let after = match (policy.filter(|_| !content.is_over), begins) {
            (None, _) => before.map(|(at, mut response)| {
                if content.is_over || rule.is_none() {
                    response.end_steps(now_ms);
                } else {
                    response.stop_steps(now_ms);
                }
                (at, response)
            }),
            (Some(_), None) => before.map(|(at, mut response)| {
                // The group changed, so another member may be able to carry the response now.
                if matches!(response.state, ResponseState::Held | ResponseState::Stopped) {
                    response.review_ms = Some(now_ms);
                }
                (at, response)
            }),
            (Some(policy), Some(at)) => {
                let active = before.filter(|(_, it)| it.state != ResponseState::Ended);
                let mut response = if let Some((_, mut response)) = active {
                    response.restart(policy, now_ms);
                    response
                } else {
                    let id = (self.new_id)();
                    Box::new(Response::new(id, policy, now_ms))
                };
                group.responder = Some(self.decision.members[at].key);
                let pages = self.run_step(&mut response, at, (content, group));
                deliveries.extend(pages);
                Some((at, response))
            }
        };
        if let Some((at, response)) = after {
            // If a new member carries an unanswered response, another notice names that member.
            let is_same = carrier == Some(at) || response.unanswered_policy().is_none();
            let unanswered = unanswered.filter(|_| is_same);
            self.report_receiver(at, &response, unanswered.as_ref());
            if let Some(entry) = self.notified_entry(at) {
                entry.response = Some(response);
            }
        }
        deliveries
    }

    fn member_index(&self, key: RecordId) -> Option<usize> {
        let mut members = self.decision.members.iter();
        members.position(|it| it.key == key)
    }

    fn notified_entry(&mut self, at: usize) -> Option<&mut Notified> {
        let (rule, group) = (self.about.rule, self.about.id);
        let mut notified = self.decision.members.get_mut(at)?.notified.iter_mut();
        notified.find(|it| it.rule == rule && it.group == Some(group))
    }

    fn first_member(&self, response: Option<&Response>) -> Option<usize> {
        use MemberChange::{Changed, Joined, Repeated};
        match response.map(|it| it.state) {
            None | Some(ResponseState::Ended) => {
                self.most_severe_unacknowledged(&[Joined, Repeated])
            }
            Some(ResponseState::Acknowledged) => {
                self.most_severe_unacknowledged(&[Joined, Changed])
            }
            Some(ResponseState::Active | ResponseState::Held | ResponseState::Stopped) => {
                let worst = self.most_severe_unacknowledged(&[Joined, Changed, Repeated])?;
                let severity = self.decision.members[worst].severity;
                let is_exceeded =
                    response.is_some_and(|it| it.exceeds_acknowledged_severity(severity));
                is_exceeded.then_some(worst)
            }
        }
    }

    fn most_severe_unacknowledged(&self, changes: &[MemberChange]) -> Option<usize> {
        let reported = self.reported.iter();
        let policy = self.rule().and_then(|it| it.escalation_policy.as_ref());
        let is_escalated = |(change, it): &&(MemberChange, Occurrence)| {
            changes.contains(change) && is_escalated(it, policy)
        };
        let reported = reported.filter(is_escalated);
        let worst = reported.min_by_key(|(_, it)| (Reverse(it.severity), it.key))?;
        self.member_index(worst.1.key)
    }

    fn run_step(
        &mut self,
        response: &mut Response,
        at: usize,
        about: StepContext<'_>,
    ) -> Vec<Delivery> {
        let member = self.decision.members[at].clone();
        let context = AdvanceContext {
            responders: self.about.snapshot.responders(),
            severity: member.severity,
            failed: &BTreeSet::new(),
            now_ms: self.about.now_ms,
        };
        let mut deliveries = Vec::new();
        for page in advance(response, &context).pages {
            let to = (&page.destination, page.contact.as_ref());
            let Some(delivery) = self.build_message(&member, about, to, false) else {
                continue;
            };
            if response.has_room_for(page.contact.as_ref(), delivery.destination) {
                response.record_paged(page.into_paged(
                    delivery.destination,
                    delivery.id,
                    self.about.now_ms,
                ));
                deliveries.push(delivery);
            }
        }
        response.schedule_evaluation();
        deliveries
    }

    fn report_changes(&mut self, response: &Response, about: StepContext<'_>) -> Vec<Delivery> {
        let is_news = |it: &(MemberChange, _)| self.is_reportable(it.0);
        let Some(main) = self
            .main_occurrence(|_| true)
            .filter(|_| self.reported.iter().any(is_news))
        else {
            return Vec::new();
        };
        let known = &about.1.destinations;
        let paged = response.paged.iter();
        let paged = paged
            .filter(|it| it.contact.is_some() || !known.iter().any(|to| to.0 == it.destination.0));
        let messages = paged.filter_map(|it| {
            let to = (&it.destination.1, it.contact.as_ref());
            self.build_message(&main, about, to, true)
        });
        messages.collect()
    }

    fn build_message(
        &mut self,
        member: &Occurrence,
        (content, group): StepContext<'_>,
        (destination, contact): (&Name, Option<&PagedContact>),
        clear: bool,
    ) -> Option<Delivery> {
        let about = self.about;
        let destination = about.snapshot.destination_by_name(destination)?;
        if would_pass_again(member, about.rule, destination) {
            return None;
        }
        let mut delivery = self.build_delivery((member, content), group, destination, clear);
        delivery.content.contact = contact.cloned();
        Some(delivery)
    }

    /// Adds a notice if the response became unanswered, or is no longer unanswered.
    fn report_receiver(&mut self, at: usize, response: &Response, before: Option<&Name>) {
        let member = self.decision.members[at].clone();
        let Some(entry) = self.notified_entry(at) else {
            return;
        };
        let unanswered = UnansweredNotice::from_change(before, response, (entry, &member));
        let notices = Notices {
            unanswered,
            ..Notices::default()
        };
        self.report_member(notices, member);
    }
}

fn is_escalated(member: &Occurrence, policy: Option<&Name>) -> bool {
    // A failure of the policy is not escalated to the same people again.
    let is_failure = policy.is_some_and(|it| member.reports_unanswered_policy(it));
    member.status == Status::Open && !member.acknowledged && !is_failure
}
