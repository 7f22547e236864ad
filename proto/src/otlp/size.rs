//! Counts the values of a request before decoding it: an empty value takes two bytes on the wire
//! and many more in memory.

use prost::{
    Message as _,
    encoding::{WireType, decode_key, decode_varint},
};

use super::wire::LogRecord;
use crate::repair::{Field as Found, Protocol};

const DEPTH: usize = 100;

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Request,
    ResourceLogs,
    Resource,
    ScopeLogs,
    Scope,
    Record,
    Pair,
    Any,
    Array,
    Pairs,
}

impl Kind {
    /// Returns the type of the message in a field; `None` for fields that are not counted.
    fn field_kind(self, field: u32) -> Option<Self> {
        Some(match (self, field) {
            (Self::Request, 1) => Self::ResourceLogs,
            (Self::ResourceLogs, 1) => Self::Resource,
            (Self::ResourceLogs, 2) => Self::ScopeLogs,
            (Self::ScopeLogs, 2) => Self::Record,
            (Self::Resource | Self::Pairs, 1) | (Self::Record, 6) => Self::Pair,
            (Self::Record, 5) | (Self::Pair, 2) | (Self::Array, 1) => Self::Any,
            (Self::Any, 5) => Self::Array,
            (Self::Any, 6) => Self::Pairs,
            _ => return None,
        })
    }
}

impl Protocol for Kind {
    fn field(self, number: u32) -> Found<Self> {
        match (self, number) {
            (Self::Scope | Self::Pair | Self::Any, 1) | (Self::Record, 3 | 12) => Found::Text,
            (Self::ScopeLogs, 1) => Found::Message(Self::Scope),
            (Self::ScopeLogs, 2) => Found::Item(Self::Record),
            _ => self.field_kind(number).map_or(Found::Other, Found::Message),
        }
    }

    fn item_error(self, item: &[u8]) -> Option<String> {
        LogRecord::decode(item).err().map(|error| error.to_string())
    }
}

/// Returns the number of values and records of a logs request, up to the first malformed byte.
pub(super) fn count_values(request: &[u8]) -> usize {
    count_entries(Kind::Request, request, 0)
}

fn count_entries(kind: Kind, mut bytes: &[u8], depth: usize) -> usize {
    let mut found = 0;
    while !bytes.is_empty() && depth < DEPTH {
        let Some((field, wire, rest)) = next_field(bytes) else {
            break;
        };
        bytes = rest;
        if let (Some(inner), Some(message)) = (kind.field_kind(field), wire) {
            found += 1 + count_entries(inner, message, depth + 1);
        }
    }
    found
}

type Field<'a> = (u32, Option<&'a [u8]>, &'a [u8]);

fn next_field(mut bytes: &[u8]) -> Option<Field<'_>> {
    let (field, wire) = decode_key(&mut bytes).ok()?;
    let skipped = match wire {
        WireType::Varint => {
            decode_varint(&mut bytes).ok()?;
            0
        }
        WireType::SixtyFourBit => 8,
        WireType::ThirtyTwoBit => 4,
        WireType::LengthDelimited => {
            let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
            let (message, rest) = bytes.split_at_checked(length)?;
            return Some((field, Some(message), rest));
        }
        WireType::StartGroup | WireType::EndGroup => return None,
    };
    Some((field, None, bytes.get(skipped..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::otlp::wire::{
        AnyValue, ArrayValue, KeyValue, LogsRequest, ResourceLogs, ScopeLogs,
        any_value::Kind as AnyKind,
    };

    #[test]
    fn size_counts_every_record_and_value() {
        let list = ArrayValue {
            values: vec![AnyValue::default(); 10],
        };
        let record = LogRecord {
            time_unix_nano: 7,
            body: Some(AnyValue {
                kind: Some(AnyKind::Array(list)),
            }),
            attributes: vec![KeyValue::default(); 5],
            ..LogRecord::default()
        };
        let request = LogsRequest {
            resource_logs: vec![ResourceLogs {
                scope_logs: vec![ScopeLogs {
                    log_records: vec![record; 3],
                    ..ScopeLogs::default()
                }],
                ..ResourceLogs::default()
            }],
        };
        // One resource and one scope. For each of the three records: the record, its body, the list
        // in the body, ten values and five attributes.
        assert_eq!(count_values(&request.encode_to_vec()), 2 + 3 * (3 + 10 + 5));
        assert_eq!(count_values(&[0xff; 30]), 0);
        assert_eq!(count_values(&[0x0a, 0].repeat(1_000)), 1_000);
    }
}
