//! Converts single JSON values to wire values.

use std::borrow::Cow;

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::json::{
    plan::{EnumPlan, EnumValuePlan, Kind, Plan},
    violation::{nearest_name, quote_for_message},
    wire::{WireType, put_tag, put_varint},
};

#[derive(Debug, Clone, Copy)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(&'a str),
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Bool(value) => write!(formatter, "{value}"),
            Self::Unsigned(value) => write!(formatter, "{value}"),
            Self::Signed(value) => write!(formatter, "{value}"),
            // Prints the fraction of `1.0`, as in the JSON text.
            Self::Float(value) => write!(formatter, "{value:?}"),
            Self::Text(text) => formatter.write_str(&quote_for_message(text)),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Scalar<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(Cow<'a, [u8]>),
}

impl Scalar<'_> {
    /// Whether the value is zero or empty. A field without explicit presence omits such a value.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Varint(value) | Self::Fixed64(value) => *value == 0,
            Self::Fixed32(value) => *value == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
        }
    }

    pub(super) fn put_field(&self, out: &mut Vec<u8>, number: u32) {
        let wire_type = match self {
            Self::Varint(_) => WireType::Varint,
            Self::Fixed64(_) => WireType::Fixed64,
            Self::Fixed32(_) => WireType::Fixed32,
            Self::Bytes(_) => WireType::Bytes,
        };
        put_tag(out, number, wire_type);
        self.put_value(out);
    }

    pub(super) fn put_value(&self, out: &mut Vec<u8>) {
        match self {
            Self::Varint(value) => put_varint(out, *value),
            Self::Fixed64(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Fixed32(value) => out.extend_from_slice(&value.to_le_bytes()),
            Self::Bytes(bytes) => {
                put_varint(out, bytes.len() as u64);
                out.extend_from_slice(bytes);
            }
        }
    }
}

/// Converts text outside JSON: a query parameter or the key of a map. Here, `true` and `false` are
/// text.
pub(super) fn from_text<'a>(plan: &Plan, kind: Kind, text: &'a str) -> Result<Scalar<'a>, String> {
    match (kind, text) {
        (Kind::Bool, "true") => Ok(Scalar::Varint(1)),
        (Kind::Bool, "false") => Ok(Scalar::Varint(0)),
        (Kind::Enum(id), _) => match text.parse() {
            Ok(number) => Ok(Scalar::Varint(sign_extend(number))),
            Err(_) => parse_enum_value(&plan.enums[id], Token::Text(text)),
        },
        _ => from_token(plan, kind, Token::Text(text)),
    }
}

pub(super) fn from_token<'a>(
    plan: &Plan,
    kind: Kind,
    token: Token<'a>,
) -> Result<Scalar<'a>, String> {
    match kind {
        Kind::Bool => match token {
            Token::Bool(value) => Ok(Scalar::Varint(u64::from(value))),
            _ => Err(format!("must be true or false, not {token}")),
        },
        Kind::Int32 => parse_integer::<i32>(token).map(|value| Scalar::Varint(sign_extend(value))),
        Kind::Int64 => {
            parse_integer::<i64>(token).map(|value| Scalar::Varint(value.cast_unsigned()))
        }
        Kind::Uint32 => parse_integer::<u32>(token).map(|value| Scalar::Varint(u64::from(value))),
        Kind::Uint64 => parse_integer::<u64>(token).map(Scalar::Varint),
        Kind::Sint32 => parse_integer::<i32>(token)
            .map(|value| Scalar::Varint(u64::from(((value << 1) ^ (value >> 31)).cast_unsigned()))),
        Kind::Sint64 => parse_integer::<i64>(token)
            .map(|value| Scalar::Varint(((value << 1) ^ (value >> 63)).cast_unsigned())),
        Kind::Fixed32 => parse_integer::<u32>(token).map(Scalar::Fixed32),
        Kind::Fixed64 => parse_integer::<u64>(token).map(Scalar::Fixed64),
        Kind::Sfixed32 => {
            parse_integer::<i32>(token).map(|value| Scalar::Fixed32(value.cast_unsigned()))
        }
        Kind::Sfixed64 => {
            parse_integer::<i64>(token).map(|value| Scalar::Fixed64(value.cast_unsigned()))
        }
        Kind::Float => to_f32(token).map(|value| Scalar::Fixed32(value.to_bits())),
        Kind::Double => parse_double(token).map(|value| Scalar::Fixed64(value.to_bits())),
        Kind::String => match token {
            Token::Text(text) => Ok(Scalar::Bytes(text.as_bytes().into())),
            Token::Null => Err(format!("expected a string, found {token}")),
            _ => Err(format!("expected a string, found {token}; quote it")),
        },
        Kind::Bytes => decode_base64(token),
        Kind::Enum(id) => parse_enum_value(&plan.enums[id], token),
        Kind::Message(_) => Err(format!("must be an object, not {token}")),
    }
}

/// Converts an integer within its range. A JSON number may be written `1.0` or `1e2`, and may be
/// quoted.
fn parse_integer<T: TryFrom<i128> + Bounds>(token: Token<'_>) -> Result<T, String> {
    let value = match token {
        Token::Unsigned(value) => Some(i128::from(value)),
        Token::Signed(value) => Some(i128::from(value)),
        Token::Float(value) => to_integer(value),
        Token::Text(text) if is_number(text) => text
            .parse()
            .ok()
            .or_else(|| text.parse().ok().and_then(to_integer)),
        _ => None,
    };
    value
        .and_then(|value| T::try_from(value).ok())
        .ok_or_else(|| {
            format!(
                "must be a whole number from {} to {}, not {token}",
                T::LOWEST,
                T::HIGHEST
            )
        })
}

trait Bounds {
    const LOWEST: i128;
    const HIGHEST: i128;
}

macro_rules! bounds {
    ($($type:ty),*) => {$(
        impl Bounds for $type {
            const LOWEST: i128 = <$type>::MIN as i128;
            const HIGHEST: i128 = <$type>::MAX as i128;
        }
    )*};
}

bounds!(i32, i64, u32, u64);

#[expect(
    clippy::cast_possible_truncation,
    reason = "checked to be whole and below 2^64"
)]
fn to_integer(value: f64) -> Option<i128> {
    let in_range = value.fract() == 0.0 && value.abs() <= 18_446_744_073_709_551_616.0;
    in_range.then_some(value as i128)
}

fn is_number(text: &str) -> bool {
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let leading = digits(rest);
    if leading == 0 || (leading > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = &rest[leading..];
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}

/// Converts a floating-point number. Infinity and NaN are text, as JSON cannot express them.
fn parse_double(token: Token<'_>) -> Result<f64, String> {
    let value = match token {
        #[expect(clippy::cast_precision_loss, reason = "JSON numbers are doubles")]
        Token::Unsigned(value) => Some(value as f64),
        #[expect(clippy::cast_precision_loss, reason = "JSON numbers are doubles")]
        Token::Signed(value) => Some(value as f64),
        Token::Float(value) => Some(value),
        Token::Text("NaN") => Some(f64::NAN),
        Token::Text("Infinity") => Some(f64::INFINITY),
        Token::Text("-Infinity") => Some(f64::NEG_INFINITY),
        Token::Text(text) if is_number(text) => text.parse().ok().filter(|it: &f64| it.is_finite()),
        _ => None,
    };
    value.ok_or_else(|| format!("must be a number, not {token}"))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to the nearest float is intended"
)]
fn to_f32(token: Token<'_>) -> Result<f32, String> {
    let wide = parse_double(token)?;
    let value = wide as f32;
    if value.is_infinite() && wide.is_finite() {
        return Err(format!("must be a number of at most 3.4e38, not {token}"));
    }
    Ok(value)
}

/// Decodes base64, in the standard or the URL-safe alphabet, padded or not.
fn decode_base64(token: Token<'_>) -> Result<Scalar<'_>, String> {
    const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);
    const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, CONFIG);
    let decoded = match token {
        Token::Text(text) if text.contains(['-', '_']) => URL.decode(text).ok(),
        Token::Text(text) => PLAIN.decode(text).ok(),
        _ => None,
    };
    let decoded = decoded.ok_or_else(|| format!("must be base64, not {token}"))?;
    Ok(Scalar::Bytes(Cow::Owned(decoded)))
}

/// Returns the name of the value most similar to the text; `None` if none is similar. The prefix
/// that all names share is ignored unless the text contains it.
fn nearest_value<'p>(plan: &'p EnumPlan, text: &str) -> Option<&'p str> {
    let have_words = plan.values.iter().all(|value| !value.word.is_empty());
    let first = plan.values.first().filter(|_| have_words);
    let common = first.map_or(0, |value| value.name.len() - value.word.len());
    let start = text.get(..common).unwrap_or_default();
    let has_start = first.is_some_and(|value| value.name[..common].eq_ignore_ascii_case(start));
    let text = if has_start { &text[common..] } else { text };
    let is_word = has_start || have_words && !text.contains('_');
    let known = |value: &'p EnumValuePlan| if is_word { &*value.word } else { &*value.name };
    let nearest = nearest_name(text, plan.values.iter().map(known))?;
    let found = plan.values.iter().find(|value| known(value) == nearest);
    found.map(|value| &*value.name)
}

/// Converts an enum value by name or number. Unknown numbers are accepted; a newer backend may know
/// them.
fn parse_enum_value<'a>(plan: &EnumPlan, token: Token<'_>) -> Result<Scalar<'a>, String> {
    let short_name = plan.name.rsplit('.').next().unwrap_or(&plan.name);
    let number = match token {
        Token::Text(name) => plan.value_number(name).ok_or_else(|| {
            let hint = nearest_value(plan, name).map_or_else(
                || {
                    let names = plan.values.iter().map(|value| &*value.name);
                    format!("expected one of {}", names.collect::<Vec<_>>().join(", "))
                },
                |nearest| format!("the nearest is `{nearest}`"),
            );
            format!("must be a {short_name}, not {token}; {hint}")
        })?,
        Token::Null if plan.is_null_value() => 0,
        Token::Unsigned(_) | Token::Signed(_) | Token::Float(_) => parse_integer::<i32>(token)?,
        Token::Null | Token::Bool(_) => {
            return Err(format!(
                "must be the name or number of a {short_name}, not {token}"
            ));
        }
    };
    Ok(Scalar::Varint(sign_extend(number)))
}

/// Negative 32-bit numbers take ten bytes on the wire.
fn sign_extend(value: i32) -> u64 {
    i64::from(value).cast_unsigned()
}
