//! `ViewService`.

use bellwether_proto::v1::{self, view_service_server::ViewService};
use tonic::{Request, Response, Status, async_trait};

use super::{
    audit,
    convert::list::{count, page_and_filter},
};
use crate::ops::saved_view::{SavedViews, ViewDraft};

/// Serves views.
#[derive(Debug)]
pub struct ViewApi {
    views: SavedViews,
}

impl ViewApi {
    /// Serves these views.
    pub fn new(views: SavedViews) -> Self {
        Self { views }
    }
}

#[async_trait]
impl ViewService for ViewApi {
    async fn create_view(
        &self,
        request: Request<v1::CreateViewRequest>,
    ) -> Result<Response<v1::CreateViewResponse>, Status> {
        let request = request.into_inner();
        let draft = ViewDraft::from(request.view.unwrap_or_default());
        let view = self.views.create(draft, request.validate_only).await?;
        let name = view.name.clone();
        let view = Some(view.into());
        let answer = v1::CreateViewResponse { view };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn list_views(
        &self,
        request: Request<v1::ListViewsRequest>,
    ) -> Result<Response<v1::ListViewsResponse>, Status> {
        let wire = request.into_inner();
        let page = (wire.page_size, wire.page_token);
        let (page, filter) = page_and_filter(page, wire.names, wire.tags, wire.q);
        let page = self.views.list(&filter, &page).await?;
        Ok(Response::new(v1::ListViewsResponse {
            views: page.items.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            total_size: Some(count(page.total)),
        }))
    }

    async fn get_view(
        &self,
        request: Request<v1::GetViewRequest>,
    ) -> Result<Response<v1::GetViewResponse>, Status> {
        let view = self.views.get(&request.into_inner().name).await?;
        let view = Some(view.into());
        Ok(Response::new(v1::GetViewResponse { view }))
    }

    async fn update_view(
        &self,
        request: Request<v1::UpdateViewRequest>,
    ) -> Result<Response<v1::UpdateViewResponse>, Status> {
        let request = request.into_inner();
        let draft = ViewDraft::from(request.view.unwrap_or_default());
        let view = self.views.update(draft, request.validate_only).await?;
        let name = view.name.clone();
        let view = Some(view.into());
        let answer = v1::UpdateViewResponse { view };
        Ok(audit::unless(request.validate_only, name, answer))
    }

    async fn delete_view(
        &self,
        request: Request<v1::DeleteViewRequest>,
    ) -> Result<Response<v1::DeleteViewResponse>, Status> {
        let request = request.into_inner();
        self.views
            .delete(&request.name, &request.etag, request.force)
            .await?;
        Ok(audit::of(request.name, v1::DeleteViewResponse {}))
    }
}
