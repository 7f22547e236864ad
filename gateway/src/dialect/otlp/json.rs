//! Reads logs in OpenTelemetry's JSON: hexadecimal ids, and 64-bit integers as text.

use std::cell::RefCell;

use crate::dialect::{
    DialectError,
    json::{Object, Value},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bellwether_proto::otlp::{
    Read,
    wire::{
        AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, LogRecord, LogsRequest,
        Resource, ResourceLogs, ScopeLogs, any_value::Kind,
    },
};

/// Reads a request and collects the errors of dropped records. Unknown members are ignored, as
/// OpenTelemetry requires.
pub(super) fn read(body: &Value<'_>) -> Result<Read, DialectError> {
    let document = Object::new(body, "")?;
    if document.get("resourceLogs").is_none() && !document.members.is_empty() {
        return Err(DialectError::new_invalid("`resourceLogs` is required"));
    }
    let wrong = RefCell::default();
    let request = LogsRequest {
        resource_logs: read_each(&document, "resourceLogs", |it| {
            read_resource_logs(it, &wrong)
        })?,
    };
    let unreadable: Vec<String> = wrong.into_inner();
    let mut scopes = request.resource_logs.iter().flat_map(|it| &it.scope_logs);
    let is_empty = scopes.all(|it| it.log_records.is_empty());
    match unreadable.first() {
        Some(first) if is_empty => Err(DialectError::new_invalid(first.clone())),
        _ => Ok(Read {
            request,
            unreadable,
        }),
    }
}

fn read_each<T>(
    object: &Object<'_>,
    name: &str,
    read: impl Fn(&Object<'_>) -> Result<T, DialectError>,
) -> Result<Vec<T>, DialectError> {
    let list = object.list(name)?.unwrap_or_default();
    let elements = list.iter().enumerate().map(|(at, element)| {
        let path = format!("{}[{at}]", object.path(name));
        read(&Object::new(element, path)?)
    });
    elements.collect()
}

fn read_resource_logs(
    object: &Object<'_>,
    wrong: &RefCell<Vec<String>>,
) -> Result<ResourceLogs, DialectError> {
    let attributes = object.object("resource")?;
    let attributes = attributes.map(|it| read_each(&it, "attributes", read_pair));
    Ok(ResourceLogs {
        resource: attributes
            .transpose()?
            .map(|attributes| Resource { attributes }),
        scope_logs: read_each(object, "scopeLogs", |it| read_scope_logs(it, wrong))?,
    })
}

fn read_scope_logs(
    object: &Object<'_>,
    wrong: &RefCell<Vec<String>>,
) -> Result<ScopeLogs, DialectError> {
    let name = object.object("scope")?.map(|it| read_text(&it, "name"));
    let list = object.list("logRecords")?.unwrap_or_default();
    let records = list.iter().enumerate().filter_map(|(at, element)| {
        let path = format!("{}[{at}]", object.path("logRecords"));
        let read = Object::new(element, path).and_then(|it| read_record(&it));
        read.map_err(|error| wrong.borrow_mut().push(error.message))
            .ok()
    });
    Ok(ScopeLogs {
        log_records: records.collect(),
        scope: name.map(|name| InstrumentationScope { name }),
    })
}

fn read_record(object: &Object<'_>) -> Result<LogRecord, DialectError> {
    let number = read_integer(object, "severityNumber")?;
    let body = object.object("body")?;
    let mut attributes = read_each(object, "attributes", read_pair)?;
    // Values of the wrong type are stored as text.
    let mut retain_text = |name: &str| {
        let value = AnyValue {
            kind: Some(Kind::String(read_text(object, name))),
        };
        attributes.push(KeyValue {
            key: name.to_owned(),
            value: Some(value),
        });
    };
    let mut time = |name: &str| read_integer(object, name).inspect_err(|_| retain_text(name));
    let times = ["timeUnixNano", "observedTimeUnixNano"].map(|name| time(name).unwrap_or(0));
    let mut id = |name: &str| read_bytes(object, name).inspect_err(|_| retain_text(name));
    let ids = ["traceId", "spanId"].map(|name| id(name).unwrap_or_default());
    let [trace_id, span_id] = ids;
    Ok(LogRecord {
        time_unix_nano: times[0].unsigned_abs(),
        observed_time_unix_nano: times[1].unsigned_abs(),
        severity_number: i32::try_from(number).unwrap_or_default(),
        severity_text: read_text(object, "severityText"),
        body: body.map(|it| read_any(&it)).transpose()?,
        attributes,
        trace_id,
        span_id,
        event_name: read_text(object, "eventName"),
    })
}

fn read_pair(object: &Object<'_>) -> Result<KeyValue, DialectError> {
    let value = object.object("value")?;
    Ok(KeyValue {
        key: read_text(object, "key"),
        value: value.map(|it| read_any(&it)).transpose()?,
    })
}

/// Reads a value; the parser of the body limits the nesting depth.
fn read_any(object: &Object<'_>) -> Result<AnyValue, DialectError> {
    let kind = if let Some(text) = object.text("stringValue") {
        Some(Kind::String(text.into_owned()))
    } else if let Some(flag) = object.get("boolValue").and_then(Value::as_bool) {
        Some(Kind::Bool(flag))
    } else if object.get("intValue").is_some() {
        Some(Kind::Int(read_integer(object, "intValue")?))
    } else if let Some(number) = object.get("doubleValue") {
        number.as_f64().map(Kind::Double)
    } else if let Some(list) = object.object("arrayValue")? {
        let values = read_each(&list, "values", read_any)?;
        Some(Kind::Array(ArrayValue { values }))
    } else if let Some(list) = object.object("kvlistValue")? {
        let values = read_each(&list, "values", read_pair)?;
        Some(Kind::Kvlist(KeyValueList { values }))
    } else if let Some(encoded) = object.text("bytesValue") {
        let bytes = STANDARD.decode(&*encoded);
        Some(Kind::Bytes(bytes.map_err(|_not_base64| {
            let path = object.path("bytesValue");
            DialectError::new_invalid(format!("`{path}` must be base64"))
        })?))
    } else {
        None
    };
    Ok(AnyValue { kind })
}

fn read_text(object: &Object<'_>, name: &str) -> String {
    object.text(name).unwrap_or_default().into_owned()
}

/// Reads an integer given as a number or as text; 0 if missing.
fn read_integer(object: &Object<'_>, name: &str) -> Result<i64, DialectError> {
    let Some(value) = object.get(name) else {
        return Ok(0);
    };
    let read = match value {
        Value::Str(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    read.ok_or_else(|| {
        let path = object.path(name);
        DialectError::new_invalid(format!(
            "`{path}` must be an integer, as a number or string"
        ))
    })
}

fn read_bytes(object: &Object<'_>, name: &str) -> Result<Vec<u8>, DialectError> {
    let digits = object.text(name).unwrap_or_default();
    let pairs = (0..digits.len()).step_by(2);
    let bytes = pairs.map(|at| {
        let pair = digits.get(at..at + 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    bytes.collect::<Option<_>>().ok_or_else(|| {
        let path = object.path(name);
        DialectError::new_invalid(format!("`{path}` must be hexadecimal"))
    })
}
