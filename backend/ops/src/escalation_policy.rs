//! Escalation policies: service, storage, editing, preview, and deletion of unused ones.

mod preview;

use bellwether_proto::v1::{
    self, escalation_policy_service_server::EscalationPolicyService, escalation_target::Target,
};
use tonic::{Request, Response, Status, async_trait};

use crate::{
    clock::to_millis,
    domain::{
        Contact, Destination, EscalationPlan, EscalationPolicy, EscalationStep, EscalationTarget,
        Schedule, Severity,
    },
    error::Error,
    etag::compute_etag,
    from_domain::FromDomain,
    limits::{
        ACKNOWLEDGEMENT_MAX, ACKNOWLEDGEMENT_MIN, ESCALATION_ROUNDS_MAX, ESCALATION_STEPS_MAX,
        ESCALATION_TARGETS_MAX, ESCALATION_WAIT_DEFAULT, ESCALATION_WAIT_MAX, POLICIES_MAX,
    },
    references::References,
    refers::ReferenceChecker,
    resource::{AuthoredResource, Origin, Resources, resource},
    serve::serve,
    store::{Changes, Kind},
    validate::{Violations, check_length},
    wire::time::{self, timestamp},
};

pub use preview::PolicyPreview;

pub type EscalationPolicies = Resources<EscalationPolicy>;

resource!(EscalationPolicy, v1::EscalationPolicy, "policy", |_| None);

#[derive(Debug)]
pub struct EscalationPolicyApi {
    pub policies: EscalationPolicies,
    pub preview: PolicyPreview,
}

#[async_trait]
impl EscalationPolicyService for EscalationPolicyApi {
    serve! {
        policies of policy;
        create_escalation_policy(CreateEscalationPolicyRequest) -> CreateEscalationPolicyResponse;
        list_escalation_policies(ListEscalationPoliciesRequest)
            -> ListEscalationPoliciesResponse { policies };
        get_escalation_policy(GetEscalationPolicyRequest) -> GetEscalationPolicyResponse;
        update_escalation_policy(UpdateEscalationPolicyRequest) -> UpdateEscalationPolicyResponse;
        delete_escalation_policy(DeleteEscalationPolicyRequest)
            -> DeleteEscalationPolicyResponse, |_| false;
    }

    async fn preview_escalation_policy(
        &self,
        request: Request<v1::PreviewEscalationPolicyRequest>,
    ) -> Result<Response<v1::PreviewEscalationPolicyResponse>, Status> {
        let request = request.into_inner();
        let draft = request.policy.unwrap_or_default();
        let severity = match request.severity {
            0 => None,
            number => Some(
                Severity::from_number(number)
                    .ok_or_else(|| Error::invalid("severity", "is not a severity"))?,
            ),
        };
        let at_ms = request.time.as_ref().map(time::to_millis);
        let answer = self.preview.preview(draft, severity, at_ms).await?;
        Ok(Response::new(answer))
    }
}

impl AuthoredResource for EscalationPolicy {
    type Draft = v1::EscalationPolicy;
    type View = v1::EscalationPolicy;

    async fn from_draft(
        all: &EscalationPolicies,
        draft: &v1::EscalationPolicy,
        stored: Option<&Self>,
        origin: Origin,
    ) -> Result<(Self, Changes), Error> {
        let mut changes = all.store.new_changes();
        let mut violations = Violations::default();
        let name = violations.name(&draft.name, stored.is_none());
        violations.check_texts(&draft.description, &draft.tags);
        let mut refers = ReferenceChecker::new(all, stored, (&mut violations, &mut changes));
        let steps = check_steps(&draft.steps, &mut refers).await?;
        let field = "fallbackDestinationName";
        let fallback = refers
            .resolve_optional::<Destination>(field, &draft.fallback_destination_name)
            .await?;
        let rounds = u32::try_from(draft.rounds).ok();
        let rounds = rounds.filter(|it| *it <= ESCALATION_ROUNDS_MAX);
        if rounds.is_none() {
            let message = format!("is {}; expected 1 to {ESCALATION_ROUNDS_MAX}", draft.rounds);
            violations.add("rounds", message);
        }
        let ack_timeout_ms = draft.ack_timeout.as_ref().map_or(0, time::duration_to_ms);
        if ack_timeout_ms != 0 {
            let bounds = (ACKNOWLEDGEMENT_MIN, ACKNOWLEDGEMENT_MAX);
            check_length("ackTimeout", ack_timeout_ms, bounds, &mut violations);
        }
        all.check_room(stored, POLICIES_MAX).await?;
        let policy = name.map(|name| Self {
            id: origin.id,
            name,
            description: draft.description.clone(),
            tags: draft.tags.clone(),
            plan: EscalationPlan {
                steps,
                rounds: rounds.unwrap_or_default().max(1),
                ack_timeout_ms,
                fallback: fallback.map(|it| it.value.name),
            },
            revision: origin.revision,
            create_ms: origin.create_ms,
            update_ms: origin.update_ms,
        });
        Ok((violations.into_result(policy)?, changes))
    }

    async fn changes_on_delete(
        all: &EscalationPolicies,
        policy: &Self,
        _force: bool,
    ) -> Result<Changes, Error> {
        let references = References::find(&all.store, Kind::Policy, &policy.name).await?;
        references.ensure_unused("escalation policy", &policy.name)?;
        Ok(all.store.new_changes())
    }

    async fn view(
        all: &EscalationPolicies,
        policy: Self,
    ) -> Result<(v1::EscalationPolicy, usize), Error> {
        let references = References::find(&all.store, Kind::Policy, &policy.name).await?;
        let view = v1::EscalationPolicy {
            used_by_rule_names: references.iter().map(|(_, it)| it.to_string()).collect(),
            ..v1::EscalationPolicy::from_domain(policy)
        };
        Ok((view, references.bytes()))
    }
}

async fn check_steps(
    drafts: &[v1::EscalationStep],
    refers: &mut ReferenceChecker<'_>,
) -> Result<Vec<EscalationStep>, Error> {
    let count = drafts.len();
    if !(1..=ESCALATION_STEPS_MAX).contains(&count) {
        let message = format!("has {count} steps; expected 1 to {ESCALATION_STEPS_MAX}");
        refers.violations.add("steps", message);
        return Ok(Vec::new());
    }
    let mut steps = Vec::with_capacity(count);
    for (at, draft) in drafts.iter().enumerate() {
        let wait_ms = draft
            .wait
            .as_ref()
            .map_or_else(|| to_millis(ESCALATION_WAIT_DEFAULT), time::duration_to_ms);
        let bounds = (std::time::Duration::ZERO, ESCALATION_WAIT_MAX);
        check_length(
            &format!("steps[{at}].wait"),
            wait_ms,
            bounds,
            refers.violations,
        );
        let path = format!("steps[{at}].targets");
        let count = draft.targets.len();
        if !(1..=ESCALATION_TARGETS_MAX).contains(&count) {
            let message = format!("has {count} targets; expected 1 to {ESCALATION_TARGETS_MAX}");
            refers.violations.add(path, message);
            continue;
        }
        let mut targets = Vec::with_capacity(count);
        for (at, target) in draft.targets.iter().enumerate() {
            let path = format!("{path}[{at}]");
            targets.extend(resolve_target(&path, target, refers).await?);
        }
        steps.push(EscalationStep { targets, wait_ms });
    }
    Ok(steps)
}

async fn resolve_target(
    path: &str,
    draft: &v1::EscalationTarget,
    refers: &mut ReferenceChecker<'_>,
) -> Result<Option<EscalationTarget>, Error> {
    Ok(match &draft.target {
        None => {
            let message = "is required: one of `destinationName`, `contactName`, `scheduleName`";
            refers.violations.add(path, message);
            None
        }
        Some(Target::DestinationName(name)) => {
            let path = format!("{path}.destinationName");
            let found = refers.resolve::<Destination>(&path, name).await?;
            found.map(|it| EscalationTarget::Destination(it.value.name))
        }
        Some(Target::ContactName(name)) => {
            let path = format!("{path}.contactName");
            let found = refers.resolve::<Contact>(&path, name).await?;
            found.map(|it| EscalationTarget::Contact(it.value.name))
        }
        Some(Target::ScheduleName(name)) => {
            let path = format!("{path}.scheduleName");
            let found = refers.resolve::<Schedule>(&path, name).await?;
            found.map(|it| EscalationTarget::Schedule(it.value.name))
        }
    })
}

impl FromDomain<EscalationPolicy> for v1::EscalationPolicy {
    fn from_domain(policy: EscalationPolicy) -> Self {
        let target = |it: EscalationTarget| v1::EscalationTarget {
            target: Some(match it {
                EscalationTarget::Destination(name) => Target::DestinationName(name.to_string()),
                EscalationTarget::Contact(name) => Target::ContactName(name.to_string()),
                EscalationTarget::Schedule(name) => Target::ScheduleName(name.to_string()),
            }),
        };
        let step = |it: EscalationStep| v1::EscalationStep {
            targets: it.targets.into_iter().map(target).collect(),
            wait: Some(time::duration_from_ms(it.wait_ms)),
        };
        let plan = policy.plan;
        let fallback = plan.fallback.map(|it| it.to_string());
        Self {
            name: policy.name.to_string(),
            description: policy.description,
            tags: policy.tags,
            steps: plan.steps.into_iter().map(step).collect(),
            rounds: i32::try_from(plan.rounds).unwrap_or(i32::MAX),
            ack_timeout: (plan.ack_timeout_ms > 0)
                .then(|| time::duration_from_ms(plan.ack_timeout_ms)),
            fallback_destination_name: fallback.unwrap_or_default(),
            used_by_rule_names: Vec::new(),
            create_time: Some(timestamp(policy.create_ms)),
            update_time: Some(timestamp(policy.update_ms)),
            etag: compute_etag(policy.id, policy.revision),
        }
    }
}
