//! `TriggerService`.

use bellwether_proto::v1::{self, trigger_service_server::TriggerService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    audit::{self, Change},
    convert::list::{count, page_and_filter},
};
use crate::{
    error::Error,
    ops::trigger::{TriggerDraft, Triggers},
};

/// Serves triggers.
#[derive(Debug)]
pub struct TriggerApi {
    triggers: Triggers,
}

impl TriggerApi {
    /// Serves these triggers.
    pub fn new(triggers: Triggers) -> Self {
        Self { triggers }
    }
}

#[async_trait]
impl TriggerService for TriggerApi {
    async fn create_trigger(
        &self,
        request: Request<v1::CreateTriggerRequest>,
    ) -> Result<Response<v1::CreateTriggerResponse>, Status> {
        let author = audit::author(&request)?;
        let request = request.into_inner();
        let draft = TriggerDraft::from(request.trigger.unwrap_or_default());
        let view = self.triggers.create(draft, request.validate_only).await?;
        author.note_unless(request.validate_only, Change::Create, &view.trigger);
        Ok(Response::new(v1::CreateTriggerResponse {
            trigger: Some(view.into()),
        }))
    }

    async fn list_triggers(
        &self,
        request: Request<v1::ListTriggersRequest>,
    ) -> Result<Response<v1::ListTriggersResponse>, Status> {
        let wire = request.into_inner();
        let page = (wire.page_size, wire.page_token);
        let (page, filter) = page_and_filter(page, wire.names, wire.tags, wire.q);
        let page = self.triggers.list(&filter, &page).await?;
        Ok(Response::new(v1::ListTriggersResponse {
            triggers: page.items.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            total_size: Some(count(page.total)),
        }))
    }

    async fn get_trigger(
        &self,
        request: Request<v1::GetTriggerRequest>,
    ) -> Result<Response<v1::GetTriggerResponse>, Status> {
        let view = self.triggers.get(&request.into_inner().name).await?;
        Ok(Response::new(v1::GetTriggerResponse {
            trigger: Some(view.into()),
        }))
    }

    async fn update_trigger(
        &self,
        request: Request<v1::UpdateTriggerRequest>,
    ) -> Result<Response<v1::UpdateTriggerResponse>, Status> {
        let author = audit::author(&request)?;
        let request = request.into_inner();
        let draft = TriggerDraft::from(request.trigger.unwrap_or_default());
        let view = self.triggers.update(draft, request.validate_only).await?;
        author.note_unless(request.validate_only, Change::Update, &view.trigger);
        Ok(Response::new(v1::UpdateTriggerResponse {
            trigger: Some(view.into()),
        }))
    }

    async fn delete_trigger(
        &self,
        request: Request<v1::DeleteTriggerRequest>,
    ) -> Result<Response<v1::DeleteTriggerResponse>, Status> {
        let author = audit::author(&request)?;
        let request = request.into_inner();
        self.triggers
            .delete(&request.name, &request.etag, request.force)
            .await?;
        author.note(Change::Delete, "trigger", &request.name);
        Ok(Response::new(v1::DeleteTriggerResponse {}))
    }

    async fn test_trigger(
        &self,
        _request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<v1::TestTriggerResponse>, Status> {
        Err(Error::Unimplemented("trying a query on stored events is not served yet".into()).into())
    }
}
