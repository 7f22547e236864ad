//! The data that a page reads when it is opened or refreshed.

use std::collections::HashSet;

use bellwether_proto::v1;
use serde_json::json;

use super::{call, charts, grouped, load, load_for_page, load_response, send_call};
use crate::{
    client::{
        Call, CallResult, Command, EventFilter, Ticket, deliveries, events, message, resources,
    },
    data::{Failure, FailureKind, Kind, Object},
    kind, limits,
    model::{
        Model, filter,
        form::LivePreview,
        inquiry::{Inquiry, preview},
        loaded::Loaded,
        page::Content,
        reply::Reply,
        sort::Sort,
    },
    route::Route,
    theme::Token,
};

pub(super) fn refresh_page(model: &mut Model) {
    match model.page.route.clone() {
        Route::OVERVIEW => read_overview(model),
        Route::EVENTS => {
            read_events(model, false);
            read_resources(model, &[Kind::View, Kind::Response, Kind::Silence]);
        }
        Route::EventGroups { .. } => grouped::read_groups(model),
        Route::ON_CALL => read_resources(model, &ON_CALL),
        Route::Event(id) => {
            read_event(model, &id);
            read_resources(model, &ON_CALL);
        }
        Route::List(kind) => {
            read_resources(model, &[kind]);
            match kind {
                Kind::Destination => read_last_hour(model),
                Kind::Response => read_resources(model, &[Kind::Policy]),
                _ => {}
            }
        }
        Route::Object(kind, name) => {
            if kind::spec(kind).detail.is_some() {
                let get = resources::get(kind, &name);
                let ticket = call(model, get, move |model, _, answer| {
                    let found = resources::parse_object(kind, answer);
                    model.store.replace(kind, found, model.now_ms)
                });
                let now_ms = model.now_ms;
                model.store.resources_mut(kind).request(ticket, now_ms);
            } else {
                read_resources(model, &[kind]);
            }
            read_resources(model, kind::spec(kind).beside);
            if kind == Kind::Schedule {
                load_response::<v1::ListShiftsResponse>(model, list_shifts(name), message);
            }
        }
        Route::Form => {
            read_resources(model, &JOINED);
            let named: &[Kind] = match model.page.form().map(|form| form.kind) {
                Some(Kind::Schedule) => &[Kind::Contact],
                Some(Kind::Policy) => &[Kind::Contact, Kind::Schedule],
                Some(Kind::Rule) => &[Kind::Policy],
                _ => &[],
            };
            read_resources(model, named);
        }
        Route::DELIVERIES => {
            read_deliveries(model);
            count_deliveries(model);
        }
        Route::Delivery(id) => {
            load_response(model, deliveries::get(id), deliveries::parse_delivery);
        }
        Route::Report | Route::Screen(_) | Route::Topic(_) => {}
    }
}

/// The kinds that are read at the start, because links and forms refer to them.
pub(super) const JOINED: [Kind; 3] = [Kind::Rule, Kind::Trigger, Kind::Destination];

const ON_CALL: [Kind; 3] = [Kind::Response, Kind::Schedule, Kind::Policy];

/// Reads all resources of these kinds, unless they are already being read.
pub(super) fn read_resources(model: &mut Model, kinds: &[Kind]) {
    for kind in kinds {
        if model.store.resources(*kind).waiting.is_none() {
            request_page(model, *kind, Vec::new(), "");
        }
    }
}

fn request_page(model: &mut Model, kind: Kind, before: Vec<Object>, page_token: &str) {
    let list = resources::list(kind, page_token);
    let now_ms = model.now_ms;
    let ticket = send_call(model, list, Reply::List(kind, before));
    let resources = model.store.resources_mut(kind);
    if page_token.is_empty() {
        resources.requested_ms = now_ms;
    }
    resources.waiting = Some(ticket);
}

/// Handles a page of the resources of a kind, up to the limit. Returns whether the display changed;
/// `None` if there are more pages.
pub(super) fn handle_page(
    model: &mut Model,
    kind: Kind,
    mut rows: Vec<Object>,
    answer: CallResult,
) -> Option<bool> {
    let found = match resources::parse_list(kind, answer) {
        Ok((more, next)) => {
            rows.extend(more);
            if !next.is_empty() && rows.len() < limits::HELD_RESOURCES {
                request_page(model, kind, rows, &next);
                return None;
            }
            Ok(rows)
        }
        Err(failure) => Err(failure),
    };
    let changed = model.store.resources_mut(kind).record(found, model.now_ms);
    if kind == Kind::Response {
        model.store.index_responses();
    }
    if matches!(kind, Kind::Response | Kind::Contact) {
        model.note_pages();
    }
    Some(changed)
}

pub(super) fn refresh_after_write(model: &mut Model) {
    model.beside.refresh_soon(model.now_ms);
    read_resources(model, &JOINED);
    read_resources(model, &[Kind::Silence]);
    match model.page.route {
        Route::EVENTS if model.store.events.stream_failure.is_none() => {}
        Route::Screen(_)
        | Route::Event(_)
        | Route::List(_)
        | Route::Object(..)
        | Route::Delivery(_) => refresh_page(model),
        _ => {}
    }
}

/// Refreshes the overview or the on-call screen within a second of a change.
pub(super) fn refresh_soon(model: &mut Model) {
    let latest = model.now_ms - (limits::REFRESH_MS - limits::REFRESH_SOON_MS);
    let at_ms = match model.page.route {
        Route::OVERVIEW => &mut model.store.overview.at_ms,
        Route::ON_CALL | Route::List(Kind::Response) | Route::Object(Kind::Response, _) => {
            &mut model.store.resources_mut(Kind::Response).at_ms
        }
        _ => return,
    };
    if let Some(at_ms) = at_ms {
        *at_ms = (*at_ms).min(latest);
    }
}

/// Refreshes the counts of the tabs, which also updates the overview.
pub(super) fn read_tab_counts(model: &mut Model) {
    request_overview(model);
    read_resources(model, &[Kind::Silence, Kind::Response]);
    if model.page.route == Route::OVERVIEW {
        read_statistics_if_due(model);
    }
}

fn request_overview(model: &mut Model) {
    let overview = Call::from_request("OverviewService", &v1::GetOverviewRequest {});
    load(model, overview, |it| &mut it.store.overview, parse_overview);
    count_all_deliveries(model);
}

/// Parses the overview. Sizes are rounded to the displayed digits, so that smaller changes cause no
/// redraw.
fn parse_overview(answer: CallResult) -> Result<v1::GetOverviewResponse, Failure> {
    let round = |bytes: &mut Option<i64>| {
        if let Some(bytes) = bytes {
            let digits = bytes.checked_ilog10().unwrap_or(0);
            let unit = 10_i64.pow(digits.saturating_sub(1));
            *bytes = *bytes / unit * unit;
        }
    };
    let mut overview: v1::GetOverviewResponse = message(answer)?;
    if let Some(footprint) = &mut overview.footprint {
        round(&mut footprint.store_bytes);
        round(&mut footprint.free_bytes);
        round(&mut footprint.memory_bytes);
    }
    Ok(overview)
}

fn read_overview(model: &mut Model) {
    if model.store.overview.waiting.is_none() {
        request_overview(model);
    }
    if read_statistics_if_due(model) {
        read_resources(model, &[Kind::Silence, Kind::Response, Kind::Schedule]);
    }
}

/// Reads the statistics unless they are recent, and returns whether a read was started.
fn read_statistics_if_due(model: &mut Model) -> bool {
    // Without new events, the charts change only as time passes.
    let is_news = model.store.counted_revision != model.store.overview.revision;
    let wait_ms = if is_news {
        limits::COUNTED_MS
    } else {
        limits::COUNTED_IDLE_MS
    };
    // With very many open events, the service needs seconds to count them.
    let is_due = is_count_due(&model.store.wall, wait_ms, model.now_ms);
    if is_due {
        charts::read_statistics(model);
    }
    is_due
}

fn read_event(model: &mut Model, id: &str) {
    let get = events::get_event(id);
    let parse = events::parse_event;
    load_for_page(model, get, parse, |content| match content {
        Content::Event { detail, .. } => Some(&mut **detail),
        _ => None,
    });
    // The timeline needs the explanation, too: it shows when receivers were notified.
    load_for_page(
        model,
        events::explain_event(id),
        message,
        |content| match content {
            Content::Event { explanation, .. } => Some(&mut **explanation),
            _ => None,
        },
    );
}

/// Reads the details of the selected row, once the cursor has rested on it.
pub(super) fn read_row_details_if_due(model: &mut Model) {
    if model
        .row_details_due_ms()
        .is_none_or(|at| at > model.now_ms)
    {
        return;
    }
    model.beside.due_ms = None;
    let Some((route, id)) = model.beside.current_row() else {
        return;
    };
    match route {
        Route::EVENTS => {
            let event = events::get_event(&id);
            load(model, event, |it| &mut it.beside.event, events::parse_event);
            let explain = events::explain_event(&id);
            load(model, explain, |it| &mut it.beside.explanation, message);
        }
        Route::List(kind @ (Kind::Rule | Kind::Destination))
        | Route::Object(kind @ (Kind::Rule | Kind::Destination), _) => {
            let object = model.store.object(kind, &id);
            if let Some(sample) = object.and_then(|it| sample_message(kind, it)) {
                let parse = match kind {
                    Kind::Rule => |answer| message(answer).map(LivePreview::Messages),
                    _ => |answer| message(answer).map(|it| LivePreview::Request(Box::new(it))),
                };
                load(model, sample, |it| &mut it.beside.message, parse);
            }
            let last = deliveries::list_last(kind, id);
            load(
                model,
                last,
                |it| &mut it.beside.decided,
                |answer| {
                    let found: v1::ListDeliveriesResponse = message(answer)?;
                    Ok(found.deliveries)
                },
            );
        }
        Route::List(Kind::Schedule) => {
            load(model, list_shifts(id), |it| &mut it.beside.shifts, message);
        }
        Route::DELIVERIES => {
            let get = deliveries::get(id);
            load(
                model,
                get,
                |it| &mut it.beside.decided,
                |answer| {
                    let found: v1::GetDeliveryResponse = message(answer)?;
                    Ok(found.delivery.into_iter().collect())
                },
            );
        }
        _ => {}
    }
}

/// Requests the messages of a rule, or the request to a destination, for a sample event.
fn sample_message(kind: Kind, object: &Object) -> Option<Call> {
    if kind == Kind::Rule {
        return Some(preview(&kind::editable_part(object).json, ""));
    }
    let fields = json!({"name": object.name()});
    let event_id = String::new();
    Inquiry::Destination { fields, event_id }.render_call()
}

fn list_shifts(name: String) -> Call {
    let request = v1::ListShiftsRequest {
        name,
        ..v1::ListShiftsRequest::default()
    };
    Call::from_request("ScheduleService", &request)
}

/// Counts the deliveries in each tab of the list. Counts them less often if counting is slow.
fn count_deliveries(model: &mut Model) {
    let text = filter::with_delivery_tab(&model.page.list.filter, 0, &model.clock());
    let Ok(filter) = filter::parse_delivery_filter(&text, &model.clock()) else {
        return;
    };
    let is_other = model.store.delivery_counts_of != text;
    let counts = &mut model.store.delivery_counts;
    if is_other {
        counts.clear();
        model.store.delivery_counts_of = text;
    }
    if !is_count_due(counts, 0, model.now_ms) {
        return;
    }
    let count = deliveries::count(filter.filter);
    let parse = deliveries::parse_counts;
    load(model, count, |it| &mut it.store.delivery_counts, parse);
}

/// Counts all deliveries. Counts them less often if counting is slow.
fn count_all_deliveries(model: &mut Model) {
    if is_count_due(&model.store.all_deliveries, 0, model.now_ms) {
        let count = deliveries::count(String::new());
        let parse = deliveries::parse_counts;
        load(model, count, |it| &mut it.store.all_deliveries, parse);
    }
}

fn is_count_due<T>(counts: &Loaded<T>, pace_ms: i64, now_ms: i64) -> bool {
    let due_ms = counts.count_due_ms(pace_ms);
    due_ms.is_some_and(|due_ms| due_ms <= now_ms)
}

fn read_last_hour(model: &mut Model) {
    if model.store.last_hour.waiting.is_none() {
        let request = v1::GetStatisticsRequest::default();
        let query = Call::from_request("OverviewService", &request);
        load(model, query, |it| &mut it.store.last_hour, message);
    }
}

fn read_deliveries(model: &mut Model) {
    let text = model.page.list.filter.clone();
    let filter = match filter::parse_delivery_filter(&text, &model.clock()) {
        Ok(filter) => filter,
        Err(error) => return model.show_notice(Token::Bad, error.to_string()),
    };
    if model.store.deliveries_filter != text {
        model.store.deliveries.clear();
        model.store.deliveries_next.clear();
        model.store.deliveries_between.clear();
        model.store.deliveries_filter = text;
    }
    let ticket = request_deliveries(model, filter, String::new());
    model.store.deliveries.request(ticket, model.now_ms);
}

/// Reads and follows the events that match the list's filter. Does nothing if they are already
/// followed, unless `anew` is set.
pub(super) fn read_events(model: &mut Model, anew: bool) {
    let text = model.page.list.filter.clone();
    let clause = match filter::parse_event_filter(&text, &model.filter_reader()) {
        Ok(clause) => clause,
        Err(error) => return model.show_notice(Token::Bad, error.to_string()),
    };
    let order = model.page.list.sort.and_then(Sort::event_order);
    let events = &model.store.events;
    let wanted = EventFilter {
        clause,
        open_only: events.filter.open_only,
        order: order.unwrap_or_default(),
    };
    let following = events.generation != Ticket(0) && events.filter == wanted;
    if following && !anew {
        return read_first_page(model);
    }
    let hint = filter::filter_hint(&text, &model.filter_reader());
    follow_events(model, text, wanted);
    if let Some(hint) = hint {
        model.show_notice(Token::Bad, hint.to_string());
    }
}

/// Follows the events once there is a connection, so that the list is up to date when it is opened.
pub(super) fn read_events_from_start(model: &mut Model) {
    if model.page.route == Route::EVENTS {
        read_events(model, false);
    } else if model.store.events.generation == Ticket(0) {
        let filter = model.store.events.filter.clone();
        follow_events(model, String::new(), filter);
    } else {
        read_first_page(model);
    }
}

fn follow_events(model: &mut Model, text: String, filter: EventFilter) {
    let generation = model.ticket();
    let events = &mut model.store.events;
    events.clear();
    events.generation = generation;
    events.query_text = text;
    events.filter = filter.clone();
    events.resume_token.clear();
    events.stream_failure = None;
    events.waiting = None;
    let command = Command::Watch {
        generation,
        filter,
        resume_token: String::new(),
    };
    model.send(command);
    read_first_page(model);
}

pub(super) fn read_first_page(model: &mut Model) {
    request_events(model, String::new());
}

fn request_events(model: &mut Model, cursor: String) {
    let more = !cursor.is_empty();
    let search = model.store.events.filter.search(cursor);
    let ticket = send_call(model, search, Reply::Events { more });
    model.store.events.waiting = Some(ticket);
}

pub(super) fn count_events(model: &mut Model) {
    let count = model.store.events.filter.count();
    load(
        model,
        count,
        |it| &mut it.store.events.total,
        |answer| {
            let counted: v1::CountEventsResponse = message(answer)?;
            Ok(counted.count.unwrap_or_default())
        },
    );
}

/// Requests the number of events that match the filter being typed, after a pause in typing.
pub(super) fn count_if_due(model: &mut Model) {
    let list = &mut model.page.list;
    let is_due = list.matching.due_ms.is_some_and(|at| at <= model.now_ms);
    if !is_due {
        return;
    }
    list.matching.due_ms = None;
    let Some(field) = list.typing.as_ref() else {
        return;
    };
    let text = field.text().to_owned();
    if model.page.route != Route::EVENTS || !model.is_connected() {
        return;
    }
    if let Ok(clause) = filter::parse_event_filter(&text, &model.filter_reader()) {
        let filter = EventFilter {
            clause,
            open_only: model.store.events.filter.open_only,
            ..EventFilter::default()
        };
        let ticket = call(model, filter.estimate(), |model, ticket, answer| {
            let found = events::parse_estimate(answer);
            model.page.list.matching.record(ticket, found)
        });
        model.page.list.matching.waiting = Some(ticket);
    }
}

/// Requests whether active silences cover the events in view.
pub(super) fn read_coverage_if_due(model: &mut Model) {
    if model.coverage_at_ms().is_none_or(|at| at > model.now_ms) {
        return;
    }
    let wanted = events::route_events(model.store.coverage.missing_ids());
    let ticket = call(model, wanted, |model, ticket, answer| {
        let found = message(answer);
        model.store.coverage.record(ticket, found, model.now_ms)
    });
    model.store.coverage.request(ticket, model.now_ms);
}

pub(super) fn read_more(model: &mut Model) {
    match model.page.route {
        Route::EVENTS => {
            let events = &model.store.events;
            if events.next.is_empty() || events.waiting.is_some() {
                return;
            }
            if events.is_full() {
                if model.page.list.index + 1 >= events.len() {
                    let words = "row limit reached; ‹filter› finds older ones";
                    model.show_notice(Token::Info, model.expand_keys(words));
                }
                return;
            }
            let cursor = events.next.clone();
            request_events(model, cursor);
        }
        Route::DELIVERIES => {
            let store = &model.store;
            let held = store.deliveries.rows().len() >= limits::HELD_DELIVERIES;
            if store.deliveries_next.is_empty() || store.deliveries.waiting.is_some() || held {
                return;
            }
            let page_token = store.deliveries_next.clone();
            read_deliveries_page(model, page_token);
        }
        _ => {}
    }
}

/// Reads the next page between the newest deliveries and older ones already read.
pub(super) fn read_gap_page(model: &mut Model) {
    let page_token = model.store.deliveries_between.clone();
    read_deliveries_page(model, page_token);
}

fn read_deliveries_page(model: &mut Model, page_token: String) {
    let Ok(filter) = filter::parse_delivery_filter(&model.store.deliveries_filter, &model.clock())
    else {
        return;
    };
    let ticket = request_deliveries(model, filter, page_token);
    model.store.deliveries.waiting = Some(ticket);
}

fn request_deliveries(model: &mut Model, filter: v1::DeliveryFilter, page_token: String) -> Ticket {
    let more = !page_token.is_empty();
    let list = deliveries::list(filter, page_token);
    call(model, list, move |model, ticket, answer| {
        handle_deliveries(model, ticket, more, answer)
    })
}

pub(super) fn handle_deliveries(
    model: &mut Model,
    ticket: Ticket,
    more: bool,
    answer: CallResult,
) -> bool {
    let now = model.now_ms;
    let store = &mut model.store;
    // The deliveries may have been requested again with another filter in the meantime.
    if store.deliveries.waiting != Some(ticket) {
        return false;
    }
    let page: v1::ListDeliveriesResponse = match message(answer) {
        Ok(page) => page,
        Err(failure) => return store.deliveries.record(Err(failure), now),
    };
    let error = unknown_field(&page.warnings, page.deliveries.is_empty() && !more);
    if !more {
        store.filter_warnings = page.warnings;
    }
    if let Some(error) = error {
        return store.deliveries.record(Err(error), now);
    }
    let next = page.next_page_token;
    let mut rows = page.deliveries;
    let fresh: HashSet<String> = rows.iter().map(|row| row.id.clone()).collect();
    let held = store.deliveries.value.clone().unwrap_or_default();
    let known = held.len();
    let retained = held.into_iter().filter(|row| !fresh.contains(&row.id));
    let retained: Vec<_> = retained.collect();
    let meets = known == 0 || retained.len() < known;
    let oldest = rows.last().map(|row| row.id.clone()).unwrap_or_default();
    let is_last = retained.last().is_none_or(|row| row.id > oldest);
    if more && store.deliveries_between.is_empty() || is_last || next.is_empty() {
        // The next page begins after the last loaded row.
        store.deliveries_next.clone_from(&next);
    }
    // A gap between the newest page and the loaded rows is read page by page.
    let between = !is_last && !meets && !next.is_empty();
    store.deliveries_between = if between { next.clone() } else { String::new() };
    // A loaded row that is newer than the end of the newest page, but not on it, no longer matches
    // the filter.
    let is_whole = next.is_empty() && (!more || !is_last);
    let is_there = |row: &v1::Delivery| {
        if more {
            !is_whole || row.id > oldest
        } else {
            !is_whole && row.id < oldest
        }
    };
    rows.extend(retained.into_iter().filter(is_there));
    // Sorts by id: newer deliveries have larger ids.
    rows.sort_by(|one, other| other.id.cmp(&one.id));
    let touched = store.deliveries.record(Ok(rows), now);
    if between {
        read_gap_page(model);
    }
    touched
}

/// Returns an error for a filter without results if it names a field that no event has.
pub(super) fn unknown_field(warnings: &[String], is_empty: bool) -> Option<Failure> {
    let warning = warnings.first().filter(|_| is_empty)?;
    Some(Failure::new(FailureKind::Invalid, warning.clone()))
}
