//! Compares with the reference on random messages.

use proptest::prelude::*;
use prost_reflect::{Cardinality, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor};
use serde_json::{Map, Value, json};

use super::{Subject, normalized};

/// Bytes from which messages are built. Zeros follow the last one, so that shrinking simplifies the
/// message.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn coin(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn number(&mut self) -> i64 {
        i64::from_le_bytes(std::array::from_fn(|_| self.next()))
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[usize::from(self.next()) % from.len()]
    }

    fn message(&mut self, descriptor: &MessageDescriptor, depth: u8) -> Value {
        if let Some(value) = self.well_known(descriptor.full_name(), depth) {
            return value;
        }
        let fields: Vec<_> = descriptor.fields().collect();
        let mut object = Map::new();
        let mut groups = Vec::new();
        for _ in 0..self.next() % 6 {
            let Some(field) = fields.get(usize::from(self.next()) % fields.len().max(1)) else {
                break;
            };
            let group = field
                .containing_oneof()
                .map(|oneof| oneof.full_name().to_owned());
            let name = if self.next() % 4 == 3 {
                field.name()
            } else {
                field.json_name()
            };
            let is_used = [field.name(), field.json_name()]
                .iter()
                .any(|it| object.contains_key(*it));
            if is_used || group.as_ref().is_some_and(|group| groups.contains(group)) {
                continue;
            }
            groups.extend(group);
            object.insert(name.to_owned(), self.field(field, depth));
        }
        Value::Object(object)
    }

    fn field(&mut self, field: &FieldDescriptor, depth: u8) -> Value {
        if field.is_map() {
            let Kind::Message(entry) = field.kind() else {
                unreachable!()
            };
            let value = entry.map_entry_value_field();
            let keys = match entry.map_entry_key_field().kind() {
                Kind::String => ["", "a", "caf\u{e9}"],
                Kind::Bool => ["true", "false", "true"],
                _ => ["0", "-5", "77"],
            };
            let count = self.next() % 3;
            (0..count)
                .map(|_| (self.pick(&keys).to_owned(), self.single(&value, depth)))
                .collect()
        } else if field.cardinality() == Cardinality::Repeated {
            (0..self.next() % 4)
                .map(|_| self.single(field, depth))
                .collect()
        } else {
            self.single(field, depth)
        }
    }

    fn single(&mut self, field: &FieldDescriptor, depth: u8) -> Value {
        match field.kind() {
            Kind::Bool => json!(self.coin()),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
                json!(i32::from_le_bytes(std::array::from_fn(|_| self.next())))
            }
            Kind::Uint32 | Kind::Fixed32 => {
                json!(u32::from_le_bytes(std::array::from_fn(|_| self.next())))
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 if self.coin() => {
                json!(self.number())
            }
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => json!(self.number().to_string()),
            Kind::Uint64 | Kind::Fixed64 => json!(self.number().cast_unsigned().to_string()),
            Kind::Float => json!(f32::from(i16::from_le_bytes([self.next(), self.next()])) / 8.0),
            Kind::Double => self.double(),
            Kind::String => json!(self.pick(&["", "x", "\"\\\n\u{0}", "\u{1f600}", "dash-\u{e9}"])),
            Kind::Bytes => json!(self.pick(&["", "AA==", "+/8=", "AQID"])),
            Kind::Enum(kind) => {
                let values: Vec<_> = kind.values().collect();
                let value = &values[usize::from(self.next()) % values.len()];
                if self.coin() {
                    json!(value.name())
                } else {
                    json!(value.number())
                }
            }
            Kind::Message(message) if depth > 0 => self.message(&message, depth - 1),
            Kind::Message(message) => self
                .well_known(message.full_name(), 0)
                .unwrap_or_else(|| json!({})),
        }
    }

    /// Returns a multiple of 1/64: other numbers may differ from the shortest form in the last
    /// digit that the JSON parser reads.
    fn double(&mut self) -> Value {
        match i32::from_le_bytes(std::array::from_fn(|_| self.next())) {
            -1 => json!("NaN"),
            value => json!(f64::from(value) / 64.0),
        }
    }

    fn well_known(&mut self, name: &str, depth: u8) -> Option<Value> {
        Some(match name.strip_prefix("google.protobuf.")? {
            "Timestamp" => json!(self.pick(&[
                "1970-01-01T00:00:00Z",
                "2026-11-21T10:00:00.123456789Z",
                "0001-01-01T00:00:00Z",
                "2024-02-29T23:59:59.5-08:00",
            ])),
            "Duration" => json!(self.pick(&["0s", "1.5s", "-3.000001s", "315576000000s"])),
            "FieldMask" => json!(self.pick(&["aBool", "child.aBool,text"])),
            "BoolValue" => json!(self.coin()),
            "Int64Value" => json!(self.number().to_string()),
            "StringValue" => json!(self.pick(&["", "x"])),
            "DoubleValue" => json!(self.next()),
            "BytesValue" => json!(self.pick(&["", "AQID"])),
            "Struct" => json!({"a": self.any(depth), "": self.any(depth)}),
            "ListValue" => json!([self.any(depth), self.any(depth)]),
            "Value" => self.any(depth),
            _ => return None,
        })
    }

    fn any(&mut self, depth: u8) -> Value {
        match self.next() % 7 {
            0 => Value::Null,
            1 => json!(self.coin()),
            2 => json!(self.next()),
            3 => json!(f64::from(self.next()) / 16.0),
            4 if depth > 0 => json!({"k": self.any(depth - 1), "": self.any(depth - 1)}),
            5 if depth > 0 => json!([self.any(depth - 1)]),
            _ => json!(self.pick(&["", "text", "\u{7f}\t"])),
        }
    }
}

fn as_json(message: &DynamicMessage) -> Value {
    normalized(serde_json::to_value(message).expect("JSON"))
}

fn agree(subject: &Subject, choices: &[u8]) -> Result<(), TestCaseError> {
    let json = Choices(choices.iter())
        .message(&subject.reference, 4)
        .to_string();
    let wire = subject
        .read(&json)
        .map_err(|error| TestCaseError::fail(format!("{json}: {error:?}")))?;
    let reference = subject
        .reference_read(&json)
        .expect("the reference accepts it");
    let theirs = as_json(&reference);
    prop_assert_eq!(
        as_json(&subject.reference_decode(&wire)),
        theirs.clone(),
        "{}",
        json
    );
    let ours: Value = serde_json::from_str(&subject.write(&wire)).expect("JSON");
    prop_assert_eq!(normalized(ours), theirs, "{}", json);
    Ok(())
}

#[test]
fn all_field_kinds_match_the_reference_implementation() {
    let subject = Subject::kinds();
    proptest!(|(choices in prop::collection::vec(any::<u8>(), 0..300))| agree(&subject, &choices)?);
}

#[test]
fn product_messages_match_the_reference_implementation() {
    let names = [
        "zenoss.cloud.Events",
        "bellwether.v1.SearchEventsRequest",
        "bellwether.v1.SearchEventsResponse",
        "bellwether.v1.TestDestinationRequest",
        "bellwether.v1.ListDeliveriesResponse",
        "bellwether.v1.ExplainEventResponse",
        "bellwether.v1.Rule",
    ];
    for name in names {
        let subject = Subject::of_product(name);
        let config = ProptestConfig::with_cases(64);
        proptest!(config, |(choices in prop::collection::vec(any::<u8>(), 0..300))| {
            agree(&subject, &choices)?;
        });
    }
}

#[test]
fn accepted_text_parses_as_in_the_reference() {
    let subject = Subject::kinds();
    let mutation = (any::<prop::sample::Index>(), any::<char>());
    let mutations = prop::collection::vec(mutation, 0..3);
    let choices = prop::collection::vec(any::<u8>(), 0..100);
    proptest!(|(choices in choices, mutations in mutations)| {
        let json = Choices(choices.iter()).message(&subject.reference, 2).to_string();
        let mut text: Vec<char> = json.chars().collect();
        for (at, char) in &mutations {
            let at = at.index(text.len());
            text[at] = *char;
        }
        let text: String = text.into_iter().collect();
        if let (Ok(wire), Some(reference)) = (subject.read(&text), subject.reference_read(&text)) {
            let ours = as_json(&subject.reference_decode(&wire));
            prop_assert_eq!(ours, as_json(&reference), "{}", text);
        }
    });
}

#[test]
fn random_bytes_cause_an_error_or_give_valid_json() {
    let subject = Subject::kinds();
    proptest!(|(bytes in prop::collection::vec(any::<u8>(), 0..60))| {
        let mut out = Vec::new();
        if crate::json::write::write(&subject.plan, subject.message, &bytes, &mut out).is_ok() {
            let parsed: Result<Value, _> = serde_json::from_slice(&out);
            prop_assert!(parsed.is_ok(), "{}", String::from_utf8_lossy(&out));
        }
    });
}
