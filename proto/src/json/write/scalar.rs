//! Writes scalar values.

use std::io::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Serialize;

use crate::json::{
    plan::{EnumPlan, Kind, Plan},
    wire::{MalformedError, Value, WireType},
};

const INFALLIBLE: &str = "writing to memory does not fail";

pub(super) enum QuoteRule {
    Quoted,
    Bare,
}

/// Returns whether values of a kind that can be a map key are quoted.
pub(super) fn quote_rule(kind: Kind) -> QuoteRule {
    match kind {
        Kind::String
        | Kind::Int64
        | Kind::Uint64
        | Kind::Sint64
        | Kind::Fixed64
        | Kind::Sfixed64 => QuoteRule::Quoted,
        _ => QuoteRule::Bare,
    }
}

pub(super) fn zero_value(kind: Kind) -> Value<'static> {
    match kind.wire_type() {
        WireType::Varint => Value::Varint(0),
        WireType::Fixed64 => Value::Fixed64(0),
        WireType::Fixed32 => Value::Fixed32(0),
        WireType::Bytes => Value::Bytes(&[]),
    }
}

pub(super) fn is_zero(value: Value<'_>) -> bool {
    match value {
        Value::Varint(value) | Value::Fixed64(value) => value == 0,
        Value::Fixed32(value) => value == 0,
        Value::Bytes(bytes) => bytes.is_empty(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "32-bit kinds keep the low half of a varint"
)]
pub(super) fn write(
    plan: &Plan,
    kind: Kind,
    value: Value<'_>,
    out: &mut Vec<u8>,
) -> Result<(), MalformedError> {
    match (kind, value) {
        (Kind::Bool, Value::Varint(value)) => write_json(&(value != 0), out),
        (Kind::Int32, Value::Varint(value)) => write_json(&(value as i32), out),
        (Kind::Uint32, Value::Varint(value)) => write_json(&(value as u32), out),
        (Kind::Sint32, Value::Varint(value)) => write_json(&(decode_zigzag(value) as i32), out),
        (Kind::Int64, Value::Varint(value)) | (Kind::Sfixed64, Value::Fixed64(value)) => {
            write_number(&value.cast_signed(), out);
        }
        (Kind::Uint64, Value::Varint(value)) | (Kind::Fixed64, Value::Fixed64(value)) => {
            write_number(&value, out);
        }
        (Kind::Sint64, Value::Varint(value)) => write_number(&decode_zigzag(value), out),
        (Kind::Fixed32, Value::Fixed32(value)) => write_json(&value, out),
        (Kind::Sfixed32, Value::Fixed32(value)) => write_json(&value.cast_signed(), out),
        (Kind::Double, Value::Fixed64(bits)) => {
            let value = f64::from_bits(bits);
            write_float(value, &value, out);
        }
        (Kind::Float, Value::Fixed32(bits)) => {
            let value = f32::from_bits(bits);
            write_float(f64::from(value), &value, out);
        }
        (Kind::String, Value::Bytes(bytes)) => {
            write_text(std::str::from_utf8(bytes).ok().ok_or(MalformedError)?, out);
        }
        (Kind::Bytes, Value::Bytes(bytes)) => {
            out.push(b'"');
            let start = out.len();
            out.resize(start + bytes.len().div_ceil(3) * 4, 0);
            let written = STANDARD.encode_slice(bytes, &mut out[start..]);
            out.truncate(start + written.ok().ok_or(MalformedError)?);
            out.push(b'"');
        }
        (Kind::Enum(id), Value::Varint(value)) => {
            write_enum_value(&plan.enums[id], value as i32, out);
        }
        _ => return Err(MalformedError),
    }
    Ok(())
}

pub(super) fn write_text(text: &str, out: &mut Vec<u8>) {
    write_json(text, out);
}

fn write_enum_value(plan: &EnumPlan, number: i32, out: &mut Vec<u8>) {
    match plan.value_name(number) {
        _ if plan.is_null_value() => out.extend_from_slice(b"null"),
        Some(name) => write_text(name, out),
        None => write_json(&number, out),
    }
}

fn decode_zigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

/// Writes a 64-bit number in quotes, as JavaScript would lose precision otherwise.
fn write_number(value: &impl Serialize, out: &mut Vec<u8>) {
    out.push(b'"');
    write_json(value, out);
    out.push(b'"');
}

/// Writes a floating-point number. Integral values have no fraction, so that `5` is unchanged by a
/// round trip; values that JSON cannot represent are written as text.
fn write_float(value: f64, shortest: &impl Serialize, out: &mut Vec<u8>) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.is_nan() {
        out.extend_from_slice(b"\"NaN\"");
    } else if value.is_infinite() {
        out.extend_from_slice(if value > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        });
    } else if value.fract() == 0.0 && value.abs() < EXACT {
        write!(out, "{value:.0}").expect(INFALLIBLE);
    } else {
        write_json(shortest, out);
    }
}

fn write_json(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect(INFALLIBLE);
}
