//! Transport of calls: the channel that adds the key to every call, and single calls.

use std::time::Duration;

use bellwether_proto::{AGENT_KEY, codec::BytesCodec, json};
use serde_json::Value;
use tokio::time;
use tonic::{
    client::Grpc, codegen::http::uri::PathAndQuery, service::interceptor::InterceptedService,
    transport::Channel,
};

use super::{
    call::{CallResult, decode_json},
    failure::{failure, malformed_response},
    keys::Keys,
};
use crate::{
    data::{Failure, FailureKind, FieldError},
    limits,
};

pub(crate) type Carrier = InterceptedService<Channel, KeyHolder>;

/// Interceptor that adds the current key to every call.
#[derive(Clone)]
pub(crate) struct KeyHolder(Keys);

impl KeyHolder {
    pub(super) fn new(keys: Keys) -> Self {
        Self(keys)
    }
}

impl tonic::service::Interceptor for KeyHolder {
    fn call(
        &mut self,
        mut request: tonic::Request<()>,
    ) -> Result<tonic::Request<()>, tonic::Status> {
        if let Some(key) = self.0.key() {
            request.metadata_mut().insert("authorization", key);
        }
        if let Some(agent) = self.0.agent.clone() {
            request.metadata_mut().insert(AGENT_KEY, agent);
        }
        Ok(request)
    }
}

pub(crate) struct Transport {
    pub(crate) carrier: Carrier,
    pub(crate) limit: Duration,
    pub(super) broken: Option<Failure>,
}

impl Transport {
    pub(crate) fn from_carrier(carrier: Carrier) -> Self {
        Self {
            carrier,
            limit: limits::CALL,
            broken: None,
        }
    }

    pub(super) async fn request(
        &mut self,
        service: &str,
        method: &str,
        request: &Value,
    ) -> CallResult {
        let name = format!("bellwether.v1.{method}Request");
        let wire = json::wire_from_json(&name, request.to_string().as_bytes())
            .map_err(|error| malformed_response(&error))?;
        self.call(&format!("{service}/{method}"), wire).await
    }

    pub(crate) async fn request_json(
        &mut self,
        service: &str,
        method: &str,
        request: &Value,
    ) -> Result<Value, Failure> {
        decode_json(method, self.request(service, method, request).await)
    }

    /// Like [`Self::request_json`], for requests that support `validateOnly`. If the request does not
    /// fit the message, the failure also contains the violations that the service finds in the
    /// rest.
    pub(crate) async fn request_json_checked(
        &mut self,
        service: &str,
        method: &str,
        request: &Value,
    ) -> Result<Value, Failure> {
        let mut failed = match self.request_json(service, method, request).await {
            Err(failed) if failed.kind == FailureKind::Invalid && !failed.fields.is_empty() => {
                failed
            }
            done => return done,
        };
        let name = format!("bellwether.v1.{method}Request");
        let mut trial = request.clone();
        trial["validateOnly"] = true.into();
        let read = json::partial_wire_from_json(&name, trial.to_string().as_bytes());
        let Some((wire, _)) = read.ok().filter(|(_, violations)| !violations.is_empty()) else {
            return Err(failed);
        };
        if let Err(more) = self.call(&format!("{service}/{method}"), wire).await {
            // The service may report a field as missing that was omitted because it is invalid.
            let is_known = |field: &FieldError| {
                let mut known = failed.fields.iter();
                known.any(|it| is_within(&it.path, &field.path) || is_within(&field.path, &it.path))
            };
            let (_, more): (Vec<_>, Vec<_>) = more.fields.into_iter().partition(is_known);
            failed.fields.extend(more);
        }
        Err(failed)
    }

    async fn call(&mut self, method: &str, request: Vec<u8>) -> CallResult {
        let carrier = self.carrier.clone();
        let path = PathAndQuery::try_from(format!("/bellwether.v1.{method}"))
            .expect("methods are named in letters");
        let call = async {
            let mut grpc = Grpc::new(carrier).max_decoding_message_size(limits::MESSAGE_BYTES);
            let ready = grpc.ready().await;
            ready.map_err(|error| tonic::Status::unavailable(error.to_string()))?;
            let answer = grpc
                .unary(tonic::Request::new(request.into()), path, BytesCodec)
                .await?;
            Ok(answer.into_inner().into())
        };
        let seconds = self.limit.as_secs();
        let failed = match time::timeout(self.limit, call).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => failure(&status),
            Err(_elapsed) => Failure::new(
                FailureKind::TimedOut,
                format!("no response within {seconds} s; a change may have been made"),
            ),
        };
        if failed.is_connection_failure() {
            self.broken = Some(failed.clone());
        }
        Err(failed)
    }
}

fn is_within(field: &str, other: &str) -> bool {
    let below = field.strip_prefix(other);
    below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
}

pub(super) fn not_connected() -> Failure {
    Failure::new(FailureKind::Unreachable, "not connected")
}
