//! One call: what is asked of which method, and its answer as it came.

use std::time::Duration;

use bellwether_proto::json;
use prost::{Message, Name};
use serde_json::Value;

use super::{failure::unfit, written::Taken};
use crate::{
    data::{Failure, FailureKind},
    limits,
};

/// What is asked of a method.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// As `RuleService`.
    pub(crate) service: &'static str,
    /// As `PreviewRule`.
    pub(crate) method: &'static str,
    /// The request, as canonical JSON.
    pub(crate) body: Value,
    /// When it is given up.
    pub(crate) limit: Duration,
    /// Of a call that changes something at the service: what its answer says was done.
    pub(crate) taken: Option<ReadTaken>,
}

/// Calls that ask the same are equal, however their answers are read.
impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        let asked = |call: &Self| (call.service, call.method, call.is_write());
        asked(self) == asked(other) && self.body == other.body
    }
}

/// Reads what a write came to from its answer on the wire.
pub(crate) type ReadTaken = fn(Answer) -> Result<Taken, Failure>;

/// The answer to a call: a message on the wire.
pub(crate) type Answer = Result<Vec<u8>, Failure>;

impl Call {
    /// A call that changes nothing, by the names of the wire.
    pub(crate) fn new(service: &'static str, method: &'static str, body: Value) -> Self {
        Self {
            service,
            method,
            body,
            limit: limits::CALL,
            taken: None,
        }
    }

    /// A call that changes nothing. The name of the request is that of the method.
    pub(crate) fn of<Q: Name>(service: &'static str, request: &Q) -> Self {
        let method = Q::NAME.strip_suffix("Request");
        let body = json::to_json(request).ok();
        let body = body.and_then(|text| serde_json::from_slice(&text).ok());
        Self::new(
            service,
            method.expect("requests are named after their method"),
            body.expect("every message of ours has a JSON form"),
        )
    }

    /// The same, which may take longer.
    pub(crate) fn long(self) -> Self {
        let limit = limits::TEST_CALL;
        Self { limit, ..self }
    }

    /// The same as a call that changes something: it needs a confirmation, or something that takes it
    /// back.
    pub(crate) fn writes(self, taken: ReadTaken) -> Self {
        let taken = Some(taken);
        Self { taken, ..self }
    }

    /// Whether it changes something at the service.
    pub(crate) fn is_write(&self) -> bool {
        self.taken.is_some()
    }
}

/// An answer as the message that it is.
pub(crate) fn message<A: Message + Default>(answer: Answer) -> Result<A, Failure> {
    A::decode(&*answer?).map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))
}

/// An answer of this method as canonical JSON.
pub(crate) fn document(method: &str, answer: Answer) -> Result<Value, Failure> {
    let name = format!("bellwether.v1.{method}Response");
    let text = json::wire_to_json(&name, &answer?).map_err(|error| unfit(&error))?;
    serde_json::from_slice(&text)
        .map_err(|error| Failure::new(FailureKind::Internal, error.to_string()))
}

/// A write that is done as a whole or fails.
pub(crate) fn whole(answer: Answer) -> Result<Taken, Failure> {
    answer.map(|_done| Taken::All)
}
