//! Calls about events, and parsers of their responses.

use bellwether_proto::v1;

use super::{
    call::{Call, CallResult, message, parse_empty},
    outcome::{Note, WriteOutcome},
    protocol::{EventFilter, Page, StatusChange},
};
use crate::{
    data::{EventKey, EventOrder, EventRow, Failure, Status},
    limits,
};

const QUERIES: &str = "EventQueryService";
const CHANGES: &str = "EventManagementService";

impl EventFilter {
    pub(crate) fn query(&self) -> v1::EventQuery {
        let open = [Status::Open.into(), Status::Suppressed.into()];
        v1::EventQuery {
            clause: self.clause.clone(),
            statuses: if self.open_only {
                open.to_vec()
            } else {
                Vec::new()
            },
            sort_by: sort_by(self.order),
            ..v1::EventQuery::default()
        }
    }

    /// Returns the request for the page after the cursor; the cursor is empty for the first page.
    fn page(&self, cursor: String, limit: i32) -> v1::SearchEventsRequest {
        let page_input = v1::PageInput {
            limit,
            cursor,
            ..v1::PageInput::default()
        };
        v1::SearchEventsRequest {
            query: Some(v1::EventQuery {
                page_input: Some(page_input),
                ..self.query()
            }),
        }
    }

    pub(crate) fn search(&self, cursor: String) -> Call {
        Call::from_request(QUERIES, &self.page(cursor, limits::EVENT_PAGE))
    }

    /// Requests the number of matches, if the service can determine it quickly.
    pub(crate) fn estimate(&self) -> Call {
        Call::from_request(QUERIES, &self.page(String::new(), 1))
    }

    pub(crate) fn count(&self) -> Call {
        let query = Some(self.query());
        Call::from_request(QUERIES, &v1::CountEventsRequest { query }).with_long_timeout()
    }

    pub(crate) fn group(&self, field: &str, limit: i32) -> Call {
        let request = v1::GroupEventsRequest {
            query: Some(self.query()),
            field: field.to_owned(),
            limit,
        };
        Call::from_request(QUERIES, &request)
    }
}

/// Searches the occurrences seen since a time, the newest opened first.
pub(crate) fn search_seen_since(start_ms: i64) -> Call {
    let newest_first = EventFilter {
        order: EventOrder {
            by: EventKey::Start,
            ascending: false,
        },
        ..EventFilter::default()
    };
    let mut request = newest_first.page(String::new(), limits::EVENT_PAGE);
    if let Some(query) = &mut request.query {
        query.time_range = Some(v1::TimeRange {
            start: Some(start_ms),
            end: None,
        });
    }
    Call::from_request(QUERIES, &request).with_long_timeout()
}

/// Returns the request for the matches that are compared to find those that opened.
pub(crate) fn search_newest_opened(filter: &EventFilter) -> Call {
    Call::from_request(QUERIES, &filter.page(String::new(), limits::NOTICE_PAGE))
}

/// Returns the sort order of a request; empty for the default order.
fn sort_by(order: EventOrder) -> Vec<v1::SortBy> {
    if order == EventOrder::default() {
        return Vec::new();
    }
    let field = match order.by {
        EventKey::LastSeen => "lastSeen",
        EventKey::Severity => "severity",
        EventKey::Start => "startTime",
    };
    let order = if order.ascending {
        v1::SortOrder::Asc
    } else {
        v1::SortOrder::Desc
    };
    let by_field = v1::SortByField {
        field: field.to_owned(),
        order: order.into(),
    };
    let sort = Some(v1::sort_by::Sort::ByField(by_field));
    vec![v1::SortBy { sort }]
}

pub(crate) fn parse_page(answer: CallResult) -> Result<Page<EventRow>, Failure> {
    let found: v1::SearchEventsResponse = message(answer)?;
    let info = found.page_info.unwrap_or_default();
    let next = Some(info.end_cursor).filter(|_| info.has_next == Some(true));
    let rows = found.results.into_iter().flat_map(EventRow::from_event);
    Ok(Page {
        rows: rows.collect(),
        next: next.unwrap_or_default(),
        total: info.total_count,
        warnings: found.warnings,
    })
}

/// Returns the number of matches; `None` if counting would take long.
pub(crate) fn parse_estimate(answer: CallResult) -> Result<Option<i32>, Failure> {
    let found: v1::SearchEventsResponse = message(answer)?;
    Ok(found.page_info.and_then(|info| info.total_count))
}

pub(crate) fn event_id(occurrence_id: &str) -> &str {
    let event = occurrence_id.split_once(':').map(|(event, _)| event);
    event.unwrap_or(occurrence_id)
}

/// Returns the occurrence id; empty for an event id, which refers to its newest occurrence.
fn own_id(id: &str) -> &str {
    if id.contains(':') { id } else { "" }
}

pub(crate) fn get_event(id: &str) -> Call {
    let own = Some(own_id(id)).filter(|id| !id.is_empty());
    let request = v1::GetEventRequest {
        id: event_id(id).to_owned(),
        occurrence_ids: own.into_iter().map(str::to_owned).collect(),
    };
    Call::from_request(QUERIES, &request)
}

pub(crate) fn parse_event(answer: CallResult) -> Result<v1::Event, Failure> {
    let found: v1::GetEventResponse = message(answer)?;
    Ok(found.result.unwrap_or_default())
}

pub(crate) fn route_events(occurrence_ids: Vec<String>) -> Call {
    let request = v1::RouteEventsRequest { occurrence_ids };
    Call::from_request(QUERIES, &request)
}

pub(crate) fn explain_event(id: &str) -> Call {
    let request = v1::ExplainEventRequest {
        id: event_id(id).to_owned(),
        occurrence_id: own_id(id).to_owned(),
    };
    Call::from_request(QUERIES, &request)
}

fn status_item(change: &StatusChange) -> v1::StatusItem {
    let mut item = v1::StatusItem::default();
    match change {
        StatusChange::Status(status) => item.status = (*status).into(),
        StatusChange::Acknowledged(flag) => item.acknowledged = Some(*flag),
        StatusChange::Assigned(name) => item.assignee = Some(name.clone()),
    }
    item
}

pub(crate) fn set_status(ids: &[String], change: &StatusChange) -> Call {
    set_statuses(ids, change, false)
}

/// Acknowledges an occurrence, or the open ones of a group, for this many seconds.
pub(crate) fn acknowledge_for(id: &str, group: &str, seconds: i64) -> Call {
    let acknowledge_for = Some(prost_types::Duration { seconds, nanos: 0 });
    if !group.is_empty() {
        let request = v1::SetGroupStatusRequest {
            id: group.to_owned(),
            acknowledged: Some(true),
            acknowledge_for,
            ..v1::SetGroupStatusRequest::default()
        };
        return Call::from_request("GroupService", &request).into_write(parse_empty);
    }
    let item = v1::StatusItem {
        event_id: event_id(id).to_owned(),
        occurrence_id: own_id(id).to_owned(),
        acknowledged: Some(true),
        acknowledge_for,
        ..v1::StatusItem::default()
    };
    let request = v1::SetStatusRequest {
        statuses: vec![item],
        without_updates: false,
    };
    Call::from_request(CHANGES, &request).into_write(parse_statuses)
}

fn parse_statuses(answer: CallResult) -> Result<WriteOutcome, Failure> {
    let done: v1::SetStatusResponse = message(answer)?;
    let items = done.status_responses.into_iter();
    Ok(outcome_of_items(
        items.map(|item| (item.success, item.error)),
    ))
}

pub(crate) fn set_status_without_updates(ids: &[String], change: &StatusChange) -> Call {
    set_statuses(ids, change, true)
}

fn set_statuses(ids: &[String], change: &StatusChange, without_updates: bool) -> Call {
    let change = status_item(change);
    let statuses = ids.iter().map(|id| v1::StatusItem {
        event_id: event_id(id).to_owned(),
        occurrence_id: own_id(id).to_owned(),
        ..change.clone()
    });
    let request = v1::SetStatusRequest {
        statuses: statuses.collect(),
        without_updates,
    };
    Call::from_request(CHANGES, &request).into_write(parse_statuses)
}

pub(crate) fn set_group_status(id: &str, change: &StatusChange) -> Call {
    let item = status_item(change);
    let request = v1::SetGroupStatusRequest {
        id: id.to_owned(),
        status: item.status,
        acknowledged: item.acknowledged,
        assignee: item.assignee,
        acknowledge_for: None,
    };
    Call::from_request("GroupService", &request).into_write(parse_empty)
}

/// Sets the text of notes; an empty text deletes them.
fn annotate_events(notes: impl Iterator<Item = Note>, text: &str) -> Call {
    let annotations = notes.map(|note| v1::AnnotationItem {
        event_id: event_id(&note.occurrence_id).to_owned(),
        occurrence_id: note.occurrence_id,
        annotation_id: note.id,
        annotation: text.to_owned(),
    });
    let request = v1::AnnotateRequest {
        annotations: annotations.collect(),
    };
    Call::from_request(CHANGES, &request)
}

pub(crate) fn write_notes(ids: &[String], text: &str) -> Call {
    let notes = ids.iter().map(|id| Note {
        occurrence_id: id.clone(),
        id: String::new(),
    });
    annotate_events(notes, text).into_write(|answer| {
        let done: v1::AnnotateResponse = message(answer)?;
        let notes = done.annotation_responses.iter().map(|item| Note {
            occurrence_id: item.occurrence_id.clone(),
            id: item.annotation_id.clone(),
        });
        let notes = notes.collect();
        Ok(match annotate_outcome(done) {
            WriteOutcome::All => WriteOutcome::Notes(notes),
            other => other,
        })
    })
}

pub(crate) fn remove_notes(notes: Vec<Note>) -> Call {
    annotate_events(notes.into_iter(), "")
        .into_write(|answer| message(answer).map(annotate_outcome))
}

fn annotate_outcome(done: v1::AnnotateResponse) -> WriteOutcome {
    let items = done.annotation_responses.into_iter();
    outcome_of_items(items.map(|item| (item.success, item.error)))
}

fn outcome_of_items(results: impl Iterator<Item = (Option<bool>, String)>) -> WriteOutcome {
    let failed = results.filter(|(success, _)| *success != Some(true));
    let errors: Vec<String> = failed.map(|(_, error)| error).collect();
    match errors.first() {
        None => WriteOutcome::All,
        Some(first) => WriteOutcome::AllBut {
            failed: errors.len(),
            first_error: first.clone(),
        },
    }
}
