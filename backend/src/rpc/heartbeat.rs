//! `HeartbeatService`.

use std::collections::BTreeMap;

use bellwether_proto::v1::{self, heartbeat_service_server::HeartbeatService};
use tonic::{Request, Response, Status, async_trait};

use super::access;
use crate::{
    ops::{
        heartbeat::{
            Expectations, HeartbeatKeys, HeartbeatPreview, HeartbeatPreviews, Heartbeats, Signal,
        },
        page::PageRequest,
        serve::serve,
        subject,
    },
    wire::{
        time::{duration_from_ms, timestamp},
        to_i32,
    },
};

/// Minimum length of a key; the names of signals are shorter.
const KEY_CHARACTERS_MIN: usize = 20;

#[derive(Debug)]
pub struct HeartbeatApi {
    pub(crate) heartbeats: Heartbeats,
    pub(crate) expectations: Expectations,
    pub(crate) keys: HeartbeatKeys,
    pub(crate) previews: HeartbeatPreviews,
}

#[async_trait]
impl HeartbeatService for HeartbeatApi {
    serve! {
        heartbeats of heartbeat;
        create_heartbeat(CreateHeartbeatRequest) -> CreateHeartbeatResponse;
        list_heartbeats(ListHeartbeatsRequest) -> ListHeartbeatsResponse { heartbeats };
        get_heartbeat(GetHeartbeatRequest) -> GetHeartbeatResponse, detailed by expectations;
        update_heartbeat(UpdateHeartbeatRequest) -> UpdateHeartbeatResponse;
        delete_heartbeat(DeleteHeartbeatRequest) -> DeleteHeartbeatResponse, |_| false;
        stored |_api, _request, stored| { warnings: stored.warnings.clone() }
    }

    async fn list_expectations(
        &self,
        request: Request<v1::ListExpectationsRequest>,
    ) -> Result<Response<v1::ListExpectationsResponse>, Status> {
        let request = request.into_inner();
        let page = PageRequest::new(request.page_size, request.page_token);
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
            .delete(&request.name, &request.key)
            .await?;
        Ok(subject::for_resource(
            request.name,
            v1::ForgetExpectationResponse {},
        ))
    }

    async fn preview_heartbeat(
        &self,
        request: Request<v1::PreviewHeartbeatRequest>,
    ) -> Result<Response<v1::PreviewHeartbeatResponse>, Status> {
        let draft = request.into_inner().heartbeat.unwrap_or_default();
        let previewed = self.previews.preview(draft).await?;
        Ok(Response::new(preview_response(previewed)))
    }

    async fn rotate_heartbeat_key(
        &self,
        request: Request<v1::RotateHeartbeatKeyRequest>,
    ) -> Result<Response<v1::RotateHeartbeatKeyResponse>, Status> {
        let name = request.into_inner().name;
        let key = self.keys.rotate(&name).await?;
        let key = key.reveal().to_owned();
        let path = format!("/v1/data-receiver/heartbeats/{key}");
        let answer = v1::RotateHeartbeatKeyResponse { key, path };
        Ok(subject::for_resource(name, answer))
    }

    async fn beat(
        &self,
        request: Request<v1::BeatRequest>,
    ) -> Result<Response<v1::BeatResponse>, Status> {
        let scope = access::caller(&request)?.scope;
        let request = request.into_inner();
        let signal = Signal::from_call(request.start, request.exit)?;
        self.expectations
            .record_beat_from_source(&scope.sources, &request.name, &request.dimensions, signal)
            .await?;
        Ok(Response::new(v1::BeatResponse {}))
    }

    async fn beat_by_key(
        &self,
        request: Request<v1::BeatByKeyRequest>,
    ) -> Result<Response<v1::BeatByKeyResponse>, Status> {
        let request = parse_address(request.into_inner());
        let name = self.keys.check_key(&request.name, &request.key).await?;
        let signal = Signal::from_request(&request)?;
        if signal != Signal::Log {
            let none = BTreeMap::new();
            self.expectations.record_beat(&name, &none, signal).await?;
        }
        Ok(Response::new(v1::BeatByKeyResponse {}))
    }
}

/// Splits a path of an earlier version, `NAME/KEY`, into the fields of the request.
fn parse_address(request: v1::BeatByKeyRequest) -> v1::BeatByKeyRequest {
    let is_key = request.signal.len() >= KEY_CHARACTERS_MIN && request.name.is_empty();
    if !is_key {
        return request;
    }
    v1::BeatByKeyRequest {
        name: request.key,
        key: request.signal,
        signal: String::new(),
        ..request
    }
}

fn preview_response(previewed: HeartbeatPreview) -> v1::PreviewHeartbeatResponse {
    let expectations = previewed.expectations.into_iter();
    let expectations = expectations.map(|it| {
        let values = it.values.into_iter();
        v1::PreviewedExpectation {
            values: values
                .filter_map(|(name, value)| Some((name, value?)))
                .collect(),
            beat_count: Some(i64::try_from(it.beat_count).unwrap_or(i64::MAX)),
            longest_gap: Some(duration_from_ms(it.longest_ms)),
            last_beat_time: it.last_ms.map(timestamp),
            alarm_count: Some(to_i32(it.alarm_count)),
        }
    });
    v1::PreviewHeartbeatResponse {
        expectations: expectations.collect(),
        expectation_count: Some(to_i32(previewed.expectation_count)),
        alarm_count: Some(to_i32(previewed.alarm_count)),
        occurrence_count: Some(to_i32(previewed.occurrence_count)),
        start_time: Some(timestamp(previewed.start_ms)),
        stopped_early: previewed.stopped_early,
        warnings: previewed.warnings,
    }
}
