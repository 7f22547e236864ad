//! Reads the members of a JSON object: the fields of a message, or the entries of a map.
//!
//! The caller passes a function `value` that reads the value of a member and returns whether there
//! was one; `null` counts as none.

use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::{
    scalar::from_text,
    sink::{Sink, display_name, skip_object},
};
use crate::json::{
    plan::{FieldPlan, Kind, MessageId, MessagePlan},
    violation::nearest_name,
    wire::{self, WireType},
};

pub(super) fn read_fields<'de, 'p, A: MapAccess<'de>>(
    sink: &mut Sink<'p>,
    message: MessageId,
    mut map: A,
    value: impl Fn(&mut Sink<'p>, &'p FieldPlan, &mut A) -> Result<bool, A::Error>,
) -> Result<(), A::Error> {
    let plan = sink.plan;
    let message = &plan.messages[message];
    let mut seen = 0_u128;
    let mut oneofs: [Option<usize>; ONEOFS] = [None; ONEOFS];
    let mut members = 0_usize;
    while let Some(key) = map.next_key_seed(FieldName { message })? {
        members += 1;
        let index = match key {
            Ok(index) => index,
            Err(unknown) => {
                if !sink.ignore_unknown(&unknown) {
                    sink.violations
                        .add_at(display_name(&unknown), unknown_field(message, &unknown));
                }
                map.next_value::<IgnoredAny>()?;
                continue;
            }
        };
        let field = &message.fields[index];
        let mark = sink.set_mark();
        if seen & 1 << index != 0 {
            sink.violations.add("is set twice");
            map.next_value::<IgnoredAny>()?;
        } else {
            seen |= 1 << index;
            let present = value(sink, field, &mut map)?;
            if present
                && let Some(oneof) = field.oneof.and_then(|at| oneofs.get_mut(at))
                && let Some(other) = oneof.replace(index)
            {
                let other = &message.fields[other].json_name;
                sink.violations
                    .add(format!("cannot be set together with `{other}`"));
            }
        }
        sink.prefix_since(mark, &field.json_name);
    }
    if let Some(list) = sink.list()
        && members > 0
        && message
            .field_index_by_number(list.number)
            .is_some_and(|index| seen & 1 << index == 0)
    {
        report_missing_list(sink, &list.json_name);
    }
    Ok(())
}

/// Reports that the main list of the body is missing. Without this error, a client that sends
/// something else would assume success.
fn report_missing_list(sink: &mut Sink<'_>, list: &str) {
    let members = || {
        sink.ignored
            .as_slice()
            .iter()
            .map(|unknown| &*unknown.field)
    };
    let found = match nearest_name(list, members()) {
        Some(nearest) => format!("; the nearest member is `{nearest}`"),
        None if members().next().is_none() => String::new(),
        None => format!(
            "; expected `{}`",
            members().collect::<Vec<_>>().join("`, `")
        ),
    };
    let description = format!("is missing: send {{\"{list}\": [...]}}{found}");
    sink.violations.add_at(list, description);
}

/// Maximum number of oneofs per message type that are checked for conflicts. For any others, the
/// last field wins, as protobuf allows.
const ONEOFS: usize = 8;

fn unknown_field(message: &MessagePlan, unknown: &str) -> String {
    match nearest_name(
        unknown,
        message.fields.iter().map(|field| &*field.json_name),
    ) {
        Some(nearest) => format!("is not a known field; the nearest is `{nearest}`"),
        None => "is not a known field".to_owned(),
    }
}

/// A deserialization seed that reads a member name and returns the index of its field, or the name
/// if there is no such field.
struct FieldName<'p> {
    message: &'p MessagePlan,
}

impl<'de> DeserializeSeed<'de> for FieldName<'_> {
    type Value = Result<usize, String>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldName<'_> {
    type Value = Result<usize, String>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a field's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self
            .message
            .field_index(name)
            .ok_or_else(|| name.to_owned()))
    }
}

pub(super) fn read_entries<'de, 'p, A: MapAccess<'de>>(
    sink: &mut Sink<'p>,
    field: &FieldPlan,
    mut map: A,
    value: impl Fn(&mut Sink<'p>, &'p FieldPlan, &mut A) -> Result<bool, A::Error>,
) -> Result<(), A::Error> {
    let plan = sink.plan;
    let Kind::Message(entry) = field.kind else {
        return skip_object(map);
    };
    let [key, value_field] = &plan.messages[entry].fields[..] else {
        return skip_object(map);
    };
    let mut keys: Vec<Range<usize>> = Vec::new();
    loop {
        let seed = EntryKey {
            sink: &mut *sink,
            number: field.number,
            key,
        };
        let Some(entry) = map.next_key_seed(seed)? else {
            break;
        };
        let mark = sink.set_mark();
        sink.enter_nested();
        let present = value(sink, value_field, &mut map)?;
        sink.exit();
        if sink.set_mark() != mark {
            let segment = key_text(sink, key, entry.key.clone());
            sink.prefix_since(mark, &segment);
        }
        if present {
            let moved = wire::end_delimited(&mut sink.out, entry.start);
            keys.push(entry.key.start + moved..entry.key.end + moved);
        }
    }
    keys.sort_unstable_by(|a, b| sink.out[a.clone()].cmp(&sink.out[b.clone()]));
    for pair in keys.windows(2) {
        if sink.out[pair[0].clone()] == sink.out[pair[1].clone()] {
            let segment = key_text(sink, key, pair[0].clone());
            sink.violations.add_at(segment, "is set twice");
        }
    }
    Ok(())
}

fn key_text(sink: &Sink<'_>, key: &FieldPlan, range: Range<usize>) -> String {
    let bytes = sink
        .out
        .get(range)
        .filter(|_| key.kind == Kind::String)
        .unwrap_or_default();
    display_name(&String::from_utf8_lossy(bytes))
}

struct Entry {
    start: usize,
    key: Range<usize>,
}

struct EntryKey<'s, 'p> {
    sink: &'s mut Sink<'p>,
    number: u32,
    key: &'p FieldPlan,
}

impl<'de> DeserializeSeed<'de> for EntryKey<'_, '_> {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Entry, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for EntryKey<'_, '_> {
    type Value = Entry;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, text: &str) -> Result<Entry, E> {
        let Self { sink, number, key } = self;
        wire::put_tag(&mut sink.out, number, WireType::Bytes);
        let start = wire::begin_delimited(&mut sink.out);
        match from_text(sink.plan, key.kind, text) {
            Ok(scalar) => scalar.put_field(&mut sink.out, key.number),
            Err(description) => sink.violations.add_at(display_name(text), description),
        }
        let end = sink.out.len();
        let length = if key.kind == Kind::String {
            text.len()
        } else {
            end - start
        };
        Ok(Entry {
            start,
            key: end - length..end,
        })
    }
}
