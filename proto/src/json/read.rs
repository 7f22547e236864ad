//! Converts JSON to protobuf wire bytes in one pass, without an intermediate message.

mod object;
mod scalar;
mod sink;
mod slot;
mod time;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::json::{
    isolate::{List, isolate_malformed},
    plan::{FieldPlan, MessageId, Plan},
    violation::Violations,
};
use sink::{Sink, skip_list};

/// The reason why a text was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// Malformed JSON; contains the error with line and column.
    #[error("not JSON: {0}")]
    Syntax(String),
    /// Well-formed JSON that does not fit the message.
    #[error("{}", .0.to_sentence())]
    Violations(Violations),
}

/// Options for reading a body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'p> {
    /// Whether to ignore unknown fields instead of rejecting them. Unknown enum names are always
    /// rejected.
    pub lenient: bool,
    /// Number of messages that will enclose this one when it is forwarded.
    pub depth: usize,
    /// The list that carries the content of the body. An object must contain it, and an invalid or
    /// malformed entry is set aside instead of rejecting the whole body.
    pub list: Option<&'p FieldPlan>,
}

/// The result of reading a body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// The message's wire bytes.
    pub wire: Vec<u8>,
    /// Paths of the unknown fields that were ignored, up to [`IGNORED`](crate::json::limits::IGNORED).
    pub ignored: Vec<String>,
    /// The entries of [`Options::list`] that were set aside, in order.
    pub refused: Vec<RefusedEntry>,
}

/// An entry of a list that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedEntry {
    /// Index in the list, from 0.
    pub index: usize,
    /// Violations, with paths relative to the entry.
    pub violations: Violations,
    /// The wire bytes of the valid part.
    pub wire: Vec<u8>,
}

/// Reads a JSON object into the wire bytes of a message.
///
/// # Errors
/// Returns an error if the body is not JSON, or lists every field that does not fit the message.
pub fn read(
    plan: &Plan,
    message: MessageId,
    body: &[u8],
    options: Options<'_>,
) -> Result<Read, RejectReason> {
    let whole = read_message(plan, message, body, options);
    let (Err(RejectReason::Syntax(_)), Some(list)) = (&whole, options.list) else {
        return whole;
    };
    let Some(isolated) = isolate_malformed(body, List::Member(&list.json_name)) else {
        return whole;
    };
    let mut read = read_message(plan, message, &isolated.body, options)?;
    for (place, why) in isolated.broken {
        let found = read.refused.iter_mut().find(|entry| entry.index == place);
        if let Some(entry) = found {
            entry.violations = Violations::default();
            entry.violations.add(format!("is not JSON: {why}"));
        }
    }
    Ok(read)
}

fn read_message(
    plan: &Plan,
    message: MessageId,
    body: &[u8],
    options: Options<'_>,
) -> Result<Read, RejectReason> {
    let (read, violations) = read_valid(plan, message, body, options)?;
    if violations.is_empty() {
        Ok(read)
    } else {
        Err(RejectReason::Violations(violations))
    }
}

/// Reads the valid fields of a message, and returns the violations separately.
///
/// # Errors
/// Returns an error if the body is not JSON.
pub fn read_valid(
    plan: &Plan,
    message: MessageId,
    body: &[u8],
    options: Options<'_>,
) -> Result<(Read, Violations), RejectReason> {
    let mut sink = Sink::new(plan, Vec::with_capacity(body.len()), options);
    let mut json = serde_json::Deserializer::from_slice(body);
    Root {
        sink: &mut sink,
        message,
    }
    .deserialize(&mut json)
    .and_then(|()| json.end())
    .map_err(|error| RejectReason::Syntax(error.to_string()))?;
    let ignored = sink.ignored.into_vec().into_iter();
    let read = Read {
        wire: sink.out,
        ignored: ignored.map(|unknown| unknown.field).collect(),
        refused: sink.refused,
    };
    Ok((read, sink.violations))
}

/// Reads the text of a scalar, or of a message that is text in JSON (such as a time), as one field
/// of the wire. For query parameters.
///
/// # Errors
/// Returns a description of the expected text.
pub fn read_text_field(
    plan: &Plan,
    field: &FieldPlan,
    text: &str,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let mut sink = Sink::new(plan, std::mem::take(out), Options::default());
    slot::text_field(&mut sink, field, text);
    *out = sink.out;
    match sink.violations.as_slice().first() {
        Some(violation) => Err(violation.description.clone()),
        None => Ok(()),
    }
}

struct Root<'s, 'p> {
    sink: &'s mut Sink<'p>,
    message: MessageId,
}

impl Root<'_, '_> {
    fn refuse_type(self) {
        self.sink.violations.add("the body must be a JSON object");
    }
}

impl<'de> DeserializeSeed<'de> for Root<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Root<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        // The root of a body is a resource or a request, never a time or a number.
        slot::read_fields(self.sink, self.message, map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<(), A::Error> {
        self.refuse_type();
        skip_list(seq)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.refuse_type();
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.refuse_type();
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.refuse_type();
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.refuse_type();
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.refuse_type();
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.refuse_type();
        Ok(())
    }
}
