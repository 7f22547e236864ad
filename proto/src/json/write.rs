//! Converts protobuf wire bytes to JSON, without an intermediate message.

mod any;
mod scalar;
mod well_known;

use crate::json::{
    limits,
    plan::{Cardinality, FieldPlan, Kind, MessageId, MessagePlan, Plan, Shape},
    wire::{MalformedError, Reader, Value, WireType},
};

/// Writes the wire bytes of a message as canonical proto3 JSON. Unknown fields are omitted; unknown
/// enum numbers are written as numbers.
///
/// # Errors
/// Returns an error if the bytes are not a valid message of this type. `out` then contains an
/// incomplete result.
pub fn write(
    plan: &Plan,
    message: MessageId,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), MalformedError> {
    Writer {
        plan,
        out,
        found: Vec::new(),
        depth: 0,
    }
    .write_message(message, bytes)
}

struct Writer<'a, 'o> {
    plan: &'a Plan,
    out: &'o mut Vec<u8>,
    /// Stack of fields: the fields of a nested message are above those of the enclosing message.
    found: Vec<PresentField<'a>>,
    depth: usize,
}

#[derive(Debug, Clone, Copy)]
struct PresentField<'a> {
    field: usize,
    value: Value<'a>,
}

impl<'a> Writer<'a, '_> {
    fn write_message(&mut self, id: MessageId, bytes: &'a [u8]) -> Result<(), MalformedError> {
        if self.depth > limits::MESSAGE_DEPTH {
            return Err(MalformedError);
        }
        self.depth += 1;
        match self.plan.messages[id].shape {
            Shape::Plain => {
                self.out.push(b'{');
                self.write_fields(id, bytes, true)?;
                self.out.push(b'}');
            }
            Shape::Any => self.write_any(bytes)?,
            Shape::Duration => self.write_duration(bytes)?,
            Shape::FieldMask => self.write_field_mask(bytes)?,
            Shape::ListValue => self.write_only_field(id, bytes, "[]")?,
            Shape::Struct => self.write_only_field(id, bytes, "{}")?,
            Shape::Timestamp => self.write_timestamp(bytes)?,
            Shape::Value => self.write_struct_value(id, bytes)?,
            Shape::Wrapper => self.write_wrapper(id, bytes)?,
        }
        self.depth -= 1;
        Ok(())
    }

    /// Writes the members of a message. Fields can be on the wire in any order and in parts, so
    /// they are collected first and then written in the order of their numbers.
    fn write_fields(
        &mut self,
        id: MessageId,
        bytes: &'a [u8],
        first: bool,
    ) -> Result<(), MalformedError> {
        let message = &self.plan.messages[id];
        let base = self.scan_fields(message, bytes)?;
        let mut first = first;
        let mut at = base;
        while at < self.found.len() {
            let index = self.found[at].field;
            let same = self.found[at..]
                .iter()
                .take_while(|found| found.field == index)
                .count();
            let field = &message.fields[index];
            if self.is_written(field, at, same) {
                if !first {
                    self.out.push(b',');
                }
                first = false;
                self.out.extend_from_slice(&field.key);
                self.write_field(field, at, same)?;
            }
            at += same;
        }
        self.found.truncate(base);
        Ok(())
    }

    /// Collects the known fields of a message. Returns their start on the stack.
    fn scan_fields(
        &mut self,
        message: &MessagePlan,
        bytes: &'a [u8],
    ) -> Result<usize, MalformedError> {
        let base = self.found.len();
        let mut reader = Reader::new(bytes);
        let mut sorted = true;
        while !reader.is_empty() {
            let (number, value) = reader.read_field()?;
            let Some(field) = message.field_index_by_number(number) else {
                continue;
            };
            if self.found.len() > base {
                sorted &= self.found.last().is_none_or(|last| last.field <= field);
            }
            self.found.push(PresentField { field, value });
        }
        if !sorted {
            self.found[base..].sort_by_key(|found| found.field);
        }
        Ok(base)
    }

    fn is_written(&self, field: &FieldPlan, at: usize, count: usize) -> bool {
        match field.cardinality {
            Cardinality::Single if field.presence => true,
            Cardinality::Single => !scalar::is_zero(self.found[at + count - 1].value),
            Cardinality::Repeated { .. } | Cardinality::Map => {
                let packed = |value| {
                    field.kind.wire_type() != WireType::Bytes && matches!(value, Value::Bytes([]))
                };
                !self.found[at..at + count]
                    .iter()
                    .all(|found| packed(found.value))
            }
        }
    }

    fn write_field(
        &mut self,
        field: &'a FieldPlan,
        at: usize,
        count: usize,
    ) -> Result<(), MalformedError> {
        match field.cardinality {
            Cardinality::Single => match field.kind {
                Kind::Message(id) if count > 1 => self.write_merged(id, at, count),
                kind => self.write_value(kind, self.found[at + count - 1].value),
            },
            Cardinality::Repeated { .. } => {
                self.out.push(b'[');
                for at in at..at + count {
                    self.write_elements(field.kind, self.found[at].value)?;
                }
                self.end_brackets(b']');
                Ok(())
            }
            Cardinality::Map => {
                self.out.push(b'{');
                for at in at..at + count {
                    self.write_entry(field, self.found[at].value)?;
                }
                self.end_brackets(b'}');
                Ok(())
            }
        }
    }

    /// Ends a list or map, replacing the trailing comma of its last element.
    fn end_brackets(&mut self, bracket: u8) {
        if self.out.last() == Some(&b',') {
            self.out.pop();
        }
        self.out.push(bracket);
    }

    /// Writes one element, or all of a packed record, each with a trailing comma.
    fn write_elements(&mut self, kind: Kind, value: Value<'a>) -> Result<(), MalformedError> {
        match (kind.wire_type(), value) {
            (WireType::Bytes, _)
            | (_, Value::Varint(_) | Value::Fixed32(_) | Value::Fixed64(_)) => {
                self.write_value(kind, value)?;
                self.out.push(b',');
            }
            (wire_type, Value::Bytes(packed)) => {
                let mut reader = Reader::new(packed);
                while !reader.is_empty() {
                    let value = match wire_type {
                        WireType::Fixed32 => Value::Fixed32(reader.read_fixed32()?),
                        WireType::Fixed64 => Value::Fixed64(reader.read_fixed64()?),
                        _ => Value::Varint(reader.read_varint()?),
                    };
                    self.write_value(kind, value)?;
                    self.out.push(b',');
                }
            }
        }
        Ok(())
    }

    /// Writes one entry of a map with a trailing comma. A missing key or value is zero.
    fn write_entry(&mut self, field: &FieldPlan, entry: Value<'a>) -> Result<(), MalformedError> {
        let (Kind::Message(id), Value::Bytes(bytes)) = (field.kind, entry) else {
            return Err(MalformedError);
        };
        let fields = &self.plan.messages[id].fields;
        let (mut key, mut value) = (None, None);
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.read_field()? {
                (1, found) => key = Some(found),
                (2, found) => value = Some(found),
                _ => {}
            }
        }
        let [key_field, value_field] = &fields[..] else {
            return Err(MalformedError);
        };
        let quote = !matches!(
            scalar::quote_rule(key_field.kind),
            scalar::QuoteRule::Quoted
        );
        if quote {
            self.out.push(b'"');
        }
        self.write_value(
            key_field.kind,
            key.unwrap_or_else(|| scalar::zero_value(key_field.kind)),
        )?;
        if quote {
            self.out.push(b'"');
        }
        self.out.push(b':');
        self.write_value(
            value_field.kind,
            value.unwrap_or_else(|| scalar::zero_value(value_field.kind)),
        )?;
        self.out.push(b',');
        Ok(())
    }

    fn write_value(&mut self, kind: Kind, value: Value<'a>) -> Result<(), MalformedError> {
        match (kind, value) {
            (Kind::Message(id), Value::Bytes(bytes)) => self.write_message(id, bytes),
            (Kind::Message(_), _) => Err(MalformedError),
            _ => scalar::write(self.plan, kind, value, self.out),
        }
    }

    /// Writes a message split into several records, which are concatenated.
    fn write_merged(
        &mut self,
        id: MessageId,
        at: usize,
        count: usize,
    ) -> Result<(), MalformedError> {
        let mut whole = Vec::new();
        for found in &self.found[at..at + count] {
            match found.value {
                Value::Bytes(bytes) => whole.extend_from_slice(bytes),
                _ => return Err(MalformedError),
            }
        }
        let (plan, depth) = (self.plan, self.depth);
        Writer {
            plan,
            out: &mut *self.out,
            found: Vec::new(),
            depth,
        }
        .write_message(id, &whole)
    }
}
