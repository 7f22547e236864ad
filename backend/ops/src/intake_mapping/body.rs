//! Reads the body of a webhook: JSON, a form or newline-delimited JSON; no I/O.

use std::collections::BTreeMap;

use bellwether_proto::{
    json::isolate::{List, isolate_malformed},
    repair,
};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::decode::decode_parts;
use crate::{domain::IntakeMapping, error::Error, limits::DIALECT_EVENTS_MAX};

const FORM: &str = "application/x-www-form-urlencoded";
/// Media types of newline-delimited JSON.
const LINES: [&str; 6] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/x-jsonlines",
    "application/jsonlines",
    "application/jsonl",
    "application/json-lines",
];
/// The form field that contains the whole document.
const PAYLOAD: &str = "payload";
const FIELDS_MAX: usize = 1_000;

/// Malformed entries by position, with the error.
pub(super) type MalformedEntries = Vec<(usize, String)>;

/// The documents in a body. Malformed ones are `null`.
#[derive(Debug)]
pub(super) enum Body {
    /// A single document; some entries of its list may be malformed.
    Document(Map<String, Value>, MalformedEntries),
    /// A list of documents.
    List(Vec<Value>, MalformedEntries),
    /// Lines with a document each.
    Lines(Vec<Value>, MalformedEntries),
}

#[derive(Debug, Clone, Copy)]
pub struct IncomingBody<'a> {
    pub body: &'a [u8],
    /// Headers by lower-case name.
    pub headers: &'a BTreeMap<String, String>,
}

/// Reads a body by its content type, and decodes its encoded parts.
///
/// # Errors
/// Returns [`Error::Invalid`] if it contains no document.
pub(super) fn parse_body(
    mapping: &IntakeMapping,
    incoming: IncomingBody<'_>,
) -> Result<Body, Error> {
    let content_type = incoming.headers.get("content-type");
    let media_type = content_type.map_or("", |it| it.split(';').next().unwrap_or_default());
    let media_type = media_type.trim().to_ascii_lowercase();
    let body = repair::repair_json(incoming.body);
    let (mut document, broken) = if LINES.contains(&media_type.as_str()) {
        let (lines, broken) = read_lines(&body);
        if lines.is_empty() {
            return Err(body_error("contains no lines with JSON"));
        }
        let mut lines = Value::Array(lines);
        decode_parts(&mut lines, &mapping.parse);
        return match lines {
            Value::Array(lines) => Ok(Body::Lines(lines, broken)),
            _ => Err(body_error("contains no lines with JSON")),
        };
    } else if media_type == FORM && !starts_like_json(&body) {
        // Clients such as curl send this type with JSON as well.
        read_form(mapping, &body)?
    } else {
        read_json(mapping, &body, "")?
    };
    decode_parts(&mut document, &mapping.parse);
    match document {
        Value::Object(members) => Ok(Body::Document(members, broken)),
        Value::Array(list) => Ok(Body::List(list, broken)),
        _ => Err(body_error("is not a JSON object or list")),
    }
}

fn body_error(what: impl Into<String>) -> Error {
    Error::invalid("body", what)
}

fn starts_like_json(body: &[u8]) -> bool {
    matches!(body.trim_ascii_start().first(), Some(b'{' | b'['))
}

fn read_json(
    mapping: &IntakeMapping,
    body: &[u8],
    what: &str,
) -> Result<(Value, MalformedEntries), Error> {
    let error = match serde_json::from_slice::<Value>(body) {
        Ok(document) => return Ok((document, MalformedEntries::new())),
        Err(error) => error,
    };
    let refuse = || body_error(format!("{what}is not JSON: {error}"));
    let list = match mapping.each.rsplit('.').next() {
        None | Some("") => List::Root,
        Some(name) => List::Any(name),
    };
    let isolated = isolate_malformed(body, list).ok_or_else(refuse)?;
    let document = serde_json::from_slice(&isolated.body).map_err(|_still| refuse())?;
    Ok((document, isolated.broken))
}

/// Reads a form as an object of its fields, or the document in its field `payload`.
fn read_form(mapping: &IntakeMapping, body: &[u8]) -> Result<(Value, MalformedEntries), Error> {
    let mut fields = Map::new();
    for (at, (name, value)) in form_urlencoded::parse(body).enumerate() {
        if at == FIELDS_MAX {
            return Err(body_error(format!(
                "has more than {FIELDS_MAX} form fields"
            )));
        }
        if name == PAYLOAD && starts_like_json(value.as_bytes()) {
            let json = repair::repair_json(value.as_bytes());
            return read_json(mapping, &json, "has a field `payload` that ");
        }
        let value = Value::String(value.into_owned());
        match fields.get_mut(&*name) {
            None => {
                fields.insert(name.into_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Ok((Value::Object(fields), MalformedEntries::new()))
}

fn read_lines(body: &[u8]) -> (Vec<Value>, MalformedEntries) {
    let mut broken = MalformedEntries::new();
    let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty()).enumerate();
    let documents = lines.map(|(at, line)| {
        // Further lines are only counted, as refused ones.
        if at >= DIALECT_EVENTS_MAX {
            return Value::Null;
        }
        serde_json::from_slice(line).unwrap_or_else(|error| {
            broken.push((at, error.to_string()));
            Value::Null
        })
    });
    let documents = documents.collect();
    (documents, broken)
}
