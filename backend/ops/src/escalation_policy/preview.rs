//! Simulates the notifications of a policy over time if no one responds.

use std::{collections::BTreeSet, sync::Arc};

use bellwether_proto::v1;

use super::EscalationPolicies;
use crate::{
    decide::{AdvanceContext, PageTarget, Responders, advance},
    domain::{
        EscalationPolicy, EscalationTarget, Name, PagedReceiver, RecordId, Response, Severity,
    },
    error::Error,
    limits::ESCALATION_NOTICES_MAX,
    resource::{AuthoredResource as _, Origin},
    ruleset::Ruleset,
    wire::time,
};

#[derive(Debug, Clone)]
pub struct PolicyPreview {
    policies: EscalationPolicies,
    ruleset: Arc<Ruleset>,
}

impl PolicyPreview {
    pub fn new(policies: EscalationPolicies, ruleset: Arc<Ruleset>) -> Self {
        Self { policies, ruleset }
    }

    /// Simulates a draft from `start_ms` on; `None` means now.
    pub async fn preview(
        &self,
        mut draft: v1::EscalationPolicy,
        severity: Option<Severity>,
        start_ms: Option<i64>,
    ) -> Result<v1::PreviewEscalationPolicyResponse, Error> {
        let all = &self.policies;
        let stored = match Name::parse(&draft.name) {
            Ok(name) => {
                all.store
                    .get::<EscalationPolicy>(name.as_str().into())
                    .await?
            }
            Err(_error) => None,
        };
        if draft.name.is_empty() {
            "preview".clone_into(&mut draft.name);
        }
        let now_ms = all.clock.now_ms();
        let stored = stored.map(|it| it.value);
        let origin = Origin::new(now_ms);
        let (policy, _) =
            EscalationPolicy::from_draft(all, &draft, stored.as_ref(), origin).await?;
        let snapshot = self.ruleset.refresh().await?;
        // The draft applies instead of the stored policy with its name.
        let responders = snapshot.responders().without_policies();
        let severity = severity.unwrap_or(Severity::Critical);
        let start_ms = start_ms.unwrap_or(now_ms);
        Ok(simulate_policy(&policy, &responders, severity, start_ms))
    }
}

fn simulate_policy(
    policy: &EscalationPolicy,
    responders: &Responders,
    severity: Severity,
    start_ms: i64,
) -> v1::PreviewEscalationPolicyResponse {
    let none = BTreeSet::new();
    let mut response = Response::new(RecordId::from_parts(0, 0), policy, start_ms);
    let mut answer = v1::PreviewEscalationPolicyResponse::default();
    let mut at_ms = start_ms;
    loop {
        let context = AdvanceContext {
            responders,
            severity,
            failed: &none,
            now_ms: at_ms,
        };
        let advanced = advance(&mut response, &context);
        let after = Some(time::duration_from_ms(at_ms.saturating_sub(start_ms)));
        for (round, step) in advanced.empty {
            answer.notices.push(v1::EscalationNotice {
                after,
                round: number(round),
                step: number(step),
                problem: step_problem(policy, responders, (step, severity), at_ms),
                ..v1::EscalationNotice::default()
            });
        }
        for page in advanced.pages {
            answer.notices.push(notice_to_wire(&page, after));
            record_notified(&mut response, page, at_ms);
        }
        response.schedule_evaluation();
        let next_ms = response.review_ms.filter(|it| *it > at_ms);
        let is_full = answer.notices.len() >= ESCALATION_NOTICES_MAX;
        let Some(next_ms) = next_ms.filter(|_| !response.is_unanswered && !is_full) else {
            answer.stopped_early = is_full && !response.is_unanswered;
            answer.notices.truncate(ESCALATION_NOTICES_MAX);
            answer.ends_after = after.filter(|_| response.is_unanswered);
            return answer;
        };
        at_ms = next_ms;
    }
}

fn record_notified(response: &mut Response, page: PageTarget, at_ms: i64) {
    let nothing = RecordId::from_parts(0, 0);
    response.paged.push(PagedReceiver {
        contact: page.contact,
        schedule: page.schedule,
        destination: (nothing, page.destination),
        delivery: nothing,
        at_ms,
        round: page.round,
        step: page.step,
    });
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn notice_to_wire(page: &PageTarget, after: Option<prost_types::Duration>) -> v1::EscalationNotice {
    let text = |name: Option<&Name>| name.map(ToString::to_string).unwrap_or_default();
    v1::EscalationNotice {
        after,
        round: number(page.round),
        step: number(page.step),
        contact_name: text(page.contact.as_ref().map(|it| &it.name)),
        schedule_name: text(page.schedule.as_ref()),
        destination_name: page.destination.to_string(),
        method_id: page
            .contact
            .as_ref()
            .map_or_else(String::new, |it| it.method.clone()),
        problem: String::new(),
    }
}

fn step_problem(
    policy: &EscalationPolicy,
    responders: &Responders,
    (step, severity): (u32, Severity),
    at_ms: i64,
) -> String {
    let at = usize::try_from(step).unwrap_or_default().saturating_sub(1);
    let targets = policy.plan.steps.get(at).map_or(&[][..], |it| &it.targets);
    let contacts = |it| responders.resolve_contacts(it, at_ms).into_iter();
    let is_destination = |it: &EscalationTarget| matches!(it, EscalationTarget::Destination(_));
    let means_someone = targets
        .iter()
        .any(|it| is_destination(it) || contacts(it).next().is_some());
    let mut methods = targets.iter().flat_map(contacts).flat_map(|(contact, _)| {
        let usable = responders.usable_methods(contact, severity, at_ms);
        usable.map(|it| it.position).collect::<Vec<_>>()
    });
    if !means_someone {
        "no one is on call".into()
    } else if methods.next().is_some() || targets.iter().any(is_destination) {
        "everyone was already notified in this round".into()
    } else {
        let severity = severity.as_str();
        format!("no contact has a method for severity {severity} at that time")
    }
}
