//! Converts OpenTelemetry log records to events, for both HTTP and gRPC.

mod size;
mod value;
pub mod wire;

use std::collections::BTreeMap;

use crate::{
    bulk, repair, severity,
    zenoss::cloud::{Event, Severity},
};
use prost::Message as _;
use prost_types::{Struct, Value as WireValue};
use serde_json::Value;
use value::{attributes_to_fields, json_object, json_value, value_text, wire_value};
use wire::{
    InstrumentationScope, KeyValue, LogRecord, LogsRequest, LogsResponse, PartialSuccess, Resource,
    any_value::Kind,
};

/// Attribute with the event name in records of senders that predate the field.
const EVENT_NAME: &str = "event.name";
/// Event name for records with neither an event name nor a scope name.
const NAMELESS: &str = "log";
/// Dimension for a resource that does not identify itself, as defined by OpenTelemetry.
const UNKNOWN: (&str, &str) = ("service.name", "unknown_service");
const VALUES_MAX: usize = 1_000_000;
/// Maximum bytes of resources and scopes repeated in the events of one request; above this limit,
/// events are stored without their resource.
const REPEATED_BYTES: usize = 8 * 1024 * 1024;
const RESOURCE_BYTES: usize = 8 * 1024;
const SUMMARY_BYTES: usize = 1024;
/// Maximum number of attributes in the summary of a record without a body.
const SUMMARY_ATTRIBUTES_MAX: usize = 4;

/// Settings for the conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionSettings {
    /// Minimum severity; less severe records are dropped.
    pub floor: Severity,
    /// Attributes of the resource, or else of the record, that become dimensions.
    pub dimensions: Vec<String>,
}

impl Default for ConversionSettings {
    fn default() -> Self {
        let names = [
            "service.namespace",
            "service.name",
            "host.name",
            "k8s.cluster.name",
            "k8s.namespace.name",
        ];
        Self {
            floor: Severity::Warning,
            dimensions: names.map(str::to_owned).into(),
        }
    }
}

/// The result of converting a request.
#[derive(Debug)]
pub struct Logs {
    /// The events, at most [`bulk::EVENTS_MAX`].
    pub events: Vec<Event>,
    /// Counts of the dropped records.
    pub left_out: DroppedRecords,
}

/// Records that did not become events.
#[derive(Debug)]
pub struct DroppedRecords {
    floor: Severity,
    below_floor: usize,
    beyond: usize,
    too_large: usize,
    unreadable: Vec<String>,
}

/// The reason why a request was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogsRequestError {
    /// The bytes are not a logs export request.
    #[error("is not a log export request: {0}")]
    Malformed(String),
    /// Too many values.
    #[error("has more than {VALUES_MAX} values; send fewer records at a time")]
    TooMany,
}

/// A decoded request.
#[derive(Debug, Default)]
pub struct Read {
    /// The request.
    pub request: LogsRequest,
    /// Errors of the records that could not be decoded.
    pub unreadable: Vec<String>,
}

/// Decodes a request. Malformed strings are replaced, and malformed records are dropped.
///
/// # Errors
///
/// Returns an error if the bytes are not a request, or the request would use too much memory.
pub fn read_request(bytes: &[u8]) -> Result<Read, LogsRequestError> {
    if size::count_values(bytes) > VALUES_MAX {
        return Err(LogsRequestError::TooMany);
    }
    let malformed = |error: prost::DecodeError| LogsRequestError::Malformed(error.to_string());
    let error = match LogsRequest::decode(bytes) {
        Ok(request) => {
            return Ok(Read {
                request,
                unreadable: Vec::new(),
            });
        }
        Err(error) => malformed(error),
    };
    let repaired = repair::repair_message(bytes, size::Kind::Request).ok_or(error)?;
    Ok(Read {
        request: LogsRequest::decode(&*repaired.bytes).map_err(malformed)?,
        unreadable: repaired.left_out,
    })
}

impl Logs {
    /// Converts a request to events.
    pub fn from_request(request: &LogsRequest, settings: &ConversionSettings) -> Self {
        let mut logs = Self {
            events: Vec::new(),
            left_out: DroppedRecords {
                floor: settings.floor,
                below_floor: 0,
                beyond: 0,
                too_large: 0,
                unreadable: Vec::new(),
            },
        };
        let nameless = InstrumentationScope::default();
        let mut repeated = 0;
        for resource_logs in &request.resource_logs {
            let resource = resource_logs.resource.clone().unwrap_or_default();
            let resource = RecordDetails::from_resource(&resource, settings);
            for scope_logs in &resource_logs.scope_logs {
                let scope = scope_logs.scope.as_ref();
                let scope = scope.unwrap_or(&nameless);
                for record in &scope_logs.log_records {
                    logs.add(record, scope, &resource, &mut repeated);
                }
            }
        }
        logs
    }

    fn add(
        &mut self,
        record: &LogRecord,
        scope: &InstrumentationScope,
        resource: &RecordDetails,
        repeated: &mut usize,
    ) {
        let severity = record_severity(record);
        let left_out = &mut self.left_out;
        if severity < left_out.floor {
            left_out.below_floor += 1;
            return;
        }
        if self.events.len() == bulk::EVENTS_MAX {
            left_out.beyond += 1;
            return;
        }
        *repeated += resource.identity_bytes + scope.name.len();
        if *repeated > 2 * REPEATED_BYTES {
            left_out.too_large += 1;
            return;
        }
        let is_retained = *repeated + resource.retained_bytes <= REPEATED_BYTES;
        if is_retained {
            *repeated += resource.retained_bytes;
        }
        let mut event = record_to_event(record, severity, scope, resource);
        if let (Some(metadata), Some(retained), true) =
            (&mut event.metadata_fields, &resource.retained, is_retained)
        {
            metadata.fields.insert("resource".into(), retained.clone());
        }
        self.events.push(event);
    }
}

impl DroppedRecords {
    /// Adds the errors of records that could not be decoded.
    pub fn add_unreadable(&mut self, why: Vec<String>) {
        self.unreadable.extend(why);
    }

    /// Returns the number of records that were not stored, and the reasons; `failed` events were
    /// rejected with `message`.
    pub fn response(&self, failed: usize, message: &str) -> LogsResponse {
        let mut why = Vec::new();
        if self.below_floor > 0 {
            why.push(format!(
                "{} log records are below the severity `{}`",
                self.below_floor,
                severity::severity_word(self.floor)
            ));
        }
        if self.beyond > 0 {
            why.push(format!(
                "{} exceed the limit of {} per request",
                self.beyond,
                bulk::EVENTS_MAX
            ));
        }
        if self.too_large > 0 {
            why.push(format!(
                "{} belong to a resource or scope that is too large",
                self.too_large
            ));
        }
        if let Some(first) = self.unreadable.first() {
            why.push(format!(
                "{} are malformed, first: {first}",
                self.unreadable.len()
            ));
        }
        if failed > 0 {
            why.push(message.to_owned());
        }
        let rejected =
            self.below_floor + self.beyond + self.too_large + self.unreadable.len() + failed;
        LogsResponse {
            partial_success: (rejected > 0).then(|| PartialSuccess {
                rejected_log_records: i64::try_from(rejected).unwrap_or(i64::MAX),
                error_message: why.join("; "),
            }),
        }
    }

    /// Counts events that did not fit into a request.
    pub fn add_excess(&mut self, count: usize) {
        self.too_large += count;
    }
}

struct RecordDetails {
    dimensions: Vec<(String, String)>,
    /// Wanted dimensions that the resource does not have.
    missing: Vec<String>,
    identity_bytes: usize,
    retained: Option<WireValue>,
    retained_bytes: usize,
}

impl RecordDetails {
    fn from_resource(resource: &Resource, settings: &ConversionSettings) -> Self {
        let (mut dimensions, mut missing) = (Vec::new(), Vec::new());
        for wanted in &settings.dimensions {
            match attribute_text(&resource.attributes, wanted) {
                Some(value) => dimensions.push((dimension_key(wanted), value)),
                None => missing.push(wanted.clone()),
            }
        }
        let identity_bytes = dimensions
            .iter()
            .map(|(key, value)| key.len() + value.len());
        let identity_bytes = identity_bytes.sum();
        let mut attributes = Vec::new();
        let mut retained_bytes = 0;
        for attribute in &resource.attributes {
            let bytes = prost::Message::encoded_len(attribute);
            if retained_bytes + bytes <= RESOURCE_BYTES {
                retained_bytes += bytes;
                attributes.push(attribute.clone());
            }
        }
        let retained = (!attributes.is_empty()).then(|| wire_value(&json_object(&attributes), 0));
        Self {
            dimensions,
            missing,
            identity_bytes,
            retained,
            retained_bytes,
        }
    }

    /// Returns the dimensions of a record: attributes of the resource, or else of the record.
    fn record_dimensions(&self, record: &LogRecord) -> BTreeMap<String, String> {
        let mut dimensions: BTreeMap<_, _> = self.dimensions.iter().cloned().collect();
        for wanted in &self.missing {
            let value = attribute_text(&record.attributes, wanted);
            dimensions.extend(value.map(|value| (dimension_key(wanted), value)));
        }
        if dimensions.is_empty() {
            dimensions.insert(UNKNOWN.0.to_owned(), UNKNOWN.1.to_owned());
        }
        dimensions
    }
}

fn dimension_key(attribute: &str) -> String {
    let is_reserved = attribute == "name";
    if is_reserved { "label_name" } else { attribute }.to_owned()
}

/// Returns the text of an attribute; `None` if it is absent or empty.
fn attribute_text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|it| it.key == key)?;
    Some(value_text(found.value.as_ref())).filter(|it| !it.is_empty())
}

/// Returns the summary of a record without a body: its name and first attributes.
fn attribute_summary(
    name: &str,
    record: &LogRecord,
    dimensions: &BTreeMap<String, String>,
) -> String {
    let attributes = record.attributes.iter().filter(|it| {
        let is_shown = it.key == EVENT_NAME || dimensions.contains_key(&dimension_key(&it.key));
        !is_shown
    });
    let attributes = attributes.filter_map(|it| {
        let text = value_text(it.value.as_ref());
        (!text.is_empty()).then(|| format!("{}={}", it.key, first_line(&text)))
    });
    let attributes: Vec<_> = attributes.take(SUMMARY_ATTRIBUTES_MAX).collect();
    match attributes.join(", ") {
        text if text.is_empty() => name.to_owned(),
        text => format!("{name}: {text}"),
    }
}

/// Returns the severity of a record; informational if the record has none.
fn record_severity(record: &LogRecord) -> Severity {
    let of_number = match record.severity_number {
        1..=8 => Some(Severity::Debug),
        9..=12 => Some(Severity::Info),
        13..=16 => Some(Severity::Warning),
        17..=20 => Some(Severity::Error),
        21..=24 => Some(Severity::Critical),
        _ => None,
    };
    of_number
        .or_else(|| severity::from_name(&record.severity_text))
        .unwrap_or(Severity::Info)
}

fn record_to_event(
    record: &LogRecord,
    severity: Severity,
    scope: &InstrumentationScope,
    resource: &RecordDetails,
) -> Event {
    let named = attribute_text(&record.attributes, EVENT_NAME).unwrap_or_default();
    let names = [&*record.event_name, &*named, &*scope.name];
    let name = names.into_iter().find(|name| !name.trim().is_empty());
    let name = name.unwrap_or(NAMELESS);
    let dimensions = resource.record_dimensions(record);
    let nanos = [record.time_unix_nano, record.observed_time_unix_nano];
    let nanos = nanos.into_iter().find(|nanos| *nanos > 0);
    let body = value_text(record.body.as_ref());
    let summary = if body.is_empty() {
        attribute_summary(name, record, &dimensions)
    } else {
        body.clone()
    };
    let mut metadata = Vec::new();
    let mut keep = |key: &str, value: Value| {
        let is_empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Object(members) => members.is_empty(),
            other => other.is_null(),
        };
        if !is_empty {
            metadata.push((key.to_owned(), value));
        }
    };
    let kind = record.body.as_ref().and_then(|it| it.kind.as_ref());
    if matches!(kind, Some(Kind::Kvlist(_))) {
        keep("body", json_value(record.body.as_ref()));
    }
    keep("attributes", json_object(&record.attributes));
    keep("scope", scope.name.clone().into());
    keep("severityText", record.severity_text.clone().into());
    keep("traceId", to_hex(&record.trace_id).into());
    keep("spanId", to_hex(&record.span_id).into());
    Event {
        name: name.to_owned(),
        dimensions,
        severity: severity.into(),
        timestamp: nanos.map_or(0, |nanos| {
            i64::try_from(nanos / 1_000_000).unwrap_or(i64::MAX)
        }),
        summary: first_line(&summary),
        body,
        metadata_fields: Some(Struct {
            fields: attributes_to_fields(metadata),
        }),
        ..Event::default()
    }
}

fn first_line(text: &str) -> String {
    const MORE: &str = "\u{2026}";
    let line = text.lines().next().unwrap_or_default();
    if line.len() <= SUMMARY_BYTES {
        return line.to_owned();
    }
    let start = bellwether_language::text::longest_prefix(line, SUMMARY_BYTES - MORE.len());
    format!("{start}{MORE}")
}

fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to memory does not fail");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::{
        wire::{AnyValue, ResourceLogs, ScopeLogs},
        *,
    };

    fn attributes(pairs: &[(&str, &str)]) -> Vec<KeyValue> {
        let pair = |(key, value): &(&str, &str)| KeyValue {
            key: (*key).to_owned(),
            value: Some(AnyValue {
                kind: Some(Kind::String((*value).to_owned())),
            }),
        };
        pairs.iter().map(pair).collect()
    }

    fn event(resource: &[(&str, &str)], record: LogRecord) -> Event {
        let resource = Resource {
            attributes: attributes(resource),
        };
        let request = LogsRequest {
            resource_logs: vec![ResourceLogs {
                resource: Some(resource),
                scope_logs: vec![ScopeLogs {
                    log_records: vec![LogRecord {
                        severity_number: 17,
                        ..record
                    }],
                    ..ScopeLogs::default()
                }],
            }],
        };
        let logs = Logs::from_request(&request, &ConversionSettings::default());
        logs.events.into_iter().next().unwrap()
    }

    #[test]
    fn dimensions_are_of_the_resource_or_else_of_the_record() {
        let (host, service) = (("host.name", "a"), ("service.name", "web"));
        for (resource, record, expected) in [
            (&[host, service][..], &[][..], &[host, service][..]),
            (&[service], &[host], &[host, service]),
            (&[host], &[("host.name", "b")], &[host]),
            (
                &[("host.name", "")],
                &[("host.name", "b")],
                &[("host.name", "b")],
            ),
            (&[], &[("other", "x")], &[UNKNOWN]),
        ] {
            let made = event(
                resource,
                LogRecord {
                    attributes: attributes(record),
                    ..LogRecord::default()
                },
            );
            let found: Vec<_> = made.dimensions.iter().collect();
            let found: Vec<_> = found
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str()))
                .collect();
            assert_eq!(found, expected, "{resource:?} {record:?}");
        }
    }

    #[test]
    fn summary_without_a_body_is_the_name_with_the_first_attributes() {
        let long = "x".repeat(2_000);
        for (name, pairs, expected) in [
            ("device.offline", &[][..], "device.offline".to_owned()),
            (
                "device.offline",
                &[
                    ("host.name", "a"),
                    ("device", "cam-3"),
                    ("empty", ""),
                    ("reason", "no\nlink"),
                ],
                "device.offline: device=cam-3, reason=no".to_owned(),
            ),
            (
                "",
                &[
                    ("event.name", "login"),
                    ("a", "1"),
                    ("b", "2"),
                    ("c", "3"),
                    ("d", "4"),
                    ("e", "5"),
                ],
                "login: a=1, b=2, c=3, d=4".to_owned(),
            ),
            ("", &[("a", "1")], "log: a=1".to_owned()),
            (
                "n",
                &[("a", &long)],
                format!("n: a={}\u{2026}", "x".repeat(1_016)),
            ),
        ] {
            let made = event(
                &[],
                LogRecord {
                    event_name: name.to_owned(),
                    attributes: attributes(pairs),
                    ..LogRecord::default()
                },
            );
            assert_eq!(made.summary, expected, "{name}");
            assert!(made.summary.len() <= SUMMARY_BYTES);
            assert_eq!(made.body, "");
        }
    }
}
