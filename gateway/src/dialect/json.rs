//! Reads members of a sender's JSON, with errors that name the member.

use std::{borrow::Cow, collections::BTreeMap};

use http::StatusCode;
use prost_types::{ListValue, Struct, Value as WireValue, value::Kind};
use serde_json_borrow::{Number, ObjectAsVec};

use super::DialectError;
use crate::limits;
pub(super) use bellwether_proto::json::isolate::List;
use bellwether_proto::json::isolate::isolate_malformed;

/// A JSON value that borrows its texts from the body.
pub(super) use serde_json_borrow::Value;

/// The largest integer up to which a double represents every integer exactly.
const EXACT_MAX: u64 = 1 << 53;

pub(super) type DecodeErrors = BTreeMap<usize, String>;

/// Reads a body with a list of independent elements. Malformed elements are passed to `read` as
/// `null`, together with the parse errors.
///
/// # Errors
/// Returns an error if the body is malformed outside the elements, or any error of `read`.
pub(super) fn with_list<T>(
    bytes: &[u8],
    list: List<'_>,
    read: impl FnOnce(&Value<'_>, &DecodeErrors) -> Result<T, DialectError>,
) -> Result<T, DialectError> {
    let error = match parse_body(bytes) {
        Ok(body) => return read(&body, &DecodeErrors::new()),
        Err(error) => error,
    };
    let isolated = isolate_malformed(bytes, list).ok_or(error)?;
    let broken = isolated.broken.into_iter();
    let broken = broken.map(|(place, why)| (place, format!("is not JSON: {why}")));
    read(&parse_body(&isolated.body)?, &broken.collect())
}

pub(super) fn parse_body(bytes: &[u8]) -> Result<Value<'_>, DialectError> {
    if bytes.is_empty() {
        return Err(DialectError::new_invalid("the body is empty: send JSON"));
    }
    // Each value takes about fifty bytes of memory, regardless of the length of its text.
    if bytes.len() > limits::BATCH_VALUES && count_values(bytes) > limits::BATCH_VALUES {
        let most = limits::BATCH_VALUES;
        return Err(DialectError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body has more than {most} values; send fewer per request"),
        ));
    }
    let refuse = |error| DialectError::new_invalid(format!("the body is not JSON: {error}"));
    serde_json::from_slice(bytes).map_err(refuse)
}

fn count_values(bytes: &[u8]) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (0, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'{' | b'[' if !is_text => count += 1,
            _ => {}
        }
    }
    count
}

#[derive(Debug, Clone)]
pub(super) struct Object<'a> {
    pub(super) members: &'a ObjectAsVec<'a>,
    place: JsonPath,
}

#[derive(Debug, Clone)]
pub(super) enum JsonPath {
    At(String),
    Element(&'static str, usize),
}

impl From<&str> for JsonPath {
    fn from(path: &str) -> Self {
        Self::At(path.to_owned())
    }
}

impl From<String> for JsonPath {
    fn from(path: String) -> Self {
        Self::At(path)
    }
}

impl JsonPath {
    fn path(&self) -> String {
        match self {
            Self::At(path) => path.clone(),
            Self::Element(list, at) => format!("{list}[{at}]"),
        }
    }
}

impl<'a> Object<'a> {
    pub(super) fn new(
        value: &'a Value<'a>,
        place: impl Into<JsonPath>,
    ) -> Result<Self, DialectError> {
        let place = place.into();
        match value {
            Value::Object(members) => Ok(Self { members, place }),
            other => Err(type_error(&place.path(), "an object", other)),
        }
    }

    pub(super) fn path(&self, name: &str) -> String {
        match self.place.path() {
            path if path.is_empty() => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a Value<'a>> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).map(to_text)
    }

    pub(super) fn required_text(&self, name: &str) -> Result<Cow<'a, str>, DialectError> {
        match self.text(name) {
            Some(text) if !text.trim().is_empty() => Ok(text),
            _ => Err(DialectError::new_invalid(format!(
                "`{}` is required",
                self.path(name)
            ))),
        }
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<Object<'a>>, DialectError> {
        let found = self.get(name);
        found
            .map(|value| Object::new(value, self.path(name)))
            .transpose()
    }

    pub(super) fn list(&self, name: &str) -> Result<Option<&'a [Value<'a>]>, DialectError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(other) => Err(type_error(&self.path(name), "a list", other)),
        }
    }

    /// Returns the members of the object with this name as texts; empty if it is missing.
    pub(super) fn texts(
        &self,
        name: &str,
    ) -> Result<BTreeMap<&'a str, Cow<'a, str>>, DialectError> {
        let members = match self.get(name) {
            None => return Ok(BTreeMap::new()),
            Some(Value::Object(members)) => members,
            Some(other) => return Err(type_error(&self.path(name), "an object", other)),
        };
        let texts = members.iter().map(|(key, value)| (key, to_text(value)));
        Ok(texts.collect())
    }
}

/// Returns a string unchanged, and other values as JSON; `null` is empty.
fn to_text<'a>(value: &'a Value<'a>) -> Cow<'a, str> {
    match value {
        Value::Null => Cow::Borrowed(""),
        Value::Str(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

fn type_error(path: &str, wanted: &str, found: &Value<'_>) -> DialectError {
    let found = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::Str(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    let subject = if path.is_empty() {
        "the body".to_owned()
    } else {
        format!("`{path}`")
    };
    DialectError::new_invalid(format!("{subject} must be {wanted}, not {found}"))
}

/// Converts a JSON value to the wire. Values nested too deeply for the backend, and integers that a
/// double cannot represent, become text.
pub(super) fn to_wire(value: &Value<'_>) -> WireValue {
    to_wire_at_depth(value, 0)
}

fn to_wire_at_depth(value: &Value<'_>, depth: usize) -> WireValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(*flag),
        Value::Number(number) => match number.as_f64() {
            Some(double) if number.is_f64() || is_exact(*number) => Kind::NumberValue(double),
            _ => Kind::StringValue(number.to_string()),
        },
        Value::Str(text) => Kind::StringValue(text.clone().into_owned()),
        deep @ (Value::Array(_) | Value::Object(_)) if depth >= limits::METADATA_DEPTH => {
            Kind::StringValue(deep.to_string())
        }
        Value::Array(list) => {
            let values = list
                .iter()
                .map(|it| to_wire_at_depth(it, depth + 1))
                .collect();
            Kind::ListValue(ListValue { values })
        }
        Value::Object(members) => {
            let fields = members.iter();
            let fields =
                fields.map(|(name, it)| (name.to_owned(), to_wire_at_depth(it, depth + 1)));
            Kind::StructValue(Struct {
                fields: fields.collect(),
            })
        }
    };
    WireValue { kind: Some(kind) }
}

fn is_exact(number: Number) -> bool {
    let magnitude = number
        .as_u64()
        .or_else(|| number.as_i64().map(i64::unsigned_abs));
    magnitude.is_some_and(|it| it <= EXACT_MAX)
}

pub(super) fn to_json(value: &WireValue) -> serde_json::Value {
    match &value.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(flag)) => (*flag).into(),
        Some(Kind::NumberValue(number)) => (*number).into(),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::ListValue(list)) => list.values.iter().map(to_json).collect(),
        Some(Kind::StructValue(fields)) => {
            let fields = fields.fields.iter();
            fields
                .map(|(name, it)| (name.clone(), to_json(it)))
                .collect()
        }
    }
}
