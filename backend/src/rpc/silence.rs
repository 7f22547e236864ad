//! `SilenceService`.

use bellwether_proto::v1::{self, silence_service_server::SilenceService};
use tonic::{Request, Response, Status, async_trait};

use super::{access, convert::to_i32};
use crate::ops::{
    silence::{
        SilenceOperations,
        wire::{self as convert, draft_from_wire},
    },
    subject,
};

#[derive(Debug)]
pub struct SilenceApi {
    pub(crate) silences: SilenceOperations,
}

#[async_trait]
impl SilenceService for SilenceApi {
    async fn create_silence(
        &self,
        request: Request<v1::CreateSilenceRequest>,
    ) -> Result<Response<v1::CreateSilenceResponse>, Status> {
        let editor = access::caller(&request)?.name;
        let request = request.into_inner();
        let (tried, broad) = (request.validate_only, request.allow_broad);
        let draft = draft_from_wire(request.silence.unwrap_or_default(), editor);
        let view = self.silences.create(draft, tried, broad).await?;
        let name = view.silence.name.clone();
        let answer = v1::CreateSilenceResponse {
            warnings: view.warnings.clone(),
            silence: Some(view.into()),
        };
        Ok(subject::mutation_response(tried, name, answer))
    }

    async fn list_silences(
        &self,
        request: Request<v1::ListSilencesRequest>,
    ) -> Result<Response<v1::ListSilencesResponse>, Status> {
        let (filter, page) = convert::list(request.into_inner())?;
        let page = self.silences.list(&filter, &page).await?;
        Ok(Response::new(v1::ListSilencesResponse {
            silences: page.items.into_iter().map(Into::into).collect(),
            next_page_token: page.next_page_token,
            total_size: Some(to_i32(page.total)),
        }))
    }

    async fn get_silence(
        &self,
        request: Request<v1::GetSilenceRequest>,
    ) -> Result<Response<v1::GetSilenceResponse>, Status> {
        let view = self.silences.get(&request.into_inner().name).await?;
        Ok(Response::new(v1::GetSilenceResponse {
            silence: Some(view.into()),
        }))
    }

    async fn update_silence(
        &self,
        request: Request<v1::UpdateSilenceRequest>,
    ) -> Result<Response<v1::UpdateSilenceResponse>, Status> {
        let editor = access::caller(&request)?.name;
        let request = request.into_inner();
        let (tried, broad) = (request.validate_only, request.allow_broad);
        let draft = draft_from_wire(request.silence.unwrap_or_default(), editor);
        let view = self.silences.update(draft, tried, broad).await?;
        let name = view.silence.name.clone();
        let answer = v1::UpdateSilenceResponse {
            warnings: view.warnings.clone(),
            silence: Some(view.into()),
        };
        Ok(subject::mutation_response(tried, name, answer))
    }

    async fn delete_silence(
        &self,
        request: Request<v1::DeleteSilenceRequest>,
    ) -> Result<Response<v1::DeleteSilenceResponse>, Status> {
        let request = request.into_inner();
        self.silences.delete(&request.name, &request.etag).await?;
        Ok(subject::for_resource(
            request.name,
            v1::DeleteSilenceResponse {},
        ))
    }

    async fn preview_silence(
        &self,
        request: Request<v1::PreviewSilenceRequest>,
    ) -> Result<Response<v1::PreviewSilenceResponse>, Status> {
        let editor = access::caller(&request)?.name;
        let wire = request.into_inner().silence.unwrap_or_default();
        let preview = self.silences.preview(draft_from_wire(wire, editor)).await?;
        Ok(Response::new(convert::preview(preview)))
    }

    async fn extend_silence(
        &self,
        request: Request<v1::ExtendSilenceRequest>,
    ) -> Result<Response<v1::ExtendSilenceResponse>, Status> {
        let editor = access::caller(&request)?.name;
        let request = request.into_inner();
        let extension = convert::extension(&request)?;
        let extended = self.silences.extend(&request.name, extension, &editor);
        let silence = Some(extended.await?.into());
        Ok(subject::for_resource(
            request.name,
            v1::ExtendSilenceResponse { silence },
        ))
    }

    async fn expire_silence(
        &self,
        request: Request<v1::ExpireSilenceRequest>,
    ) -> Result<Response<v1::ExpireSilenceResponse>, Status> {
        let editor = access::caller(&request)?.name;
        let name = request.into_inner().name;
        let silence = Some(self.silences.expire(&name, &editor).await?.into());
        Ok(subject::for_resource(
            name,
            v1::ExpireSilenceResponse { silence },
        ))
    }

    async fn comment_silence(
        &self,
        request: Request<v1::CommentSilenceRequest>,
    ) -> Result<Response<v1::CommentSilenceResponse>, Status> {
        let editor = access::caller(&request)?.name;
        let request = request.into_inner();
        let commented = self.silences.comment(&request.name, &request.text, &editor);
        let silence = Some(commented.await?.into());
        Ok(subject::for_resource(
            request.name,
            v1::CommentSilenceResponse { silence },
        ))
    }
}
