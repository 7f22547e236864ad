//! `InhibitionService`.

use bellwether_proto::v1::{self, inhibition_service_server::InhibitionService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    audit,
    convert::{
        inhibition as convert,
        list::{count, page_and_filter},
    },
};
use crate::ops::inhibition::{InhibitionDraft, Inhibitions, Previews};

/// Serves inhibitions.
#[derive(Debug)]
pub struct InhibitionApi {
    inhibitions: Inhibitions,
    previews: Previews,
}

impl InhibitionApi {
    /// Serves these inhibitions.
    pub fn new(inhibitions: Inhibitions, previews: Previews) -> Self {
        Self {
            inhibitions,
            previews,
        }
    }
}

#[async_trait]
impl InhibitionService for InhibitionApi {
    async fn create_inhibition(
        &self,
        request: Request<v1::CreateInhibitionRequest>,
    ) -> Result<Response<v1::CreateInhibitionResponse>, Status> {
        let request = request.into_inner();
        let draft = InhibitionDraft::from(request.inhibition.unwrap_or_default());
        let view = self
            .inhibitions
            .create(draft, request.validate_only)
            .await?;
        let name = view.inhibition.name.clone();
        let answer = v1::CreateInhibitionResponse {
            warnings: view.warnings.clone(),
            inhibition: Some(view.into()),
        };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn list_inhibitions(
        &self,
        request: Request<v1::ListInhibitionsRequest>,
    ) -> Result<Response<v1::ListInhibitionsResponse>, Status> {
        let wire = request.into_inner();
        let page = (wire.page_size, wire.page_token);
        let (page, filter) = page_and_filter(page, wire.names, wire.tags, wire.q);
        let page = self.inhibitions.list(&filter, &page).await?;
        Ok(Response::new(v1::ListInhibitionsResponse {
            inhibitions: page.items.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            total_size: Some(count(page.total)),
        }))
    }

    async fn get_inhibition(
        &self,
        request: Request<v1::GetInhibitionRequest>,
    ) -> Result<Response<v1::GetInhibitionResponse>, Status> {
        let view = self.inhibitions.get(&request.into_inner().name).await?;
        Ok(Response::new(v1::GetInhibitionResponse {
            inhibition: Some(view.into()),
        }))
    }

    async fn update_inhibition(
        &self,
        request: Request<v1::UpdateInhibitionRequest>,
    ) -> Result<Response<v1::UpdateInhibitionResponse>, Status> {
        let request = request.into_inner();
        let draft = InhibitionDraft::from(request.inhibition.unwrap_or_default());
        let view = self
            .inhibitions
            .update(draft, request.validate_only)
            .await?;
        let name = view.inhibition.name.clone();
        let answer = v1::UpdateInhibitionResponse {
            warnings: view.warnings.clone(),
            inhibition: Some(view.into()),
        };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn delete_inhibition(
        &self,
        request: Request<v1::DeleteInhibitionRequest>,
    ) -> Result<Response<v1::DeleteInhibitionResponse>, Status> {
        let request = request.into_inner();
        self.inhibitions
            .delete(&request.name, &request.etag, request.force)
            .await?;
        Ok(audit::of(request.name, v1::DeleteInhibitionResponse {}))
    }

    async fn preview_inhibition(
        &self,
        request: Request<v1::PreviewInhibitionRequest>,
    ) -> Result<Response<v1::PreviewInhibitionResponse>, Status> {
        let wire = request.into_inner().inhibition.unwrap_or_default();
        let preview = self.previews.preview(wire.into()).await?;
        Ok(Response::new(convert::preview(preview)))
    }
}
