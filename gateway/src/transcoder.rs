//! JSON to wire bytes and back as the gateway does it, for tools and measurements.

use crate::{
    json_in::{self, Options, Rejected},
    json_out,
    plan::{MessageId, Plan},
};

/// Turns JSON into wire bytes and back, by tables compiled from descriptors.
#[derive(Debug)]
pub struct Transcoder {
    plan: Plan,
    message: MessageId,
}

/// Why something was not transcoded: a sentence that names what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TranscodeError(String);

impl Transcoder {
    /// Compiles the tables for one message type of an encoded `FileDescriptorSet`.
    ///
    /// # Errors
    /// When the set cannot be read or has no message type of that full name.
    pub fn new(descriptor_set: &[u8], message: &str) -> Result<Self, TranscodeError> {
        let plan =
            Plan::compile(&[descriptor_set]).map_err(|error| TranscodeError(error.to_string()))?;
        match plan.by_name.get(message).copied() {
            Some(message) => Ok(Self { plan, message }),
            None => Err(TranscodeError(format!(
                "there is no message type {message}"
            ))),
        }
    }

    /// Reads a JSON object into the wire bytes of the message. Unknown fields are refused.
    ///
    /// # Errors
    /// When the text is not JSON or does not fit the message.
    pub fn read(&self, json: &[u8]) -> Result<Vec<u8>, TranscodeError> {
        let options = Options {
            lenient: false,
            depth: 0,
        };
        json_in::read(&self.plan, self.message, json, options).map_err(|rejected| match rejected {
            Rejected::Syntax(text) => TranscodeError(text),
            Rejected::Violations(violations) => TranscodeError(violations.sentence()),
        })
    }

    /// Appends the message to `json` in canonical form.
    ///
    /// # Errors
    /// When the bytes are not a message of this type; `json` then holds a part of it.
    pub fn write(&self, wire: &[u8], json: &mut Vec<u8>) -> Result<(), TranscodeError> {
        let written = json_out::write(&self.plan, self.message, wire, json);
        written.map_err(|error| TranscodeError(error.to_string()))
    }
}
