//! Takes an action of the list.

use super::{bulk, call, confirm, events, forms, navigate, read};
use crate::{
    client::{Command, Request, Span, StatusChange},
    data::{Deed, Draft, EventRow, ObligationFilter, Status, TriggerSpec},
    keymap::{self, Action},
    limits,
    model::{
        Connection, Model, access,
        field::TextField,
        map,
        message::{Effect, Purpose},
        overlay::{Asked, Overlay, Palette, Pick, Prompt},
        page::{Content, Found, Page, Report, Route, Tab},
        sort::Sort,
        store::Loaded,
    },
    theme::Token,
};

/// Takes an action if it is allowed; says why when it is not.
pub(crate) fn act(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    let entry = keymap::entry(action);
    if let Err(reason) = access::refusal(model, entry) {
        return model.say(Token::Warning, format!("{}: {reason}", entry.title));
    }
    match action {
        Action::Quit => forms::quit(model),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::ToggleMouse => {
            model.mouse = !model.mouse;
            effects.push(Effect::Mouse(model.mouse));
            let words = if model.mouse {
                "the mouse selects, opens and scrolls"
            } else {
                "the mouse is the terminal's: it selects text"
            };
            model.say(Token::Info, words);
        }
        Action::Help => {
            model.overlay = Some(Overlay::Palette(Palette {
                here: true,
                ..Palette::default()
            }));
        }
        Action::Palette => model.overlay = Some(Overlay::Palette(Palette::default())),
        Action::RetryNow => retry_now(model, effects),
        Action::GoOverview => navigate::go(model, Route::Overview, effects),
        Action::GoEvents => navigate::go(model, Route::Events, effects),
        Action::GoTriggers => navigate::go(model, Route::Triggers, effects),
        Action::GoDestinations => navigate::go(model, Route::Destinations, effects),
        Action::GoRules => navigate::go(model, Route::Rules, effects),
        Action::GoDeliveries => navigate::go(model, Route::Deliveries, effects),
        Action::GoClients => navigate::go(model, Route::Clients, effects),
        Action::GoMap => navigate::go(model, Route::Map, effects),
        Action::MapLeft => navigate::step(model, -1),
        Action::MapRight => navigate::step(model, 1),
        Action::MapAround => map_around(model, effects),
        Action::GoReference => navigate::go(model, Route::Reference, effects),
        Action::Search => search(model),
        Action::Back => back(model, effects),
        Action::PageBefore => navigate::back(model, effects),
        Action::Forward => navigate::forward(model, effects),
        Action::Up => navigate::move_by(model, -1, effects),
        Action::Down => navigate::move_by(model, 1, effects),
        Action::Top => navigate::move_by(model, isize::MIN / 2, effects),
        Action::Bottom => navigate::to_end(model, effects),
        Action::PageUp => navigate::move_by(model, -page(model), effects),
        Action::PageDown => navigate::move_by(model, page(model), effects),
        Action::Open if model.page.route.is_list() => navigate::open_row(model, effects),
        Action::Open => navigate::follow_link(model, effects),
        Action::NextLink => navigate::next_link(model),
        Action::NextTab => next_tab(model, effects),
        Action::Filter => {
            let field = TextField::new(model.page.list.filter.clone());
            model.page.list.typing = Some(field);
        }
        Action::Mark => mark(model, effects),
        Action::MarkAll => mark_all(model),
        Action::Copy => copy(model, effects),
        Action::Pause => pause(model),
        Action::Sort => {
            let sorted = model.sort_next();
            say_sorted(model, sorted);
        }
        Action::OpenOnly => {
            model.store.events.filter.open_only = !model.store.events.filter.open_only;
            read::events(model, true, effects);
        }
        other => work(model, other, effects),
    }
}

/// The actions that make, change or try something.
fn work(model: &mut Model, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::New => forms::new(model, effects),
        Action::Edit => forms::edit(model, effects),
        Action::EditText => forms::edit_text(model, effects),
        Action::Duplicate => forms::duplicate(model, effects),
        Action::TriggerFromEvent => forms::trigger_from_event(model, effects),
        Action::Delete => confirm::delete(model),
        Action::Toggle => confirm::toggle(model),
        Action::Revoke => confirm::revoke(model),
        Action::Acknowledge => confirm::acknowledge(model, true),
        Action::Unacknowledge => confirm::acknowledge(model, false),
        Action::CloseEvent => confirm::status(model, Status::Closed),
        Action::Suppress => confirm::status(model, Status::Suppressed),
        Action::Reopen => confirm::status(model, Status::Open),
        Action::SendAgain if bulk::marked(model, Deed::SendAgain, effects) => {}
        Action::SendAgain => confirm::delivery(model, true),
        Action::CancelDelivery if bulk::marked(model, Deed::Cancel, effects) => {}
        Action::CancelDelivery => confirm::delivery(model, false),
        Action::SendAllAgain => bulk::matching(model, Deed::SendAgain, effects),
        Action::CancelAll => bulk::matching(model, Deed::Cancel, effects),
        Action::Obligations => obligations(model, effects),
        Action::AcknowledgeAll => events::set_all(model, StatusChange::Acknowledged(true), effects),
        Action::CloseAll => events::set_all(model, StatusChange::Status(Status::Closed), effects),
        Action::SuppressAll => {
            events::set_all(model, StatusChange::Status(Status::Suppressed), effects);
        }
        Action::AnnotateAll => {
            events::note(model, "Write a note on all of them", Asked::AnnotateAll);
        }
        Action::Annotate => events::annotate(model),
        Action::Explain => explain(model, effects),
        Action::TestDestination => test_destination(model, effects),
        Action::TestTrigger => test_trigger(model, effects),
        Action::LongerTry => longer(model, effects),
        Action::PreviewRule => preview_rule(model, effects),
        Action::TestWithEvent => pick_event(model),
        _ => forms::act(model, action, effects),
    }
}

/// Leaves on the map what touches the node under the cursor.
fn map_around(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(node) = model.map_node() {
        super::keys::set_filter(model, map::around(&node), effects);
    }
}

/// Asks what to look for in the text on the screen.
fn search(model: &mut Model) {
    let everywhere = model.page.route == Route::Reference;
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: "Search".to_owned(),
        help: if everywhere {
            "the lines of all topics that hold this; empty shows the topics"
        } else {
            "goes to the next line that holds this"
        },
        field: TextField::new(model.page.list.filter.clone()),
        then: Asked::Search,
    }));
}

fn page(model: &Model) -> isize {
    isize::try_from(model.body_rows().saturating_sub(2))
        .unwrap_or(1)
        .max(1)
}

fn retry_now(model: &mut Model, effects: &mut Vec<Effect>) {
    match model.link {
        Connection::Up if model.page.route == Route::Events => read::events(model, true, effects),
        Connection::Up => read::refresh(model, effects),
        Connection::Connecting => {}
        Connection::Down { .. } => effects.push(Effect::Send(Command::RetryNow)),
    }
}

/// Back; first to none marked, then to the filter that the list was opened with.
fn back(model: &mut Model, effects: &mut Vec<Effect>) {
    let list = &mut model.page.list;
    if !list.marks.is_empty() {
        list.marks.clear();
    } else if list.filter != list.given {
        let given = list.given.clone();
        super::keys::set_filter(model, given, effects);
    } else {
        navigate::back(model, effects);
    }
}

fn next_tab(model: &mut Model, effects: &mut Vec<Effect>) {
    let Content::Event { tab, .. } = &mut model.page.content else {
        return;
    };
    let at = Tab::ALL
        .iter()
        .position(|other| other == tab)
        .unwrap_or_default();
    *tab = Tab::ALL[(at + 1) % Tab::ALL.len()];
    let explain = *tab == Tab::Explain;
    model.page.reading = super::super::page::Reading::default();
    if explain {
        read::refresh(model, effects);
    }
}

fn mark(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(id) = model.selected() else { return };
    let marks = &mut model.page.list.marks;
    if !marks.remove(&id) {
        marks.insert(id);
    }
    navigate::move_by(model, 1, effects);
}

fn mark_all(model: &mut Model) {
    if !model.page.list.marks.is_empty() {
        model.page.list.marks.clear();
        return;
    }
    let rows = model.rows();
    let count = rows.len().min(limits::BULK_ITEMS);
    let ids = (0..count).map(|index| rows.id(index).to_owned()).collect();
    drop(rows);
    model.page.list.marks = ids;
    model.say(
        Token::Info,
        format!("{count} marked; actions apply to all of them"),
    );
}

fn copy(model: &mut Model, effects: &mut Vec<Effect>) {
    let text = match &model.page.route {
        Route::Map => model
            .map_node()
            .map_or_else(String::new, |node| node.name().to_owned()),
        Route::Events if model.page.list.count == 0 => match model.sending.clone() {
            Some(command) => {
                model.say(Token::Info, "copied the command");
                let lines = command
                    .lines()
                    .map(|line| line.trim_end_matches('\\').trim());
                return effects.push(Effect::Copy(lines.collect::<Vec<_>>().join(" ")));
            }
            None => String::new(),
        },
        route if route.is_list() => model.selected().unwrap_or_default(),
        Route::Overview => model.service.clone(),
        route => route.object().to_owned(),
    };
    if text.is_empty() {
        return model.say(Token::Info, "there is nothing here to copy");
    }
    model.say(Token::Info, format!("copied {text}"));
    effects.push(Effect::Copy(text));
}

/// Says what a list is sorted by now, or why it is not.
pub(super) fn say_sorted(model: &mut Model, sorted: Result<Sort, &'static str>) {
    match sorted {
        Ok(Sort { column, descending }) => {
            let way = if descending {
                "largest or last first"
            } else {
                "smallest or first first"
            };
            model.say(Token::Info, format!("sorted by {column}, {way}"));
        }
        Err(reason) => model.say(Token::Warning, reason),
    }
}

fn pause(model: &mut Model) {
    let events = &mut model.store.events;
    events.paused = !events.paused;
    let words = if events.paused {
        model.tell("held still; ‹pause› follows again")
    } else {
        "following again".to_owned()
    };
    model.say(Token::Info, words);
}

fn explain(model: &mut Model, effects: &mut Vec<Effect>) {
    if let Some(id) = model.occurrence()
        && model.page.route.is_list()
    {
        navigate::go(model, Route::Event(id), effects);
    }
    if let Content::Event { tab, .. } = &mut model.page.content {
        *tab = Tab::Explain;
        read::refresh(model, effects);
    }
}

fn test_destination(model: &mut Model, effects: &mut Vec<Effect>) {
    if matches!(model.page.content, Content::Report(_)) {
        return again(model, effects);
    }
    let Some(name) = model.resource_name() else {
        return;
    };
    let title = format!("Test of {name}");
    let request = Request::TestDestination {
        name,
        spec: None,
        event_id: String::new(),
    };
    report(model, title, request, effects);
}

/// Makes the report's test, try or preview anew; one that is under way ends.
fn again(model: &mut Model, effects: &mut Vec<Effect>) {
    let Content::Report(report) = &mut model.page.content else {
        return;
    };
    report.started_ms = model.now_ms;
    report.progress = None;
    if let Request::TestTrigger { span, start_ms, .. } = &mut report.request {
        *start_ms = span.start_ms(model.now_ms);
    }
    let request = report.request.clone();
    if let Some(ticket) = report.found.waiting.take() {
        model.pending.remove(&ticket);
        effects.push(Effect::Send(Command::Abandon(ticket)));
    }
    let ticket = call(model, request, Purpose::Page, effects);
    if let Content::Report(report) = &mut model.page.content {
        report.found = Loaded {
            waiting: Some(ticket),
            ..Loaded::default()
        };
    }
}

/// Asks for one of the events that are held, the newest first after the sample.
fn pick_event(model: &mut Model) {
    let rows = (0..model.store.events.len().min(limits::PALETTE_EVENTS))
        .filter_map(|at| model.store.events.get(at));
    let event = |row: &EventRow| {
        let moment = model.moment(row.last_seen_ms);
        let words = [row.severity.word(), &row.summary, &row.name, &row.entity];
        (format!("{moment} {}", words.join(" ")), row.id.to_string())
    };
    let sample = ("the sample event".to_owned(), String::new());
    let (items, events) = std::iter::once(sample).chain(rows.map(event)).unzip();
    model.overlay = Some(Overlay::Pick(Pick {
        title: "Which event is it to be?".to_owned(),
        items,
        chosen: Vec::new(),
        events: Some(events),
        needle: TextField::default(),
        cursor: usize::from(model.store.events.len() > 0),
    }));
}

/// Tries the report's trigger on a longer span.
fn longer(model: &mut Model, effects: &mut Vec<Effect>) {
    match &mut model.page.content {
        Content::Report(report) => match &mut report.request {
            Request::TestTrigger { span, .. } => *span = span.next(),
            _ => return model.say(Token::Info, "only the try of a trigger has a span of time"),
        },
        _ => return,
    }
    again(model, effects);
}

fn test_trigger(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(trigger) = model
        .resource_name()
        .and_then(|name| model.store.trigger(&name))
    else {
        return;
    };
    let spec = trigger.spec.clone();
    let title = format!("Try of {}", spec.name);
    report(model, title, try_of(spec), effects);
}

fn preview_rule(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(rule) = model
        .resource_name()
        .and_then(|name| model.store.rule(&name))
    else {
        return;
    };
    let spec = rule.spec.clone();
    let title = format!("Preview of {}", spec.name);
    report(
        model,
        title,
        Request::PreviewRule {
            spec,
            event_id: String::new(),
        },
        effects,
    );
}

/// Tests, tries or previews a draft that is not stored.
pub(super) fn report_draft(model: &mut Model, draft: Draft, effects: &mut Vec<Effect>) {
    let event_id = String::new();
    let (title, request) = match draft {
        Draft::Trigger(spec) => (format!("Try of the unsaved {}", spec.name), try_of(spec)),
        Draft::Destination(spec) => (
            format!("Test of the unsaved {}", spec.name),
            Request::TestDestination {
                name: spec.name.clone(),
                spec: Some(spec),
                event_id,
            },
        ),
        Draft::Rule(spec) => (
            format!("Preview of the unsaved {}", spec.name),
            Request::PreviewRule { spec, event_id },
        ),
    };
    report(model, title, request, effects);
}

fn try_of(spec: TriggerSpec) -> Request {
    Request::TestTrigger {
        spec,
        span: Span::Day,
        start_ms: None,
    }
}

/// Who is still to be told, about what is selected or shown, or about everything.
fn obligations(model: &mut Model, effects: &mut Vec<Effect>) {
    let mut filter = ObligationFilter::default();
    match &model.page.route {
        Route::Events | Route::Event(_) => {
            let id = model.occurrence().unwrap_or_default();
            let event = id.split_once(':').map_or(id.as_str(), |(event, _)| event);
            event.clone_into(&mut filter.event_id);
        }
        Route::Rules | Route::Rule(_) => filter.rule_names.extend(model.resource_name()),
        Route::Destinations | Route::Destination(_) => {
            filter.destination_names.extend(model.resource_name());
        }
        _ => {}
    }
    let title = "Open obligations".to_owned();
    report(model, title, Request::ListObligations { filter }, effects);
}

fn report(model: &mut Model, title: String, request: Request, effects: &mut Vec<Effect>) {
    let ticket = call(model, request.clone(), Purpose::Page, effects);
    let found = Loaded::<Found> {
        waiting: Some(ticket),
        ..Loaded::default()
    };
    let report = Report {
        title,
        request,
        started_ms: model.now_ms,
        found,
        progress: None,
    };
    let mut page = Page::new(Route::Report);
    page.content = Content::Report(Box::new(report));
    navigate::push(model, page);
}

impl Model {
    /// The name of the resource that is selected or shown.
    pub(super) fn resource_name(&self) -> Option<String> {
        match &self.page.route {
            Route::Trigger(name) | Route::Destination(name) | Route::Rule(name) => {
                Some(name.clone())
            }
            route if route.is_list() => self.selected(),
            _ => None,
        }
    }

    /// The occurrence that is selected or shown.
    pub(super) fn occurrence(&self) -> Option<String> {
        match (&self.page.route, &self.page.content) {
            (Route::Events, _) => self.selected(),
            (Route::Event(id), _) if id.contains(':') => Some(id.clone()),
            (Route::Event(_), Content::Event { detail, .. }) => detail
                .value
                .as_ref()
                .map(|event| event.occurrence.id.clone()),
            _ => None,
        }
    }
}
