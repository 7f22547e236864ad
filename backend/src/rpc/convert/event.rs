//! Conversion of stored events.

use std::collections::BTreeMap;

use bellwether_proto::v1;

use super::{hold, list::to_i32};
use crate::{
    domain::{
        Annotation, CloseReason, HistoryEntry, Name, Occurrence, Severity, Value, value::Fields,
    },
    ops::{
        destination::health_to_wire,
        footprint::Footprint,
        overview::{DestinationOverview, NodeOverview, Overview},
        route::Route,
        search::{Bucket, Group, Groups, SearchPage},
        watch::WatchUpdate,
    },
    store::{LogPosition, engine::Condition},
};

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
    let reason = match found.close.map(|close| close.reason) {
        None => v1::occurrence::CloseReason::Unspecified,
        Some(CloseReason::Sender) => v1::occurrence::CloseReason::Sender,
        Some(CloseReason::Operator) => v1::occurrence::CloseReason::Operator,
        Some(CloseReason::Aged) => v1::occurrence::CloseReason::Aged,
        Some(CloseReason::Expired) => v1::occurrence::CloseReason::Expired,
    };
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
        close_reason: reason.into(),
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

pub fn structure(fields: Fields) -> prost_types::Struct {
    let fields = fields
        .into_iter()
        .map(|(key, value)| (key, wire_value(value)));
    prost_types::Struct {
        fields: fields.collect(),
    }
}

pub(super) fn wire_value(value: Value) -> prost_types::Value {
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

pub fn page(found: SearchPage) -> v1::SearchEventsResponse {
    let count = found.occurrences.len();
    v1::SearchEventsResponse {
        results: found
            .occurrences
            .into_iter()
            .map(event_with_one_occurrence)
            .collect(),
        page_info: Some(v1::PageInfo {
            count: Some(to_i32(count)),
            total_count: found.total.map(to_i32),
            has_next: Some(found.has_next),
            start_cursor: found.start_cursor,
            end_cursor: found.end_cursor,
        }),
        warnings: Vec::new(),
    }
}

pub fn route(route: &Route) -> v1::EventRoute {
    let texts = |names: &[Name]| names.iter().map(ToString::to_string).collect();
    v1::EventRoute {
        occurrence_id: route.occurrence.to_string(),
        rule_names: texts(&route.rules),
        destination_names: texts(&route.destinations),
        silence_names: texts(&route.silences),
    }
}

pub fn bucket(bucket: Bucket) -> v1::FrequencyBucket {
    v1::FrequencyBucket {
        start: bucket.start_ms,
        end: bucket.end_ms,
        count_by_severity: count_by_name(bucket.by_severity),
    }
}

fn count_by_name(counts: BTreeMap<Severity, usize>) -> BTreeMap<String, i32> {
    let counts = counts.into_iter();
    counts
        .map(|(severity, count)| (severity.enum_name().to_owned(), to_i32(count)))
        .collect()
}

pub fn groups(found: Groups, limit: usize) -> v1::GroupEventsResponse {
    let group = |group: Group| v1::EventGroup {
        value: group.value,
        count: Some(to_i32(group.by_severity.values().sum::<usize>())),
        count_by_severity: count_by_name(group.by_severity),
        last_seen: group.last_seen_ms,
    };
    v1::GroupEventsResponse {
        group_count: Some(to_i32(found.all.len())),
        occurrence_count: Some(to_i32(found.counted)),
        complete: Some(found.is_complete),
        groups: found.all.into_iter().take(limit).map(group).collect(),
        warnings: Vec::new(),
    }
}

pub fn watch_response(update: WatchUpdate) -> v1::WatchEventsResponse {
    v1::WatchEventsResponse {
        events: update
            .changed
            .into_iter()
            .map(event_with_one_occurrence)
            .collect(),
        left_occurrence_ids: update.left.into_iter().map(|id| id.to_string()).collect(),
        resume_token: update.resume_token,
        gap: update.gap,
        warnings: Vec::new(),
    }
}

pub fn overview(overview: Overview, start_ms: i64) -> v1::GetOverviewResponse {
    let minutes = overview.events_per_minute.into_iter();
    let destinations = overview.destinations.into_iter();
    let log_head = overview.log_head;
    let nodes = overview.nodes.into_iter();
    v1::GetOverviewResponse {
        open_by_severity: count_by_name(overview.open),
        acknowledged_count: overview.acknowledged.map(to_i32),
        events_per_minute: minutes.map(to_i32).collect(),
        destinations: destinations.map(destination_overview).collect(),
        counted_since_time: overview.counted_since_ms.map(super::time::timestamp),
        oldest_undelivered_time: overview.oldest_undelivered_ms.map(super::time::timestamp),
        start_time: Some(super::time::timestamp(start_ms)),
        version: env!("CARGO_PKG_VERSION").into(),
        trigger_count: Some(to_i32(overview.triggers)),
        destination_count: Some(to_i32(overview.destinations_stored)),
        rule_count: Some(to_i32(overview.rules)),
        enabled_rule_count: Some(to_i32(overview.enabled_rules)),
        opened_by_severity: count_by_name(overview.opened),
        footprint: Some(footprint(overview.footprint)),
        nodes: nodes.map(|it| node(it, log_head)).collect(),
        store: Some(store_health(&overview.condition)),
        quiet_since_time: overview.quiet_since_ms.map(super::time::timestamp),
        dead_count: Some(to_i32(overview.dead)),
    }
}

fn store_health(condition: &Condition) -> v1::StoreHealth {
    use v1::store_health::State;
    let state = match condition {
        Condition::Writable => State::Writable,
        Condition::Short(_) => State::Short,
        Condition::Full(_) => State::Full,
        Condition::Unwritable(_) => State::Unwritable,
        Condition::Damaged(_) => State::Damaged,
        Condition::Unreachable => State::Unreachable,
    };
    let accepts_events = condition.accepts_events();
    v1::StoreHealth {
        state: state.into(),
        accepts_events: Some(accepts_events),
        reason: if accepts_events {
            String::new()
        } else {
            condition.to_string()
        },
    }
}

fn node(node: NodeOverview, log_head: LogPosition) -> v1::NodeOverview {
    let NodeOverview {
        seen,
        ignored_settings,
        differing_sections,
        settings_digest,
    } = node;
    let behind = log_head.steps_since(seen.follows);
    v1::NodeOverview {
        name: seen.name,
        start_time: Some(super::time::timestamp(seen.since_ms)),
        leads: Some(seen.leads),
        owned_slots: Some(i32::try_from(seen.slots).unwrap_or(i32::MAX)),
        behind_count: Some(to_i64(behind)),
        differing_sections,
        settings_digest,
        ignored_settings,
    }
}

fn footprint(footprint: Footprint) -> v1::Footprint {
    let signed = |bytes: Option<u64>| bytes.map(to_i64);
    v1::Footprint {
        store_bytes: signed(footprint.store),
        free_bytes: signed(footprint.free),
        memory_bytes: signed(footprint.memory),
    }
}

fn destination_overview(overview: DestinationOverview) -> v1::DestinationOverview {
    v1::DestinationOverview {
        destination_name: overview.name,
        waiting_count: Some(to_i32(overview.health_summary.waiting)),
        health: Some(health_to_wire(Some(&overview.health_summary))),
        dead_count: Some(to_i32(overview.health_summary.dead)),
        delivered_count: Some(to_i32(overview.delivered)),
        failure_unheard: overview.is_silent,
    }
}

pub(super) fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
