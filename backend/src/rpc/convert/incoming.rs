//! Conversion of incoming events.

use bellwether_proto::cloud;
use prost_types::value::Kind;

use super::truncate::truncate_event;
use crate::{
    domain::{IncomingEvent, Report, Severity, Status, Value, value::Fields},
    error::Violation,
    limits::REPORTER_BYTES_MAX,
    ops::intake::check::{check, check_sender},
};

/// Converts an event, using `now_ms` if the event has no time.
pub fn event_from_wire(event: cloud::Event, now_ms: i64) -> Result<IncomingEvent, Vec<Violation>> {
    convert_event(event, now_ms, |_| {})
}

/// Converts an event of another dialect like [`event_from_wire`], but truncates long values instead
/// of rejecting them.
pub fn truncated_event_from_wire(
    mut event: cloud::Event,
    now_ms: i64,
) -> Result<IncomingEvent, Vec<Violation>> {
    event.metadata_fields.iter_mut().for_each(make_finite);
    convert_event(event, now_ms, truncate_event)
}

fn convert_event(
    event: cloud::Event,
    now_ms: i64,
    adjust: impl FnOnce(&mut IncomingEvent),
) -> Result<IncomingEvent, Vec<Violation>> {
    let mut violations = Vec::new();
    let (severity, status) = (
        Severity::from_number(event.severity),
        Status::from_number(event.status),
    );
    let enums = [
        ("severity", event.severity, severity.is_some(), "0 to 5"),
        ("status", event.status, status.is_some(), "0 to 3"),
    ];
    for (field, number, is_known, right) in enums {
        if number != 0 && !is_known {
            let description = format!("{number} is not a known value; expected {right}");
            violations.push(Violation::new(field, description));
        }
    }
    if event.expire_time.is_some_and(|it| it <= 0) {
        let description = "must be after 1970; expected milliseconds since then";
        violations.push(Violation::new("expireTime", description));
    }
    if event.reporter.len() > REPORTER_BYTES_MAX {
        let bytes = event.reporter.len();
        let description = format!("is {bytes} bytes; the limit is {REPORTER_BYTES_MAX}");
        violations.push(Violation::new("reporter", description));
    }
    let metadata = match event.metadata_fields.map(fields_from_wire) {
        None => Fields::new(),
        Some(Some(metadata)) => metadata,
        Some(None) => {
            let description = "contains a non-finite number, which JSON does not support";
            violations.push(Violation::new("metadataFields", description));
            Fields::new()
        }
    };
    let (name, kind) = match (event.name, event.r#type) {
        (name, kind) if name.is_empty() => (kind.clone(), kind),
        both => both,
    };
    let mut incoming = IncomingEvent {
        name,
        kind,
        dimensions: event.dimensions,
        metadata,
        summary: event.summary,
        body: event.body,
        severity,
        status,
        acknowledged: event.acknowledged,
        timestamp_ms: if event.timestamp == 0 {
            now_ms
        } else {
            event.timestamp
        },
        expire_ms: event.expire_time,
        report: Report {
            is_update: event.update_only,
            ..Report::new(event.start_time, event.end_time, &event.reporter)
        },
    };
    adjust(&mut incoming);
    violations.extend(check(&incoming, now_ms));
    violations.extend(check_sender(&incoming));
    if violations.is_empty() {
        Ok(incoming)
    } else {
        Err(violations)
    }
}

/// Converts JSON fields. `None` if a number is not finite. The decoder limits the nesting.
fn fields_from_wire(wire: prost_types::Struct) -> Option<Fields> {
    let fields = wire.fields.into_iter();
    fields
        .map(|(key, it)| Some((key, value_from_wire(it)?)))
        .collect()
}

fn value_from_wire(wire: prost_types::Value) -> Option<Value> {
    Some(match wire.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::NumberValue(number)) => Value::Number(number.is_finite().then_some(number)?),
        Some(Kind::StringValue(text)) => Value::Text(text),
        Some(Kind::ListValue(list)) => {
            let values = list.values.into_iter();
            Value::List(values.map(value_from_wire).collect::<Option<_>>()?)
        }
        Some(Kind::StructValue(object)) => Value::Object(fields_from_wire(object)?),
    })
}

fn make_finite(fields: &mut prost_types::Struct) {
    fields.fields.values_mut().for_each(make_value_finite);
}

fn make_value_finite(value: &mut prost_types::Value) {
    match &mut value.kind {
        Some(Kind::NumberValue(number)) if !number.is_finite() => {
            value.kind = Some(Kind::StringValue(number.to_string()));
        }
        Some(Kind::ListValue(list)) => list.values.iter_mut().for_each(make_value_finite),
        Some(Kind::StructValue(fields)) => make_finite(fields),
        _ => {}
    }
}

pub fn join_violations(violations: &[Violation]) -> String {
    let each = violations
        .iter()
        .map(|it| format!("{}: {}", it.field, it.description));
    each.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn event() -> cloud::Event {
        cloud::Event {
            name: "disk-full".into(),
            dimensions: BTreeMap::from([("host".into(), "a".into())]),
            ..cloud::Event::default()
        }
    }

    fn number(number: f64) -> prost_types::Struct {
        let kind = Some(Kind::NumberValue(number));
        prost_types::Struct {
            fields: BTreeMap::from([("x".into(), prost_types::Value { kind })]),
        }
    }

    #[test]
    fn unset_fields_stay_none_and_time_defaults_to_now() {
        let converted = event_from_wire(event(), NOW_MS).unwrap();
        assert_eq!(
            (converted.severity, converted.status, converted.acknowledged),
            (None, None, None)
        );
        assert_eq!(converted.timestamp_ms, NOW_MS);
        assert_eq!(converted.kind, "", "the occurrence uses this name");
    }

    #[test]
    fn missing_name_defaults_to_the_type() {
        let mut wire = event();
        wire.r#type = std::mem::take(&mut wire.name);
        let converted = event_from_wire(wire, NOW_MS).unwrap();
        assert_eq!(
            (converted.name.as_str(), converted.kind.as_str()),
            ("disk-full", "disk-full")
        );
    }

    #[test]
    fn all_violations_are_listed_together() {
        let wire = cloud::Event {
            severity: 9,
            status: -1,
            timestamp: 1,
            metadata_fields: Some(number(f64::NAN)),
            ..cloud::Event::default()
        };
        let violations = event_from_wire(wire, NOW_MS).unwrap_err();
        let fields: Vec<_> = violations.iter().map(|it| it.field.as_str()).collect();
        let expected = [
            "severity",
            "status",
            "metadataFields",
            "name",
            "dimensions",
            "timestamp",
        ];
        assert_eq!(fields, expected);
        assert!(
            join_violations(&violations)
                .starts_with("severity: 9 is not a known value; expected 0 to 5; ")
        );
    }

    #[test]
    fn metadata_keeps_its_values() {
        let mut wire = event();
        wire.metadata_fields = Some(number(1.5));
        let converted = event_from_wire(wire, NOW_MS).unwrap();
        assert_eq!(converted.metadata.get("x"), Some(&Value::Number(1.5)));
    }
}
