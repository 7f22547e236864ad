//! `InhibitionService`.

use bellwether_proto::v1::{self, inhibition_service_server::InhibitionService};
use tonic::{Request, Response, Status, async_trait};

use super::serve::serve;
use crate::ops::inhibition::{InhibitionPreviews, Inhibitions};

#[derive(Debug)]
pub struct InhibitionApi {
    pub(crate) inhibitions: Inhibitions,
    pub(crate) previews: InhibitionPreviews,
}

#[async_trait]
impl InhibitionService for InhibitionApi {
    serve! {
        inhibitions of inhibition;
        create_inhibition(CreateInhibitionRequest) -> CreateInhibitionResponse;
        list_inhibitions(ListInhibitionsRequest) -> ListInhibitionsResponse { inhibitions };
        get_inhibition(GetInhibitionRequest) -> GetInhibitionResponse;
        update_inhibition(UpdateInhibitionRequest) -> UpdateInhibitionResponse;
        delete_inhibition(DeleteInhibitionRequest) -> DeleteInhibitionResponse, |it| it.force;
        stored |_api, _request, stored| { warnings: stored.warnings.clone() }
    }

    async fn preview_inhibition(
        &self,
        request: Request<v1::PreviewInhibitionRequest>,
    ) -> Result<Response<v1::PreviewInhibitionResponse>, Status> {
        let wire = request.into_inner().inhibition.unwrap_or_default();
        Ok(Response::new(self.previews.preview(wire).await?))
    }
}
