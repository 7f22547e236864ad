//! Logs of OpenTelemetry over HTTP, in protobuf and in JSON.

mod json;
mod wire;

use bellwether_proto::cloud::Event;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE};
use prost::Message as _;
use serde_json::json;
use tonic_types::pb;

use super::{
    Answer, Dialect, Endpoint, Fault, FaultContext, Incoming, Outcome, Settings, Severity, Success,
    Translated, draft::Draft, json::Value, plain_fault,
};
use crate::limits;
use wire::{
    AnyValue, InstrumentationScope, KeyValue, LogRecord, LogsRequest, LogsResponse, PartialSuccess,
    Resource, any_value::Kind,
};

/// The dialect.
pub(super) const DIALECT: Dialect = Dialect {
    name: "otlp",
    body_limit_bytes: None,
    key_in_body: None,
    endpoints: &[Endpoint {
        method: Method::POST,
        path: "/v1/logs",
        about: "Takes in log records of OpenTelemetry, in protobuf or JSON, also with gzip.",
        success: StatusCode::OK,
        open: false,
        read,
    }],
    fault,
};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// The attribute of a log record that names an event, in senders older than the field for it.
const EVENT_NAME: &str = "event.name";
/// The name of an event whose record has neither an event's name nor a scope's.
const NAMELESS: &str = "log";
/// What a resource is called that does not say what it is, by OpenTelemetry's own word.
const UNKNOWN: (&str, &str) = ("service.name", "unknown_service");

fn read(incoming: &Incoming<'_>) -> Result<Translated, Fault> {
    let is_json = match encoding(incoming.headers) {
        Some(PROTOBUF) => false,
        Some(JSON) => true,
        _ => {
            let message = format!("the content type has to be `{PROTOBUF}` or `{JSON}`");
            return Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
    };
    let request = if is_json {
        json::read(&super::json::body(incoming.body)?)?
    } else {
        LogsRequest::decode(incoming.body).map_err(|error| {
            Fault::invalid(format!("the body is no request to export logs: {error}"))
        })?
    };
    let mut events = Vec::new();
    let mut below_floor = 0;
    for resource_logs in &request.resource_logs {
        let resource = resource_logs.resource.clone().unwrap_or_default();
        for scope_logs in &resource_logs.scope_logs {
            let scope = scope_logs.scope.clone().unwrap_or_default();
            for record in &scope_logs.log_records {
                let severity = severity(record);
                if severity < incoming.settings.log_floor {
                    below_floor += 1;
                } else {
                    let settings = incoming.settings;
                    events.push(event(record, severity, (&resource, &scope), settings));
                }
            }
        }
    }
    let beyond = events.len().saturating_sub(limits::EVENTS_PER_REQUEST);
    events.truncate(limits::EVENTS_PER_REQUEST);
    let left_out = LeftOut {
        below_floor,
        floor: incoming.settings.log_floor,
        beyond,
    };
    let success = Success::Partial(Box::new(move |outcome| left_out.answer(outcome, is_json)));
    Ok(Translated::of(events, success))
}

/// The encoding of a request, by its content type.
fn encoding(headers: &HeaderMap) -> Option<&'static str> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    [PROTOBUF, JSON]
        .into_iter()
        .find(|known| media_type.eq_ignore_ascii_case(known))
}

/// A record that does not say how bad it is is for information.
fn severity(record: &LogRecord) -> Severity {
    Severity::of_otel_number(record.severity_number.into())
        .or_else(|| Severity::of_any_word(&record.severity_text))
        .unwrap_or(Severity::Info)
}

fn event(
    record: &LogRecord,
    severity: Severity,
    (resource, scope): (&Resource, &InstrumentationScope),
    settings: &Settings,
) -> Event {
    let named = record.attributes.iter().find(|it| it.key == EVENT_NAME);
    let named = named.map(|it| text(it.value.as_ref())).unwrap_or_default();
    let names = [&*record.event_name, &*named, &*scope.name, NAMELESS];
    let name = names.into_iter().find(|name| !name.is_empty());
    let mut draft = Draft::new(name.unwrap_or(NAMELESS));
    for wanted in &settings.log_dimensions {
        let found = resource.attributes.iter().find(|it| it.key == *wanted);
        let value = found.map(|it| text(it.value.as_ref()));
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            draft.dimension(wanted, value);
        }
    }
    if draft.is_about_nothing() {
        draft.dimension(UNKNOWN.0, UNKNOWN.1);
    }
    draft.severity(severity);
    let nanos = [record.time_unix_nano, record.observed_time_unix_nano];
    if let Some(nanos) = nanos.into_iter().find(|nanos| *nanos > 0) {
        draft.timestamp_ms(i64::try_from(nanos / 1_000_000).unwrap_or(i64::MAX));
    }
    let body = text(record.body.as_ref());
    draft.summary(body.lines().next().unwrap_or_default());
    draft.body(&body);
    if matches!(
        record.body.as_ref().and_then(|it| it.kind.as_ref()),
        Some(Kind::Kvlist(_))
    ) {
        draft.keep("body", value(record.body.as_ref()));
    }
    draft.keep("attributes", members(&record.attributes));
    draft.keep("resource", members(&resource.attributes));
    draft.keep("scope", &*scope.name);
    draft.keep("severityText", &*record.severity_text);
    draft.keep("traceId", hexadecimal(&record.trace_id));
    draft.keep("spanId", hexadecimal(&record.span_id));
    draft.finish()
}

/// A value as text: a string as it is, everything else as JSON.
fn text(any: Option<&AnyValue>) -> String {
    match value(any) {
        Value::Null => String::new(),
        Value::Str(text) => text.into_owned(),
        other => other.to_string(),
    }
}

fn value(any: Option<&AnyValue>) -> Value<'_> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    match any.and_then(|any| any.kind.as_ref()) {
        None => Value::Null,
        Some(Kind::String(text)) => text.as_str().into(),
        Some(Kind::Bool(flag)) => (*flag).into(),
        Some(Kind::Int(number)) => (*number).into(),
        Some(Kind::Double(number)) => (*number).into(),
        Some(Kind::Array(list)) => {
            Value::Array(list.values.iter().map(|it| value(Some(it))).collect())
        }
        Some(Kind::Kvlist(list)) => members(&list.values),
        Some(Kind::Bytes(bytes)) => STANDARD.encode(bytes).into(),
    }
}

fn members(pairs: &[KeyValue]) -> Value<'_> {
    let pairs = pairs.iter();
    let pairs = pairs.map(|pair| (&*pair.key, value(pair.value.as_ref())));
    Value::Object(pairs.collect())
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to memory does not fail");
        text
    })
}

/// What was not handed to the backend.
#[derive(Debug)]
struct LeftOut {
    below_floor: usize,
    floor: Severity,
    beyond: usize,
}

impl LeftOut {
    fn answer(&self, outcome: &Outcome, is_json: bool) -> Answer {
        let mut why = Vec::new();
        if self.below_floor > 0 {
            why.push(format!(
                "{} log records are below the severity `{}`",
                self.below_floor,
                self.floor.word()
            ));
        }
        if self.beyond > 0 {
            why.push(format!(
                "{} are more than the {} that a request may bring",
                self.beyond,
                limits::EVENTS_PER_REQUEST
            ));
        }
        let failed = usize::try_from(outcome.result.failed).unwrap_or_default();
        if failed > 0 {
            why.push(outcome.result.message.clone());
        }
        let rejected = self.below_floor + self.beyond + failed;
        let partial_success = (rejected > 0).then(|| PartialSuccess {
            rejected_log_records: i64::try_from(rejected).unwrap_or(i64::MAX),
            error_message: why.join("; "),
        });
        if !is_json {
            return protobuf(StatusCode::OK, &LogsResponse { partial_success });
        }
        let body = match partial_success {
            None => json!({}),
            Some(partial) => json!({"partialSuccess": {
                "rejectedLogRecords": partial.rejected_log_records.to_string(),
                "errorMessage": partial.error_message,
            }}),
        };
        Answer::json(StatusCode::OK, &body)
    }
}

fn protobuf(status: StatusCode, message: &impl prost::Message) -> Answer {
    Answer {
        status,
        content_type: Some(PROTOBUF),
        body: Bytes::from(message.encode_to_vec()),
    }
}

/// A failure is told in the encoding of the request.
fn fault(context: &FaultContext<'_>, fault: &Fault) -> Answer {
    let plain = plain_fault(context, fault);
    if encoding(context.headers) != Some(PROTOBUF) {
        return plain;
    }
    let body: serde_json::Value = serde_json::from_slice(&plain.body).unwrap_or_default();
    let code = body["code"].as_i64().and_then(|code| code.try_into().ok());
    let status = pb::Status {
        code: code.unwrap_or_default(),
        message: fault.message.clone(),
        details: Vec::new(),
    };
    protobuf(fault.status, &status)
}
