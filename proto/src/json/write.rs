//! Converts protobuf wire bytes to JSON, without an intermediate message.

mod any;
mod scalar;
mod well_known;

use crate::json::{
    limits,
    plan::{Cardinality, FieldPlan, Kind, MessageId, MessagePlan, Plan, Shape},
    wire::{Malformed, Reader, Value, WireType},
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
) -> Result<(), Malformed> {
    Writer {
        plan,
        out,
        found: Vec::new(),
        depth: 0,
    }
    .message(message, bytes)
}

struct Writer<'a, 'o> {
    plan: &'a Plan,
    out: &'o mut Vec<u8>,
    /// Stack of fields: those of an open message are above those of its enclosing message.
    found: Vec<PresentField<'a>>,
    depth: usize,
}

#[derive(Debug, Clone, Copy)]
struct PresentField<'a> {
    field: usize,
    value: Value<'a>,
}

impl<'a> Writer<'a, '_> {
    fn message(&mut self, id: MessageId, bytes: &'a [u8]) -> Result<(), Malformed> {
        if self.depth > limits::MESSAGE_DEPTH {
            return Err(Malformed);
        }
        self.depth += 1;
        match self.plan.messages[id].shape {
            Shape::Plain => {
                self.out.push(b'{');
                self.fields(id, bytes, true)?;
                self.out.push(b'}');
            }
            Shape::Any => self.any(bytes)?,
            Shape::Duration => self.duration(bytes)?,
            Shape::FieldMask => self.field_mask(bytes)?,
            Shape::ListValue => self.write_only_field(id, bytes, "[]")?,
            Shape::Struct => self.write_only_field(id, bytes, "{}")?,
            Shape::Timestamp => self.timestamp(bytes)?,
            Shape::Value => self.value(id, bytes)?,
            Shape::Wrapper => self.wrapper(id, bytes)?,
        }
        self.depth -= 1;
        Ok(())
    }

    /// Writes the members of a message. Fields can be on the wire in any order and in parts, so
    /// they are collected first and then written in the order of their numbers.
    fn fields(&mut self, id: MessageId, bytes: &'a [u8], first: bool) -> Result<(), Malformed> {
        let message = &self.plan.messages[id];
        let base = self.scan(message, bytes)?;
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
                self.field(field, at, same)?;
            }
            at += same;
        }
        self.found.truncate(base);
        Ok(())
    }

    /// Collects the known fields of a message. Returns their start on the stack.
    fn scan(&mut self, message: &MessagePlan, bytes: &'a [u8]) -> Result<usize, Malformed> {
        let base = self.found.len();
        let mut reader = Reader::new(bytes);
        let mut sorted = true;
        while !reader.is_empty() {
            let (number, value) = reader.field()?;
            let Some(field) = message.index_of_number(number) else {
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

    fn field(&mut self, field: &'a FieldPlan, at: usize, count: usize) -> Result<(), Malformed> {
        match field.cardinality {
            Cardinality::Single => match field.kind {
                Kind::Message(id) if count > 1 => self.write_merged(id, at, count),
                kind => self.write_value(kind, self.found[at + count - 1].value),
            },
            Cardinality::Repeated { .. } => {
                self.out.push(b'[');
                for at in at..at + count {
                    self.elements(field.kind, self.found[at].value)?;
                }
                self.end(b']');
                Ok(())
            }
            Cardinality::Map => {
                self.out.push(b'{');
                for at in at..at + count {
                    self.entry(field, self.found[at].value)?;
                }
                self.end(b'}');
                Ok(())
            }
        }
    }

    /// Ends a list or map, replacing the trailing comma of its last element.
    fn end(&mut self, bracket: u8) {
        if self.out.last() == Some(&b',') {
            self.out.pop();
        }
        self.out.push(bracket);
    }

    /// Writes one element, or all of a packed record, each with a trailing comma.
    fn elements(&mut self, kind: Kind, value: Value<'a>) -> Result<(), Malformed> {
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
                        WireType::Fixed32 => Value::Fixed32(reader.fixed32()?),
                        WireType::Fixed64 => Value::Fixed64(reader.fixed64()?),
                        _ => Value::Varint(reader.varint()?),
                    };
                    self.write_value(kind, value)?;
                    self.out.push(b',');
                }
            }
        }
        Ok(())
    }

    /// Writes one entry of a map with a trailing comma. A missing key or value is zero.
    fn entry(&mut self, field: &FieldPlan, entry: Value<'a>) -> Result<(), Malformed> {
        let (Kind::Message(id), Value::Bytes(bytes)) = (field.kind, entry) else {
            return Err(Malformed);
        };
        let fields = &self.plan.messages[id].fields;
        let (mut key, mut value) = (None, None);
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.field()? {
                (1, found) => key = Some(found),
                (2, found) => value = Some(found),
                _ => {}
            }
        }
        let [key_field, value_field] = &fields[..] else {
            return Err(Malformed);
        };
        let quote = !matches!(scalar::quoting(key_field.kind), scalar::Quoting::Quoted);
        if quote {
            self.out.push(b'"');
        }
        self.write_value(
            key_field.kind,
            key.unwrap_or_else(|| scalar::zero(key_field.kind)),
        )?;
        if quote {
            self.out.push(b'"');
        }
        self.out.push(b':');
        self.write_value(
            value_field.kind,
            value.unwrap_or_else(|| scalar::zero(value_field.kind)),
        )?;
        self.out.push(b',');
        Ok(())
    }

    fn write_value(&mut self, kind: Kind, value: Value<'a>) -> Result<(), Malformed> {
        match (kind, value) {
            (Kind::Message(id), Value::Bytes(bytes)) => self.message(id, bytes),
            (Kind::Message(_), _) => Err(Malformed),
            _ => scalar::write(self.plan, kind, value, self.out),
        }
    }

    /// Writes a message split into several records, which are concatenated.
    fn write_merged(&mut self, id: MessageId, at: usize, count: usize) -> Result<(), Malformed> {
        let mut whole = Vec::new();
        for found in &self.found[at..at + count] {
            match found.value {
                Value::Bytes(bytes) => whole.extend_from_slice(bytes),
                _ => return Err(Malformed),
            }
        }
        let (plan, depth) = (self.plan, self.depth);
        Writer {
            plan,
            out: &mut *self.out,
            found: Vec::new(),
            depth,
        }
        .message(id, &whole)
    }
}
