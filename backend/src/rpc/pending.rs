//! `PendingService`: pending notifications.

use bellwether_proto::v1::{self, pending_service_server::PendingService};
use tonic::{Request, Response, Status, async_trait};

use super::convert::pending as convert;
use crate::ops::{decision_context::DecisionContext, intake::Intake, pending, subject};

#[derive(Debug)]
pub struct PendingApi {
    pub(crate) deciding: DecisionContext,
    pub(crate) intake: Intake,
}

#[async_trait]
impl PendingService for PendingApi {
    async fn list_pending(
        &self,
        request: Request<v1::ListPendingRequest>,
    ) -> Result<Response<v1::ListPendingResponse>, Status> {
        let (filter, page) = convert::list(request.into_inner())?;
        let (waits, next_page_token) =
            pending::list_pending(&self.deciding, &filter, &page).await?;
        Ok(Response::new(v1::ListPendingResponse {
            pending: waits.into_iter().map(convert::pending_to_wire).collect(),
            next_page_token,
        }))
    }

    async fn release_pending(
        &self,
        request: Request<v1::ReleasePendingRequest>,
    ) -> Result<Response<v1::ReleasePendingResponse>, Status> {
        let request = request.into_inner();
        let target = convert::target(&request)?;
        let deciding = (&self.deciding, &self.intake);
        let sent = pending::release_pending(deciding, &request.rule_name, target).await?;
        let answer = v1::ReleasePendingResponse {
            delivery_ids: sent.iter().map(ToString::to_string).collect(),
        };
        let named = format!("{} of {}", request.rule_name, request.event_id);
        Ok(subject::for_resource(named, answer))
    }
}
