//! A call: the request for a method, and its response as received.

use std::time::Duration;

use bellwether_proto::json;
use prost::{Message, Name};
use serde_json::Value;

use super::{failure::malformed_response, outcome::WriteOutcome};
use crate::{
    data::{Failure, FailureKind},
    limits,
};

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) service: &'static str,
    pub(crate) method: &'static str,
    pub(crate) body: Value,
    pub(crate) limit: Duration,
    pub(crate) parse_outcome: Option<ParseOutcome>,
}

/// Calls with equal requests are equal, regardless of their parsers.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        let target = |call: &Self| (call.service, call.method, call.is_write());
        target(self) == target(other) && self.body == other.body
    }
}

pub(crate) type ParseOutcome = fn(CallResult) -> Result<WriteOutcome, Failure>;

pub(crate) type CallResult = Result<Vec<u8>, Failure>;

impl Call {
    pub(crate) fn new(service: &'static str, method: &'static str, body: Value) -> Self {
        Self {
            service,
            method,
            body,
            limit: limits::CALL,
            parse_outcome: None,
        }
    }

    /// Creates a read-only call. The method has the name of the request, without the suffix.
    pub(crate) fn from_request<Q: Name>(service: &'static str, request: &Q) -> Self {
        let method = Q::NAME.strip_suffix("Request");
        let body = json::to_json(request).ok();
        let body = body.and_then(|text| serde_json::from_slice(&text).ok());
        Self::new(
            service,
            method.expect("requests are named after their method"),
            body.expect("every message of ours has a JSON form"),
        )
    }

    pub(crate) fn with_long_timeout(self) -> Self {
        let limit = limits::TEST_CALL;
        Self { limit, ..self }
    }

    /// Marks the call as a write, which requires a confirmation or an undo.
    pub(crate) fn into_write(self, parse_outcome: ParseOutcome) -> Self {
        let parse_outcome = Some(parse_outcome);
        Self {
            parse_outcome,
            ..self
        }
    }

    pub(crate) fn is_write(&self) -> bool {
        self.parse_outcome.is_some()
    }
}

pub(crate) fn message<A: Message + Default>(answer: CallResult) -> Result<A, Failure> {
    A::decode(&*answer?).map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))
}

pub(crate) fn decode_json(method: &str, answer: CallResult) -> Result<Value, Failure> {
    let name = format!("bellwether.v1.{method}Response");
    let text = json::wire_to_json(&name, &answer?).map_err(|error| malformed_response(&error))?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))
}

/// Parses the response of a write that succeeds or fails as a whole.
pub(crate) fn parse_empty(answer: CallResult) -> Result<WriteOutcome, Failure> {
    answer.map(|_done| WriteOutcome::All)
}
