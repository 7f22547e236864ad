//! `TriggerService`.

use bellwether_proto::v1::{self, trigger_service_server::TriggerService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    audit::{self, Change},
    convert::{
        event,
        list::{count, page_and_filter},
    },
};
use crate::ops::trigger::{TriggerDraft, Triggers};

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
        request: Request<v1::TestTriggerRequest>,
    ) -> Result<Response<v1::TestTriggerResponse>, Status> {
        let wire = request.into_inner();
        let span = wire.time_range.unwrap_or_default();
        let draft = TriggerDraft::from(v1::Trigger {
            name: wire.name,
            r#type: wire.r#type,
            ..v1::Trigger::default()
        });
        let test = self.triggers.test(draft, (span.start, span.end)).await?;
        Ok(Response::new(v1::TestTriggerResponse {
            matched: Some(count(test.matched)),
            matched_by_saved: test.matched_by_saved.map(count),
            scanned: Some(count(test.scanned)),
            occurrences: test.occurrences.into_iter().map(event::single).collect(),
        }))
    }
}
