//! Responses of the service in these tests.

use super::*;

pub(super) fn object(kind: Kind) -> Object {
    let json = match kind {
        Kind::Trigger => json!({"name": "t", "ruleNames": ["r"], "etag": "1"}),
        Kind::Destination => {
            json!({"name": "d", "type": {"webhook": {}}, "ruleNames": ["r"], "etag": "1"})
        }
        Kind::Rule => {
            json!({"name": "r", "triggerNames": ["t"], "destinationNames": ["d"], "etag": "1"})
        }
        Kind::Client => json!({"name": "c", "role": "ROLE_VIEWER"}),
        Kind::Calendar => json!({"name": "k", "timeZone": "UTC", "etag": "1"}),
        Kind::Heartbeat => json!({"name": "h", "every": "60s", "etag": "1"}),
        Kind::Contact => json!({"name": "p", "methods": [{"destinationName": "d"}], "etag": "1"}),
        Kind::Schedule => json!({"name": "s", "timeZone": "UTC", "etag": "1"}),
        Kind::Policy => json!({"name": "e", "rounds": 1, "etag": "1"}),
        Kind::Response => json!({"id": "x", "ruleName": "r", "occurrenceId": "e:1"}),
        Kind::Inhibition => json!({"name": "i", "etag": "1"}),
        Kind::Enrichment => {
            json!({"name": "x", "matchFields": ["host"], "csv": "host,team", "etag": "1"})
        }
        Kind::Drill => json!({"name": "w", "every": "86400s", "etag": "1"}),
        Kind::View => json!({"name": "v", "filter": "severity=critical", "etag": "1"}),
        Kind::Group => json!({"id": "g", "ruleName": "r"}),
        Kind::Pending => json!({"ruleName": "r", "occurrenceId": "e:1"}),
        Kind::Mapping => json!({"name": "m", "event": {"name": "n"}, "etag": "1"}),
        Kind::Silence => json!({"name": "q", "reason": "why", "filter": "host=a", "etag": "1"}),
    };
    Object { kind, json }
}

pub(super) fn none() -> CallResult {
    Err(Failure::new(FailureKind::Unsupported, "not here"))
}

pub(super) fn answer(call: &Call) -> CallResult {
    let listed = Kind::ALL
        .iter()
        .find(|kind| kind::spec(**kind).list == call.method);
    if let Some(kind) = listed {
        return Ok(listing(*kind, &[object(*kind)]));
    }
    let detailed = |kind: &&Kind| kind::spec(**kind).detail == Some(call.method);
    if let Some(kind) = Kind::ALL.iter().find(detailed) {
        return Ok(wire(
            call.method,
            &json!({kind.singular(): object(*kind).json}),
        ));
    }
    let occurrences: Vec<v1::Occurrence> = (0..5).map(occurrence).collect();
    let answer = match call.method {
        "GroupEvents" => groups().encode_to_vec(),
        "SearchEvents" => found(occurrences, "").encode_to_vec(),
        "CountEvents" => wire(call.method, &json!({"count": 5})),
        "GetEvent" => wire(
            call.method,
            &json!({"result": {"id": "e0", "occurrences": [{"id": "e0:1"}]}}),
        ),
        "CreateSilence" => wire(call.method, &json!({"silence": {"name": "s"}})),
        "SetStatus" => {
            let count = call.body["statuses"].as_array().map_or(0, Vec::len);
            let done = vec![json!({"success": true}); count];
            wire(call.method, &json!({"statusResponses": done}))
        }
        "Annotate" => {
            let items = call.body["annotations"].as_array().into_iter().flatten();
            let done = items.map(|item| {
                let occurrence = &item["occurrenceId"];
                json!({"success": true, "occurrenceId": occurrence, "annotationId": "n"})
            });
            let done: Vec<_> = done.collect();
            wire(call.method, &json!({"annotationResponses": done}))
        }
        "PreviewSilence" | "ListObligations" | "TestDestination" | "RetryDeliveries"
        | "CancelDeliveries" => Vec::new(),
        _ if call.is_write() || call.body["validateOnly"] == true => Vec::new(),
        _ => return none(),
    };
    Ok(answer)
}

pub(super) fn wire(method: &str, answer: &Value) -> Vec<u8> {
    let name = format!("bellwether.v1.{method}Response");
    wire_from_json(&name, answer.to_string().as_bytes()).unwrap()
}

pub(super) fn listing(kind: Kind, rows: &[Object]) -> Vec<u8> {
    let rows: Vec<_> = rows.iter().map(|row| &row.json).collect();
    wire(kind::spec(kind).list, &json!({kind.plural(): rows}))
}

/// Returns a page of events with one occurrence each, and the token of the next page.
pub(super) fn found(occurrences: Vec<v1::Occurrence>, next: &str) -> v1::SearchEventsResponse {
    let count = i32::try_from(occurrences.len()).unwrap();
    let event = |occurrence: v1::Occurrence| v1::Event {
        dimensions: [("host".to_owned(), "a".to_owned())].into(),
        occurrences: vec![occurrence],
        ..v1::Event::default()
    };
    v1::SearchEventsResponse {
        warnings: Vec::new(),
        results: occurrences.into_iter().map(event).collect(),
        page_info: Some(v1::PageInfo {
            has_next: Some(!next.is_empty()),
            end_cursor: next.to_owned(),
            total_count: Some(count),
            ..v1::PageInfo::default()
        }),
    }
}

pub(super) fn occurrence(number: i64) -> v1::Occurrence {
    v1::Occurrence {
        id: format!("e{number}:1"),
        event_id: format!("e{number}"),
        severity: Severity::Error.into(),
        status: Status::Open.into(),
        last_seen: number,
        ..v1::Occurrence::default()
    }
}

/// Returns two groups: three events with a host, and one without.
pub(super) fn groups() -> v1::GroupEventsResponse {
    let group = |value: Option<&str>, count| v1::EventGroup {
        value: value.map(str::to_owned),
        count: Some(count),
        count_by_severity: [("SEVERITY_ERROR".to_owned(), count)].into(),
        last_seen: None,
    };
    v1::GroupEventsResponse {
        warnings: Vec::new(),
        groups: vec![group(Some("db 1"), 3), group(None, 1)],
        group_count: Some(2),
        occurrence_count: Some(4),
        complete: Some(true),
    }
}

pub(super) fn row(number: i64) -> EventRow {
    EventRow {
        id: format!("e{number}:1").into(),
        entity: "host=a".into(),
        severity: Severity::Error,
        status: Status::Open,
        last_seen_ms: number,
        ..EventRow::default()
    }
}
