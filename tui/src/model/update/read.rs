//! The data that a page reads when it is opened or refreshed.

use bellwether_proto::v1;
use serde_json::json;

use super::{call, charts, grouped};
use crate::{
    client::{
        Call, CallResult, Command, EventFilter, Ticket, deliveries, events, message, resources,
    },
    data::{Kind, Object},
    kind, limits,
    model::{
        Model,
        beside::RowDetailsPart,
        filter,
        inquiry::{Inquiry, preview},
        loaded::Loaded,
        message::Effect,
        page::Content,
        reply_purpose::ReplyPurpose,
        sort::Sort,
    },
    route::Route,
    theme::Token,
};

pub(super) fn refresh_page(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.page.route.clone() {
        Route::Overview => read_overview(model, effects),
        Route::Events => {
            read_events(model, false, effects);
            read_resources(model, &[Kind::View, Kind::Response, Kind::Silence], effects);
        }
        Route::EventGroups { .. } => grouped::read_groups(model, effects),
        Route::OnCall => read_resources(model, &ON_CALL, effects),
        Route::Event(id) => {
            read_event(model, &id, effects);
            read_resources(model, &ON_CALL, effects);
        }
        Route::List(kind) => {
            read_resources(model, &[kind], effects);
            match kind {
                Kind::Destination => read_last_hour(model, effects),
                Kind::Response => read_resources(model, &[Kind::Policy], effects),
                _ => {}
            }
        }
        Route::Object(kind, name) => {
            if kind::spec(kind).detail.is_some() {
                let get = resources::get(kind, &name);
                let ticket = call(model, get, ReplyPurpose::One(kind), effects);
                let now_ms = model.now_ms;
                model.store.resources_mut(kind).request(ticket, now_ms);
            } else {
                read_resources(model, &[kind], effects);
            }
            read_resources(model, kind::spec(kind).beside, effects);
            read_shifts(model, name, effects);
        }
        Route::Form => {
            read_resources(model, &JOINED, effects);
            let named: &[Kind] = match model.page.form().map(|form| form.kind) {
                Some(Kind::Schedule) => &[Kind::Contact],
                Some(Kind::Policy) => &[Kind::Contact, Kind::Schedule],
                Some(Kind::Rule) => &[Kind::Policy],
                _ => &[],
            };
            read_resources(model, named, effects);
        }
        Route::Deliveries => {
            read_deliveries(model, effects);
            count_deliveries(model, effects);
        }
        Route::Delivery(id) => read_delivery(model, id, effects),
        Route::Report | Route::Reference | Route::Topic(_) => {}
    }
}

/// The kinds that are read at the start, because links and forms refer to them.
pub(super) const JOINED: [Kind; 3] = [Kind::Rule, Kind::Trigger, Kind::Destination];

const ON_CALL: [Kind; 3] = [Kind::Response, Kind::Schedule, Kind::Policy];

/// Reads all resources of these kinds, unless they are already being read.
pub(super) fn read_resources(model: &mut Model, kinds: &[Kind], effects: &mut Vec<Effect>) {
    for kind in kinds {
        if model.store.resources(*kind).waiting.is_none() {
            request_page(model, *kind, Vec::new(), "", effects);
        }
    }
}

fn request_page(
    model: &mut Model,
    kind: Kind,
    before: Vec<Object>,
    page_token: &str,
    effects: &mut Vec<Effect>,
) {
    let list = resources::list(kind, page_token);
    let now_ms = model.now_ms;
    let ticket = call(model, list, ReplyPurpose::List(kind, before), effects);
    let resources = model.store.resources_mut(kind);
    if page_token.is_empty() {
        resources.requested_ms = now_ms;
    }
    resources.waiting = Some(ticket);
}

/// Handles a page of the resources of a kind, up to the limit; returns whether the result is new.
pub(super) fn handle_page(
    model: &mut Model,
    kind: Kind,
    mut rows: Vec<Object>,
    answer: CallResult,
    effects: &mut Vec<Effect>,
) -> Option<bool> {
    let found = match resources::parse_list(kind, answer) {
        Ok((more, next)) => {
            rows.extend(more);
            if !next.is_empty() && rows.len() < limits::HELD_RESOURCES {
                request_page(model, kind, rows, &next, effects);
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

pub(super) fn refresh_after_write(model: &mut Model, effects: &mut Vec<Effect>) {
    model.beside.refresh_soon(model.now_ms);
    read_resources(model, &JOINED, effects);
    read_resources(model, &[Kind::Silence], effects);
    match model.page.route {
        Route::Events if model.store.events.stream_failure.is_none() => {}
        Route::Overview
        | Route::OnCall
        | Route::Events
        | Route::Event(_)
        | Route::List(_)
        | Route::Object(..)
        | Route::Deliveries
        | Route::Delivery(_) => refresh_page(model, effects),
        _ => {}
    }
}

/// Refreshes the overview or the on-call screen within a second of a change.
pub(super) fn refresh_soon(model: &mut Model) {
    let latest = model.now_ms - (limits::REFRESH_MS - limits::REFRESH_SOON_MS);
    let at_ms = match model.page.route {
        Route::Overview => &mut model.store.overview.at_ms,
        Route::OnCall | Route::List(Kind::Response) | Route::Object(Kind::Response, _) => {
            &mut model.store.resources_mut(Kind::Response).at_ms
        }
        _ => return,
    };
    if let Some(at_ms) = at_ms {
        *at_ms = (*at_ms).min(latest);
    }
}

/// Refreshes the counts of the tabs, which also updates the overview.
pub(super) fn read_tab_counts(model: &mut Model, effects: &mut Vec<Effect>) {
    request_overview(model, effects);
    read_resources(model, &[Kind::Silence, Kind::Response], effects);
    if model.page.route == Route::Overview {
        read_statistics_if_due(model, effects);
    }
}

fn request_overview(model: &mut Model, effects: &mut Vec<Effect>) {
    let overview = Call::from_request("OverviewService", &v1::GetOverviewRequest {});
    let ticket = call(model, overview, ReplyPurpose::Overview, effects);
    model.store.overview.request(ticket, model.now_ms);
    count_all_deliveries(model, effects);
}

/// Records the overview. Sizes are rounded to the displayed digits, so that smaller changes cause
/// no redraw.
pub(super) fn handle_overview(model: &mut Model, answer: CallResult) -> bool {
    let round = |bytes: &mut Option<i64>| {
        if let Some(bytes) = bytes {
            let digits = bytes.checked_ilog10().unwrap_or(0);
            let unit = 10_i64.pow(digits.saturating_sub(1));
            *bytes = *bytes / unit * unit;
        }
    };
    let mut found: Result<v1::GetOverviewResponse, _> = message(answer);
    if let Ok(overview) = &mut found
        && let Some(footprint) = &mut overview.footprint
    {
        round(&mut footprint.store_bytes);
        round(&mut footprint.free_bytes);
        round(&mut footprint.memory_bytes);
    }
    model.store.overview.record(found, model.now_ms)
}

fn read_overview(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.store.overview.waiting.is_none() {
        request_overview(model, effects);
    }
    if read_statistics_if_due(model, effects) {
        read_resources(
            model,
            &[Kind::Silence, Kind::Response, Kind::Schedule],
            effects,
        );
    }
}

/// Reads the statistics unless they are recent, and returns whether a read was started.
fn read_statistics_if_due(model: &mut Model, effects: &mut Vec<Effect>) -> bool {
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
        charts::read_statistics(model, effects);
    }
    is_due
}

fn read_event(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let ticket = call(model, events::get_event(id), ReplyPurpose::Event, effects);
    // The timeline needs the explanation, too: it shows when receivers were notified.
    let explained = call(
        model,
        events::explain_event(id),
        ReplyPurpose::Explanation,
        effects,
    );
    if let Content::Event {
        detail,
        explanation,
        ..
    } = &mut model.page.content
    {
        detail.waiting = Some(ticket);
        explanation.waiting = Some(explained);
    }
}

/// Reads the details of the selected row, once the cursor has rested on it.
pub(super) fn read_row_details_if_due(model: &mut Model, effects: &mut Vec<Effect>) {
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
    let parts = match &route {
        Route::Events => vec![
            (RowDetailsPart::Event, events::get_event(&id)),
            (RowDetailsPart::Explanation, events::explain_event(&id)),
        ],
        Route::List(kind @ (Kind::Rule | Kind::Destination))
        | Route::Object(kind @ (Kind::Rule | Kind::Destination), _) => {
            let object = model.store.object(*kind, &id);
            let message = object.and_then(|it| sample_message(*kind, it));
            let message = message.map(|it| (RowDetailsPart::Message, it));
            let decided = (RowDetailsPart::Decided, deliveries::list_last(*kind, id));
            message.into_iter().chain([decided]).collect()
        }
        Route::List(Kind::Schedule) => vec![(RowDetailsPart::Shifts, list_shifts(id))],
        Route::Deliveries => vec![(RowDetailsPart::Delivery, deliveries::get(id))],
        _ => Vec::new(),
    };
    for (part, wanted) in parts {
        let ticket = Some(call(model, wanted, ReplyPurpose::RowDetails(part), effects));
        let beside = &mut model.beside;
        match part {
            RowDetailsPart::Event => beside.event.waiting = ticket,
            RowDetailsPart::Explanation => beside.explanation.waiting = ticket,
            RowDetailsPart::Decided | RowDetailsPart::Delivery => beside.decided.waiting = ticket,
            RowDetailsPart::Shifts => beside.shifts.waiting = ticket,
            RowDetailsPart::Message => beside.message.waiting = ticket,
        }
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

fn read_shifts(model: &mut Model, name: String, effects: &mut Vec<Effect>) {
    if !matches!(model.page.content, Content::Shifts(_)) {
        return;
    }
    let ticket = call(model, list_shifts(name), ReplyPurpose::Shifts, effects);
    if let Content::Shifts(shifts) = &mut model.page.content {
        shifts.waiting = Some(ticket);
    }
}

fn list_shifts(name: String) -> Call {
    let request = v1::ListShiftsRequest {
        name,
        ..v1::ListShiftsRequest::default()
    };
    Call::from_request("ScheduleService", &request)
}

fn read_delivery(model: &mut Model, id: String, effects: &mut Vec<Effect>) {
    let ticket = call(model, deliveries::get(id), ReplyPurpose::Delivery, effects);
    if let Content::Delivery(delivery) = &mut model.page.content {
        delivery.waiting = Some(ticket);
    }
}

/// Counts the deliveries in each tab of the list. Counts them less often if counting is slow.
fn count_deliveries(model: &mut Model, effects: &mut Vec<Effect>) {
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
    let ticket = call(
        model,
        count,
        ReplyPurpose::DeliveryCounts { of_all: false },
        effects,
    );
    model.store.delivery_counts.request(ticket, model.now_ms);
}

/// Counts all deliveries. Counts them less often if counting is slow.
fn count_all_deliveries(model: &mut Model, effects: &mut Vec<Effect>) {
    if !is_count_due(&model.store.all_deliveries, 0, model.now_ms) {
        return;
    }
    let count = deliveries::count(String::new());
    let ticket = call(
        model,
        count,
        ReplyPurpose::DeliveryCounts { of_all: true },
        effects,
    );
    model.store.all_deliveries.request(ticket, model.now_ms);
}

fn is_count_due<T>(counts: &Loaded<T>, pace_ms: i64, now_ms: i64) -> bool {
    let due_ms = counts.count_due_ms(pace_ms);
    due_ms.is_some_and(|due_ms| due_ms <= now_ms)
}

fn read_last_hour(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.store.last_hour.waiting.is_none() {
        let request = v1::GetStatisticsRequest::default();
        let query = Call::from_request("OverviewService", &request);
        let ticket = call(model, query, ReplyPurpose::LastHour, effects);
        model.store.last_hour.request(ticket, model.now_ms);
    }
}

fn read_deliveries(model: &mut Model, effects: &mut Vec<Effect>) {
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
    let more = false;
    let list = deliveries::list(filter, String::new());
    let ticket = call(model, list, ReplyPurpose::Deliveries { more }, effects);
    model.store.deliveries.request(ticket, model.now_ms);
}

/// Reads and follows the events that match the list's filter. Does nothing if they are already
/// followed, unless `anew` is set.
pub(super) fn read_events(model: &mut Model, anew: bool, effects: &mut Vec<Effect>) {
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
        return read_first_page(model, effects);
    }
    let hint = filter::filter_hint(&text, &model.filter_reader());
    follow_events(model, text, wanted, effects);
    if let Some(hint) = hint {
        model.show_notice(Token::Bad, hint.to_string());
    }
}

/// Follows the events once there is a connection, so that the list is up to date when it is opened.
pub(super) fn read_events_from_start(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.page.route == Route::Events {
        read_events(model, false, effects);
    } else if model.store.events.generation == Ticket(0) {
        let filter = model.store.events.filter.clone();
        follow_events(model, String::new(), filter, effects);
    } else {
        read_first_page(model, effects);
    }
}

fn follow_events(model: &mut Model, text: String, filter: EventFilter, effects: &mut Vec<Effect>) {
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
    effects.push(Effect::Send(command));
    read_first_page(model, effects);
}

pub(super) fn read_first_page(model: &mut Model, effects: &mut Vec<Effect>) {
    let more = false;
    let search = model.store.events.filter.search(String::new());
    let ticket = call(model, search, ReplyPurpose::Events { more }, effects);
    model.store.events.waiting = Some(ticket);
}

pub(super) fn count_events(model: &mut Model, effects: &mut Vec<Effect>) {
    let count = model.store.events.filter.count();
    let ticket = call(model, count, ReplyPurpose::EventTotal, effects);
    model.store.events.total.request(ticket, model.now_ms);
}

/// Requests the number of events that match the filter being typed, after a pause in typing.
pub(super) fn count_if_due(model: &mut Model, effects: &mut Vec<Effect>) {
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
    if model.page.route != Route::Events || !model.is_connected() {
        return;
    }
    if let Ok(clause) = filter::parse_event_filter(&text, &model.filter_reader()) {
        let filter = EventFilter {
            clause,
            open_only: model.store.events.filter.open_only,
            ..EventFilter::default()
        };
        let ticket = call(model, filter.estimate(), ReplyPurpose::Matching, effects);
        model.page.list.matching.waiting = Some(ticket);
    }
}

/// Requests whether active silences cover the events in view.
pub(super) fn read_coverage_if_due(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.coverage_at_ms().is_none_or(|at| at > model.now_ms) {
        return;
    }
    let wanted = events::route_events(model.store.coverage.missing_ids());
    let ticket = call(model, wanted, ReplyPurpose::Coverage, effects);
    model.store.coverage.request(ticket, model.now_ms);
}

pub(super) fn read_more(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.page.route {
        Route::Events => {
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
            let more = true;
            let search = events.filter.search(events.next.clone());
            let ticket = call(model, search, ReplyPurpose::Events { more }, effects);
            model.store.events.waiting = Some(ticket);
        }
        Route::Deliveries => {
            let store = &model.store;
            let held = store.deliveries.rows().len() >= limits::HELD_DELIVERIES;
            if store.deliveries_next.is_empty() || store.deliveries.waiting.is_some() || held {
                return;
            }
            let page_token = store.deliveries_next.clone();
            read_deliveries_page(model, page_token, effects);
        }
        _ => {}
    }
}

/// Reads the next page between the newest deliveries and older ones already read.
pub(super) fn read_gap_page(model: &mut Model, effects: &mut Vec<Effect>) {
    let page_token = model.store.deliveries_between.clone();
    read_deliveries_page(model, page_token, effects);
}

fn read_deliveries_page(model: &mut Model, page_token: String, effects: &mut Vec<Effect>) {
    let Ok(filter) = filter::parse_delivery_filter(&model.store.deliveries_filter, &model.clock())
    else {
        return;
    };
    let more = !page_token.is_empty();
    let list = deliveries::list(filter, page_token);
    let ticket = call(model, list, ReplyPurpose::Deliveries { more }, effects);
    model.store.deliveries.waiting = Some(ticket);
}
