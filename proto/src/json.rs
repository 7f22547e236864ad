//! Canonical proto3 JSON of the wire's messages and back, by tables made from the descriptors.
//!
//! [`from_json`] and [`to_json`] are for typed messages, [`wire_from_json`] and [`wire_to_json`]
//! for messages that are known by name and stay wire bytes. The modules below are what they are
//! built from, for who compiles tables of other descriptors or puts a message together from several
//! parts.

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
use read::{Options, Rejected};
use violation::Violations;
use wire::Malformed;

/// Why JSON was not read as a message, or a message not written as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No message of the wire has this full name.
    #[error("there is no message type {0}")]
    UnknownType(String),
    /// The text is not JSON, or does not fit the message; names every field that does not.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The bytes are no message of the type, or one nested too deep.
    #[error(transparent)]
    Malformed(#[from] Malformed),
}

static PLAN: LazyLock<Plan> = LazyLock::new(|| {
    Plan::compile(&[crate::FILE_DESCRIPTOR_SET]).expect("this crate's descriptors were compiled")
});

/// The tables of every message of this crate, made on first use.
pub fn plan() -> &'static Plan {
    &PLAN
}

/// Reads a JSON object as a message. Unknown fields are refused with the nearest known one.
///
/// # Errors
/// When the text is not JSON, or with every field of it that does not fit the message.
pub fn from_json<M: Name + Default>(json: &[u8]) -> Result<M, Error> {
    let wire = wire_from_json(&M::full_name(), json)?;
    M::decode(&*wire).map_err(|_not_ours| Malformed.into())
}

/// Writes a message as canonical JSON.
///
/// # Errors
/// When the message is nested too deep to be read again, or holds bytes that are no message.
pub fn to_json<M: Name>(message: &M) -> Result<Vec<u8>, Error> {
    wire_to_json(&M::full_name(), &message.encode_to_vec())
}

/// Reads a JSON object into the wire bytes of the message with this full name.
///
/// # Errors
/// As [`from_json`], and when no message has the name.
pub fn wire_from_json(message: &str, json: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(read::read(&PLAN, named(message)?, json, Options::default())?.wire)
}

/// Reads what fits the message with this full name, beside what does not.
///
/// # Errors
/// When the text is not JSON, or no message has the name.
pub fn fitting_wire_from_json(message: &str, json: &[u8]) -> Result<(Vec<u8>, Violations), Error> {
    let (read, violations) = read::read_fitting(&PLAN, named(message)?, json, Options::default())?;
    Ok((read.wire, violations))
}

/// Writes the wire bytes of the message with this full name as canonical JSON.
///
/// # Errors
/// When no message has the name, or the bytes are not one of it.
pub fn wire_to_json(message: &str, wire: &[u8]) -> Result<Vec<u8>, Error> {
    let mut json = Vec::with_capacity(wire.len() * 2);
    write::write(&PLAN, named(message)?, wire, &mut json)?;
    Ok(json)
}

fn named(message: &str) -> Result<MessageId, Error> {
    let found = PLAN.by_name.get(message).copied();
    found.ok_or_else(|| Error::UnknownType(message.to_owned()))
}
