//! Tests, tries and previews, and what is not yet resolved: asked, and asked again.

use bellwether_proto::v1;
use serde_json::{Value, json};

use super::{call, navigate};
use crate::{
    client::{Command, Request, Span},
    data::{EventRow, Kind, Object, Word},
    kind, limits,
    model::{
        Model,
        field::TextField,
        message::Effect,
        overlay::{Confirm, Consequence, Overlay, Pick, Prompt, PromptPurpose},
        page::{Content, Outcome, Page, Report},
        store::Loaded,
    },
    route::Route,
    theme::Token,
};

pub(super) fn test_destination(model: &mut Model, effects: &mut Vec<Effect>) {
    if matches!(model.page.content, Content::Report(_)) {
        return again(model, effects);
    }
    let Some(name) = model.resource_name() else {
        return;
    };
    let title = format!("Test of {name}");
    let request = Request::TestDestination {
        fields: json!({"name": name}),
        event_id: String::new(),
    };
    report(model, title, request, effects);
}

/// Makes the report's test, try or preview again; one that is under way ends.
pub(super) fn again(model: &mut Model, effects: &mut Vec<Effect>) {
    let Content::Report(report) = &model.page.content else {
        return;
    };
    let request = report.request.clone();
    if !asks_first(model, None, &request) {
        repeat(model, effects);
    }
}

/// Makes the report's request again, without a question.
pub(super) fn repeat(model: &mut Model, effects: &mut Vec<Effect>) {
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
    let ticket = call(model, request, effects);
    if let Content::Report(report) = &mut model.page.content {
        report.found = Loaded {
            waiting: Some(ticket),
            ..Loaded::default()
        };
    }
}

/// Asks for one of the events that are held, the newest first after the sample.
pub(super) fn pick_event(model: &mut Model) {
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
pub(super) fn longer(model: &mut Model, effects: &mut Vec<Effect>) {
    match &mut model.page.content {
        Content::Report(report) => match &mut report.request {
            Request::TestTrigger { span, .. } => *span = span.next(),
            _ => return model.say(Token::Info, "only the try of a trigger has a span of time"),
        },
        _ => return,
    }
    again(model, effects);
}

/// Tries the selected or shown trigger, or previews the rule, as it is stored.
pub(super) fn stored(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(kind) = model.page.route.kind() else {
        return;
    };
    let name = model.resource_name();
    let found = name.and_then(|name| model.store.object(kind, &name));
    if let Some((title, request)) = found.and_then(|object| of(object, "")) {
        begin(model, title, request, effects);
    }
}

/// Tests, tries or previews a draft that is not stored.
pub(super) fn draft(model: &mut Model, draft: &Object, effects: &mut Vec<Effect>) {
    if let Some((title, request)) = of(draft, "the unsaved ") {
        begin(model, title, request, effects);
    }
}

/// Makes the request; a test of a mapping asks for the document first.
fn begin(model: &mut Model, title: String, request: Request, effects: &mut Vec<Effect>) {
    match request {
        Request::TestMapping { fields, document } => ask_document(model, title, fields, document),
        request => report(model, title, request, effects),
    }
}

/// Asks for what a mapping is to be tested with; `document` is what it was tested with before.
fn ask_document(model: &mut Model, title: String, fields: Value, document: String) {
    model.overlay = Some(Overlay::Prompt(Prompt {
        title: title.clone(),
        help: "paste what the service sends, as x-github-event: push; {\"ref\": \"main\"}",
        field: TextField::new(document),
        offers: Vec::new(),
        then: PromptPurpose::Document { title, fields },
    }));
}

/// Tests a mapping with that document.
pub(super) fn with_document(
    model: &mut Model,
    title: String,
    fields: Value,
    document: String,
    effects: &mut Vec<Effect>,
) {
    if document.is_empty() {
        return;
    }
    let request = Request::TestMapping { fields, document };
    if let Content::Report(shown) = &mut model.page.content {
        shown.request = request;
        return again(model, effects);
    }
    report(model, title, request, effects);
}

/// Asks for another document for the test on the screen.
pub(super) fn other_document(model: &mut Model) {
    let Content::Report(shown) = &model.page.content else {
        return;
    };
    if let Request::TestMapping { fields, document } = &shown.request {
        let (title, fields) = (shown.title.clone(), fields.clone());
        let document = document.clone();
        ask_document(model, title, fields, document);
    }
}

/// What is asked about a resource, and what the page is called; none where nothing can be tested.
fn of(object: &Object, what: &str) -> Option<(String, Request)> {
    let name = object.name();
    let event_id = String::new();
    Some(match object.kind {
        Kind::Trigger => {
            let request = Request::TestTrigger {
                fields: object.part(&["name", "type"]),
                span: Span::Day,
                start_ms: None,
            };
            (format!("Try of {what}{name}"), request)
        }
        Kind::Destination => {
            let fields = object.part(&["name", "type", "delivery"]);
            let request = Request::TestDestination { fields, event_id };
            (format!("Test of {what}{name}"), request)
        }
        Kind::Mapping => {
            let fields = if what.is_empty() {
                json!({"name": name})
            } else {
                // What proves who sends is nothing to a test, and its secret is not here.
                json!({"mapping": kind::draft(object).without(&["signature"]).json})
            };
            let document = String::new();
            let request = Request::TestMapping { fields, document };
            (format!("Test of {what}{name}"), request)
        }
        Kind::Client
        | Kind::Silence
        | Kind::Calendar
        | Kind::Inhibition
        | Kind::Group
        | Kind::Pending
        | Kind::View => return None,
        Kind::Rule => {
            let fields = kind::draft(object).json;
            let request = Request::PreviewRule { fields, event_id };
            (format!("Preview of {what}{name}"), request)
        }
    })
}

/// Outstanding resolutions, about what is selected or shown, or about everything.
pub(super) fn obligations(model: &mut Model, effects: &mut Vec<Effect>) {
    let mut asked = v1::ListObligationsRequest::default();
    let name = || model.resource_name().into_iter().collect();
    match &model.page.route {
        Route::Events | Route::Event(_) => {
            let id = model.occurrence().unwrap_or_default();
            let event = id.split_once(':').map_or(id.as_str(), |(event, _)| event);
            event.clone_into(&mut asked.event_id);
        }
        Route::List(Kind::Rule) | Route::Object(Kind::Rule, _) => asked.rule_names = name(),
        Route::List(Kind::Destination) | Route::Object(Kind::Destination, _) => {
            asked.destination_names = name();
        }
        _ => {}
    }
    let title = "Not yet resolved".to_owned();
    report(model, title, Request::ListObligations(asked), effects);
}

/// Who changed what is selected or shown, or anything.
pub(super) fn history(model: &mut Model, effects: &mut Vec<Effect>) {
    let (kind, name) = match &model.page.route {
        Route::Events | Route::Event(_) => ("occurrence", model.occurrence()),
        Route::Deliveries => ("delivery", model.selected()),
        Route::Delivery(id) => ("delivery", Some(id.clone())),
        // No one changes these: the service makes them.
        Route::List(Kind::Group | Kind::Pending)
        | Route::Object(Kind::Group | Kind::Pending, _) => ("", None),
        Route::List(kind) | Route::Object(kind, _) => (kind.word(), model.resource_name()),
        _ => ("", None),
    };
    let mut asked = v1::ListAuditEntriesRequest::default();
    let mut title = "Who changed what".to_owned();
    if let Some(name) = name {
        title = format!("Who changed {kind} {name}");
        asked.kinds.push(kind.to_owned());
        asked.names.push(name);
    }
    report(model, title, Request::ListAudit(asked), effects);
}

fn report(model: &mut Model, title: String, request: Request, effects: &mut Vec<Effect>) {
    if !asks_first(model, Some(&title), &request) {
        open(model, title, request, effects);
    }
}

/// Rules that are named in the question before a test.
const RULES: usize = 6;

/// Asks before a test that creates an event in this service, which people are notified of; `false` for
/// every other request.
fn asks_first(model: &mut Model, title: Option<&str>, request: &Request) -> bool {
    let Some((name, severity)) = model.created_event(request) else {
        return false;
    };
    let title = title.map(str::to_owned);
    let then = Consequence::Test(title, Box::new(request.clone()));
    let question = format!("Test {name} with a real event?");
    let words = format!(
        "Creates an event of severity {severity} in this service, and closes it after the test."
    );
    let mut confirm = Confirm::new(question, "Create it", then).line(Token::Warning, words);
    let rules = model.store.of(Kind::Rule).rows().iter();
    let enabled: Vec<_> = rules.filter(|rule| rule.flag("enabled")).collect();
    let words = match enabled.len() {
        0 => "No rule is enabled: no one is notified.",
        _ => "Enabled rules notify if it matches, and again when it is closed:",
    };
    let mut lines = vec![words.to_owned()];
    for rule in enabled.iter().take(RULES) {
        let receivers: Vec<&str> = rule.texts("destinationNames").collect();
        lines.push(format!("  {} to {}", rule.name(), receivers.join(", ")));
    }
    if enabled.len() > RULES {
        lines.push(format!("  and {} more rules", enabled.len() - RULES));
    }
    for line in lines {
        confirm = confirm.line(Token::Text, line);
    }
    model.overlay = Some(Overlay::Confirm(confirm));
    true
}

/// Opens a page with the report.
pub(super) fn open(model: &mut Model, title: String, request: Request, effects: &mut Vec<Effect>) {
    let ticket = call(model, request.clone(), effects);
    let found = Loaded::<Outcome> {
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

/// Repeats the report's request with another event.
pub(super) fn with_event(model: &mut Model, id: &str, effects: &mut Vec<Effect>) {
    let Content::Report(report) = &mut model.page.content else {
        return;
    };
    let id = id.split_once(':').map_or(id, |(event, _)| event);
    match &mut report.request {
        Request::TestDestination { event_id, .. } | Request::PreviewRule { event_id, .. } => {
            id.clone_into(event_id);
        }
        _ => return model.say(Token::Info, "a trigger is tried on all stored events"),
    }
    again(model, effects);
}
