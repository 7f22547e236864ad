//! `CloudEvents` 1.0 over HTTP: structured, binary and batched.

use std::{borrow::Cow, collections::BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellwether_proto::cloud::Event;
use http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE};
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use serde_json_borrow::ObjectAsVec;

use super::{
    Batch, BodyLimit, Dialect, DialectError, DialectResponse, Endpoint, IncomingRequest, Severity,
    Success, Translation, consent,
    draft::EventDraft,
    identity,
    json::{self, DecodeErrors, List, Object, Value},
    plain_error, quote_for_message,
};

pub(super) const DIALECT: Dialect = Dialect {
    name: "cloudevents",
    bodies: BodyLimit::Batches,
    is_json: is_event_document,
    key_in_body: None,
    endpoints: &[
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/cloudevents",
            about: "Accepts CloudEvents 1.0: structured, binary or a batch.",
            success: StatusCode::NO_CONTENT,
            open: false,
            read,
        },
        Endpoint {
            method: Method::POST,
            path: "/v1/intake/cloudevents/{key}",
            about: "Same, with the key in the path.",
            success: StatusCode::NO_CONTENT,
            open: false,
            read,
        },
        consent::endpoint("/v1/intake/cloudevents"),
        consent::endpoint("/v1/intake/cloudevents/{key}"),
    ],
    error_response: plain_error,
};

const PREFIX: &str = "ce-";
const VERSION: &str = "1.0";

/// Members that the specification defines; all others are extensions.
const KNOWN: [&str; 10] = [
    "specversion",
    "id",
    "source",
    "type",
    "subject",
    "time",
    "datacontenttype",
    "dataschema",
    "data",
    "data_base64",
];

/// Suffixes of a type that close the event; the rest of the type is the event's name.
pub(super) const CLOSING: [&str; 2] = [".resolved", ".cleared"];
pub(super) const OVER: [&str; 4] = ["closed", "resolved", "cleared", "ok"];
const SUMMARIES: [&str; 3] = ["summary", "message", "title"];

/// Whether the body is JSON; in binary mode it is arbitrary data.
fn is_event_document(headers: &HeaderMap) -> bool {
    let media_type = text(headers, CONTENT_TYPE.as_str()).to_ascii_lowercase();
    let media_type = media_type.split(';').next().unwrap_or_default().trim();
    !headers.contains_key("ce-specversion") || is_json(media_type)
}

fn read(incoming: &IncomingRequest<'_>) -> Result<Translation, DialectError> {
    let content_type = text(incoming.headers, CONTENT_TYPE.as_str()).to_ascii_lowercase();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    match media_type {
        "application/cloudevents-batch+json" => {
            json::with_list(incoming.body, List::Root, read_batch)
        }
        "application/cloudevents+json" | "application/cloudevents" => {
            read_single(&json::parse_body(incoming.body)?)
        }
        _ if incoming.headers.contains_key("ce-specversion") => {
            read_single(&read_binary(incoming.headers, media_type, incoming.body)?)
        }
        // The content type is missing, or is one that tools such as curl add by default.
        "" | "application/json" | "text/plain" | "application/x-www-form-urlencoded" => {
            json::with_list(incoming.body, List::Root, |body, broken| {
                let is_event = |it: &Value<'_>| it.get("specversion").as_str().is_some();
                match body {
                    Value::Array(list) if list.iter().any(is_event) => read_batch(body, broken),
                    body if is_event(body) => read_single(body),
                    _ => Err(unknown_format()),
                }
            })
            .map_err(|error| match json::parse_body(incoming.body) {
                Err(_not_json) => unknown_format(),
                Ok(_) => error,
            })
        }
        _ => Err(unknown_format()),
    }
}

fn read_batch(body: &Value<'_>, broken: &DecodeErrors) -> Result<Translation, DialectError> {
    let Value::Array(documents) = body else {
        return Err(DialectError::new_invalid(
            "the body must be a list of events",
        ));
    };
    let mut seen = BTreeSet::new();
    let mut batch = Batch::default();
    for (at, document) in documents.iter().enumerate() {
        if let Some(why) = broken.get(&at) {
            batch.add(Err(DialectError::new_invalid(format!("`[{at}]` {why}"))));
            continue;
        }
        match CloudEvent::from_document(document, format!("[{at}]")) {
            Err(error) => batch.add(Err(error)),
            Ok(it) if seen.insert((it.source.clone(), it.id.clone())) => batch.add(it.to_event()),
            Ok(_) => {}
        }
    }
    let texts = seen.iter().flat_map(|(source, id)| [&**source, &**id]);
    let once = (!seen.is_empty()).then(|| identity::idempotency_key(DIALECT.name, texts));
    let success = Success::from_outcome(|_| DialectResponse::without_body(StatusCode::NO_CONTENT));
    Ok(Translation {
        once,
        ..batch.into_translation(success)?
    })
}

/// Returns the error for a body in an unknown format. `CloudEvents` formats other than JSON can be
/// recognized only by the content type.
fn unknown_format() -> DialectError {
    DialectError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "the content type must be `application/cloudevents+json` or \
         `application/cloudevents-batch+json`, or the headers `ce-specversion`, `ce-id`, \
         `ce-source` and `ce-type` are required",
    )
}

fn read_single(document: &Value<'_>) -> Result<Translation, DialectError> {
    let cloud_event = CloudEvent::from_document(document, "")?;
    let once = identity::idempotency_key(DIALECT.name, [&*cloud_event.source, &*cloud_event.id]);
    let success = Success::from_outcome(|_| DialectResponse::without_body(StatusCode::NO_CONTENT));
    Ok(Translation {
        once: Some(once),
        ..Translation::from_events(vec![cloud_event.to_event()?], success)
    })
}

fn read_binary<'a>(
    headers: &'a HeaderMap,
    media_type: &'a str,
    body: &'a [u8],
) -> Result<Value<'a>, DialectError> {
    let mut document = ObjectAsVec::default();
    for name in headers.keys() {
        // The data is the body, so headers with these names are ignored.
        if let Some(attribute) = name.as_str().strip_prefix(PREFIX)
            && !["data", "data_base64"].contains(&attribute)
        {
            let value = percent_decode_str(text(headers, name.as_str())).decode_utf8();
            let value = value.map_err(|_not_text| {
                DialectError::new_invalid(format!(
                    "the header `{name}` must be percent-encoded UTF-8"
                ))
            })?;
            document.insert(attribute, value.into_owned().into());
        }
    }
    if !media_type.is_empty() {
        document.insert("datacontenttype", media_type.into());
    }
    if body.is_empty() {
        return Ok(Value::Object(document));
    }
    let (member, value) = if is_json(media_type) {
        ("data", json::parse_body(body)?)
    } else if media_type.is_empty()
        && let Ok(json) = json::parse_body(body)
    {
        ("data", json)
    } else if let Ok(text) = std::str::from_utf8(body) {
        ("data", text.into())
    } else {
        ("data_base64", STANDARD.encode(body).into())
    };
    document.insert(member, value);
    Ok(Value::Object(document))
}

fn is_json(media_type: &str) -> bool {
    media_type.ends_with("/json") || media_type.ends_with("+json")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    let value = headers.get(name).map(|value| value.to_str());
    value.and_then(Result::ok).unwrap_or_default()
}

struct CloudEvent<'a> {
    document: Object<'a>,
    id: Cow<'a, str>,
    source: Cow<'a, str>,
    kind: Cow<'a, str>,
}

impl<'a> CloudEvent<'a> {
    fn from_document(
        document: &'a Value<'a>,
        path: impl Into<String>,
    ) -> Result<Self, DialectError> {
        let document = Object::new(document, path.into())?;
        let version = document.required_text("specversion")?;
        if version != VERSION {
            let (path, found) = (document.path("specversion"), quote_for_message(&version));
            return Err(DialectError::new_invalid(format!(
                "`{path}` must be `{VERSION}`, not {found}"
            )));
        }
        Ok(Self {
            id: document.required_text("id")?,
            source: document.required_text("source")?,
            kind: document.required_text("type")?,
            document,
        })
    }

    fn to_event(&self) -> Result<Event, DialectError> {
        let closing = CLOSING.iter().find_map(|end| self.kind.strip_suffix(end));
        let closing = closing.filter(|name| !name.is_empty());
        let mut draft = EventDraft::new(closing.unwrap_or(&self.kind));
        draft.set_kind(&self.kind);
        draft.add_dimension("source", &*self.source);
        let subject = self.document.text("subject");
        if let Some(subject) = subject.filter(|subject| !subject.is_empty()) {
            draft.add_dimension("subject", subject);
        }
        if let Some(time) = self.document.get("time").and_then(Value::as_str) {
            let moment: Timestamp = time.parse().map_err(|_not_a_time| {
                let path = self.document.path("time");
                DialectError::new_invalid(format!(
                    "`{path}` must be a time such as `2026-01-31T08:00:00Z`"
                ))
            })?;
            draft.set_timestamp_ms(moment.as_millisecond());
        }
        if let Some(severity) = self.severity() {
            draft.set_severity(severity);
        }
        if closing.is_some() {
            draft.set_closed();
        }
        self.apply_status(&mut draft);
        let decoded = self.decode_data()?;
        let data = match &decoded {
            // Data that is not JSON is stored unchanged.
            Some(bytes) => serde_json::from_slice(bytes).unwrap_or_default(),
            None => self.document.get("data").cloned().unwrap_or_default(),
        };
        let summaries = SUMMARIES.iter().filter_map(|name| data.get(*name).as_str());
        if let Some(summary) = summaries.into_iter().find(|it| !it.is_empty()) {
            draft.set_summary(summary);
        }
        draft.store_field("id", &*self.id);
        draft.store_members(&self.document, &["dataschema", "data_base64"]);
        draft.store_field("data", data);
        let extensions = self.document.members.iter();
        let extensions = extensions.filter(|(name, _)| !KNOWN.contains(name));
        let extensions = extensions.map(|(name, value)| (name, value.clone()));
        draft.store_field("extensions", Value::Object(extensions.collect()));
        Ok(draft.finish())
    }

    fn apply_status(&self, draft: &mut EventDraft) {
        let status = self.document.text("status").unwrap_or_default();
        match status.to_ascii_lowercase().as_str() {
            over if OVER.contains(&over) => draft.set_closed(),
            "acknowledged" => draft.set_acknowledged(true),
            "suppressed" => draft.set_suppressed(),
            _ => {}
        }
    }

    /// Decodes `data_base64`, to parse it as JSON. Returns no bytes if the data has another type.
    fn decode_data(&self) -> Result<Option<Vec<u8>>, DialectError> {
        let media_type = self.document.text("datacontenttype").unwrap_or_default();
        let Some(encoded) = self.document.text("data_base64") else {
            return Ok(None);
        };
        let path = self.document.path("data_base64");
        let bytes = STANDARD
            .decode(&*encoded)
            .map_err(|_not_base64| DialectError::new_invalid(format!("`{path}` must be base64")))?;
        Ok(Some(if is_json(&media_type) {
            bytes
        } else {
            Vec::new()
        }))
    }

    fn severity(&self) -> Option<Severity> {
        let of = |name: &str| self.document.get(name);
        let in_data = || parse_severity(of("data")?.get("severity"));
        let otel = || {
            let number = of("severitynumber")?;
            let number = number.as_i64().or_else(|| number.as_str()?.parse().ok())?;
            Severity::from_otel_number(number)
        };
        of("severity")
            .and_then(parse_severity)
            .or_else(|| of("severitytext").and_then(parse_severity))
            .or_else(otel)
            .or_else(in_data)
    }
}

fn parse_severity(value: &Value<'_>) -> Option<Severity> {
    let text = value.as_str().unwrap_or_default().trim();
    let number = value.as_i64().or_else(|| text.parse().ok());
    match number {
        Some(number) => Severity::ALL
            .into_iter()
            .find(|severity| i64::from(severity.number()) == number),
        None => Severity::from_known_name(text),
    }
}
