//! `RuleService`.

use bellwether_proto::v1::{self, rule_service_server::RuleService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    audit,
    convert::{
        list::{count, page_and_filter},
        rule::grouping,
    },
};
use crate::ops::{
    notify_open::{NotifyOpen, Stores},
    rule::{Installation, RuleDraft, Rules},
};

/// Serves rules.
#[derive(Debug)]
pub struct RuleApi {
    rules: Rules,
    opens: NotifyOpen,
    installation: Installation,
}

impl RuleApi {
    /// Serves these rules, and notifies of what is open where that is asked for; previews tell about
    /// that installation.
    pub fn new(rules: Rules, opens: NotifyOpen, installation: Installation) -> Self {
        Self {
            rules,
            opens,
            installation,
        }
    }
}

#[async_trait]
impl RuleService for RuleApi {
    async fn create_rule(
        &self,
        request: Request<v1::CreateRuleRequest>,
    ) -> Result<Response<v1::CreateRuleResponse>, Status> {
        let request = request.into_inner();
        let draft = RuleDraft::from(request.rule.unwrap_or_default());
        let view = self.rules.create(draft, request.validate_only).await?;
        let name = view.rule.name.clone();
        let mut notify_count = None;
        if request.notify_open {
            let stores = Stores::Rule(view.rule.clone());
            let notified = self.opens.answer(stores, request.validate_only);
            notify_count = Some(count(notified.await?));
        }
        let answer = v1::CreateRuleResponse {
            rule: Some(view.into()),
            notify_count,
        };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn list_rules(
        &self,
        request: Request<v1::ListRulesRequest>,
    ) -> Result<Response<v1::ListRulesResponse>, Status> {
        let wire = request.into_inner();
        let page = (wire.page_size, wire.page_token);
        let (page, filter) = page_and_filter(page, wire.names, wire.tags, wire.q);
        let page = self.rules.list(&filter, &page).await?;
        Ok(Response::new(v1::ListRulesResponse {
            rules: page.items.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            total_size: Some(count(page.total)),
        }))
    }

    async fn get_rule(
        &self,
        request: Request<v1::GetRuleRequest>,
    ) -> Result<Response<v1::GetRuleResponse>, Status> {
        let view = self.rules.get(&request.into_inner().name).await?;
        Ok(Response::new(v1::GetRuleResponse {
            rule: Some(view.into()),
        }))
    }

    async fn update_rule(
        &self,
        request: Request<v1::UpdateRuleRequest>,
    ) -> Result<Response<v1::UpdateRuleResponse>, Status> {
        let request = request.into_inner();
        let draft = RuleDraft::from(request.rule.unwrap_or_default());
        let view = self.rules.update(draft, request.validate_only).await?;
        let name = view.rule.name.clone();
        let mut notify_count = None;
        if request.notify_open {
            let stores = Stores::Rule(view.rule.clone());
            let notified = self.opens.answer(stores, request.validate_only);
            notify_count = Some(count(notified.await?));
        }
        let answer = v1::UpdateRuleResponse {
            rule: Some(view.into()),
            notify_count,
        };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn delete_rule(
        &self,
        request: Request<v1::DeleteRuleRequest>,
    ) -> Result<Response<v1::DeleteRuleResponse>, Status> {
        let request = request.into_inner();
        self.rules
            .delete(&request.name, &request.etag, false)
            .await?;
        Ok(audit::of(request.name, v1::DeleteRuleResponse {}))
    }

    async fn preview_rule(
        &self,
        request: Request<v1::PreviewRuleRequest>,
    ) -> Result<Response<v1::PreviewRuleResponse>, Status> {
        let wire = request.into_inner();
        let draft = RuleDraft {
            name: wire.name,
            description: wire.description,
            enabled: wire.enabled.unwrap_or_default(),
            trigger_names: wire.trigger_names,
            destination_names: wire.destination_names,
            message: wire.message,
            template_language: wire.template_language,
            repeat_interval: wire.repeat_interval,
            group: wire.group.map(grouping),
            ..RuleDraft::default()
        };
        let preview = self
            .rules
            .preview(draft, &wire.event_id, &self.installation);
        Ok(Response::new(preview.await?.into()))
    }
}
