//! Events from the wire.

use bellwether_proto::v1;
use serde_json::Value;

use super::{
    basic::{severity, status},
    value::structure,
};
use crate::{
    client::Page,
    data::{Annotation, EventDetail, EventRow, HistoryEntry, OccurrenceDetail},
};

pub(super) fn entity<'a>(
    dimensions: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Box<str> {
    let pairs: Vec<String> = dimensions
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    pairs.join(" ").into_boxed_str()
}

/// One row an occurrence.
pub(super) fn event_rows(from: v1::Event) -> Vec<EventRow> {
    let entity = entity(&from.dimensions);
    let name = from.name;
    let row = |occurrence: v1::Occurrence| EventRow {
        id: occurrence.id.into_boxed_str(),
        name: name.as_str().into(),
        entity: entity.clone(),
        summary: occurrence.summary.into_boxed_str(),
        severity: severity(occurrence.severity),
        status: status(occurrence.status),
        acknowledged: occurrence.acknowledged.unwrap_or_default(),
        last_seen_ms: occurrence.last_seen,
        count: occurrence.count.unwrap_or_default(),
    };
    from.occurrences.into_iter().map(row).collect()
}

pub(in crate::client) fn event_page(from: v1::SearchEventsResponse) -> Page<EventRow> {
    let info = from.page_info.unwrap_or_default();
    Page {
        rows: from.results.into_iter().flat_map(event_rows).collect(),
        next: if info.has_next.unwrap_or_default() {
            info.end_cursor
        } else {
            String::new()
        },
        total: info.total_count,
    }
}

pub(in crate::client) fn watched(
    events: Vec<v1::Event>,
    left: Vec<String>,
) -> (Vec<EventRow>, Vec<String>) {
    (events.into_iter().flat_map(event_rows).collect(), left)
}

pub(in crate::client) fn event_detail(from: v1::Event) -> EventDetail {
    let occurrence = from.occurrences.into_iter().next().unwrap_or_default();
    let reason = match v1::occurrence::CloseReason::try_from(occurrence.close_reason) {
        Ok(v1::occurrence::CloseReason::Sender) => "by its sender",
        Ok(v1::occurrence::CloseReason::Operator) => "by an operator",
        Ok(v1::occurrence::CloseReason::Aged) => "for lack of news",
        Ok(v1::occurrence::CloseReason::Unspecified) | Err(_) => "",
    };
    let annotation = |from: v1::Annotation| Annotation {
        id: from.annotation_id,
        text: from.annotation,
        author: from.author,
        update_ms: from.update_time,
    };
    let entry = |from: v1::HistoryEntry| HistoryEntry {
        time_ms: from.time,
        author: from.author,
        field: from.field,
        from: from.from,
        to: from.to,
    };
    EventDetail {
        id: from.id,
        name: from.name,
        kind: from.r#type,
        dimensions: from.dimensions,
        count: from.count.unwrap_or_default(),
        occurrence: OccurrenceDetail {
            id: occurrence.id,
            number: occurrence.number,
            severity: severity(occurrence.severity),
            status: status(occurrence.status),
            acknowledged: occurrence.acknowledged.unwrap_or_default(),
            summary: occurrence.summary,
            body: occurrence.body,
            metadata: occurrence.metadata_fields.map_or(Value::Null, structure),
            start_ms: occurrence.start_time,
            last_seen_ms: occurrence.last_seen,
            close_ms: occurrence.close_time,
            close_reason: reason,
            count: occurrence.count.unwrap_or_default(),
            annotations: occurrence.annotations.into_iter().map(annotation).collect(),
            history: occurrence.history.into_iter().map(entry).collect(),
        },
    }
}
