//! `EscalationPolicyService`.

use bellwether_proto::v1::{self, escalation_policy_service_server::EscalationPolicyService};
use tonic::{Request, Response, Status, async_trait};

use super::{convert::time::to_millis, serve::serve};
use crate::{
    domain::Severity,
    error::Error,
    ops::escalation_policy::{EscalationPolicies, PolicyPreview},
};

#[derive(Debug)]
pub struct EscalationPolicyApi {
    pub(crate) policies: EscalationPolicies,
    pub(crate) preview: PolicyPreview,
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
        let at_ms = request.time.as_ref().map(to_millis);
        let answer = self.preview.preview(draft, severity, at_ms).await?;
        Ok(Response::new(answer))
    }
}
