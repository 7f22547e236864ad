//! Conversion of stored events.

use bellwether_proto::v1;

use super::{hold, to_i64};
use crate::domain::{Annotation, HistoryEntry, Occurrence, Value, value::Fields};

/// Converts an event. `newest` is its newest occurrence, which has the total count.
pub fn event(newest: &Occurrence, occurrences: Vec<Occurrence>) -> v1::Event {
    v1::Event {
        id: newest.event.to_string(),
        name: newest.name.clone(),
        r#type: newest.kind.clone(),
        dimensions: newest.dimensions.clone(),
        count: Some(to_i64(newest.prior_count.saturating_add(newest.count))),
        occurrences: occurrences.into_iter().map(occurrence).collect(),
    }
}

/// Converts an event with one occurrence. The count includes events up to this occurrence.
pub fn event_with_one_occurrence(found: Occurrence) -> v1::Event {
    let mut event = event(&found, Vec::new());
    event.occurrences.push(occurrence(found));
    event
}

fn occurrence(found: Occurrence) -> v1::Occurrence {
    v1::Occurrence {
        id: found.id().to_string(),
        event_id: found.event.to_string(),
        number: i32::try_from(found.number).unwrap_or(i32::MAX),
        severity: found.severity as i32,
        status: found.status as i32,
        acknowledged: Some(found.acknowledged),
        metadata_fields: (!found.metadata.is_empty()).then(|| structure(found.metadata)),
        summary: found.summary,
        body: found.body,
        start_time: found.start_ms,
        last_seen: found.last_seen_ms,
        close_time: found.close.map(|close| close.at_ms),
        close_reason: found.close.map_or(0, |close| close.reason as i32),
        count: Some(to_i64(found.count)),
        annotations: found.annotations.into_iter().map(annotation).collect(),
        history: found.history.into_iter().map(history_entry).collect(),
        holds: hold::distinct_holds(&found.pending),
        r#type: found.kind,
        expire_time: found.expire_ms,
        acknowledged_until_time: found.acknowledged_until_ms,
        assignee: found.assignee.map_or_else(String::new, |it| it.to_string()),
        enriched_fields: found.enriched,
    }
}

fn annotation(note: Annotation) -> v1::Annotation {
    v1::Annotation {
        annotation_id: note.id,
        annotation: note.text,
        author: note.author.to_string(),
        create_time: note.create_ms,
        update_time: note.update_ms,
    }
}

fn history_entry(entry: HistoryEntry) -> v1::HistoryEntry {
    v1::HistoryEntry {
        time: entry.at_ms,
        author: entry
            .author
            .map(|author| author.to_string())
            .unwrap_or_default(),
        field: entry.field.as_str().into(),
        from: entry.from,
        to: entry.to,
    }
}

fn structure(fields: Fields) -> prost_types::Struct {
    let fields = fields
        .into_iter()
        .map(|(key, value)| (key, wire_value(value)));
    prost_types::Struct {
        fields: fields.collect(),
    }
}

pub fn wire_value(value: Value) -> prost_types::Value {
    use prost_types::value::Kind;
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(flag),
        Value::Number(number) => Kind::NumberValue(number),
        Value::Text(text) => Kind::StringValue(text),
        Value::List(values) => Kind::ListValue(prost_types::ListValue {
            values: values.into_iter().map(wire_value).collect(),
        }),
        Value::Object(fields) => Kind::StructValue(structure(fields)),
    };
    prost_types::Value { kind: Some(kind) }
}
