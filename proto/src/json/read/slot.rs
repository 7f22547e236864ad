//! Reads the value of one field, or of one element of a list or map.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{
    object,
    scalar::{Token, from_text, from_token},
    sink::{Sink, skip_list, skip_object},
    time,
};
use crate::json::{
    plan::{Cardinality, FieldPlan, Kind, MessageId, Shape},
    violation::quote_for_message,
    wire::{self, WireType},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValuePosition {
    /// A field: `null` means absent, and a zero may be omitted.
    Field,
    /// An element of a list or a value of a map: always written, and `null` is invalid.
    Element {
        /// Whether the element is written without a tag.
        packed: bool,
    },
}

pub(super) fn read_fields<'de, A: MapAccess<'de>>(
    sink: &mut Sink<'_>,
    message: MessageId,
    map: A,
) -> Result<(), A::Error> {
    object::read_fields(sink, message, map, |sink, field, map| {
        let place = ValuePosition::Field;
        map.next_value_seed(Slot { sink, field, place })
    })
}

fn read_entries<'de, A: MapAccess<'de>>(
    sink: &mut Sink<'_>,
    field: &FieldPlan,
    map: A,
) -> Result<(), A::Error> {
    object::read_entries(sink, field, map, |sink, field, map| {
        let place = ValuePosition::Element { packed: false };
        map.next_value_seed(Slot { sink, field, place })
    })
}

/// A deserialization seed that reads one value and returns whether there was one; `null` counts as
/// none.
struct Slot<'s, 'p> {
    sink: &'s mut Sink<'p>,
    field: &'p FieldPlan,
    place: ValuePosition,
}

impl<'de> DeserializeSeed<'de> for Slot<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<bool, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Slot<'_, '_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(mut self) -> Result<bool, E> {
        Ok(self.write_null())
    }

    fn visit_bool<E>(mut self, value: bool) -> Result<bool, E> {
        self.write_token(Token::Bool(value));
        Ok(true)
    }

    fn visit_u64<E>(mut self, value: u64) -> Result<bool, E> {
        self.write_token(Token::Unsigned(value));
        Ok(true)
    }

    fn visit_i64<E>(mut self, value: i64) -> Result<bool, E> {
        self.write_token(Token::Signed(value));
        Ok(true)
    }

    fn visit_f64<E>(mut self, value: f64) -> Result<bool, E> {
        self.write_token(Token::Float(value));
        Ok(true)
    }

    fn visit_str<E>(mut self, value: &str) -> Result<bool, E> {
        self.write_token(Token::Text(value));
        Ok(true)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, map: A) -> Result<bool, A::Error> {
        let number = self.field.number;
        match self.expected_type() {
            ExpectedType::Map => read_entries(self.sink, self.field, map)?,
            ExpectedType::Message(id, Shape::Plain) => {
                read_nested(self.sink, number, map, |sink, map| {
                    read_fields(sink, id, map)
                })?;
            }
            ExpectedType::Message(id, Shape::Struct) => {
                read_nested(self.sink, number, map, |sink, map| {
                    read_struct_fields(sink, id, map)
                })?;
            }
            ExpectedType::Message(id, Shape::Value) => {
                read_nested(self.sink, number, map, |sink, map| {
                    let inner = &sink.plan.messages[id].fields[value_field::STRUCT];
                    read_nested(sink, inner.number, map, |sink, map| match inner.kind {
                        Kind::Message(id) => read_struct_fields(sink, id, map),
                        _ => skip_object(map),
                    })
                })?;
            }
            _ => {
                self.refuse_type("an object");
                skip_object(map)?;
            }
        }
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, seq: A) -> Result<bool, A::Error> {
        let number = self.field.number;
        match self.expected_type() {
            ExpectedType::List => read_elements(self.sink, self.field, seq)?,
            ExpectedType::Message(id, Shape::ListValue) => {
                read_nested(self.sink, number, seq, |sink, seq| {
                    read_list_values(sink, id, seq)
                })?;
            }
            ExpectedType::Message(id, Shape::Value) => {
                read_nested(self.sink, number, seq, |sink, seq| {
                    let inner = &sink.plan.messages[id].fields[value_field::LIST];
                    read_nested(sink, inner.number, seq, |sink, seq| match inner.kind {
                        Kind::Message(id) => read_list_values(sink, id, seq),
                        _ => skip_list(seq),
                    })
                })?;
            }
            _ => {
                self.refuse_type("a list");
                skip_list(seq)?;
            }
        }
        Ok(true)
    }
}

#[derive(Debug, Clone, Copy)]
enum ExpectedType {
    List,
    Map,
    Message(MessageId, Shape),
    Scalar,
}

/// Indexes of the fields of `google.protobuf.Value`, whose numbers are 1 to 6.
mod value_field {
    pub(super) const NULL: usize = 0;
    pub(super) const NUMBER: usize = 1;
    pub(super) const STRING: usize = 2;
    pub(super) const BOOL: usize = 3;
    pub(super) const STRUCT: usize = 4;
    pub(super) const LIST: usize = 5;
}

impl Slot<'_, '_> {
    fn expected_type(&self) -> ExpectedType {
        match (self.place, self.field.cardinality, self.field.kind) {
            (ValuePosition::Field, Cardinality::Repeated { .. }, _) => ExpectedType::List,
            (ValuePosition::Field, Cardinality::Map, _) => ExpectedType::Map,
            (_, _, Kind::Message(id)) => {
                ExpectedType::Message(id, self.sink.plan.messages[id].shape)
            }
            _ => ExpectedType::Scalar,
        }
    }

    fn refuse_type(&mut self, got: &str) {
        let description = match (self.expected_type(), self.field.kind) {
            (ExpectedType::Scalar, Kind::String) => format!("expected a string, found {got}"),
            _ => format!("must be {}, not {got}", self.expected_text()),
        };
        self.sink.violations.add(description);
    }

    fn expected_text(&self) -> &'static str {
        match (self.expected_type(), self.field.kind) {
            (ExpectedType::List | ExpectedType::Message(_, Shape::ListValue), _) => "a list",
            (ExpectedType::Message(_, Shape::Timestamp), _) => {
                "a time such as `2026-01-31T12:00:00Z`"
            }
            (ExpectedType::Message(_, Shape::Duration), _) => "a duration such as `1.5s`",
            (ExpectedType::Message(_, Shape::FieldMask), _) => "field paths separated by commas",
            (ExpectedType::Message(_, Shape::Wrapper), _) => "a single value",
            (ExpectedType::Map | ExpectedType::Message(..), _) => "an object",
            (_, Kind::Bool) => "true or false",
            (_, Kind::Bytes) => "text",
            (_, Kind::Enum(_)) => "a name or number",
            _ => "a number",
        }
    }

    fn write_null(&mut self) -> bool {
        let is_value = match (self.expected_type(), self.field.kind) {
            (ExpectedType::Message(_, shape), _) => shape == Shape::Value,
            (ExpectedType::Scalar, Kind::Enum(id)) => self.sink.plan.enums[id].is_null_value(),
            _ => false,
        };
        if is_value {
            self.write_token(Token::Null);
        } else if self.place != ValuePosition::Field {
            self.refuse_type("null");
        }
        is_value
    }

    fn write_token(&mut self, token: Token<'_>) {
        let written = match (self.expected_type(), token) {
            (ExpectedType::Scalar, _) => {
                self.write_scalar(token);
                true
            }
            (ExpectedType::Message(id, Shape::Wrapper), _) => {
                write_part(self.sink, self.field.number, |sink| {
                    let field = &sink.plan.messages[id].fields[0];
                    Slot {
                        sink,
                        field,
                        place: ValuePosition::Field,
                    }
                    .write_scalar(token);
                });
                true
            }
            (ExpectedType::Message(id, Shape::Value), _) => {
                write_part(self.sink, self.field.number, |sink| {
                    write_value(sink, id, token);
                });
                true
            }
            (ExpectedType::Message(_, Shape::Timestamp), Token::Text(text)) => {
                self.write_parts(time::parse_timestamp(text))
            }
            (ExpectedType::Message(_, Shape::Duration), Token::Text(text)) => {
                self.write_parts(time::parse_duration(text))
            }
            (ExpectedType::Message(_, Shape::FieldMask), Token::Text(text)) => {
                self.write_paths(text)
            }
            _ => false,
        };
        if !written {
            self.refuse_type(&token.to_string());
        }
    }

    fn write_scalar(&mut self, token: Token<'_>) {
        match from_token(self.sink.plan, self.field.kind, token) {
            Err(description) => self.sink.violations.add(description),
            Ok(scalar) => match self.place {
                ValuePosition::Element { packed: true } => scalar.put_value(&mut self.sink.out),
                ValuePosition::Field if !self.field.presence && scalar.is_zero() => {}
                _ => scalar.put_field(&mut self.sink.out, self.field.number),
            },
        }
    }

    /// Writes seconds and nanoseconds, which are fields 1 and 2 of both times and durations.
    fn write_parts(&mut self, parts: Option<(i64, i32)>) -> bool {
        let Some((seconds, nanos)) = parts else {
            return false;
        };
        write_part(self.sink, self.field.number, |sink| {
            for (number, value) in [(1, seconds), (2, i64::from(nanos))] {
                if value != 0 {
                    wire::put_tag(&mut sink.out, number, WireType::Varint);
                    wire::put_varint(&mut sink.out, value.cast_unsigned());
                }
            }
        });
        true
    }

    /// Writes the paths of a field mask, which are camelCase in JSON and `snake_case` on the wire.
    fn write_paths(&mut self, text: &str) -> bool {
        if text.contains('_') {
            return false;
        }
        write_part(self.sink, self.field.number, |sink| {
            for path in text.split(',').filter(|path| !path.is_empty()) {
                let mut snake = String::with_capacity(path.len() + 4);
                for char in path.chars() {
                    if char.is_ascii_uppercase() {
                        snake.push('_');
                    }
                    snake.push(char.to_ascii_lowercase());
                }
                wire::put_bytes_field(&mut sink.out, 1, snake.as_bytes());
            }
        });
        true
    }
}

pub(super) fn text_field<'p>(sink: &mut Sink<'p>, field: &'p FieldPlan, text: &str) {
    let mut slot = Slot {
        sink,
        field,
        place: ValuePosition::Element { packed: false },
    };
    match slot.expected_type() {
        ExpectedType::Scalar => match from_text(slot.sink.plan, field.kind, text) {
            Ok(scalar) => scalar.put_field(&mut slot.sink.out, field.number),
            Err(description) => slot.sink.violations.add(description),
        },
        ExpectedType::Message(id, Shape::Wrapper) => write_part(slot.sink, field.number, |sink| {
            text_field(sink, &sink.plan.messages[id].fields[0], text);
        }),
        ExpectedType::Message(_, Shape::Timestamp | Shape::Duration | Shape::FieldMask) => {
            slot.write_token(Token::Text(text));
        }
        _ => slot.sink.violations.add(format!(
            "cannot be set as text: {}",
            quote_for_message(text)
        )),
    }
}

fn write_part(sink: &mut Sink<'_>, number: u32, write: impl FnOnce(&mut Sink<'_>)) {
    wire::put_tag(&mut sink.out, number, WireType::Bytes);
    let start = wire::begin_delimited(&mut sink.out);
    sink.enter_nested();
    write(sink);
    sink.exit();
    wire::end_delimited(&mut sink.out, start);
}

fn read_nested<'p, A, E>(
    sink: &mut Sink<'p>,
    number: u32,
    access: A,
    read: impl FnOnce(&mut Sink<'p>, A) -> Result<(), E>,
) -> Result<(), E> {
    wire::put_tag(&mut sink.out, number, WireType::Bytes);
    let start = wire::begin_delimited(&mut sink.out);
    sink.enter_nested();
    let result = read(sink, access);
    sink.exit();
    wire::end_delimited(&mut sink.out, start);
    result
}

fn read_struct_fields<'de, A: MapAccess<'de>>(
    sink: &mut Sink<'_>,
    message: MessageId,
    map: A,
) -> Result<(), A::Error> {
    read_entries(sink, &sink.plan.messages[message].fields[0], map)
}

fn read_list_values<'de, A: SeqAccess<'de>>(
    sink: &mut Sink<'_>,
    message: MessageId,
    seq: A,
) -> Result<(), A::Error> {
    read_elements(sink, &sink.plan.messages[message].fields[0], seq)
}

fn read_elements<'de, 'p, A: SeqAccess<'de>>(
    sink: &mut Sink<'p>,
    field: &'p FieldPlan,
    mut seq: A,
) -> Result<(), A::Error> {
    let packed = field.cardinality == Cardinality::Repeated { packed: true };
    let before = sink.out.len();
    let start = packed.then(|| {
        wire::put_tag(&mut sink.out, field.number, WireType::Bytes);
        wire::begin_delimited(&mut sink.out)
    });
    let is_about = sink.list().is_some_and(|list| list.number == field.number);
    let mut index = 0;
    loop {
        let (mark, begin) = (sink.set_mark(), sink.out.len());
        let slot = Slot {
            sink: &mut *sink,
            field,
            place: ValuePosition::Element { packed },
        };
        if seq.next_element_seed(slot)?.is_none() {
            break;
        }
        if is_about && sink.has_violations_since(mark) {
            sink.set_entry_aside(field, mark, index, begin);
        }
        sink.prefix_index_since(mark, index);
        index += 1;
    }
    match start {
        Some(start) if sink.out.len() > start => {
            wire::end_delimited(&mut sink.out, start);
        }
        Some(_) => sink.out.truncate(before),
        None => {}
    }
    Ok(())
}

/// Writes a scalar as a `google.protobuf.Value`. A zero is also written, because the presence of a
/// field determines the type of the value.
fn write_value(sink: &mut Sink<'_>, message: MessageId, token: Token<'_>) {
    let at = match token {
        Token::Null => value_field::NULL,
        Token::Unsigned(_) | Token::Signed(_) | Token::Float(_) => value_field::NUMBER,
        Token::Text(_) => value_field::STRING,
        Token::Bool(_) => value_field::BOOL,
    };
    let field = &sink.plan.messages[message].fields[at];
    Slot {
        sink,
        field,
        place: ValuePosition::Element { packed: false },
    }
    .write_scalar(token);
}
