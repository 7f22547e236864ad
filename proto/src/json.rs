//! Canonical proto3 JSON of the wire messages, converted with tables built from the descriptors.
//!
//! [`from_json`] and [`to_json`] convert typed messages; [`wire_from_json`] and [`wire_to_json`]
//! convert wire bytes of the message with a given name. The modules below are for callers that
//! compile tables of other descriptors or assemble a message from several parts.

pub mod descriptor;
pub mod example;
pub mod isolate;
pub mod limits;
pub mod plan;
pub mod read;
#[cfg(test)]
mod tests;
pub mod violation;
pub mod wire;
pub mod write;

use std::sync::LazyLock;

use prost::Name;

use plan::{MessageId, Plan};
use read::{Options, RejectReason};
use violation::Violations;
use wire::MalformedError;

/// The reason why a conversion failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No message has this full name.
    #[error("unknown message type {0}")]
    UnknownType(String),
    /// The text is not JSON, or does not fit the message; contains every invalid field.
    #[error(transparent)]
    Rejected(#[from] RejectReason),
    /// The bytes are not a valid message of the type, or are nested too deeply.
    #[error(transparent)]
    Malformed(#[from] MalformedError),
}

static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    Plan::compile(&[crate::FILE_DESCRIPTOR_SET]).expect("this crate's descriptors were compiled")
});

/// Returns the tables of every message of this crate, built on first use.
pub fn shared_plan() -> &'static Plan {
    &PLAN
}

/// Parses a JSON object as a message. For an unknown field, the error suggests the most similar
/// known field.
///
/// # Errors
///
/// Returns an error if the text is not JSON, or lists every field that does not fit the message.
pub fn from_json<M: Name + Default>(json: &[u8]) -> Result<M, Error> {
    let wire = wire_from_json(&M::full_name(), json)?;
    M::decode(&*wire).map_err(|_not_ours| MalformedError.into())
}

/// Writes a message as canonical JSON.
///
/// # Errors
/// Returns an error if the message is nested too deeply to be read again, or contains malformed
/// bytes.
pub fn to_json<M: Name>(message: &M) -> Result<Vec<u8>, Error> {
    wire_to_json(&M::full_name(), &message.encode_to_vec())
}

/// Parses a JSON object into the wire bytes of the message with this full name.
///
/// # Errors
/// Same as [`from_json`], or if no message has the name.
pub fn wire_from_json(message: &str, json: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(read::read(&PLAN, find_message(message)?, json, Options::default())?.wire)
}

/// Parses the valid fields of a JSON object, and returns the violations separately.
///
/// # Errors
/// Returns an error if the text is not JSON, or no message has the name.
pub fn partial_wire_from_json(message: &str, json: &[u8]) -> Result<(Vec<u8>, Violations), Error> {
    let (read, violations) =
        read::read_valid(&PLAN, find_message(message)?, json, Options::default())?;
    Ok((read.wire, violations))
}

/// Writes the wire bytes of the message with this full name as canonical JSON.
///
/// # Errors
/// Returns an error if no message has the name, or the bytes are malformed.
pub fn wire_to_json(message: &str, wire: &[u8]) -> Result<Vec<u8>, Error> {
    let mut json = Vec::with_capacity(wire.len() * 2);
    write::write(&PLAN, find_message(message)?, wire, &mut json)?;
    Ok(json)
}

fn find_message(message: &str) -> Result<MessageId, Error> {
    let found = PLAN.by_name.get(message).copied();
    found.ok_or_else(|| Error::UnknownType(message.to_owned()))
}
