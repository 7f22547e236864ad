//! Makes one request: its calls outward, their answer inward.

use std::collections::{BTreeMap, HashSet};

use bellwether_proto::{json, v1};
use prost::{Message, Name};
use serde_json::{Value, json};

use super::{
    carrier::{Reach, unlinked},
    failure::unfit,
    protocol::{Answer, Chosen, EventFilter, Note, Page, Request, StatusChange, Taken},
};
use crate::{
    data::{
        Back, BulkTally, Counted, EventKey, EventOrder, EventRow, Failure, FailureKind, Kind,
        Object, Status, Transition,
    },
    kind, limits,
};

/// Makes the request; whatever happened to it is its answer.
#[expect(clippy::too_many_lines, reason = "a table: a row for each request")]
pub(super) async fn make(reach: &mut Reach, request: Request) -> Answer {
    if matches!(
        request,
        Request::TestDestination { .. }
            | Request::Bulk { .. }
            | Request::GatherEvents { .. }
            | Request::ListObligations { .. }
            | Request::CountUpdates { .. }
            | Request::PreviewSilence { .. }
            | Request::ListAudit { .. }
    ) {
        reach.limit = limits::TEST_CALL;
    }
    match request {
        Request::Overview => {
            let asked = v1::GetOverviewRequest {};
            let found = reach.ask("OverviewService/GetOverview", asked).await;
            Answer::Overview(found.map(calm))
        }
        Request::Counted(back) => Answer::Counted(counted(reach, back).await),
        Request::Get { kind, name } => Answer::Got(kind, get(reach, kind, &name).await),
        Request::List(kind) => Answer::List(kind, list(reach, kind).await),
        Request::ListDeliveries { filter, page_token } => {
            let more = !page_token.is_empty();
            let asked = deliveries(filter, page_token);
            let page = reach.ask("DeliveryService/ListDeliveries", asked).await;
            Answer::Deliveries { more, page }
        }
        Request::GetDelivery { id } => {
            let asked = v1::GetDeliveryRequest { id };
            let found = reach.ask("DeliveryService/GetDelivery", asked).await;
            let found = found.map(|it: v1::GetDeliveryResponse| it.delivery.unwrap_or_default());
            Answer::Delivery(found)
        }
        Request::SearchEvents { filter, cursor } => {
            let more = !cursor.is_empty();
            let page = search(reach, &filter, cursor).await;
            Answer::Events { more, page }
        }
        Request::CountEvents { filter } => {
            let mut query = query(&filter, Some(String::new()));
            if let Some(page) = &mut query.page_input {
                page.limit = 1;
            }
            let asked = v1::SearchEventsRequest { query: Some(query) };
            let found = reach.ask("EventQueryService/SearchEvents", asked).await;
            let total = |it: v1::SearchEventsResponse| it.page_info?.total_count;
            Answer::Matching(found.map(total))
        }
        Request::GroupEvents { filter, field } => {
            let asked = v1::GroupEventsRequest {
                query: Some(query(&filter, None)),
                field,
                limit: limits::EVENT_GROUPS,
            };
            let found = reach.ask("EventQueryService/GroupEvents", asked).await;
            Answer::Grouped(found.map(|it: v1::GroupEventsResponse| it.into()))
        }
        Request::GatherEvents { filter, cursor } => {
            Answer::Gathered(gather(reach, &filter, cursor).await)
        }
        Request::GetEvent { id, occurrence_id } => {
            let occurrence_ids = Some(occurrence_id).filter(|id| !id.is_empty());
            let occurrence_ids = occurrence_ids.into_iter().collect();
            let asked = v1::GetEventRequest { id, occurrence_ids };
            let found = reach.ask("EventQueryService/GetEvent", asked).await;
            Answer::Event(found.map(|it: v1::GetEventResponse| it.result.unwrap_or_default()))
        }
        Request::ExplainEvent { id, occurrence_id } => {
            let asked = v1::ExplainEventRequest { id, occurrence_id };
            Answer::Explanation(reach.ask("EventQueryService/ExplainEvent", asked).await)
        }
        // It is a stream, which the link follows.
        Request::TestTrigger { .. } => Answer::Matches(Err(unlinked())),
        Request::TestDestination { fields, event_id } => {
            Answer::Tested(test(reach, fields, event_id).await)
        }
        Request::TestMapping { fields, document } => {
            Answer::Mapped(test_mapping(reach, &fields, &document).await)
        }
        Request::PreviewRule { fields, event_id } => {
            Answer::Previews(preview(reach, fields, event_id).await)
        }
        Request::PreviewSilence { fields } => Answer::Silenced(silenced(reach, &fields).await),
        Request::Silence {
            fields,
            allow_broad,
        } => Answer::Written(silence(reach, &fields, allow_broad).await),
        Request::CountUpdates {
            occurrence_ids,
            rule_names,
        } => Answer::Updates(updates(reach, occurrence_ids, rule_names).await),
        Request::ListObligations(asked) => Answer::Obligations(obligations(reach, asked).await),
        Request::ListAudit(asked) => Answer::Audit(audit(reach, asked).await),
        Request::Validate { draft, update } => {
            Answer::Checked(store(reach, &draft, "", update, true).await.map(drop))
        }
        Request::Pause { name, pause } => Answer::Written(self::pause(reach, name, pause).await),
        Request::Create { draft } => Answer::Written(store(reach, &draft, "", false, false).await),
        Request::Update { draft, etag } => {
            Answer::Written(store(reach, &draft, &etag, true, false).await)
        }
        Request::Delete {
            kind,
            name,
            etag,
            force,
        } => {
            let spec = kind::spec(kind);
            let mut asked = json!({"name": name});
            if spec.update.is_some() {
                asked = json!({"name": name, "etag": etag, "force": force});
            }
            let method = spec.delete.unwrap_or_default();
            let done = reach.ask_json(spec.service, method, &asked).await;
            Answer::Written(done.map(|_gone| Taken::All))
        }
        Request::SetStatus {
            occurrence_ids,
            change,
        } => Answer::Written(set_status(reach, occurrence_ids, change).await),
        Request::Annotate {
            occurrence_ids,
            text,
        } => Answer::Written(annotate(reach, occurrence_ids, &text).await),
        Request::RemoveNotes { notes } => Answer::Written(remove_notes(reach, notes).await),
        Request::Release {
            rule,
            event_id,
            occurrence_id,
        } => {
            let asked = v1::ReleasePendingRequest {
                rule_name: rule,
                event_id,
                occurrence_id,
            };
            let done = reach.ask("PendingService/ReleasePending", asked).await;
            Answer::Written(done.map(|_: v1::ReleasePendingResponse| Taken::All))
        }
        Request::SetGroupStatus { id, change } => {
            let item = changed(change);
            let asked = v1::SetGroupStatusRequest {
                id,
                status: item.status,
                acknowledged: item.acknowledged,
                assignee: item.assignee,
            };
            let done = reach.ask("GroupService/SetGroupStatus", asked).await;
            Answer::Written(done.map(|_: v1::SetGroupStatusResponse| Taken::All))
        }
        Request::RetryDelivery { id } => {
            let asked = v1::RetryDeliveryRequest { id };
            let done = reach.ask("DeliveryService/RetryDelivery", asked).await;
            Answer::Written(done.map(|_: v1::RetryDeliveryResponse| Taken::All))
        }
        Request::CancelDelivery { id } => {
            let asked = v1::CancelDeliveryRequest { id };
            let done = reach.ask("DeliveryService/CancelDelivery", asked).await;
            Answer::Written(done.map(|_: v1::CancelDeliveryResponse| Taken::All))
        }
        Request::Bulk {
            transition,
            chosen,
            dry_run,
            page_token,
        } => Answer::Bulk(bulk(reach, transition, chosen, dry_run, page_token).await),
    }
}

/// What the service takes, to the digits that are shown: more would only be news all the time.
fn calm(mut overview: v1::GetOverviewResponse) -> v1::GetOverviewResponse {
    let round = |bytes: &mut Option<i64>| {
        if let Some(bytes) = bytes {
            let digits = bytes.checked_ilog10().unwrap_or(0);
            let unit = 10_i64.pow(digits.saturating_sub(1));
            *bytes = *bytes / unit * unit;
        }
    };
    if let Some(footprint) = &mut overview.footprint {
        round(&mut footprint.store_bytes);
        round(&mut footprint.free_bytes);
        round(&mut footprint.memory_bytes);
    }
    overview
}

/// Groups that the overview shows at most.
const GROUPS: i32 = 50;

/// What was counted in that time, and what is open most.
async fn counted(reach: &mut Reach, back: Back) -> Result<Counted, Failure> {
    let span = prost_types::Duration {
        seconds: back.seconds(),
        nanos: 0,
    };
    let asked = v1::GetStatisticsRequest { span: Some(span) };
    let statistics = reach.ask("OverviewService/GetStatistics", asked).await?;
    Ok(Counted {
        back,
        statistics,
        names: groups(reach, "name").await?,
        hosts: groups(reach, "host").await?,
    })
}

/// What is open by a field; none where the service does not tell.
async fn groups(
    reach: &mut Reach,
    field: &str,
) -> Result<Option<v1::GroupEventsResponse>, Failure> {
    let open = EventFilter {
        open_only: true,
        ..EventFilter::default()
    };
    let asked = v1::GroupEventsRequest {
        query: Some(query(&open, None)),
        field: field.to_owned(),
        limit: GROUPS,
    };
    match reach.ask("EventQueryService/GroupEvents", asked).await {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.kind == FailureKind::Unsupported => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Reads every page of a list of resources, up to the limit.
async fn list(reach: &mut Reach, kind: Kind) -> Result<Vec<Object>, Failure> {
    let spec = kind::spec(kind);
    let mut rows = Vec::new();
    let mut page_token = Value::from("");
    loop {
        let asked = json!({"pageSize": limits::RESOURCE_PAGE, "pageToken": page_token});
        let mut answer = reach.ask_json(spec.service, spec.list, &asked).await?;
        if let Value::Array(page) = answer[kind.plural()].take() {
            rows.extend(page.into_iter().map(|json| named(kind, json)));
        }
        page_token = answer["nextPageToken"].take();
        if page_token.is_null() || rows.len() >= limits::HELD_RESOURCES {
            return Ok(rows);
        }
    }
}

/// A resource with a name, whether the service gave it one or not.
fn named(kind: Kind, mut json: Value) -> Object {
    if let Some(naming) = kind::spec(kind).naming {
        json["name"] = naming(&json).into();
    }
    Object { kind, json }
}

/// Reads one with what its list does not tell.
async fn get(reach: &mut Reach, kind: Kind, name: &str) -> Result<Object, Failure> {
    let spec = kind::spec(kind);
    let asked = json!({"id": name, "pageSize": limits::RESOURCE_PAGE});
    let method = spec.detail.unwrap_or_default();
    let mut answer = reach.ask_json(spec.service, method, &asked).await?;
    let mut found = named(kind, answer[kind.word()].take());
    for (field, value) in answer.as_object().into_iter().flatten() {
        if !value.is_null() {
            found.json[field] = value.clone();
        }
    }
    Ok(found)
}

/// Creates or updates, or only checks.
async fn store(
    reach: &mut Reach,
    draft: &Object,
    etag: &str,
    update: bool,
    validate_only: bool,
) -> Result<Taken, Failure> {
    let spec = kind::spec(draft.kind);
    let mut asked = draft.json.clone();
    if spec.nested {
        asked["etag"] = etag.into();
        let word = draft.kind.word();
        asked = json!({word: asked, "validateOnly": validate_only});
    } else if validate_only {
        return Ok(Taken::All);
    }
    let method = if update { spec.update } else { spec.create };
    let answer = reach.ask_json(spec.service, method.unwrap_or_default(), &asked);
    let answer = answer.await?;
    Ok(match answer.get("key").and_then(Value::as_str) {
        Some(key) => Taken::Key {
            name: draft.name().to_owned(),
            key: key.to_owned(),
        },
        None => Taken::All,
    })
}

async fn pause(reach: &mut Reach, name: String, pause: bool) -> Result<Taken, Failure> {
    if pause {
        let asked = v1::PauseDestinationRequest { name };
        let done = reach.ask("DestinationService/PauseDestination", asked);
        let _paused: v1::PauseDestinationResponse = done.await?;
    } else {
        let asked = v1::ResumeDestinationRequest { name };
        let done = reach.ask("DestinationService/ResumeDestination", asked);
        let _resumed: v1::ResumeDestinationResponse = done.await?;
    }
    Ok(Taken::All)
}

/// JSON as the message that it is.
pub(super) fn typed<M: Message + Name + Default>(fields: &Value) -> Result<M, Failure> {
    json::from_json(fields.to_string().as_bytes()).map_err(|error| unfit(&error))
}

async fn test(
    reach: &mut Reach,
    fields: Value,
    event_id: String,
) -> Result<v1::TestDestinationResponse, Failure> {
    let asked = v1::TestDestinationRequest {
        event_id,
        ..typed(&fields)?
    };
    reach.ask("DestinationService/TestDestination", asked).await
}

async fn preview(
    reach: &mut Reach,
    fields: Value,
    event_id: String,
) -> Result<v1::PreviewRuleResponse, Failure> {
    let asked = v1::PreviewRuleRequest {
        event_id,
        ..typed(&fields)?
    };
    reach.ask("RuleService/PreviewRule", asked).await
}

/// The headers of the request stand before the document, as `name: value;` each.
async fn test_mapping(
    reach: &mut Reach,
    fields: &Value,
    document: &str,
) -> Result<v1::TestIntakeMappingResponse, Failure> {
    let begin = document.find(['{', '[']).unwrap_or(0);
    let (headers, body) = document.split_at(begin);
    let headers = headers.split(';').filter_map(|it| it.split_once(':'));
    let asked = v1::TestIntakeMappingRequest {
        body: body.to_owned(),
        headers: headers
            .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
            .collect(),
        ..typed(fields)?
    };
    let method = "IntakeMappingService/TestIntakeMapping";
    reach.ask(method, asked).await
}

fn deliveries(filter: v1::DeliveryFilter, page_token: String) -> v1::ListDeliveriesRequest {
    v1::ListDeliveriesRequest {
        page_size: limits::DELIVERY_PAGE,
        page_token,
        states: filter.states,
        rule_names: filter.rule_names,
        destination_names: filter.destination_names,
        event_id: filter.event_id,
        start: filter.start,
        end: filter.end,
        folded_into: filter.folded_into,
        filter: filter.filter,
    }
}

/// A query; with a cursor (which may be empty) one page of it.
pub(super) fn query(filter: &EventFilter, cursor: Option<String>) -> v1::EventQuery {
    let open = [Status::Open.into(), Status::Suppressed.into()];
    v1::EventQuery {
        clause: filter.clause.clone(),
        statuses: if filter.open_only {
            open.to_vec()
        } else {
            Vec::new()
        },
        sort_by: sort_by(filter.order),
        page_input: cursor.map(|cursor| v1::PageInput {
            limit: limits::EVENT_PAGE,
            cursor,
            ..v1::PageInput::default()
        }),
        ..v1::EventQuery::default()
    }
}

/// An order as the service is asked for it; the one that it has by default is not named.
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

async fn search(
    reach: &mut Reach,
    filter: &EventFilter,
    cursor: String,
) -> Result<Page<EventRow>, Failure> {
    let query = Some(query(filter, Some(cursor)));
    let asked = v1::SearchEventsRequest { query };
    let found = reach.ask("EventQueryService/SearchEvents", asked).await;
    let found: v1::SearchEventsResponse = found?;
    let info = found.page_info.unwrap_or_default();
    let next = Some(info.end_cursor).filter(|_| info.has_next == Some(true));
    Ok(Page {
        rows: found
            .results
            .into_iter()
            .flat_map(EventRow::all_of)
            .collect(),
        next: next.unwrap_or_default(),
        total: info.total_count,
    })
}

/// Reads a page of the events that a filter leaves; before the first, counts them.
async fn gather(
    reach: &mut Reach,
    filter: &EventFilter,
    cursor: String,
) -> Result<(Page<EventRow>, Option<i64>), Failure> {
    let mut count = None;
    if cursor.is_empty() {
        let query = Some(query(filter, None));
        let asked = v1::CountEventsRequest { query };
        let counted = reach.ask("EventQueryService/CountEvents", asked).await;
        let counted: v1::CountEventsResponse = counted?;
        count = counted.count.map(i64::from);
    }
    Ok((search(reach, filter, cursor).await?, count))
}

/// What is not yet resolved, up to the limit, and whether there is more.
async fn obligations(
    reach: &mut Reach,
    mut asked: v1::ListObligationsRequest,
) -> Result<(Vec<v1::Obligation>, bool), Failure> {
    asked.page_size = limits::RESOURCE_PAGE;
    let mut rows = Vec::new();
    loop {
        let page = reach.ask("DeliveryService/ListObligations", asked.clone());
        let page: v1::ListObligationsResponse = page.await?;
        rows.extend(page.obligations);
        asked.page_token = page.next_page_token;
        let more = !asked.page_token.is_empty();
        if !more || rows.len() >= limits::HELD_OBLIGATIONS {
            return Ok((rows, more));
        }
    }
}

/// What a silence would cover.
async fn silenced(
    reach: &mut Reach,
    fields: &Value,
) -> Result<v1::PreviewSilenceResponse, Failure> {
    let asked = v1::PreviewSilenceRequest {
        silence: Some(typed(fields)?),
    };
    reach.ask("SilenceService/PreviewSilence", asked).await
}

/// Creates a silence, which the service names.
async fn silence(reach: &mut Reach, fields: &Value, allow_broad: bool) -> Result<Taken, Failure> {
    let asked = v1::CreateSilenceRequest {
        silence: Some(typed(fields)?),
        allow_broad,
        ..v1::CreateSilenceRequest::default()
    };
    let done = reach.ask("SilenceService/CreateSilence", asked).await;
    let done: v1::CreateSilenceResponse = done?;
    Ok(Taken::Silence(done.silence.unwrap_or_default().name))
}

/// Counts the receivers that were notified of these occurrences, by destination.
async fn updates(
    reach: &mut Reach,
    occurrence_ids: Vec<String>,
    rule_names: Option<Vec<String>>,
) -> Result<(BTreeMap<String, i64>, bool), Failure> {
    let mut counts = BTreeMap::new();
    if rule_names.as_ref().is_some_and(Vec::is_empty) {
        return Ok((counts, false));
    }
    let meant: HashSet<String> = occurrence_ids.into_iter().collect();
    let mut asked = v1::ListObligationsRequest {
        page_size: limits::RESOURCE_PAGE,
        rule_names: rule_names.unwrap_or_default(),
        ..v1::ListObligationsRequest::default()
    };
    for _ in 0..limits::UPDATE_CALLS {
        let page = reach.ask("DeliveryService/ListObligations", asked.clone());
        let page: v1::ListObligationsResponse = page.await?;
        let rows = page.obligations.into_iter();
        for row in rows.filter(|row| meant.contains(&row.occurrence_id)) {
            *counts.entry(row.destination_name).or_default() += 1;
        }
        asked.page_token = page.next_page_token;
        if asked.page_token.is_empty() {
            return Ok((counts, false));
        }
    }
    Ok((counts, true))
}

/// What the audit log has, the newest first up to the limit, and whether there is more.
async fn audit(
    reach: &mut Reach,
    mut asked: v1::ListAuditEntriesRequest,
) -> Result<(Vec<v1::AuditEntry>, bool), Failure> {
    let mut rows = Vec::new();
    // Where few of many entries are meant, each call looks at some more of them.
    for _ in 0..limits::AUDIT_CALLS {
        let left = limits::HELD_AUDIT.saturating_sub(rows.len());
        asked.page_size = i32::try_from(left).unwrap_or(i32::MAX);
        let page = reach.ask("AuditService/ListAuditEntries", asked.clone());
        let page: v1::ListAuditEntriesResponse = page.await?;
        rows.extend(page.entries);
        asked.page_token = page.next_page_token;
        if asked.page_token.is_empty() || rows.len() >= limits::HELD_AUDIT {
            break;
        }
    }
    Ok((rows, !asked.page_token.is_empty()))
}

/// The event's id of an occurrence's.
fn event_id(occurrence_id: &str) -> String {
    let event = occurrence_id.split_once(':').map(|(event, _)| event);
    event.unwrap_or(occurrence_id).to_owned()
}

/// A change on the wire, of no occurrence yet.
fn changed(change: StatusChange) -> v1::StatusItem {
    let mut item = v1::StatusItem::default();
    match change {
        StatusChange::Status(status) => item.status = status.into(),
        StatusChange::Acknowledged(flag) => item.acknowledged = Some(flag),
        StatusChange::Assigned(name) => item.assignee = Some(name),
    }
    item
}

async fn set_status(
    reach: &mut Reach,
    ids: Vec<String>,
    change: StatusChange,
) -> Result<Taken, Failure> {
    let change = changed(change);
    let statuses = ids.into_iter().map(|id| v1::StatusItem {
        event_id: event_id(&id),
        // An event's id alone means its newest occurrence.
        occurrence_id: if id.contains(':') { id } else { String::new() },
        ..change.clone()
    });
    let asked = v1::SetStatusRequest {
        statuses: statuses.collect(),
    };
    let done = reach.ask("EventManagementService/SetStatus", asked).await;
    let done: v1::SetStatusResponse = done?;
    let items = done.status_responses.into_iter();
    Ok(taken(items.map(|item| (item.success, item.error))))
}

async fn annotate(reach: &mut Reach, ids: Vec<String>, text: &str) -> Result<Taken, Failure> {
    let annotations = ids.into_iter().map(|occurrence_id| v1::AnnotationItem {
        event_id: event_id(&occurrence_id),
        occurrence_id,
        annotation_id: String::new(),
        annotation: text.to_owned(),
    });
    let asked = v1::AnnotateRequest {
        annotations: annotations.collect(),
    };
    let done = reach.ask("EventManagementService/Annotate", asked).await;
    let done: v1::AnnotateResponse = done?;
    let items = done.annotation_responses;
    let notes = items.iter().map(|item| Note {
        occurrence_id: item.occurrence_id.clone(),
        id: item.annotation_id.clone(),
    });
    let notes = notes.collect();
    match taken(items.into_iter().map(|item| (item.success, item.error))) {
        Taken::All => Ok(Taken::Notes(notes)),
        other => Ok(other),
    }
}

async fn remove_notes(reach: &mut Reach, notes: Vec<Note>) -> Result<Taken, Failure> {
    let annotations = notes.into_iter().map(|note| v1::AnnotationItem {
        event_id: event_id(&note.occurrence_id),
        occurrence_id: note.occurrence_id,
        annotation_id: note.id,
        annotation: String::new(),
    });
    let asked = v1::AnnotateRequest {
        annotations: annotations.collect(),
    };
    let done = reach.ask("EventManagementService/Annotate", asked).await;
    let done: v1::AnnotateResponse = done?;
    let items = done.annotation_responses.into_iter();
    Ok(taken(items.map(|item| (item.success, item.error))))
}

/// What happened to items that succeed or fail on their own.
fn taken(results: impl Iterator<Item = (Option<bool>, String)>) -> Taken {
    let failed = results.filter(|(success, _)| *success != Some(true));
    let errors: Vec<String> = failed.map(|(_, error)| error).collect();
    match errors.first() {
        None => Taken::All,
        Some(first) => Taken::AllBut {
            failed: errors.len(),
            first_error: first.clone(),
        },
    }
}

async fn bulk(
    reach: &mut Reach,
    transition: Transition,
    chosen: Chosen,
    dry_run: bool,
    page_token: String,
) -> Result<(BulkTally, String), Failure> {
    let limit = limits::BULK_STEP;
    let (ids, filter) = match chosen {
        Chosen::Ids(ids) => (ids, None),
        Chosen::Matching { filter, .. } => (Vec::new(), Some(filter)),
    };
    match transition {
        Transition::SendAgain => {
            let asked = v1::RetryDeliveriesRequest {
                ids,
                filter,
                dry_run,
                limit,
                page_token,
            };
            let done = reach.ask("DeliveryService/RetryDeliveries", asked).await;
            let done: v1::RetryDeliveriesResponse = done?;
            let tally = tally(done.count, done.destinations, &done.skipped);
            Ok((tally, done.next_page_token))
        }
        Transition::Cancel => {
            let asked = v1::CancelDeliveriesRequest {
                ids,
                filter,
                dry_run,
                limit,
                page_token,
            };
            let done = reach.ask("DeliveryService/CancelDeliveries", asked).await;
            let done: v1::CancelDeliveriesResponse = done?;
            let tally = tally(done.count, done.destinations, &done.skipped);
            Ok((tally, done.next_page_token))
        }
    }
}

fn tally(
    count: Option<i32>,
    destinations: Vec<v1::DestinationCount>,
    skipped: &[v1::SkippedDeliveries],
) -> BulkTally {
    let number = |count: Option<i32>| i64::from(count.unwrap_or_default());
    let destinations = destinations.into_iter();
    let skipped = skipped.iter();
    BulkTally {
        count: number(count),
        destinations: destinations
            .map(|one| (one.destination_name, number(one.count)))
            .collect(),
        skipped: skipped
            .map(|one| (reason(one.reason()), number(one.count)))
            .collect(),
    }
}

fn reason(reason: v1::skipped_deliveries::Reason) -> &'static str {
    use v1::skipped_deliveries::Reason;
    match reason {
        Reason::NotFound => "not there any more",
        Reason::Test => "a test",
        Reason::UnderWay => "under way just now",
        Reason::RetriedAlready => "sent again before",
        Reason::Folded => "folded into a digest, which is to be sent again",
        Reason::Shadowed => "recorded by a shadow rule",
        Reason::DestinationGone => "its destination is gone",
        Reason::Ended => "ended before",
        Reason::Unspecified => "for a reason that this console does not know",
    }
}
