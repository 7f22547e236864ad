//! `HeartbeatService`.

use bellwether_proto::v1::{self, heartbeat_service_server::HeartbeatService};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tonic::{Request, Response, Status, async_trait};

use super::{audit, serve::serve};
use crate::ops::{
    heartbeat::{Expectations, HeartbeatKeys, Heartbeats},
    page::PageRequest,
};

/// Serves heartbeats, and accepts beats.
#[derive(Debug)]
pub struct HeartbeatApi {
    heartbeats: Heartbeats,
    expectations: Expectations,
    keys: HeartbeatKeys,
}

impl HeartbeatApi {
    /// Serves these heartbeats.
    pub fn new(heartbeats: Heartbeats, expectations: Expectations, keys: HeartbeatKeys) -> Self {
        Self {
            heartbeats,
            expectations,
            keys,
        }
    }
}

#[async_trait]
impl HeartbeatService for HeartbeatApi {
    serve! {
        heartbeats of heartbeat;
        create_heartbeat(CreateHeartbeatRequest) -> CreateHeartbeatResponse;
        list_heartbeats(ListHeartbeatsRequest) -> ListHeartbeatsResponse { heartbeats };
        get_heartbeat(GetHeartbeatRequest) -> GetHeartbeatResponse;
        update_heartbeat(UpdateHeartbeatRequest) -> UpdateHeartbeatResponse;
        delete_heartbeat(DeleteHeartbeatRequest) -> DeleteHeartbeatResponse, |_| false;
        stored |_api, _request, stored| { warnings: stored.warnings.clone() }
    }

    async fn list_expectations(
        &self,
        request: Request<v1::ListExpectationsRequest>,
    ) -> Result<Response<v1::ListExpectationsResponse>, Status> {
        let request = request.into_inner();
        let page = PageRequest {
            size: request.page_size,
            token: request.page_token,
        };
        let (expectations, next_page_token) = self.expectations.list(&request.name, &page).await?;
        Ok(Response::new(v1::ListExpectationsResponse {
            expectations,
            next_page_token,
        }))
    }

    async fn forget_expectation(
        &self,
        request: Request<v1::ForgetExpectationRequest>,
    ) -> Result<Response<v1::ForgetExpectationResponse>, Status> {
        let request = request.into_inner();
        self.expectations
            .forget(&request.name, &request.key)
            .await?;
        Ok(audit::of(request.name, v1::ForgetExpectationResponse {}))
    }

    async fn rotate_heartbeat_key(
        &self,
        request: Request<v1::RotateHeartbeatKeyRequest>,
    ) -> Result<Response<v1::RotateHeartbeatKeyResponse>, Status> {
        let name = request.into_inner().name;
        let key = self.keys.rotate(&name).await?;
        let encoded = utf8_percent_encode(&name, NON_ALPHANUMERIC);
        let path = format!("/v1/data-receiver/heartbeats/{encoded}/{key}");
        let answer = v1::RotateHeartbeatKeyResponse { key, path };
        Ok(audit::of(name, answer))
    }

    async fn beat(
        &self,
        request: Request<v1::BeatRequest>,
    ) -> Result<Response<v1::BeatResponse>, Status> {
        let request = request.into_inner();
        let has_failed = request.exit.unwrap_or_default() != 0;
        self.expectations
            .beat(&request.name, &request.dimensions, has_failed)
            .await?;
        Ok(Response::new(v1::BeatResponse {}))
    }

    async fn beat_by_key(
        &self,
        request: Request<v1::BeatByKeyRequest>,
    ) -> Result<Response<v1::BeatByKeyResponse>, Status> {
        let request = request.into_inner();
        self.keys.check(&request.name, &request.key).await?;
        let has_failed = request.exit.unwrap_or_default() != 0;
        let none = std::collections::BTreeMap::new();
        self.expectations
            .beat(&request.name, &none, has_failed)
            .await?;
        Ok(Response::new(v1::BeatByKeyResponse {}))
    }
}
