//! `RuleService`.

use bellwether_proto::v1::{self, rule_service_server::RuleService};
use tonic::{Request, Response, Status, async_trait};

use super::{convert::list::to_i32, serve::serve};
use crate::ops::{
    notify_open::{OpenNotifier, StoredDefinition},
    rule::{Installation, Rules},
};

#[derive(Debug)]
pub struct RuleApi {
    pub(crate) rules: Rules,
    pub(crate) opens: OpenNotifier,
    /// Used by previews.
    pub(crate) installation: Installation,
}

#[async_trait]
impl RuleService for RuleApi {
    serve! {
        rules of rule;
        create_rule(CreateRuleRequest) -> CreateRuleResponse;
        list_rules(ListRulesRequest) -> ListRulesResponse { rules };
        get_rule(GetRuleRequest) -> GetRuleResponse;
        update_rule(UpdateRuleRequest) -> UpdateRuleResponse;
        delete_rule(DeleteRuleRequest) -> DeleteRuleResponse, |_never| false;
        stored |api, request, stored| {
            notify_count: {
                let stores = StoredDefinition::Rule(stored.resource.clone());
                let answer = api.opens.notify_or_count(request.notify_open, request.validate_only, stores);
                answer.await?.map(to_i32)
            },
        }
    }

    async fn preview_rule(
        &self,
        request: Request<v1::PreviewRuleRequest>,
    ) -> Result<Response<v1::PreviewRuleResponse>, Status> {
        let previews = self.rules.preview(request.into_inner(), &self.installation);
        Ok(Response::new(previews.await?))
    }
}
